"""What a call of a model takes and uses, in the words of the Responses API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timeline.extras import needs
from timeline.wire.usage import responses_usage

with needs("openai-agents"):
    from agents import FunctionTool, Handoff

if TYPE_CHECKING:
    from agents import Agent, ModelResponse

    from timeline.usage import Usage


def usage_of(response: ModelResponse) -> Usage:
    """Return what a call used, as every wire counts it."""
    used = response.usage
    told = {
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "input_tokens_details": {
            "cached_tokens": used.input_tokens_details.cached_tokens,
            "cache_write_tokens": getattr(used.input_tokens_details, "cache_write_tokens", 0),
        },
    }
    return responses_usage(told)


def schemas_of(agent: Agent[Any]) -> list[dict[str, Any]]:
    """Return what an agent's function tools and handoffs take of a request, as far as it is known without asking."""
    tools = [
        {"type": "function", "name": t.name, "description": t.description, "parameters": t.params_json_schema}
        for t in agent.tools
        if isinstance(t, FunctionTool)
    ]
    handoffs = [
        {"type": "function", "name": h.tool_name, "description": h.tool_description, "parameters": h.input_json_schema}
        for h in agent.handoffs
        if isinstance(h, Handoff)
    ]
    return [*tools, *handoffs]


def model_of(agent: Agent[Any]) -> str:
    """Return the name of an agent's model; empty where it is not known."""
    name = agent.model if isinstance(agent.model, str) else getattr(agent.model, "model", "")
    return name if isinstance(name, str) else ""
