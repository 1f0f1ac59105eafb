"""Queue of appends: the first one writes all that came meanwhile, in one transaction (design: The log).

The waiting appends are woken together. If they queued at the lock, each would take a turn of the event loop only to
learn that its append is written.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from timeline.errors import AppendUncertain, TimelineError
from timeline.log.uncancelled import run_uncancelled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    import anyio

    from timeline.blocks import Block
    from timeline.log.protocol import Draft

Write: TypeAlias = "Callable[[Sequence[Draft], str], Awaitable[list[Block]]]"
"""Addresses drafts, appends them in one transaction and returns their blocks."""
_MOST_TOGETHER: Final = 256
"""How many other appends one append may write together with its own."""


@dataclass(slots=True, eq=False)
class _WaitingAppend:
    """An append that waits for its turn, and its result: blocks or an error."""

    drafts: Sequence[Draft]
    counter: str
    blocks: list[Block] | None = None
    error: TimelineError | None = None
    turn: asyncio.Future[None] | None = None

    @property
    def done(self) -> bool:
        return self.blocks is not None or self.error is not None

    async def sleep(self) -> None:
        """Wait until another append wrote this one, or it is this one's turn to write."""
        # Not anyio's event, which costs more than all the rest of waiting.
        self.turn = asyncio.get_running_loop().create_future()
        await self.turn

    def wake(self) -> None:
        if self.turn is not None and not self.turn.done():
            self.turn.set_result(None)

    def result(self) -> list[Block]:
        if self.error is None:
            return self.blocks or []
        error, self.error = self.error, None
        try:
            raise error
        finally:
            del error  # the error and its frames would hold each other, and the drafts in them, until a collection


class AppendQueue:
    """The appends of one log.

    Args:
        lock: the log's; decisions and appends take turns at it.
    """

    def __init__(self, lock: anyio.Lock) -> None:
        self._lock = lock
        self._waiting: dict[_WaitingAppend, None] = {}
        self._writing = False

    async def append(self, drafts: Sequence[Draft], counter: str, write: Write) -> list[Block]:
        """Append drafts, alone or together with others; return the blocks as stored.

        Args:
            drafts: to append.
            counter: the name of the counter of their tokens.
            write: writes them, and others with them. The queue does not keep it: a log whose queue refers to it would
                be freed only by a full garbage collection.

        Raises:
            TimelineError: the error of ``write`` for these drafts alone.
        """
        own = _WaitingAppend(drafts, counter)
        try:
            while not own.done:
                self._waiting[own] = None
                if self._writing:
                    await own.sleep()
                else:
                    await self._write_all(own, write)
        finally:
            self._waiting.pop(own, None)  # it may still wait: it was cancelled, or the append that wrote it failed
            if not self._writing:
                self._wake_next()
        return own.result()

    async def _write_all(self, own: _WaitingAppend, write: Write) -> None:
        """Write the waiting appends once the lock is free, then wake them; after an error they try again."""
        self._writing = True
        together: list[_WaitingAppend] = []
        try:
            async with self._lock:  # take the lock before the queue is read: it grows until this append's turn
                del self._waiting[own]
                together = [own, *list(self._waiting)[:_MOST_TOGETHER]]
                for each in together[1:]:
                    del self._waiting[each]
                await self._write_for(together, write)
        finally:
            self._writing = False
            for each in together:
                each.wake()

    async def _write_for(self, together: Sequence[_WaitingAppend], write: Write) -> None:
        """Write appends in one transaction; if that is refused, each in its own, so that each gets its own error."""
        own = together[0]
        if len(together) == 1:
            own.blocks = await write(own.drafts, own.counter)
        else:
            # Shielded: the others must not lose their appends to the cancellation of the one that writes for all.
            await run_uncancelled(self._at_once(together, write))

    async def _at_once(self, together: Sequence[_WaitingAppend], write: Write) -> None:
        drafts = [draft for each in together for draft in each.drafts]
        try:
            blocks = iter(await write(drafts, together[0].counter))
        except AppendUncertain as error:  # the events may be stored: written again, they would have other ids
            for each in together:
                each.error = error
        except TimelineError:
            for each in together:
                await self._alone(each, write)
        else:
            for each in together:
                each.blocks = [next(blocks) for draft in each.drafts if draft.block is not None]

    async def _alone(self, waiting: _WaitingAppend, write: Write) -> None:
        try:
            waiting.blocks = await write(waiting.drafts, waiting.counter)
        except TimelineError as error:
            waiting.error = error

    def _wake_next(self) -> None:
        if self._waiting:
            next(iter(self._waiting)).wake()
