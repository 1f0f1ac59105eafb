"""Let the garbage collector rest while a thread works on a long window, or an import runs: `collector_at_rest`.

Such work makes objects for each block, and most of them live until it is done; then they are freed without the
collector. But meanwhile the collector sees memory that grows, and walks all objects of the process, while every thread
waits: 100 ms with three conversations of a million tokens.

The objects that an import makes all stay. There the search for garbage took a tenth of the time of a first use.

At the end, only the result is left. Its objects are marked as old: otherwise a collection of the young objects would be
due at once, and would walk all of them, 30 ms for a long plan.

But to mark objects as old resets Python's own counts, by which it decides when to look at older objects. In a process
that does such work again and again it would never look at them. So the objects are counted here. All objects are
collected once as many were made old as Python would let pass: a quarter of all, and at least `_UNSEEN`.
"""

from __future__ import annotations

import gc
import os
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator


_UNSEEN: Final = 500_000
"""At least so many objects may be made old before the next full collection. Those that sixty agents left had 0.3 KB
each: 150 MB, if all of them were garbage."""
_OF_PYTHON: Final = 1_000
"""Objects that the interpreter itself may keep from the collector: Python 3.12 begins with some hundreds."""


class _Rest:
    """Lets the collector rest for one piece of work at a time: pieces that overlap could keep it at rest for ever."""

    def __init__(self) -> None:
        self._taken = Lock()
        self._thresholds = gc.get_threshold()
        self._keeps_some = False
        self._collections = 0  # full collections of the process, when they were last counted
        self._unseen = 0  # objects that were made old since
        self._kept = 0  # objects that were left by the last full collection started here

    @contextmanager
    def during(self) -> Iterator[None]:
        """Let the collector rest during the body; a setting that an application makes meanwhile stays."""
        if not self._taken.acquire(blocking=False):
            yield
            return
        self._thresholds = gc.get_threshold()
        gc.set_threshold(0, *self._thresholds[1:])
        try:
            yield
        finally:
            self._end()
            self._taken.release()

    def forked(self) -> None:
        """End the rest in a new process, which has no thread that would end it."""
        if self._taken.locked():
            self._end()
            self._taken = Lock()

    def _end(self) -> None:
        if gc.get_threshold()[0] == 0:
            if self._thresholds[0] and gc.isenabled():
                self._age()
            gc.set_threshold(*self._thresholds)

    def _age(self) -> None:
        """Mark every object as old without a walk over them, or collect all objects where that is due.

        Nothing is done where an application keeps objects from the collector itself, since marking would undo that.
        Once this was seen it is not asked again, since the answer takes a walk over these objects.
        """
        self._keeps_some = self._keeps_some or gc.get_freeze_count() > _OF_PYTHON
        if self._keeps_some:
            return
        if (collections := gc.get_stats()[-1]["collections"]) != self._collections:
            self._collections, self._unseen = collections, 0
        young, middle, _ = gc.get_count()
        self._unseen += young + middle * self._thresholds[0]
        if self._unseen > max(_UNSEEN, self._kept // 4):
            gc.collect()
            self._collections, self._unseen = self._collections + 1, 0
            gc.freeze()
            self._kept = gc.get_freeze_count()
        else:
            gc.freeze()
        gc.unfreeze()


_REST: Final = _Rest()
collector_at_rest: Final = _REST.during
if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_REST.forked)
