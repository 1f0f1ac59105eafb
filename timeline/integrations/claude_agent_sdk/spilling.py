"""`spill_hook`: keep a tool's large results out of the client's context, and in a log that the model can read."""

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
    from collections.abc import Awaitable, Callable, Iterator

    from timeline.ports import EventStore

Hook: TypeAlias = "Callable[[Any, str | None, Any], Awaitable[dict[str, Any]]]"
"""The SDK's `HookCallback`."""

_OPAQUE: Final = frozenset({"base64", "data", "source"})
"""Keys of a result under which there are media, which have no preview."""


def spill_hook(store: EventStore, *, tokens: int = 4_000, preview_tokens: int = 500) -> Hook:
    """Return a hook for `PostToolUse` that puts a preview in the place of a text of more than ``tokens``.

    The whole text is in the conversation ``<session id>.spilled``, and the preview names its address there, such as
    ``6a1f….spilled@3``: with `timeline mcp` among the agent's servers the model reads it by the tool `read`, in pieces.
    The result keeps its shape, which the client demands of its own tools. A failed call is none of `PostToolUse`.

    Args:
        store: open, from `timeline.open_store`.
        tokens: the most that a text in a result may have.
        preview_tokens: the size of a preview: the beginning and the end of the text.

    Raises:
        InvalidArgument: an argument is something else.
    """
    checks.parts(store, None, None, None, None)
    checks.whole("tokens", tokens, least=1)
    checks.whole("preview_tokens", preview_tokens, least=1)

    async def hook(given: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        del context
        texts = list(_texts(given["tool_response"]))
        timeline = None
        for text in dict.fromkeys(texts):
            pass
        return {}

    return hook


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts of a result that a model reads."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in _OPAQUE:
                yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
