"""The texts that go into a database's index: they hold the words of `Words.columns`, and are made without cutting them.

FTS5's tokenizer ``ascii`` parts and folds ASCII text by the rules of `words`, so that most of a text is indexed as it
is. Written as words are only the parts where the two differ: runs with other letters, and runs too long for one word.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .words import LONGEST, SEAM, Words, humps_of, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

_OTHER: Final = re.compile(r"[^\x00-\x7f][A-Za-z0-9\x80-\U0010ffff]*")
"""Matches a run of letters from its first sign beyond ASCII to its end."""
_KINDS: Final = bytes(
    0x61 if 0x61 <= sign <= 0x7A else 0x30 if 0x30 <= sign <= 0x39 else 0x41 if 0x41 <= sign <= 0x5A else 0x20
    for sign in range(256)
)
"""By sign: ``a`` for a small letter, ``0`` for a digit, ``A`` for a capital, else a space."""
_RUNS: Final = bytes(0x20 if kind == 0x20 else 0x61 for kind in _KINDS)
"""By sign: ``a`` for a letter or digit, else a space."""
_FEW: Final = 64
"""Characters a run with other letters: where there are fewer, cutting all of them costs less than parting them."""
_TOO_LONG: Final = b"a" * (LONGEST + 1)
_HUMPS: Final = tuple(map(re.compile, (b"aA", b"0A", b"AAa")))
"""Where a word of ASCII may have a hump. Each is searched for itself: bytes without a choice are found much faster."""


def columns_of(text: str) -> tuple[str, str]:
    """Return two texts that FTS5 cuts into the words and the humps of `Words.columns`; empty ones without a word."""
    words: list[str] = []
    humps: list[str] = []
    for _, piece in pieces(text):
        for plain, cut in _parts(piece):
            if cut is None:
                words.append(plain)
                humps.extend(_humps(plain))
            else:
                words.append(cut.columns[0])
                humps += [cut.columns[1]] if cut.humps else []
    return " ".join(words), f" {SEAM} ".join(humps)


def _parts(text: str) -> Iterator[tuple[str, Words | None]]:
    """Yield a text in parts, whole runs of letters each: those that are indexed as they are, and those that are cut."""
    runs = text.encode("ascii", "replace").translate(_RUNS)
    done = 0
    for first, last in _spans(text, runs):
        if runs.find(b"a", done, first) >= 0:
            yield text[done:first].replace("\0", " "), None
        cut = Words.of(text[first:last])
        if cut.words:
            yield "", cut
        done = last
    if runs.find(b"a", done) >= 0:
        yield text[done:].replace("\0", " "), None


def _spans(text: str, runs: bytes) -> Iterator[tuple[int, int]]:
    """Yield the places, in order, of the runs in which FTS5 would find other words than we do."""
    if text.isascii():
        long = runs.find(_TOO_LONG)
        while long >= 0:
            end = runs.find(b" ", long)
            end = len(text) if end < 0 else end
            yield long, end
            long = runs.find(_TOO_LONG, end)
    elif _TOO_LONG in runs:
        yield 0, len(text)
    else:
        others = list(_OTHER.finditer(text))
        if len(others) * _FEW > len(text):
            yield 0, len(text)
            return
        for other in others:
            yield runs.rfind(b" ", 0, other.start()) + 1, other.end()


def _humps(text: str) -> Iterator[str]:
    """Yield the humps of each word of an ASCII text that has some."""
    kinds = text.encode("ascii").translate(_KINDS)
    end = 0
    for place in sorted(hump.start() for pattern in _HUMPS for hump in pattern.finditer(kinds)):
        if place < end:
            continue
        first, end = kinds.rfind(b" ", 0, place) + 1, kinds.find(b" ", place)
        end = len(text) if end < 0 else end
        if humps := humps_of(text[first:end]):
            yield " ".join(humps)
