"""Make the replacement of a block: the short text, arguments object or preview shown for it, with its address.

A replacement is made once, when the hide is decided, and recorded with it. It always names its subject: the file, the
command or query, else the arguments or the beginning of the text. A hidden call has one argument, `HIDDEN_KEY`, and
none of its tool's, since a model may imitate a call in which only the bulky values are missing (ADR 0035). A preview
shows the beginning and end of a large result, argument or pasted prompt. It is used where the newest group alone, or
all carried blocks together, are too large. An ellipsis marks each place where text is left out, so that no part looks
like the whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.blocks import Attachment, CustomBlock, Note, Reasoning, SystemMessage, ToolCall, ToolResult, UserPrompt
from timeline.content.media_tokens import image_count
from timeline.content.native import GOOGLE_CALLS, google_kind, server_part
from timeline.events import Replacement
from timeline.facts.tool_use import names_file, tool_use
from timeline.fold.counts import replaced_call_tokens
from timeline.frozen import canonical_json

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from timeline.blocks import Block
    from timeline.fold.window import Item
    from timeline.ports import TokenCounter


_ELLIPSIS: Final = "…"
_LOOKED_AT: Final = 2_000
"""Characters of a text that are read to make a line; no line has room for more."""
_SEPARATOR: Final = re.compile(r"[/\\]")
_PLAIN: Final = re.compile(r"[^\s,{}]+")
"""A path without characters that mean something in a list of files."""


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
    for room in range(most - 1, 0, -1):  # the ellipsis may form other tokens with the text before it
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
    """Return how many tokens the variable part of a line may take, so that the line counts at most ``most``.

    Counts of parts do not add up exactly, so the whole line is made and counted. The result is negative where the line
    is too long even without its variable part.
    """
    room = most - counter.count(line(0))
    while room > 0 and (over := counter.count(line(room)) - most) > 0:
        room = max(0, room - over)
    return room


HIDDEN_KEY: Final = "_hidden"
"""The only argument of a hidden call: its subject, the size of all arguments and the call's address."""
_SMALL_VALUE: Final = 12
"""The most tokens of an argument that is kept unchanged."""
_LEAST_SUBJECT: Final = 12
"""Tokens that a subject gets even where the tool's name and the address leave less."""
_MOST_ASKED: Final = 12
"""Most tokens of a call's subject in the line about its result: the call itself is always shown in front of it."""
_NAME_SHARE: Final = 4
"""A tool name takes at most one part in this many of a replacement: tools of plugins have long names."""


def replacement_of(item: Item, call: Block | None, most: int, counter: TokenCounter, *, address: str) -> Replacement:
    """Return the replacement of a block, of at most ``most`` tokens.

    It is longer only where the address, or a call's own name, leaves hardly a token for the subject.

    Args:
        item: the block.
        call: the call that it answers, if it is a result.
        most: cap in tokens.
        counter: counts them.
        address: of the block; empty where nothing can be read back.
    """
    block = item.block
    if type(block) is ToolCall:
        arguments = _hidden_arguments(block, item.tokens, most, counter, address)
        tokens = replaced_call_tokens(block, arguments, counter)
        return Replacement(version=item.version, arguments=arguments, tokens=tokens)
    if type(block) is Reasoning:  # old reasoning is of no use to the model, so not even a line is shown
        return Replacement(version=item.version)
    if type(block) is ToolResult:
        line = _result_line(block, call, item.tokens, most, counter)
    elif type(block) is Attachment:
        line = _attachment_line(block, item.tokens, most, counter)
    elif (part := server_part(block)) is not None:
        line = _server_line(part, item.tokens, most, counter)
    else:
        line = _text_line(block, item.tokens)
    text = line.text(most, counter, f" {address}" if address else "")
    return Replacement(version=item.version, text=text, tokens=counter.count(text))


class _Asked(NamedTuple):
    """The values that a replacement was made from, and the replacement."""

    block: Block
    tokens: int
    call: Block | None
    most: int
    counter: str
    address: str
    made: Replacement


