"""`spill_hook`: keep the large results of tools out of the client's context, and in a log that the model can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from timeline import checks
from timeline.blocks import ToolCall, ToolResult
from timeline.events import ParentLink
from timeline.events.addresses import Address
from timeline.fold.window import Item
from timeline.planning.replacements import preview_of
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from timeline.ports import EventStore

Hook: TypeAlias = "Callable[[Any, str | None, Any], Awaitable[dict[str, Any]]]"
"""The SDK's `HookCallback`."""

_MEDIA: Final = frozenset({"base64", "data", "source"})
"""Keys of a result under which there are media, which have no preview."""


def spill_hook(store: EventStore, *, tokens: int = 4_000, preview_tokens: int = 500) -> Hook:
    """Return a hook for `PostToolUse` that puts a preview in the place of each text of more than ``tokens``.

    The call and its whole result are in the conversation ``<session id>.spilled``, and the preview names the address
    there, such as ``6a1f….spilled@4``: with `timeline mcp` among the agent's servers the model reads it by the tool
    ``read``, in pieces. The result keeps its shape, which the client demands of its own tools. The client calls the
    hook for calls that succeeded, those of subagents included.

    Args:
        store: open, from `timeline.open_store`; it is used in its event loop.
        tokens: the most that a text of a result may have.
        preview_tokens: the size of a preview: the beginning and the end of the text.

    Raises:
        InvalidArgument: an argument is something else.
    """
    checks.parts(store, None, None, None, None)
    checks.positive("tokens", tokens)
    checks.positive("preview_tokens", preview_tokens)

    async def hook(given: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        del context
        texts = dict.fromkeys(text for text in _texts(given["tool_response"]) if len(text) > tokens)  # a token: >= 1
        if not texts:
            return {}
        call = ToolCall(
            call_id=tool_use_id or given["tool_use_id"], name=given["tool_name"], arguments=given["tool_input"]
        )
        session = given["session_id"]
        spilled = _Spilled(store, f"{session}.spilled", ParentLink(conversation=session), tokens, preview_tokens)
        previews = await spilled.previews(call, list(texts))
        if not previews:
            return {}
        output = _replaced(given["tool_response"], previews)
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": output}}

    return hook


class _Spilled:
    """The conversation of a session's large results."""

    def __init__(self, store: EventStore, id_: str, parent: ParentLink, tokens: int, preview_tokens: int) -> None:
        self._store = store
        self._id = id_
        self._parent = parent
        self._tokens = tokens
        self._preview_tokens = preview_tokens

    async def previews(self, call: ToolCall, texts: list[str]) -> dict[str, str]:
        """Append a call with those of its texts that are large; return the preview of each."""
        timeline = await Timeline.open(self._store, self._id, parent=self._parent)
        results = [ToolResult(call_id=call.call_id, name=call.name, text=text) for text in texts]
        sizes = zip(results, await timeline.count(results), strict=True)
        large = [(result, size) for result, size in sizes if size > self._tokens]
        if not large:
            return {}
        whole = ToolResult(call_id=call.call_id, name=call.name, text="\n\n".join(result.text for result, _ in large))
        _, kept = await timeline.append(call, whole)
        version = next(item.version for item in reversed(timeline.window.items) if item.block.path == kept.path)
        address = str(Address(version, self._id))
        previews = (
            preview_of(Item(version, version, result, size), self._preview_tokens, timeline.counter, address=address)
            for result, size in large
        )
        return {result.text: preview.text for (result, _), preview in zip(large, previews, strict=True)}


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
