"""Content of spans, for those who ask for it: messages as JSON, in the form of OpenTelemetry's conventions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timeline.blocks import RangeSummary, Reasoning, ToolCall, ToolResult
from timeline.frozen import compact_json
from timeline.planning.messages import role_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from timeline.blocks import Block
    from timeline.ports import Summary, SummaryRequest
    from timeline.projection.context import RenderedContext
    from timeline.wire.neutral import Entry

_SUMMARY = "conv.range.summary"


def context_content(context: RenderedContext) -> dict[str, str]:
    """Return the messages, the system prompt and the tools of a context, by attribute."""
    neutral = context.neutral
    told = {
        "gen_ai.input.messages": _messages((e.role, _entry_part(e)) for e in (*neutral.entries, *neutral.ephemeral))
    }
    if neutral.system is not None:
        parts = neutral.system if isinstance(neutral.system, list) else [_text(str(neutral.system))]
        told["gen_ai.system_instructions"] = compact_json(parts)
    if neutral.tools:
        told["gen_ai.tool.definitions"] = compact_json(list(neutral.tools))
    return told


def request_content(request: SummaryRequest) -> dict[str, str]:
    """Return what a summarizer is to summarise, by attribute: the summary to integrate first."""
    earlier = [("user", {"type": "compaction", "content": request.previous})] if request.previous else []
    own = [(str(role_of(block)), _block_part(block)) for block in request.blocks]
    return {"gen_ai.input.messages": _messages([*earlier, *own])}


def summary_content(summary: Summary) -> dict[str, str]:
    """Return a summarizer's answer, by attribute."""
    said = {"role": "assistant", "parts": [_text(summary.text)], "finish_reason": "stop"}
    return {"gen_ai.output.messages": compact_json([said])}


def _messages(parts: Iterable[tuple[str, dict[str, Any]]]) -> str:
    """Join neighbouring parts of one role into messages."""
    joined: list[dict[str, Any]] = []
    for role, part in parts:
        if not joined or joined[-1]["role"] != role:
            joined.append({"role": role, "parts": []})
        joined[-1]["parts"].append(part)
    return compact_json(joined)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "content": text}


def _entry_part(entry: Entry) -> dict[str, Any]:
    if entry.type == _SUMMARY:
        return {"type": "compaction", "content": entry.text}
    if entry.type == "react.tool.call":
        return {"type": "tool_call", "id": entry.call_id, "name": entry.name, "arguments": entry.arguments}
    if entry.type == "react.tool.result" and not entry.loose:
        return {"type": "tool_call_response", "id": entry.call_id, "response": entry.text}
    return {"type": "reasoning", "content": entry.text} if entry.type == "assistant.reasoning" else _text(entry.text)


def _block_part(block: Block) -> dict[str, Any]:
    match block:
        case RangeSummary():
            return {"type": "compaction", "content": block.text}
        case ToolCall():
            return {"type": "tool_call", "id": block.call_id, "name": block.name, "arguments": block.arguments}
        case ToolResult():
            return {"type": "tool_call_response", "id": block.call_id, "response": block.text}
        case Reasoning():
            return {"type": "reasoning", "content": block.text}
        case _:
            return _text(block.text)
