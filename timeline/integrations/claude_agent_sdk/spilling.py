"""`spill_hook`: keep the large results of tools out of the client's context, and in a log that the model can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from timeline import checks
from timeline.blocks import ToolCall, ToolResult
from timeline.events import ParentLink
from timeline.events.addresses import Address
from timeline.fold.window import Item
from timeline.log.spilled import spilled_id
from timeline.planning.replacements import preview_of
from timeline.timeline import Timeline
from timeline.tokens import get_counter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from timeline.ports import EventStore

Hook: TypeAlias = "Callable[[Any, str | None, Any], Awaitable[Any]]"
"""The SDK's `HookCallback`."""

_COUNTER: Final = "o200k_base"
_WRITING: Final = frozenset({"Edit", "MultiEdit", "NotebookEdit", "TodoWrite", "Write"})
"""The client's tools whose results hold whole files, of which the model gets one line."""
_MEDIA: Final = frozenset({"base64", "data", "source"})
"""Keys of a result under which there are media, which have no preview."""


def spill_hook(
    store: EventStore, *, tokens: int = 4_000, preview_tokens: int = 500, reading: str = "mcp__timeline__"
) -> Hook:
    """Return a hook for `PostToolUse` that puts a preview in the place of each text of more than ``tokens``.

    The call and its whole result are in the conversation ``<session id>.spilled``, and the preview names the address
    there, such as ``6a1f….spilled@4``: with `timeline mcp` among the agent's servers the model reads it by the tool
    ``read``, in pieces. The result keeps its shape, which the client demands of its own tools. The client calls the
    hook for calls that succeeded, those of subagents included.

    Args:
        store: open, from `timeline.open_store`; it is used in its event loop.
        tokens: the most that a text of a result may have, counted by ``o200k_base``.
        preview_tokens: the size of a preview: the beginning and the end of the text.
        reading: what the names of the tools begin with that read the log back; their results stay as they are.

    Raises:
        InvalidArgument: an argument is something else.
    """
    checks.awaited_store(store)
    checks.positive("tokens", tokens)
    checks.positive("preview_tokens", preview_tokens)
    checks.text_of("reading", reading, 200, least=1)

    async def hook(given: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        del context
        if given["tool_name"] in _WRITING or given["tool_name"].startswith(reading):
            return {}
        counter = get_counter(_COUNTER)
        texts = dict.fromkeys(text for text in _texts(given["tool_response"]) if len(text) > tokens)  # a token has one
        large = {text: size for text in texts if (size := counter.count(text)) > tokens}
        if not large:
            return {}
        called = tool_use_id or given["tool_use_id"]
        call = ToolCall(call_id=called, name=given["tool_name"], arguments=given["tool_input"])
        whole = ToolResult(call_id=called, name=call.name, text="\n\n".join(large))
        address = await _kept(store, given["session_id"], call, whole)
        previews = {
            text: preview_of(
                Item(0, 0, whole.model_copy(update={"text": text}), size), preview_tokens, counter, address=address
            )
            for text, size in large.items()
        }
        output = _replaced(given["tool_response"], {text: preview.text for text, preview in previews.items()})
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": output}}

    return hook


async def _kept(store: EventStore, session: str, call: ToolCall, result: ToolResult) -> str:
    """Append a call and its result to the conversation of a session's large results; return the result's address."""
    link = ParentLink(conversation=session)
    timeline = await Timeline.open(store, spilled_id(session), title=f"Large results of {session}", parent=link)
    _, kept = await timeline.append(call, result)
    version = next(item.version for item in reversed(timeline.window.items) if item.block.path == kept.path)
    return str(Address(version, timeline.id))


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts of a result that a model reads."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in _MEDIA:
                yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _replaced(value: Any, by: Mapping[str, str]) -> Any:
    """Return a result of the same shape with other texts."""
    if isinstance(value, str):
        return by.get(value, value)
    if isinstance(value, dict):
        return {key: inner if key in _MEDIA else _replaced(inner, by) for key, inner in value.items()}
    return [_replaced(inner, by) for inner in value] if isinstance(value, list) else value
