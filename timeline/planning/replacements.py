"""Replacements: the short text (or arguments object) that stands for a hidden block, and ends with its path.

Made once, when the hide is decided, and recorded with it; never made again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import Attachment, Reasoning, ToolCall, ToolResult, image_count
from timeline.events import Replacement
from timeline.frozen import canonical_json
from timeline.planning.shortening import one_line, room_in, shortened, shortened_path
from timeline.planning.tools import tool_use

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.fold.window import Item
    from timeline.ports import TokenCounter

HIDDEN_KEY: Final = "_hidden"
"""Key, among a hidden call's arguments, of the line that says how large all of them are, and where."""
_LEFT_OUT: Final = "[hidden]"
"""What stands for a single bulky argument."""
_SMALL_VALUE: Final = 12
"""Tokens of an argument that stays as it is."""
_LEAST_SUBJECT: Final = 12
"""Tokens that a call's subject gets before any other argument does."""
_NAME_SHARE: Final = 4
"""A name takes at most this part of a replacement: tools of plugins have long ones."""


def replacement_of(item: Item, call: Block | None, most: int, counter: TokenCounter) -> Replacement:
    """Make the replacement of a block, of at most ``most`` tokens where its path leaves that room.

    Args:
        item: the block.
        call: the call that it answers, when it is a result.
        most: cap in tokens.
        counter: counts them.
    """
    block = item.block
    if type(block) is ToolCall:
        arguments = _brief_arguments(block, item.tokens, most, counter)
        tokens = counter.count(f"{block.name}{canonical_json(arguments)}")
        return Replacement(version=item.version, arguments=arguments, tokens=tokens)
    if type(block) is Reasoning:  # a thought is of no use to the model when its round is long over
        return Replacement(version=item.version)
    if type(block) is ToolResult:
        text = _result_line(block, call, item.tokens, most, counter)
    elif type(block) is Attachment:
        text = _attachment_line(block, item.tokens, most, counter)
    else:
        text = _beginning(block, item.tokens, most, counter)
    return Replacement(version=item.version, text=text, tokens=counter.count(text))


def _result_line(result: ToolResult, call: Block | None, tokens: int, most: int, counter: TokenCounter) -> str:
    """Say what a result was: its tool, what was asked in brief, its size and how it ended."""
    asked = _asked(call) if isinstance(call, ToolCall) else _Subject("")
    name = one_line(result.name or (call.name if isinstance(call, ToolCall) else "") or "tool")
    name = shortened(name, most // _NAME_SHARE, counter)
    ended = f"{_size(result, tokens)}, {_status(result)}"

    def line(room: int) -> str:
        return f"[{name}({asked.brief(room, counter)}): {ended}, hidden] {result.path}"

    return line(room_in(line, most, counter))


def _attachment_line(block: Attachment, tokens: int, most: int, counter: TokenCounter) -> str:
    """Say what was attached: its name, its kind and its size."""
    name = _Subject(one_line(str(block.meta.get("file") or "attachment")), is_file=True)
    kind = "" if image_count(block) else f"{shortened(one_line(block.mime), most // _NAME_SHARE, counter)}, "

    def line(room: int) -> str:
        return f"[{name.brief(room, counter)}: {kind}{_size(block, tokens)}, hidden] {block.path}"

    return line(room_in(line, most, counter))


def _beginning(block: Block, tokens: int, most: int, counter: TokenCounter) -> str:
    """Keep the beginning of a text, and say where all of it is."""
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
    """What a call is about, on one line; ``key`` is the argument that says it, where there is just one."""

    text: str
    key: str | None = None
    is_file: bool = False

    def brief(self, room: int, counter: TokenCounter) -> str:
        """Shorten it: of a file the end tells most, of a command or query the beginning."""
        return (shortened_path if self.is_file else shortened)(self.text, room, counter)


def _subject(call: ToolCall) -> _Subject:
    """Find the file, command or query that a call is about; none for other tools."""
    use = tool_use(call)
    if use is None:
        return _Subject("")
    given = call.arguments if isinstance(call.arguments, dict) else {}
    key = next((key for key, value in given.items() if value == use.subjects[0]), None)
    is_file = use.kind in {"read", "write"} and len(use.subjects) == 1
    return _Subject(one_line(", ".join(use.subjects)), key, is_file)


def _asked(call: ToolCall) -> _Subject:
    """Say what a call asked for: its subject, else its arguments by name."""
    subject = _subject(call)
    if subject.text:
        return subject
    if isinstance(call.arguments, str):
        return _Subject(one_line(call.arguments))
    named = (f"{k}={v if isinstance(v, str) else canonical_json(v)}" for k, v in call.arguments.items())
    return _Subject(one_line(", ".join(named)))


def _brief_arguments(call: ToolCall, tokens: int, most: int, counter: TokenCounter) -> dict[str, Any]:
    """Keep what a call is about and its small arguments, and say where all of them are: always a valid object.

    Where room is short, the marks of bulky arguments go first, then the small arguments.
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
