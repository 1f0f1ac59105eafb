"""Let the garbage collector rest while a thread works on a long window, or an import runs: `collector_at_rest`.

Such work makes objects for each block, and most live until it is done. The collector takes them for memory that grew,
and walks all objects of the process for it, while every thread waits: 100 ms with three conversations of a million
tokens. When the work is done they are gone without it.

An import makes objects that all stay: there the search for garbage took a tenth of the time of a first use.

What is still there at the end is what was asked for, and counts as old from then on: a collection of the young ones is
due at once, and would walk all of it, 30 ms of a long plan.

That sets back Python's own counts of when to look at older objects, which it would never come to in a process that does
such work again and again. So they are counted here, and all objects are collected once as many were made old as Python
would let pass, a quarter of what there is, and at least `_UNSEEN`.
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
"""Objects that may be made old before the next whole collection, at least. What sixty agents left behind was 0.3 KB an
object: 150 MB, if all of them were garbage."""
_OF_PYTHON: Final = 1_000
"""Objects that the interpreter may keep from the collector by itself: that of Python 3.12 begins with some hundreds."""


class _Rest:
    """The rest of one piece of work at a time: pieces that overlap would keep the collector from working for ever."""

    def __init__(self) -> None:
        self._taken = Lock()
        self._thresholds = gc.get_threshold()
        self._keeps_some = False
        self._collections = 0  # whole ones, of the process, when it was last looked at
        self._unseen = 0  # objects that were made old since
        self._kept = 0  # objects that the last one of ours left

    @contextmanager
    def during(self) -> Iterator[None]:
        """Rest while something is done; what an application sets meanwhile stays."""
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
        """Make every object an old one without a walk over them, or collect them all where that is due.

        An application that keeps objects from the collector would lose that, and so nothing is done there. Once
        that was seen it is asked no more: the answer takes a walk over them.
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
