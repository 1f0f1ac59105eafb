"""Writes to a store that a program began late and has not waited for: a close finishes them first."""

from __future__ import annotations

import asyncio


class LateWrites(set["asyncio.Task[None]"]):
    """The tasks that write late; see `timeline.ports.FinishingStore`."""

    def __deepcopy__(self, memo: object) -> LateWrites:
        """Return those of a copy of the store: none, since they write to the store itself."""
        return LateWrites()

    async def finish(self) -> None:
        """Wait for those that there are; those that were cancelled write nothing.

        Raises:
            TimelineError: one of them failed, the first that is found; every other is raised by what waits for it.
        """
        tasks = tuple(self)
        if tasks:
            await asyncio.wait(tasks)
        self.difference_update(tasks)
        for task in tasks:
            if not task.cancelled():
                task.result()
