"""Find the paths that are most like an unknown one, without a scan of the log: by the stems that the store finds."""

from __future__ import annotations

from bisect import bisect_left
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

_KINDS: Final = ("ar", "tc", "fi", "so", "su", "bl")
_MOST_LIKELY: Final = 3
_MOST_COMPARED: Final = 200
_LONGEST: Final = 1_000
"""A longer path is nobody's, and would be compared for seconds."""


async def likely_paths(path: str, paths: Callable[[Collection[str]], Awaitable[Collection[str]]]) -> list[str]:
    """Return the existing paths most like an unknown one: those below it, else its parent's, else its turn's.

    Args:
        path: the unknown path.
        paths: returns the paths in use that begin with one of some stems.
    """
    kind, colon, rest = path[:_LONGEST].partition(":")
    names = [path] if colon and kind in _KINDS else [f"{known}:{rest if colon else path}" for known in _KINDS]
    for stems in (names, [_parent(name) for name in names], [f"{_turn(name)}." for name in names]):
        found = sorted(await paths([stem for stem in stems if stem[3:].strip(".")]))
        near = bisect_left(found, path)
        close = found[max(0, near - _MOST_COMPARED) : near + _MOST_COMPARED]
        if close:
            return get_close_matches(path[:_LONGEST], close, n=_MOST_LIKELY, cutoff=0.0)
    return []


def _parent(path: str) -> str:
    return f"{path.rpartition('.')[0]}."


def _turn(path: str) -> str:
    return path.partition(".")[0]
