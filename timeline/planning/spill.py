"""Spilling: an oversize result, argument or pasted prompt is shown as a preview that says where the rest is.

Used when the newest group alone is too large, and when carried blocks together are. A preview is a replacement like any
other: recorded once, never made again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import Attachment, CustomBlock, Note, SystemMessage, ToolCall, ToolResult, UserPrompt, image_count
from timeline.events import Replacement
from timeline.frozen import canonical_json

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.fold.window import Item
    from timeline.ports import TokenCounter

_SPILLABLE: Final = (ToolCall, ToolResult, UserPrompt, Attachment, CustomBlock, Note, SystemMessage)
_TAIL_SHARE: Final = 0.3
_FRAME_TOKENS: Final = 60
"""What the line between head and tail may take: two figures and a path."""


def can_spill(item: Item, preview_tokens: int) -> bool:
    """Say whether a preview of an item would be smaller than what is shown of it now."""
    spillable = isinstance(item.block, _SPILLABLE) and not item.redacted
    return spillable and item.replacement is None and not item.omitted and item.tokens > preview_tokens


def spill(item: Item, preview_tokens: int, counter: TokenCounter) -> Replacement:
    """Make the preview of an item, of at most ``preview_tokens`` where its address leaves that room."""
    block = item.block
    if isinstance(block, ToolCall):
        arguments = _preview_arguments(block, preview_tokens, counter)
        tokens = counter.count(f"{block.name}{canonical_json(arguments)}")
        return Replacement(version=item.version, arguments=arguments, tokens=tokens)
    text = preview(block, item.tokens, preview_tokens, counter)
    return Replacement(version=item.version, text=text, tokens=counter.count(text))


def preview(block: Block, tokens: int, preview_tokens: int, counter: TokenCounter) -> str:
    """Return head and tail of a block's text, and between them how much is left out and where to read it."""
    pictures = image_count(block)
    what = f"{pictures} pictures and " if pictures else ""
    frame = f"\n[… preview: {what}the middle of {tokens} tokens left out; all of it: {block.path} …]\n"
    room = max(0, preview_tokens - max(_FRAME_TOKENS, counter.count(frame)))
    tail_room = int(room * _TAIL_SHARE)
    head = counter.truncate(block.text, room - tail_room)
    return head + frame + _tail(block.text[len(head) :], tail_room, counter)


def _tail(text: str, tokens: int, counter: TokenCounter) -> str:
    """Return an end of a text of at most ``tokens``; a little less is as good, so it is shortened by thirds."""
    tail = text[-tokens * 4 :] if tokens else ""
    while tail and counter.count(tail) > tokens:
        tail = tail[len(tail) // 3 + 1 :]
    return tail


def _preview_arguments(call: ToolCall, preview_tokens: int, counter: TokenCounter) -> dict[str, Any]:
    """Shorten the longest values until the object fits; an object that is all small values keeps only its address."""
    note = f"[… left out; all arguments: {call.path}]"
    if isinstance(call.arguments, str):
        return {"_preview": counter.truncate(call.arguments, preview_tokens // 2), "_all": note}
    arguments: dict[str, Any] = dict(call.arguments)
    for share in (2, 4, 8, 16):
        for key, value in arguments.items():
            text = value if isinstance(value, str) else canonical_json(value)
            most = preview_tokens // share
            if counter.count(text) > most:
                arguments[key] = counter.truncate(text, most) + note
        if counter.count(f"{call.name}{canonical_json(arguments)}") <= preview_tokens:
            return arguments
    return {"_preview": counter.truncate(canonical_json(call.arguments), preview_tokens // 2), "_all": note}
