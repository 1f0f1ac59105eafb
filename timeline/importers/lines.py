r"""Read JSON Lines that a crash, two writers or a full disk may have damaged.

Lines end at ``\n`` and nowhere else: U+2028 may be inside a string (copilot-cli#2490). Glued records (``…}{…``,
qwen-code#3606) yield both, a record that a raw line break tore in two is put together again (copilot-cli#2649), and an
unreadable line is reported with its number. A damaged line never costs its neighbours. Reading is linear in the size of
the file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.wire.foreign import decode_value, skip_space

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from timeline.importers.recording import Report

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
MOST_RESTARTS: Final = 100
"""How often reading restarts within one line; the bound keeps a hostile line linear."""


class Record(NamedTuple):
    """One JSON object of a file, and the line that it begins on."""

    line: int
    value: dict[str, Any]


def _nothing_at_once(_: memoryview) -> bool:
    """Leave every line to `read_records`."""
    return False


def read_records(
    data: bytes,
    report: Report,
    *,
    opening: str,
    at_once: Callable[[memoryview], bool] = _nothing_at_once,
) -> Iterator[Record]:
    """Yield the JSON objects of a file's bytes, in order, and report damage.

    Args:
        data: the file.
        report: receives the findings, and the counts ``lines`` and ``records``.
        opening: the beginning of every record of this format, and of nothing inside one; reading restarts there after a
            record that broke off in mid-line.
        at_once: takes a line that it knows to be one whole record, and returns whether it did; such a line is not
            yielded.
    """
    unfinished = _Unfinished(report, opening)
    body = data.removeprefix(BYTE_ORDER_MARK)
    for number, raw in enumerate(_split(body), start=1):
        report.lines = number
        if not unfinished.pieces and at_once(raw):
            report.records += 1
            continue
        text = _text(raw, number, report)
        if not text or text.isspace():
            continue
        if unfinished.pieces and not text.lstrip().startswith('{"'):
            unfinished.pieces.append(text)
            continue
        before = unfinished.resolve()
        for record in (*before, *_read_line(text, number, unfinished)):
            report.records += 1
            yield record
    for record in unfinished.resolve(at_end=not body.endswith(b"\n")):
        report.records += 1
        yield record


def _split(body: bytes) -> Iterator[memoryview]:
    """Yield the lines of a file, uncopied: one may be as large as all the others together."""
    start, whole = 0, memoryview(body)
    while start < len(body):
        end = body.find(b"\n", start)
        end = len(body) if end < 0 else end
        yield whole[start:end]
        start = end + 1


def _text(raw: memoryview, number: int, report: Report) -> str:
    try:
        return str(raw, "utf-8")
    except UnicodeDecodeError as error:
        report.note("encoding", number, str(error))
        return str(raw, "utf-8", "replace")


@dataclass(slots=True)
class _Unfinished:
    """A record that its line did not finish, with the lines behind it that may be the rest of it."""

    report: Report
    opening: str
    line: int = 0
    pieces: list[str] = field(default_factory=list)

    def resolve(self, *, at_end: bool = False) -> list[Record]:
        """Join the pieces to one record, or read each one alone; ``at_end`` if the file ends behind them."""
        pieces, line, self.pieces = self.pieces, self.line, []
        if not pieces:
            return []
        whole = _decode("\n".join(pieces), self.opening)
        if whole.values and not whole.junk:
            self.report.note("split", line, f"a record on {len(pieces)} lines")
            self._quarantine(line, whole.tail)
            return [Record(line, value) for value in whole.values]
        self.report.note("torn" if at_end and len(pieces) == 1 else "quarantined", line, pieces[0])
        records = []
        for number, piece in enumerate(pieces[1:], start=line + 1):
            alone = _decode(piece, self.opening)
            self._quarantine(number, *alone.junk, alone.tail)
            records += [Record(number, value) for value in alone.values]
        return records

    def _quarantine(self, line: int, *texts: str) -> None:
        for text in filter(None, texts):
            self.report.note("quarantined", line, text)


def _read_line(text: str, number: int, unfinished: _Unfinished) -> list[Record]:
    report = unfinished.report
    decoded = _decode(text, unfinished.opening)
    if len(decoded.values) > 1:
        report.note("glued", number, f"{len(decoded.values)} records")
    for junk in decoded.junk:
        report.note("quarantined", number, junk)
    if decoded.tail:
        unfinished.line = number
        unfinished.pieces = [decoded.tail]
    return [Record(number, value) for value in decoded.values]


class _Decoded(NamedTuple):
    """The objects of a text, the text between them, and a last object that is incomplete."""

    values: list[dict[str, Any]]
    junk: list[str]
    tail: str


def _decode(text: str, opening: str) -> _Decoded:
    values: list[dict[str, Any]] = []
    junk: list[str] = []
    restarts = 0
    at = skip_space(text, 0)
    while at < len(text):
        if text[at] != "{":
            end = text.find("{", at)
            end = len(text) if end < 0 else end
            junk.append(text[at : min(end, at + 200)])
            at = end
            continue
        try:
            value, at = decode_value(text, at)
        except ValueError:
            end = text.find(opening, at + 1)
            restarts += 1
            if end < 0 or restarts > MOST_RESTARTS:
                return _Decoded(values, junk, text[at:])
            junk.append(text[at : min(end, at + 200)])
            at = end
        else:
            values.append(value)
            at = skip_space(text, at)
    return _Decoded(values, junk, "")
