"""Appends that wait for one another: the first one writes for all that came meanwhile (decision 10).

Those that wait are woken together. Queued at the lock, each would take a turn of the event loop for nothing but to
learn that its append is written.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from timeline.errors import TimelineError
from timeline.log.uncancelled import shielded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    import anyio

    from timeline.blocks import Block
    from timeline.log.protocol import Draft

_MOST_TOGETHER: Final = 256
"""How many appends one of them writes for besides its own."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """An append that waits for its turn, and what became of it."""

    drafts: Sequence[Draft]
    counter: str
    blocks: list[Block] | None = None
    error: TimelineError | None = None
    turn: asyncio.Future[None] | None = None

    @property
    def done(self) -> bool:
        return self.blocks is not None or self.error is not None

    async def sleep(self) -> None:
        """Wait until the append was written, or it is this one's turn to write."""
        # Not anyio's event, which costs more than all the rest of waiting.
        self.turn = asyncio.get_running_loop().create_future()
        await self.turn

    def wake(self) -> None:
        if self.turn is not None and not self.turn.done():
            self.turn.set_result(None)

    def result(self) -> list[Block]:
        if self.error is not None:
            raise self.error
        return self.blocks or []


class Together:
    """The appends of one log.

    Args:
        write: addresses drafts, appends them in one transaction and returns their blocks.
        lock: held by whoever writes to the log; decisions and appends take turns at it.
    """

    def __init__(self, write: Callable[[Sequence[Draft], str], Awaitable[list[Block]]], lock: anyio.Lock) -> None:
        self._write = write
        self._lock = lock
        self._waiting: dict[_Waiting, None] = {}
        self._writing = False

    async def append(self, drafts: Sequence[Draft], counter: str) -> list[Block]:
        """Append drafts, alone or in company; return the blocks as stored.

        Raises:
            TimelineError: what `write` raises for these drafts alone.
        """
        own = _Waiting(drafts, counter)
        try:
            while not own.done:
                self._waiting[own] = None
                if self._writing:
                    await own.sleep()
                else:
                    await self._write_all(own)
        finally:
            self._waiting.pop(own, None)  # it was cancelled, or whoever wrote for it failed
            if not self._writing:
                self._wake_next()
        return own.result()

    async def _write_all(self, own: _Waiting) -> None:
        """Write what waits, when the lock is free; all that are in it are woken, whatever became of them."""
        self._writing = True
        together: list[_Waiting] = []
        try:
            async with self._lock:
                del self._waiting[own]
                together = [own, *list(self._waiting)[:_MOST_TOGETHER]]
                for each in together[1:]:
                    del self._waiting[each]
                await self._write_for(together)
        finally:
            self._writing = False
            for each in together:
                each.wake()

    async def _write_for(self, together: Sequence[_Waiting]) -> None:
        """Write appends in one; where that is refused, each by itself, so that each has its own answer."""
        own = together[0]
        if len(together) == 1:
            own.blocks = await self._write(own.drafts, own.counter)
        else:
            # The company must not lose its append to the cancellation of the one that writes for all.
            await shielded(self._at_once(together))

    async def _at_once(self, together: Sequence[_Waiting]) -> None:
        drafts = [draft for each in together for draft in each.drafts]
        try:
            blocks = iter(await self._write(drafts, together[0].counter))
        except TimelineError:
            for each in together:
                await self._alone(each)
        else:
            for each in together:
                each.blocks = [next(blocks) for draft in each.drafts if draft.block is not None]

    async def _alone(self, waiting: _Waiting) -> None:
        try:
            waiting.blocks = await self._write(waiting.drafts, waiting.counter)
        except TimelineError as error:
            waiting.error = error

    def _wake_next(self) -> None:
        if self._waiting:
            next(iter(self._waiting)).wake()
