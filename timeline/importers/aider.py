"""Read the history that aider keeps of a project's chats (`.aider.chat.history.md`): Markdown, session behind session.

A line of a prompt begins with ``####``, one of aider's own with ``>``; either ends with the two spaces of a line break,
which a heading or a quotation in an answer does not have. Of what a command put out, the first line alone has the mark,
and the last one the spaces. All else is what the model said. A command is aider's own: a question that it asks the
model is repeated behind it by newer versions alone. Aider appends to the file and never rewrites it, so a message's key
is its place in its session.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from timeline.blocks import AssistantCompletion, Reasoning, UserPrompt
from timeline.events import ModelCalled
from timeline.importers.builder import UNKNOWN_TIME, Origin, RecordingBuilder, parse_time
from timeline.importers.lines import BYTE_ORDER_MARK
from timeline.importers.recording import Recording, Report, short_title
from timeline.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

Kind: TypeAlias = Literal["prompt", "notice", "answer", ""]

FORMAT: Final = "aider"
_OPENING: Final = b"# aider chat started at "
"""The beginning of the line over a session; a tool may have put lines before the first one, or cut the file there."""
_STARTED: Final = re.compile(r"^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[ \t]*$", re.MULTILINE)
_PROMPT: Final = "#### "
_NOTICE: Final = ">"
_BREAK: Final = "  "
_HAS_BREAKS: Final = re.compile(r"^(?:####|>) .*  $", re.MULTILINE)
"""Matches in a file whose lines still end as aider wrote them: tools that tidy a repository take spaces away."""
_COMMAND: Final = re.compile(r"/([a-z][a-z-]*)\b[ \t]*|!")
_ASKING: Final = frozenset({"ask", "code", "architect", "context"})
"""The commands whose words go to the model."""
_MODEL: Final = re.compile(r"(?:Main model|Model): (\S+) with ")
_TOKENS: Final = re.compile(r"Tokens: ([\d.,]+k?) sent(?:, ([\d.,]+k?) cache write)?(?:, ([\d.,]+k?) cache hit)?")
_RECEIVED: Final = re.compile(r", ([\d.,]+k?) received")
_THOUGHT: Final = re.compile(r"<(thinking-content-\w+)>\n")
"""Matches before a thought; it ends before the same tag with a slash."""


class _Piece(NamedTuple):
    """Lines of a session that belong together, and the line of the file that they begin on."""

    kind: Kind
    text: str
    line: int


def is_aider(data: bytes) -> bool:
    """Return whether a file is a history of aider."""
    return data.removeprefix(BYTE_ORDER_MARK).startswith(_OPENING) or b"\n" + _OPENING in data


def read_aider(data: bytes, name: str) -> list[Recording]:
    """Read a history: each session in which the user asked something is a conversation, the newest one first.

    What is before the first line over a session is the rest of one whose beginning was cut off; it has no time.

    Args:
        data: the file, one that `is_aider` recognises.
        name: the file's name without its extension; the ids begin with it, and end with the time of the session.
    """
    text = data.removeprefix(BYTE_ORDER_MARK).decode(errors="replace").replace("\r\n", "\n")
    ending = _BREAK if _HAS_BREAKS.search(text) else ""
    starts = list(_STARTED.finditer(text))
    ends = [*(start.start() for start in starts), len(text)]
    begins = [(0, UNKNOWN_TIME), *((start.end(), parse_time(start[1]) or UNKNOWN_TIME) for start in starts)]
    found = []
    seen = Counter[str]()
    line, counted = 1, 0
    for (start, began), end in zip(begins, ends, strict=True):
        line, counted = line + text.count("\n", counted, start), start
        reader = _Session(began)
        for piece in _pieces(text[start:end].split("\n"), line, ending):
            reader.read(piece)
        id_ = f"{name.lstrip('.')}-{began:%Y%m%d-%H%M%S}"
        seen[id_] += 1
        if events := reader.builder.finish():
            id_ += f"-{seen[id_]}" if seen[id_] > 1 else ""
            found.append(Recording(id_, events, reader.report, short_title(reader.builder.first_prompt)))
    return found[::-1]


def _pieces(lines: list[str], first: int, ending: str) -> Iterator[_Piece]:
    """Divide the lines of a session: a blank line ends a prompt, and is part of an answer.

    Args:
        lines: the session's lines.
        first: number of the first one in the file.
        ending: how a prompt's and a notice's lines end; empty if nothing shows it.
    """
    kind: Kind = ""
    kept: list[str] = []
    began, is_broken_off, is_asked = first, False, False
    for number, line in enumerate(lines, start=first):
        is_ended = line.endswith(ending)
        if line.startswith(_PROMPT) and is_ended:
            new: Kind = "prompt"
        else:
            new = "notice" if is_broken_off else _kind_of(line, kind, is_ended=is_ended, is_asked=is_asked)
        if new != kind:
            if kind and any(kept):
                yield _Piece(kind, "\n".join(kept).strip(), began)
            kind, kept, began = new, [], number
        kept.append(line.removeprefix(_PROMPT).rstrip() if kind == "prompt" else line)
        is_broken_off = kind == "notice" and not is_ended
        is_asked = kind == "prompt" or (is_asked and not kind)
    if kind and any(kept):
        yield _Piece(kind, "\n".join(kept).strip(), began)


def _kind_of(line: str, before: Kind, *, is_ended: bool, is_asked: bool) -> Kind:
    """Return what a line is part of that begins no prompt, and that no notice which broke off goes on in.

    An answer has a blank line before it, so what follows a notice directly is the notice's; its lines may be padded.
    Behind a prompt a notice has none, so a quotation there begins the answer.
    """
    if line.startswith(_NOTICE) and (is_ended or not (before == "answer" or (not before and is_asked))):
        return "notice"
    if before == "notice" and line:
        return "notice"
    if not line.strip():
        return "answer" if before == "answer" else ""
    return "answer"


class _Session:
    """Reads one session in order; a prompt opens a turn."""

    def __init__(self, began: datetime) -> None:
        self.report = Report(format=FORMAT)
        self.builder = RecordingBuilder(self.report, first_time=began)
        self.report.note("missing_time", 1, "a session's beginning has a time, a message behind it a second more")
        self._began = began
        self._messages = 0
        self._model = ""
        self._asked = ""
        """What a command asks the model, until a prompt repeats it or an answer comes."""
        self._origin: Origin | None = None
        """The newest answer, which figures are of; None before the first one."""

    def read(self, piece: _Piece) -> None:
        """Read a piece of the session."""
        self.report.lines = self.report.records = self.report.records + 1
        if piece.kind == "prompt":
            self._read_prompt(piece)
        elif piece.kind == "answer" and (self._asked or self.builder.first_prompt):
            self._read_answer(piece)
        elif piece.kind == "notice":
            for line in piece.text.splitlines():
                self._read_notice(line.removeprefix(_NOTICE).strip())
        else:
            self.report.counts["skipped"] += 1

    def _read_prompt(self, piece: _Piece) -> None:
        command = _COMMAND.match(piece.text)
        if command is None:
            self._asked = ""
            self.builder.add_said([(UserPrompt(text=piece.text), self._place(piece.line))])
            return
        self._asked = piece.text[command.end() :].strip() if command[1] in _ASKING else ""
        self.report.counts["skipped"] += 1

    def _read_answer(self, piece: _Piece) -> None:
        if self._asked:
            self._read_prompt(piece._replace(kind="prompt", text=self._asked))
        self._origin = place = self._place(piece.line)
        thought, said = _parted(piece.text)
        if thought:
            block = Reasoning(text=thought, response_id=place.key)
            self.builder.add_to_response(place.key, block, Origin(f"{place.key}.thought", place.line, place.at))
        if said:
            self.builder.add_to_response(place.key, AssistantCompletion(text=said, response_id=place.key), place)
        self._set_call(place, Usage())

    def _read_notice(self, line: str) -> None:
        if model := _MODEL.match(line):
            self._model = model[1]
        elif (tokens := _TOKENS.match(line)) and self._origin is not None:
            sent, written, read = map(_count, tokens.groups())
            received = _RECEIVED.search(line)
            usage = Usage(
                input_tokens=max(0, sent - written - read),
                output_tokens=_count(received[1]) if received else 0,
                cache_read_tokens=read,
                cache_write_5m_tokens=written,
            )
            self._set_call(self._origin, usage)
        else:
            self.report.counts["skipped"] += 1

    def _set_call(self, place: Origin, usage: Usage) -> None:
        called = ModelCalled(model=self._model, response_id=place.key, usage=usage)
        self.builder.set_model_call(place.key, called, place)

    def _place(self, line: int) -> Origin:
        self._messages += 1
        return Origin(f"message-{self._messages}", line, self._began + timedelta(seconds=self._messages))


def _parted(answer: str) -> tuple[str, str]:
    """Return what the model thought in an answer, and what it said."""
    opening = _THOUGHT.search(answer)
    closing = "" if opening is None else f"</{opening[1]}>"
    if opening is None or (end := answer.find(closing, opening.end())) < 0:
        return "", answer
    rest = f"{answer[: opening.start()]}{answer[end + len(closing) :]}"
    return answer[opening.end() : end].strip(), rest.strip()


def _count(figure: str | None) -> int:
    """Return a number of tokens as aider rounds it: ``742``, ``4.7k``, ``12k``."""
    if not figure:
        return 0
    number = float(figure.removesuffix("k").replace(",", ""))
    return round(number * 1000 if figure.endswith("k") else number)
