"""Write a conversation as a trajectory: ATIF, the format in which tools for evaluation and training take agents' runs.

The format is the Agent Trajectory Interchange Format, version 1.8 (RFC 0001 of the Harbor framework). A step is what a
user or the runtime said, or one response of the model with its calls and their results. A summary is a step of the
system. The steps that it covers stay, since a trajectory says what happened, and not what the model saw later. The
``extra`` of a step names the blocks that it was made from, and holds what the format has no place for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.audit.redacting import eraser_of
from timeline.blocks import (
    AssistantCompletion,
    Attachment,
    Reasoning,
    ToolCall,
    ToolResult,
    UserPrompt,
    instant_text,
)
from timeline.errors import InvalidArgument
from timeline.events import BlockAppended, CompactionCompleted, ModelCalled
from timeline.usage import total_usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from timeline.blocks import Block
    from timeline.events import Event, Payload
    from timeline.ports import EventStore
    from timeline.usage import Usage

SCHEMA_VERSION: Final = "ATIF-v1.8"
RAW: Final = "raw"
"""The argument that holds the text of a call whose arguments are no object, as the format wants one."""


async def trajectory(store: EventStore, conversation: str, *, library: str) -> dict[str, Any]:
    """Return a conversation as a trajectory, without what was redacted.

    Args:
        store: the store of the conversation.
        conversation: its id.
        library: the version of this library, which the format asks for.

    Raises:
        ConversationNotFound: there is no such conversation.
        InvalidArgument: it has no message yet: a trajectory has at least one step.
        StoreCorrupt: an event is damaged.
    """
    await store.info(conversation)
    eraser = await eraser_of(store, conversation)
    events = [
        (event, eraser.erase(event.version, event.payload) or event.payload) async for event in store.read(conversation)
    ]
    return trajectory_of(conversation, events, library=library)


def trajectory_of(conversation: str, events: Iterable[tuple[Event, Payload]], *, library: str) -> dict[str, Any]:
    """Return events as a trajectory; each comes with the payload to show.

    Raises:
        InvalidArgument: none of them is a message.
    """
    steps, called = _Steps(), list[ModelCalled]()
    for event, payload in events:
        if isinstance(payload, BlockAppended | CompactionCompleted):
            steps.add(event.version, payload.block, instant_text(event.at))
        elif isinstance(payload, ModelCalled):
            called.append(payload)
            steps.measure(payload)
    if not steps.done:
        raise InvalidArgument("conversation", f"{conversation!r} has no message yet, and a trajectory has one or more")
    agent: dict[str, Any] = {"name": "timeline-engine", "version": library}
    if models := [call.model for call in called if call.model]:
        agent["model_name"] = models[-1]
    return {
        "schema_version": SCHEMA_VERSION,
        "session_id": conversation,
        "agent": agent,
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps.done, start=1)],
        "final_metrics": {**_totals(called), "total_steps": len(steps.done)},
    }


class _Steps:
    """The steps so far, the one that a response may still add to, and where each call was made."""

    def __init__(self) -> None:
        self.done: list[dict[str, Any]] = []
        self._response: dict[str, Any] | None = None
        self._response_id: str | None = None
        self._of_call: dict[str, dict[str, Any]] = {}

    def add(self, version: int, block: Block, at: str) -> None:
        """Add a block to its step, or begin one with it."""
        match block:
            case ToolResult():
                step = self._answer(block, at)
            case AssistantCompletion() | Reasoning() | ToolCall():
                step = self._respond(block, at)
            case UserPrompt() | Attachment():
                step = self._say("user", block.text, at)
            case _:
                step = self._say("system", block.text, at)
        _name(step, version, block)

    def measure(self, called: ModelCalled) -> None:
        """Add the usage of a call to its response."""
        step = self._response
        if step is None or "metrics" in step or called.response_id not in {None, self._response_id}:
            return
        step["metrics"] = _used(called.usage)
        if called.model:
            step["model_name"] = called.model

    def _say(self, source: str, text: str, at: str) -> dict[str, Any]:
        step = {"timestamp": at, "source": source, "message": text}
        self.done.append(step)
        if source != "agent":
            self._response = None
        return step

    def _respond(self, block: Block, at: str) -> dict[str, Any]:
        step = self._response
        if step is None or "observation" in step or block.response_id != self._response_id:
            step = self._response = self._say("agent", "", at)
            self._response_id = block.response_id
        if isinstance(block, ToolCall):
            arguments = {RAW: block.arguments} if isinstance(block.arguments, str) else block.arguments
            made = {"tool_call_id": block.call_id, "function_name": block.name, "arguments": arguments}
            step.setdefault("tool_calls", []).append(made)
            self._of_call[block.call_id] = step
        else:
            key = "message" if isinstance(block, AssistantCompletion) else "reasoning_content"
            step[key] = "\n\n".join(filter(None, (step.get(key), block.text)))
        return step

    def _answer(self, result: ToolResult, at: str) -> dict[str, Any]:
        """Put a result beside its call; a result without its call becomes an observation of the system."""
        step = self._of_call.get(result.call_id)
        found: dict[str, Any] = {"content": result.text}
        if step is None:
            step = self._say("system", "", at)
        else:
            found = {"source_call_id": result.call_id, **found}
        status = {"is_error": result.is_error or None, "exit_status": result.exit_status}
        if more := {name: value for name, value in status.items() if value is not None}:
            found["extra"] = more
        step.setdefault("observation", {"results": []})["results"].append(found)
        return step


def _name(step: dict[str, Any], version: int, block: Block) -> None:
    """Add to a step the name of a block that it was made from, with what the format has no place for."""
    named: dict[str, Any] = {"version": version, "type": block.type, "path": block.path}
    if block.data is not None:
        named["data"] = block.data
    step.setdefault("extra", {"blocks": []})["blocks"].append(named)


def _used(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.sent_tokens,
        "completion_tokens": usage.output_tokens,
        "cached_tokens": usage.cache_read_tokens,
    }


def _totals(called: Iterable[ModelCalled]) -> dict[str, int]:
    """Return the sums over all calls, failed ones too."""
    total = total_usage(call.usage for call in called)
    return {} if total is None else {f"total_{name}": value for name, value in _used(total).items()}
