"""OpenAI's requests to approve a call of an MCP server's tool, and the answers of the application.

A request is a call that waits: its result is the answer, a failure denies it. The API refuses an answer without its
request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import ToolCall, ToolResult
from timeline.content.native import APPROVAL
from timeline.frozen import compact_json
from timeline.wire.foreign import arguments_of, text_of
from timeline.wire.neutral import INTERRUPTED

if TYPE_CHECKING:
    from timeline.wire.media import Part
    from timeline.wire.neutral import Entry

ANSWER: Final = "mcp_approval_response"
"""The type of an item that approves or denies."""
APPROVED: Final = "approved"
DENIED: Final = "denied"
"""Texts of an answer that gives no reason."""
_LABEL: Final = "server_label"
_REQUEST: Final = "approval_request_id"


def request_block(item: Part, call_id: str, response_id: str) -> ToolCall:
    """Read a request; its ``data`` is its form.

    The form keeps the arguments where ours would differ in their bytes: a user approves exactly what was asked for.

    Args:
        item: one of the type `APPROVAL`.
        call_id: the id for a request without one.
        response_id: the response that it belongs to.
    """
    raw = item.get("arguments", "")
    arguments = arguments_of(raw)
    same = isinstance(arguments, str) or compact_json(arguments) == raw
    form: Any = {"type": APPROVAL, "arguments": None if same else raw, _LABEL: text_of(item, _LABEL)}
    return ToolCall(
        call_id=text_of(item, "id") or call_id,
        name=text_of(item, "name") or "unknown",
        arguments=arguments,
        pending=True,
        data=form,
        response_id=response_id,
    )


def request_item(entry: Entry) -> Part | None:
    """Return the item of a request; None of any other call, and of one that is hidden."""
    form = entry.data
    if not isinstance(form, dict) or form.get("type") != APPROVAL or not text_of(form, _LABEL):
        return None
    own = entry.arguments if isinstance(entry.arguments, str) else compact_json(entry.arguments or {})
    return {
        "type": APPROVAL,
        "id": str(entry.call_id),
        "arguments": text_of(form, "arguments") or own,
        "name": entry.name,
        _LABEL: form[_LABEL],
    }


def answer_item(request: Part, entry: Entry | None) -> Part:
    """Return the item of an answer; a request without one is denied, so that nothing runs that nobody approved.

    Args:
        request: the item of the request.
        entry: the answer, if there is one.
    """
    approved = entry is not None and not entry.is_error
    reason = entry.text if entry is not None else INTERRUPTED
    explained = {"reason": reason} if reason.strip() and reason not in {APPROVED, DENIED} else {}
    return {"type": ANSWER, _REQUEST: request["id"], "approve": approved, **explained}


def answer_block(item: Part, name: str) -> ToolResult | None:
    """Read an answer; None where it names no request, or is the denial that is sent as long as there is none.

    Args:
        item: one of the type `ANSWER`.
        name: the tool that the request was about.
    """
    request, approved = text_of(item, _REQUEST), item.get("approve") is True
    reason = text_of(item, "reason")
    if not request or (reason == INTERRUPTED and not approved):
        return None
    text = reason or (APPROVED if approved else DENIED)
    return ToolResult(call_id=request, name=name, text=text, is_error=not approved)
