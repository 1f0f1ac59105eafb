"""The outline of a long block behind its beginning: its names, each at the offset at which an answer shows it.

The first answer of the recall tool has room for the beginning alone. A model that looks for a name has to know where to
read on, or it reads piece after piece. So the outline lists the names that the beginning does not show, by the piece
that shows them first. Definitions and headings come first, then paths, URLs, ids, and names with humps or underscores.
Each piece gets the same number of names, so that no part of a long text is without names.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.facts.exact_names import exact_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from timeline.ports import TokenCounter

SCANNED: Final = 500_000
"""Most characters of a text in which names are looked for: the time is linear in them."""
MOST_PIECES: Final = 64
"""Most pieces of a text in which names are looked for."""
_LINE_TOKENS: Final = 6
"""Most tokens of a line's end, its offset and its colon."""
_FRAME_TOKENS: Final = 40
"""Most tokens of the two lines around an outline."""
_NUMBERED: Final = r"^(?:(?:[^\s:]{1,200}[:-])?[ \t]{0,20}\d{1,9}[ \t]{0,4}(?:[→:|-]|(?<=\t)))?[+-]?[ \t]*+"
"""The start of a line, with what tools that show files or hits put in front of it: a file, a number, a sign."""
_WORDS_BEFORE: Final = (
    "abstract async const data declare default export extern final inline internal open override private protected pub"
    " public sealed static unsafe virtual"
)
_WORDS: Final = (
    "class const def enum extension fn func function impl interface let macro_rules! mod module namespace object"
    " package protocol record struct trait type union var"
)
_DEFINED: Final = re.compile(
    rf"{_NUMBERED}(?:(?:{'|'.join(_WORDS_BEFORE.split())})(?:\([a-z]{{1,20}}\))?[ \t]++){{0,5}}"
    rf"(?:{'|'.join(_WORDS.split())})[ \t]++(?:\([^()\n]{{0,80}}\)[ \t]*+)?[*&]?(?P<name>[A-Za-z_$][\w$]{{2,79}}+)"
    r"(?=[ \t]*+(?:[(<{\[:=;,]|$|(?:struct|interface|extends|implements|for|func|where)\b))",
    re.MULTILINE,
)
_KEY: Final = re.compile(
    r"^(?:[ \t]{0,8}\d{1,9}[→|\t])?(?:(?P<key>[A-Za-z_][\w.-]{2,59}+)[ \t]*+(?::(?=[ \t\n])|=(?!=))"
    r"|\[{1,2}(?P<section>[A-Za-z_][\w.-]{2,59}+)\]|(?P<heading>\#{2,6}[ ][^\n]{2,59}+))",
    re.MULTILINE,
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_UNESCAPED: Final = {"n": " \n", "r": "  ", "t": "  ", '"': ' "'}


class _Name(NamedTuple):
    text: str
    begin: int
    is_defined: bool

    @property
    def end(self) -> int:
        return self.begin + len(self.text)


def outline(text: str, characters: int, offsets: Sequence[int], room: int, counter: TokenCounter) -> str:
    """Return the outline of a text behind its beginning, with line ends; empty where there is no name, or no room.

    Args:
        text: the text, or as much of it as is looked at; what it defines is found at the start of its lines.
        characters: length of the whole text.
        offsets: the beginnings of the pieces behind the first one, and the end of the last. A name is listed at the
            piece that holds all of it.
        room: most tokens.
        counter: counts them.
    """
    names = _ranked(text, offsets)
    costs = counter.count_many([f" {_shown(name)}" for _, name in names])
    chosen: dict[int, list[_Name]] = {}
    left = room - _FRAME_TOKENS
    for (piece, name), tokens in zip(names, costs, strict=True):
        cost = tokens if piece in chosen else tokens + _LINE_TOKENS
        if cost <= left:
            chosen.setdefault(piece, []).append(name)
            left -= cost
    if not chosen:
        return ""
    count = sum(map(len, chosen.values()))
    number = f"{count:,} of {len(names):,}" if count < len(names) else f"{count:,}"
    within = f" up to character {offsets[-1]:,}" if offsets[-1] < characters else ""
    lines = [f"[further on{within}, {number} names by the offset to read at]"]
    for piece, some in sorted(chosen.items()):
        lines.append(f"{offsets[piece]}: {' '.join(_shown(name) for name in sorted(some, key=_place))}")
    return "\n".join([*lines, "[from the beginning]", ""])


def unescaped(text: str) -> str:
    """Return JSON with blanks, line ends and quotes in place of their escapes; each character keeps its position."""
    return _ESCAPED.sub(lambda found: _UNESCAPED.get(found[1], found[0]), text)


def _ranked(text: str, offsets: Sequence[int]) -> list[tuple[int, _Name]]:
    """Return the names with their pieces: definitions first, and in turn one name of each piece."""
    first: dict[str, _Name] = {}
    for name in sorted(_names(text[: offsets[-1]]), key=lambda name: (not name.is_defined, name.begin)):
        first.setdefault(name.text, name)
    ranked: list[tuple[int, int, _Name]] = []
    before: Counter[tuple[int, bool]] = Counter()
    for name in first.values():
        piece = bisect_right(offsets, name.begin) - 1
        if 0 <= piece < len(offsets) - 1 and name.end <= offsets[piece + 1]:
            ranked.append((before[piece, name.is_defined], piece, name))
            before[piece, name.is_defined] += 1
    ranked.sort(key=lambda one: (not one[2].is_defined, one[0], one[2].begin))
    return [(piece, name) for _, piece, name in ranked]


def _names(text: str) -> Iterator[_Name]:
    for found in _DEFINED.finditer(text):
        yield _Name(found["name"], found.start("name"), is_defined=True)
    for found in _KEY.finditer(text):
        kind = found.lastgroup or "key"
        yield _Name(found[kind].rstrip(), found.start(kind), is_defined=True)
    for name in exact_names(text):
        yield _Name(name.text, name.begin, is_defined=False)


def _shown(name: _Name) -> str:
    """Return a name as it is listed: a heading, which has several words, in quotes."""
    return f'"{name.text}"' if " " in name.text else name.text


def _place(name: _Name) -> int:
    return name.begin
