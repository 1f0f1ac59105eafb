"""Writes to a store that a program began late and has not waited for: a close finishes them first."""

from __future__ import annotations

import asyncio


class LateWrites(set["asyncio.Task[None]"]):
    """The tasks that write late; see `timeline.ports.FinishingStore`."""

    def __deepcopy__(self, memo: object) -> LateWrites:
        """Return none for a copy of the store, since the tasks write to the store itself."""
        return LateWrites()

    async def finish(self) -> None:
        """Wait for all of these tasks; cancelled ones write nothing.

        Raises:
            TimelineError: one of them failed; this is the first error found. Whoever waits for a task gets its own.
        """
        tasks = tuple(self)
        if tasks:
            await asyncio.wait(tasks)
        self.difference_update(tasks)
        for task in tasks:
            if not task.cancelled():
                task.result()
