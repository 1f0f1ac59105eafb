"""The difference between two summaries as text: line by line, and word by word where a line changed only in part."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_WORD: Final = re.compile(r"\s+|\S+")
_LONGEST: Final = 600
"""Most characters of a line that is compared word by word; a longer one is easier to read as two lines."""
_ALIKE: Final = 0.6
"""Two lines count as one changed line if more than this share of their words is the same. A list has different entries
that begin with the same few words."""
_AROUND: Final = 1
"""Equal lines that are shown on either side of a change."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a difference.

    Attributes:
        kind: ``same``, ``removed``, ``added``; ``changed`` for a line whose text has both sides, what went as ``[-…-]``
            and what came as ``{+…+}``; ``skipped`` in place of equal lines, whose text says how many.
        text: the line.
    """

    kind: Literal["same", "removed", "added", "changed", "skipped"]
    text: str


@dataclass(frozen=True, slots=True)
class SummaryRef:
    """A summary: its address, its path, and the number of the compaction that made it."""

    address: str
    path: str
    compaction_number: int


@dataclass(frozen=True, slots=True)
class SummaryDiff:
    """The difference between the summaries of two compactions.

    Attributes:
        before, after: the two summaries.
        lines: the changed lines, each with one equal line around; none where the texts are the same.
    """

    before: SummaryRef
    after: SummaryRef
    lines: tuple[DiffLine, ...]

    def dump(self) -> dict[str, Any]:
        """Return the stable JSON shape of `timeline diff --json` for two summaries: the attributes by name."""
        return asdict(self)


def changed_lines(before: str, after: str) -> tuple[DiffLine, ...]:
    """Compare two texts; return their changed lines, and equal ones only beside these."""
    old, new = before.splitlines(), after.splitlines()
    lines: list[DiffLine] = []
    for tag, i, j, m, n in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            lines += [DiffLine("same", line) for line in old[i:j]]
        else:
            lines += _replaced(old[i:j], new[m:n])
    return tuple(_without_equal(lines))


def _replaced(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    """Yield the lines that replaced others, and the replaced ones; a line that changed in part is yielded as one."""
    pairs = [_words(a, b) for a, b in zip(old, new, strict=False)] if len(old) == len(new) else []
    if pairs and all(pair is not None for pair in pairs):
        yield from (DiffLine("changed", pair) for pair in pairs if pair is not None)
        return
    yield from (DiffLine("removed", line) for line in old)
    yield from (DiffLine("added", line) for line in new)


def _words(old: str, new: str) -> str | None:
    """Return both sides of a line as one line; None where they are too long, or have little in common."""
    if max(len(old), len(new)) > _LONGEST:
        return None
    if SequenceMatcher(None, _content(old), _content(new), autojunk=False).ratio() <= _ALIKE:
        return None
    was, now = _WORD.findall(old), _WORD.findall(new)
    matcher = SequenceMatcher(None, was, now, autojunk=False)
    text = ""
    for tag, i, j, m, n in matcher.get_opcodes():
        if tag == "equal":
            text += "".join(was[i:j])
            continue
        text += f"[-{''.join(was[i:j])}-]" if i < j else ""
        text += f"{{+{''.join(now[m:n])}+}}" if m < n else ""
    return text


def _content(line: str) -> list[str]:
    """Return the words of a line without bullets and other signs."""
    return [word for word in line.split() if any(map(str.isalnum, word))]


def _without_equal(lines: Sequence[DiffLine]) -> Iterator[DiffLine]:
    """Leave out the equal lines that are not near a change, and say how many they are."""
    changed = [number for number, line in enumerate(lines) if line.kind != "same"]
    shown = {near for number in changed for near in range(number - _AROUND, number + _AROUND + 1)}
    skipped = 0
    for number, line in enumerate(lines):
        if number in shown:
            if skipped:
                yield _gap(skipped)
            skipped = 0
            yield line
        else:
            skipped += 1
    if skipped and changed:
        yield _gap(skipped)


def _gap(lines: int) -> DiffLine:
    return DiffLine("skipped", f"{lines:,} equal {'line' if lines == 1 else 'lines'}")
