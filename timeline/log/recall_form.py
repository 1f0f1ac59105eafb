"""The form of the recall tool's calls and answers, in which a redaction finds the answers that repeat a block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.events.addresses import parse_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.events.addresses import Address

RECALL: Final = "recall"
"""Name of the tool."""
_AROUND: Final = " \t\r\n`'\"[](){}<>.,;:…"
"""Characters that may surround a path in a model's text."""
_OPENS: Final = "["
_DIVIDES: Final = " · "
"""Stands between the parts of an answer's first line."""
_MOST_PARTS: Final = 8
"""So many parts of a first line are looked at, since a path may hold the divider itself."""


def readings(path: str) -> tuple[str, ...]:
    """Return what a model may mean that asks for a path: the text as it is, and what its quotes or brackets hold."""
    return tuple(dict.fromkeys((path, path.strip(_AROUND))))


def first_line(*parts: str) -> str:
    """Return an answer's first line. Where the answer repeats a block, its path comes first, and then its address.

    A path that is too long for a line is left out.
    """
    return f"{_OPENS}{_DIVIDES.join(parts)}]"


def repeated(answer: str) -> Iterator[Address]:
    """Yield the address of what an answer repeats, by its first line; and what looks like one in the path before it."""
    if answer.startswith(_OPENS):
        parts = answer[len(_OPENS) :].split(_DIVIDES, _MOST_PARTS)[:-1]
        yield from filter(None, map(parse_address, parts))