class Replacements:
    """Makes the replacements of one conversation's blocks, and remembers them: writing one takes dozens of counts.

    A render that decides nothing, or is a dry run, plans the same hides again.
    """

    def __init__(self) -> None:
        self._known: dict[int, _Asked] = {}

    def of(self, item: Item, call: Block | None, most: int, counter: TokenCounter, *, address: str) -> Replacement:
        """Return the replacement of a block, as `replacement_of` makes it."""
        known, unit = self._known.get(item.version), counter.name
        if (
            known is None
            or known.block is not item.block
            or known.call is not call
            or (known.tokens, known.most, known.counter, known.address) != (item.tokens, most, unit, address)
        ):
            made = replacement_of(item, call, most, counter, address=address)
            known = self._known[item.version] = _Asked(item.block, item.tokens, call, most, unit, address, made)
        return known.made

    def forget(self, versions: Collection[int]) -> None:
        """Forget all replacements but those of these blocks."""
        if len(self._known) > _MOST_FORGOTTEN + len(versions):
            self._known = {version: asked for version, asked in self._known.items() if version in versions}


_MOST_FORGOTTEN: Final = 500
"""So many replacements of blocks that are hidden or covered by now may be kept before they are cleared away."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A line about a block: its subject, and the text before and behind the subject."""

    before: str
    subject: _Subject
    behind: str
    most_subject: int | None = None

    def text(self, most: int, counter: TokenCounter, address: str) -> str:
        """Return the line with the address at its end; the subject takes the room that the rest leaves."""

        def line(room: int) -> str:
            return f"{self.before}{self.subject.brief(room, counter)}{self.behind}{address}".lstrip()

        whole = counter.count(self.subject.text)
        wanted = whole if self.most_subject is None else min(whole, self.most_subject)
        if counter.count(made := line(wanted)) <= most:
            return made
        return line(min(wanted, max(_LEAST_SUBJECT, room_in(line, most, counter))))


