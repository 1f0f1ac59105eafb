"""Prints what the names of the OpenAI Agents SDK look like that the adapter uses, as JSON; run it as a program."""

from __future__ import annotations

import inspect
import json
from importlib import import_module
from typing import Any, Final

USED: Final = (
    "agents:Agent",
    "agents:FunctionTool",
    "agents:Handoff",
    "agents:ModelResponse",
    "agents:ModelResponse.to_input_items",
    "agents:ModelRetrySettings",
    "agents:ModelSettings",
    "agents:ModelSettings.resolve",
    "agents:RetryDecision",
    "agents:RetryPolicyContext",
    "agents:RunConfig",
    "agents:RunHooks.on_llm_end",
    "agents:RunHooks.on_llm_start",
    "agents:Runner.run",
    "agents:Runner.run_streamed",
    "agents:SessionSettings",
    "agents.handoffs:get_conversation_history_wrappers",
    "agents.memory:Session.add_items",
    "agents.memory:Session.clear_session",
    "agents.memory:Session.get_items",
    "agents.memory:Session.pop_item",
    "agents.memory:is_openai_responses_compaction_aware_session",
    "agents.memory.session_settings:coerce_session_settings",
    "agents.memory.session_settings:resolve_session_limit",
    "agents.models.fake_id:FAKE_RESPONSES_ID",
    "agents.run:CallModelData",
    "agents.run:ModelInputData",
)


def look() -> dict[str, str]:
    """Return each name's signature, or its value where it is none; what is not there is said to be missing."""
    return {name: _of(*name.split(":")) for name in USED}


def _of(module: str, path: str) -> str:
    found: Any = import_module(module)
    for part in path.split("."):
        found = getattr(found, part, _of)
        if found is _of:
            return "missing"
    return str(inspect.signature(found)) if callable(found) else repr(found)


if __name__ == "__main__":
    print(json.dumps(look(), indent=2))
