"""Make the replacement of a block: the short text, arguments object or preview shown for it, with its path at the end.

A replacement is made once, when the hide is decided, and recorded with it. A preview shows the beginning and end of a
large result, argument or pasted prompt; it is used where the newest group alone, or all carried blocks together, are
too large. An ellipsis marks each place where text is left out, so that no part looks like the whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import (
    Attachment,
    CustomBlock,
    Note,
    Reasoning,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserPrompt,
    image_count,
)
from timeline.events import Replacement
from timeline.facts.tool_use import tool_use
from timeline.frozen import canonical_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.blocks import Block
    from timeline.fold.window import Item
    from timeline.ports import TokenCounter


_ELLIPSIS: Final = "…"
_LOOKED_AT: Final = 2_000
"""Characters of a text that are read to make a line: more than any line has room for."""
_SEPARATOR: Final = re.compile(r"[/\\]")


def one_line(text: str) -> str:
    """Return the beginning of a text on one line, with each run of white space as one space."""
    line = " ".join(text[:_LOOKED_AT].split())
    return line if len(text) <= _LOOKED_AT else line + _ELLIPSIS


def cut_to(text: str, characters: int) -> str:
    """Return a text of at most this many characters: all of it, or its beginning and an ellipsis."""
    return text if len(text) <= characters else text[: characters - 1].rstrip() + _ELLIPSIS


def shortened(text: str, most: int, counter: TokenCounter) -> str:
    """Return a text of at most ``most`` tokens: all of it, or its beginning and an ellipsis."""
    return text if counter.count(text) <= most else _beginning_of(text, most, counter)


def _beginning_of(text: str, most: int, counter: TokenCounter) -> str:
    for room in range(most - 1, 0, -1):  # the ellipsis may merge with the text before it into other tokens
        head = counter.truncate(text, room).rstrip()
        if head and counter.count(head + _ELLIPSIS) <= most:
            return head + _ELLIPSIS
    return ""


def shortened_path(path: str, most: int, counter: TokenCounter) -> str:
    """Return a file's path, or as many of its last parts as fit ``most`` tokens: the name matters most."""
    if counter.count(path) <= most:
        return path
    starts = [separator.start() for separator in _SEPARATOR.finditer(path, 1)]
    ends = (_ELLIPSIS + path[start:] for start in starts)
    name = path[starts[-1] + 1 :] if starts else path
    return next((end for end in ends if counter.count(end) <= most), "") or _beginning_of(name, most, counter)


def room_in(line: Callable[[int], str], most: int, counter: TokenCounter) -> int:
    """Return the tokens that the variable part of a line may take, for the line to count at most ``most``.

    Counts of parts do not add up exactly, so the whole line is made and counted. The result is negative where the line
    is too long even without its variable part.
    """
    room = most - counter.count(line(0))
    while room > 0 and (over := counter.count(line(room)) - most) > 0:
        room = max(0, room - over)
    return room


HIDDEN_KEY: Final = "_hidden"
"""Key, among a hidden call's arguments, of the line with the size of all arguments and the call's path."""
_LEFT_OUT: Final = "[hidden]"
"""The replacement of a single bulky argument."""
_SMALL_VALUE: Final = 12
"""The most tokens of an argument that is kept unchanged."""
_LEAST_SUBJECT: Final = 12
"""Tokens reserved for a call's subject before other arguments are kept."""
_NAME_SHARE: Final = 4
"""A tool name takes at most one part in this many of a replacement: tools of plugins have long names."""


