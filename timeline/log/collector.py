"""Let the garbage collector rest while a thread works on a long window, or an import runs: `collector_at_rest`.

Such work makes objects for each block, and most live until it is done. The collector takes them for memory that grew,
and walks all objects of the process for it, while every thread waits: 100 ms with three conversations of a million
tokens. When the work is done they are gone without it.

An import makes objects that all stay: there the search for garbage took a tenth of the time of a first use.

What is still there at the end is what was asked for, and counts as old from then on: a collection of the young ones is
due at once, and would walk all of it, 30 ms of a long plan.
"""

from __future__ import annotations

import gc
import os
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Rest:
    """The rest of one piece of work at a time: pieces that overlap would keep the collector from working for ever."""

    def __init__(self) -> None:
        self._taken = Lock()
        self._thresholds = gc.get_threshold()
        self._keeps_some = False

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
            self._age()
            gc.set_threshold(*self._thresholds)

    def _age(self) -> None:
        """Make every object an old one without a walk over them; garbage among them waits for the next full collection.

        An application that keeps objects from the collector would lose that, and so nothing is done there. Once
        that was seen it is asked no more: the answer takes a walk over them.
        """
        self._keeps_some = self._keeps_some or gc.get_freeze_count() > 0
        if not self._keeps_some:
            gc.freeze()
            gc.unfreeze()


_REST: Final = _Rest()
collector_at_rest: Final = _REST.during
if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_REST.forked)
