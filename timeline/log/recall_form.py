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


def first_line(path: str, *parts: str) -> str:
    """Return an answer's first line: the path that was asked for, then what there is to say about it.

    Where the answer repeats a block, its address comes right behind the path.
    """
    return f"{_OPENS}{_DIVIDES.join((path, *parts))}]"


def repeated(answer: str) -> Iterator[tuple[str, Address]]:
    """Yield what may be the path and the address that an answer's first line begins with."""
    parts = answer.split(_DIVIDES, _MOST_PARTS) if answer.startswith(_OPENS) else []
    for number, part in enumerate(parts[1:-1], 1):
        if (address := parse_address(part)) is not None:
            yield _DIVIDES.join(parts[:number]).removeprefix(_OPENS), address