def replacement_of(item: Item, call: Block | None, most: int, counter: TokenCounter) -> Replacement:
    """Return the replacement of a block, of at most ``most`` tokens unless its path alone is longer.

    Args:
        item: the block.
        call: the call that it answers, if it is a result.
        most: cap in tokens.
        counter: counts them.
    """
    block = item.block
    if type(block) is ToolCall:
        arguments = _brief_arguments(block, item.tokens, most, counter)
        tokens = counter.count(f"{block.name}{canonical_json(arguments)}")
        return Replacement(version=item.version, arguments=arguments, tokens=tokens)
    if type(block) is Reasoning:  # old reasoning is of no use to the model: not even a line of it
        return Replacement(version=item.version)
    if type(block) is ToolResult:
        text = _result_line(block, call, item.tokens, most, counter)
    elif type(block) is Attachment:
        text = _attachment_line(block, item.tokens, most, counter)
    else:
        text = _beginning(block, item.tokens, most, counter)
    return Replacement(version=item.version, text=text, tokens=counter.count(text))


def _result_line(result: ToolResult, call: Block | None, tokens: int, most: int, counter: TokenCounter) -> str:
    """Return a line about a result: its tool, the call's subject in brief, its size and its status."""
    asked = _asked(call) if isinstance(call, ToolCall) else _Subject("")
    name = one_line(result.name or (call.name if isinstance(call, ToolCall) else "") or "tool")
    name = shortened(name, most // _NAME_SHARE, counter)
    ended = f"{_size(result, tokens)}, {_status(result)}"

    def line(room: int) -> str:
        return f"[{name}({asked.brief(room, counter)}): {ended}, hidden] {result.path}"

    return line(room_in(line, most, counter))


def _attachment_line(block: Attachment, tokens: int, most: int, counter: TokenCounter) -> str:
    """Return a line about an attachment: its name, its kind and its size."""
    name = _Subject(one_line(str(block.meta.get("file") or "attachment")), is_file=True)
    kind = "" if image_count(block) else f"{shortened(one_line(block.mime), most // _NAME_SHARE, counter)}, "

    def line(room: int) -> str:
        return f"[{name.brief(room, counter)}: {kind}{_size(block, tokens)}, hidden] {block.path}"

    return line(room_in(line, most, counter))


def _beginning(block: Block, tokens: int, most: int, counter: TokenCounter) -> str:
    """Return the beginning of a text, with its size and the path of the whole."""
    text = one_line(block.text)

    def line(room: int) -> str:
        return f"{shortened(text, room, counter)} [{_size(block, tokens)}, shortened] {block.path}".lstrip()

    return line(room_in(line, most, counter))


def _size(block: Block, tokens: int) -> str:
    pictures = image_count(block)
    shown = "" if not pictures else " with 1 picture" if pictures == 1 else f" with {pictures} pictures"
    return f"{tokens} tokens{shown}"


def _status(result: ToolResult) -> str:
    if result.exit_status is not None:
        return f"exit {result.exit_status}"
    return "error" if result.is_error else "ok"


@dataclass(frozen=True, slots=True)
class _Subject:
    """The subject of a call on one line; ``key`` is the argument that holds it, where a single one does."""

    text: str
    key: str | None = None
    is_file: bool = False

    def brief(self, room: int, counter: TokenCounter) -> str:
        """Return it shortened: keep the end of a file's path, and the beginning of a command or query."""
        return (shortened_path if self.is_file else shortened)(self.text, room, counter)


def _subject(call: ToolCall) -> _Subject:
    """Return the file, command or query of a call; an empty subject for other tools."""
    use = tool_use(call)
    if use is None:
        return _Subject("")
    given = call.arguments if isinstance(call.arguments, dict) else {}
    key = next((key for key, value in given.items() if value == use.subjects[0]), None)
    is_file = use.kind in {"read", "write"} and len(use.subjects) == 1
    return _Subject(one_line(", ".join(use.subjects)), key, is_file)


def _asked(call: ToolCall) -> _Subject:
    """Return the subject of a call; without one, its arguments by name."""
    subject = _subject(call)
    if subject.text:
        return subject
    if isinstance(call.arguments, str):
        return _Subject(one_line(call.arguments))
    named = (f"{k}={v if isinstance(v, str) else canonical_json(v)}" for k, v in call.arguments.items())
    return _Subject(one_line(", ".join(named)))


def _brief_arguments(call: ToolCall, tokens: int, most: int, counter: TokenCounter) -> dict[str, Any]:
    """Return a valid arguments object with a call's subject, its small arguments and the path of all of them.

    Where room is short, the marks of bulky arguments are left out first, then the small arguments.
    """
    subject = _subject(call)
    given: dict[str, Any] = call.arguments if isinstance(call.arguments, dict) else {}
    others = {key: value for key, value in given.items() if key != subject.key}
    small = {key: value for key, value in others.items() if _is_small(value, counter)}
    marked = {key: small.get(key, _LEFT_OUT) for key in others}

    def brief(kept: dict[str, Any], room: int) -> dict[str, Any]:
        about = subject.brief(room, counter)
        if subject.key is not None:
            return {subject.key: about, **kept, HIDDEN_KEY: f"[{tokens} tokens, hidden] {call.path}"}
        what = f"{about}: {tokens} tokens" if about else f"{tokens} tokens"
        return {**kept, HIDDEN_KEY: f"[{what}, hidden] {call.path}"}

    def line(kept: dict[str, Any], room: int) -> str:
        return f"{call.name}{canonical_json(brief(kept, room))}"

    rooms = [(kept, room_in(partial(line, kept), most, counter)) for kept in (marked, small, {})]
    least = min(_LEAST_SUBJECT, counter.count(subject.text))
    return brief(*next((choice for choice in rooms if choice[1] >= least), rooms[-1]))


def _is_small(value: Any, counter: TokenCounter) -> bool:
    text = value if isinstance(value, str) else canonical_json(value)
    return len(text) <= 4 * _SMALL_VALUE and counter.count(text) <= _SMALL_VALUE


_PREVIEWABLE: Final = (ToolCall, ToolResult, UserPrompt, Attachment, CustomBlock, Note, SystemMessage)
_TAIL_SHARE: Final = 0.3
_FRAME_TOKENS: Final = 60
"""Tokens reserved for the line between head and tail: two figures and a path."""


def can_preview(item: Item, preview_tokens: int) -> bool:
    """Return whether an item is shown in full and larger than its preview would be."""
    previewable = isinstance(item.block, _PREVIEWABLE) and not item.redacted
    return previewable and item.replacement is None and not item.omitted and item.tokens > preview_tokens


def preview_of(item: Item, preview_tokens: int, counter: TokenCounter) -> Replacement:
    """Return the preview of an item, of at most ``preview_tokens`` unless its path alone is longer."""
    block = item.block
    if isinstance(block, ToolCall):
        arguments = _preview_arguments(block, preview_tokens, counter)
        tokens = counter.count(f"{block.name}{canonical_json(arguments)}")
        return Replacement(version=item.version, arguments=arguments, tokens=tokens)
    text = preview_text(block, item.tokens, preview_tokens, counter)
    return Replacement(version=item.version, text=text, tokens=counter.count(text))


def preview_text(block: Block, tokens: int, preview_tokens: int, counter: TokenCounter) -> str:
    """Return head and tail of a block's text, and between them its size and the path of the whole."""
    pictures = image_count(block)
    what = f"{pictures} pictures and " if pictures else ""
    frame = f"\n[… preview: {what}the middle of {tokens} tokens left out; all of it: {block.path} …]\n"
    room = max(0, preview_tokens - max(_FRAME_TOKENS, counter.count(frame)))
    tail_room = int(room * _TAIL_SHARE)
    head = counter.truncate(block.text, room - tail_room)
    return head + frame + _tail(block.text[len(head) :], tail_room, counter)


def _tail(text: str, tokens: int, counter: TokenCounter) -> str:
    """Return the end of a text, of at most ``tokens``. It is shortened by thirds: a little less is as good."""
    tail = text[-tokens * 4 :] if tokens else ""
    while tail and counter.count(tail) > tokens:
        tail = tail[len(tail) // 3 + 1 :]
    return tail


def _preview_arguments(call: ToolCall, preview_tokens: int, counter: TokenCounter) -> dict[str, Any]:
    """Return the arguments with the longest values shortened until they fit; else the beginning of their JSON."""
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
