"""Remember what was made of the newest requests: each dry run in a loop decides anew, and asks what the last one asked.

Blocks are frozen, so a request of the same ones gets the same answer. They are held weakly: what a compaction took out
of a window is not kept for this.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar
from weakref import ref

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.blocks import Block
    from timeline.ports import SummaryRequest

T = TypeVar("T")

_MOST: Final = 4
"""Requests that are remembered, with their tasks and earlier summaries.

A dry run asks for the history and for the beginning of a turn, and mostly what one of the two runs before it asked."""


class _Known(NamedTuple, Generic[T]):
    asked: SummaryRequest
    text: str
    blocks: tuple[ref[Block], ...]
    made: T


class Remembered(Generic[T]):
    """A pure function of a request, and of a text beside it, which remembers its newest results.

    Threads may call it at once.

    Args:
        make: the function; its results are shared, and nothing may change them.
    """

    def __init__(self, make: Callable[[SummaryRequest, str], T]) -> None:
        self._make = make
        self._known: deque[_Known[T]] = deque(maxlen=_MOST)

    def __call__(self, request: SummaryRequest, text: str = "") -> T:
        """Return what the function makes of a request and a text."""
        asked = replace(request, blocks=(), warm=None)
        for known in tuple(self._known):
            if known.text == text and known.asked == asked and _are(known.blocks, request.blocks):
                return known.made
        made = self._make(request, text)
        self._known.append(_Known(asked, text, tuple(map(ref, request.blocks)), made))
        return made


def _are(known: tuple[ref[Block], ...], blocks: tuple[Block, ...]) -> bool:
    return len(known) == len(blocks) and all(one() is other for one, other in zip(known, blocks, strict=True))