def _result_line(result: ToolResult, call: Block | None, tokens: int, most: int, counter: TokenCounter) -> _Line:
    """Return the line about a result: its tool, the call's subject in brief, its size and its status."""
    asked = _asked(call, counter) if isinstance(call, ToolCall) else _Subject("")
    name = one_line(result.name or (call.name if isinstance(call, ToolCall) else "") or "tool")
    name = shortened(name, most // _NAME_SHARE, counter)
    return _Line(f"[{name}(", asked, f"): {_size(result, tokens)}, {_status(result)}, hidden]", _MOST_ASKED)


def _attachment_line(block: Attachment, tokens: int, most: int, counter: TokenCounter) -> _Line:
    """Return the line about an attachment: its name, its kind and its size."""
    name = _Subject(one_line(str(block.meta.get("file") or "attachment")), is_file=True)
    kind = "" if image_count(block) else f"{shortened(one_line(block.mime), most // _NAME_SHARE, counter)}, "
    return _Line("[", name, f": {kind}{_size(block, tokens)}, hidden]")


def _server_line(part: Mapping[str, Any], tokens: int, most: int, counter: TokenCounter) -> _Line:
    """Return the line about what the provider's server did: a tool's name and arguments, or the kind of result."""
    kind = google_kind(part)
    name = shortened(one_line(kind or str(part.get("name") or part.get("type"))), most // _NAME_SHARE, counter)
    asked = part[kind] if kind in GOOGLE_CALLS else part.get("input")
    if not isinstance(asked, dict):
        return _Line("[", _Subject(name), f": {tokens} tokens, hidden]")
    return _Line(f"[{name}(", _Subject(one_line(_named(asked, counter))), f"): {tokens} tokens, hidden]")


def _text_line(block: Block, tokens: int) -> _Line:
    """Return the beginning of a text, with its size."""
    return _Line("", _Subject(one_line(block.text)), f" [{_size(block, tokens)}, shortened]")


def _size(block: Block, tokens: int) -> str:
    return f"{tokens} tokens{_pictures(' with {}', block)}"


def _pictures(form: str, block: Block) -> str:
    """Return how many pictures a block has, in a form; nothing for none."""
    count = image_count(block)
    return form.format("1 picture" if count == 1 else f"{count} pictures") if count else ""


def _status(result: ToolResult) -> str:
    if result.exit_status is not None:
        return f"exit {result.exit_status}"
    return "error" if result.is_error else "ok"


@dataclass(frozen=True, slots=True)
class _Subject:
    """What a block is about, on one line; of several files, ``further`` counts those behind the first."""

    text: str
    is_file: bool = False
    first: str = ""
    further: int = 0

    def brief(self, room: int, counter: TokenCounter) -> str:
        """Return the subject shortened: the end of a file's path, or the beginning of a command or query."""
        if not self.further:
            return (shortened_path if self.is_file else shortened)(self.text, room, counter)
        if counter.count(self.text) <= room:
            return self.text
        more = f" and {self.further} more"
        return (shortened_path(self.first, room - counter.count(more), counter) or self.first[:1]) + more


def _subject(call: ToolCall) -> _Subject:
    """Return the files, command or query of a call; an empty subject for other tools."""
    use = tool_use(call)
    if use is None:
        return _Subject("")
    subjects = tuple(filter(None, map(one_line, use.subjects)))
    if use.kind not in {"read", "write", "delete"}:
        return _Subject(", ".join(subjects))
    return _Subject(
        _together(subjects), is_file=True, first=subjects[0] if subjects else "", further=max(0, len(subjects) - 1)
    )


def _together(files: Sequence[str]) -> str:
    """Return files with their common folder named once, as in a shell: ``src/{a.py,b.py}``."""
    if len(files) < 2 or any(not _PLAIN.fullmatch(file) for file in files):
        return ", ".join(files)
    first = files[0]
    folders = (first[: place + 1] for place in range(len(first) - 1, 0, -1) if first[place] == "/")
    folder = next((folder for folder in folders if all(file.startswith(folder) for file in files)), "")
    if not folder:
        return ", ".join(files)
    return f"{folder}{{{','.join(file.removeprefix(folder) for file in files)}}}"


def _asked(call: ToolCall, counter: TokenCounter) -> _Subject:
    """Return the subject of a call; without one, its arguments."""
    subject = _subject(call)
    return subject if subject.text else _described(call, counter)


def _described(call: ToolCall, counter: TokenCounter) -> _Subject:
    """Return the arguments of a call without a subject, each in brief."""
    if isinstance(call.arguments, str):
        return _Subject(one_line(call.arguments))
    return _Subject(one_line(_named(call.arguments, counter)))


def _named(arguments: Mapping[str, Any], counter: TokenCounter) -> str:
    """Return arguments with their names: those that hold a file first, and texts before figures and structures."""
    first = sorted(arguments.items(), key=lambda each: (not names_file(each[0]), not isinstance(each[1], str)))
    texts = {key: value if isinstance(value, str) else canonical_json(value) for key, value in first}
    return ", ".join(f"{key}={shortened(one_line(text), _SMALL_VALUE, counter)}" for key, text in texts.items())


def _hidden_arguments(call: ToolCall, tokens: int, most: int, counter: TokenCounter, address: str) -> dict[str, Any]:
    """Return what is shown as a hidden call's arguments: its subject, small arguments, the size of all, its address.

    Where room is short, the small arguments are left out first. Then the size is left out, if the subject is a file
    that fits whole without it. Otherwise the subject is shortened.
    """
    own = _subject(call)
    subject = own if own.text else _described(call, counter)
    small = one_line(_named(_small_arguments(call, counter), counter)) if own.text else ""
    about, size, read = subject.text or "no arguments", f": {tokens} tokens", f", read {address}" if address else ""

    def said(text: str) -> str:
        return f"{call.name}{canonical_json({HIDDEN_KEY: text})}"

    def line(room: int) -> str:
        return f"{subject.brief(room, counter)}{size}{read}"

    choices = [f"{about} ({small}){size}{read}"] if small else []
    choices += [f"{about}{size}{read}", *([f"{about}{read}"] if subject.is_file else [])]
    for text in choices:
        if counter.count(said(text)) <= most:
            return {HIDDEN_KEY: text}
    room = room_in(lambda room: said(line(room)), most, counter)
    return {HIDDEN_KEY: line(max(_LEAST_SUBJECT, room))}


def _small_arguments(call: ToolCall, counter: TokenCounter) -> dict[str, Any]:
    """Return the arguments that are short enough to be kept, without those that hold the subject."""
    use = tool_use(call)
    subjects = () if use is None else use.subjects
    given: dict[str, Any] = call.arguments if isinstance(call.arguments, dict) else {}
    return {
        key: value
        for key, value in given.items()
        if _is_small(value, counter) and not any(part in subjects for part in _parts_of(value))
    }


def _parts_of(value: Any) -> list[str]:
    """Return the texts in an argument that may be a subject: a list of words is one command or several files."""
    if isinstance(value, list):
        words = [word for word in value if isinstance(word, str)]
        return [*words, " ".join(words), "\n".join(words)]
    return [value] if isinstance(value, str) else []


def _is_small(value: Any, counter: TokenCounter) -> bool:
    text = value if isinstance(value, str) else canonical_json(value)
    return len(text) <= 4 * _SMALL_VALUE and counter.count(text) <= _SMALL_VALUE


_PREVIEWABLE: Final = (ToolCall, ToolResult, UserPrompt, Attachment, CustomBlock, Note, SystemMessage)
_TAIL_SHARE: Final = 0.3
_FRAME_TOKENS: Final = 40
"""Tokens reserved for the line between head and tail: two figures and an address."""


def can_preview(item: Item, preview_tokens: int) -> bool:
    """Return whether an item is in sight, and is shown larger than its preview would be."""
    previewable = isinstance(item.block, _PREVIEWABLE) and item.is_in_sight
    return previewable and item.shown_tokens > preview_tokens


def preview_of(item: Item, preview_tokens: int, counter: TokenCounter, *, address: str) -> Replacement:
    """Return the preview of an item, of at most ``preview_tokens``; more only if its middle line alone is longer.

    Args:
        item: the item.
        preview_tokens: cap in tokens.
        counter: counts them.
        address: of the item's block; empty where nothing can be read back.
    """
    block = item.block
    if isinstance(block, ToolCall):
        arguments = _preview_arguments(block, preview_tokens, counter, address)
        tokens = replaced_call_tokens(block, arguments, counter)
        return Replacement(version=item.version, arguments=arguments, tokens=tokens)
    text = _preview_text(block, item.tokens, preview_tokens, counter, address)
    return Replacement(version=item.version, text=text, tokens=counter.count(text))


def _preview_text(block: Block, tokens: int, preview_tokens: int, counter: TokenCounter, address: str) -> str:
    """Return head and tail of a block's text, and between them its size and the address of the whole."""
    what = _pictures("{} and ", block)
    whole = f"; all of it: {address}" if address else ""
    frame = f"\n[… preview: {what}the middle of {tokens} tokens left out{whole} …]\n"
    room = max(0, preview_tokens - max(_FRAME_TOKENS, counter.count(frame)))
    tail_room = int(room * _TAIL_SHARE)
    head = counter.truncate(block.text, room - tail_room)
    return head + frame + ending(block.text[len(head) :], tail_room, counter)


def ending(text: str, tokens: int, counter: TokenCounter) -> str:
    """Return the end of a text, of at most ``tokens``. It is shortened by thirds, which is quick and good enough."""
    tail = text[-tokens * 4 :] if tokens else ""
    while tail and counter.count(tail) > tokens:
        tail = tail[len(tail) // 3 + 1 :]
    return tail


def _preview_arguments(call: ToolCall, preview_tokens: int, counter: TokenCounter, address: str) -> dict[str, Any]:
    """Return the arguments with the longest values shortened until they fit; else the beginning of their JSON."""
    note = f"[… left out; all arguments: {address}]" if address else "[… left out]"
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
