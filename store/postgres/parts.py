"""The parts of a store, each with a pool of the driver's, share the connections that the server allows.

A role, a database and a server have a limit of connections, and a pool keeps each that it ever opened: reads that took
the last one would keep every append out. So a part that the server refuses one makes do with those that it has, and
one that has none lets another part close one: at once if it is idle, else when its work is done.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from time import monotonic
from typing import TYPE_CHECKING, Final

import asyncpg

from ..failures import closed
from .connecting import CONNECT
from .failures import DRIVER_ERRORS, has_no_room

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .connections import Connection, Lent, Pool

log: Final = logging.getLogger("timeline.store")
READERS: Final = 4
"""Most connections that read at once."""
WRITERS: Final = 2
"""Most connections that write at once, beside those of the queue of appends."""
APPENDERS: Final = 2
"""Most groups of appends that are under way at once."""
CONTENT: Final = 30.0
"""Seconds that a part makes do with the connections that it has, before it asks the server for one more."""
_ROOM: Final = 1.0
"""Seconds that a part without a connection tries to open one in the place of another one's."""
_PAUSE: Final = 0.02
"""Seconds between two of these tries: a server notices a moment later that a connection ended."""
_HANDOVER: Final = 0.1
"""Seconds that a part which gave its last connection waits, so that it does not take the place that it made."""


class Part:
    """One kind of a store's work. A task that needs a connection takes a turn; there are as many as the pool may have.

    Where the server refuses a connection, its turn is left out for `CONTENT` seconds: who comes later waits for the
    connections that there are, in order, and asks the server for none.
    """

    def __init__(self, pool: Pool, parts: Parts) -> None:
        self._pool, self._parts = pool, parts
        self._turns = asyncio.Semaphore(pool.get_max_size())
        self._taken = 0
        """Turns that are taken."""
        self._resting: list[Lent] = []
        """Connections that are idle, and stay acquired."""
        self._gives = False
        """Whether the next connection that comes back is closed for another part."""
        self._closed = False

    @property
    def size(self) -> int:
        """Number of connections that it keeps."""
        return self._pool.get_size()

    @property
    def idle(self) -> int:
        """Number of connections that nobody uses."""
        return self._pool.get_idle_size() + len(self._resting)

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[Lent]:
        """Lend a connection; the driver's errors pass."""
        async with self.lent(await self.take()) as connection:
            yield connection

    @asynccontextmanager
    async def lent(self, connection: Lent) -> AsyncIterator[Lent]:
        """Give a connection back that the caller took, when the work on it is done; the driver's errors pass."""
        try:
            yield connection
        except asyncpg.InternalClientError:
            break_off(connection)  # the driver lost track of what the server says
            raise
        finally:
            await self.put(connection)

    async def take(self) -> Lent:
        """Lend a connection, until `put` gives it back, when it is the caller's turn; the driver's errors pass.

        Raises:
            StoreClosed: the store is closed.
        """
        while True:
            await self._turns.acquire()
            self._taken += 1
            try:
                return await self._connected()
            except BaseException as error:
                waits = has_no_room(error) and self._taken > 1
                self._end_turn(CONTENT if waits else 0.0)
                if not waits:
                    raise

    async def put(self, connection: Lent) -> None:
        """Take a connection back that was lent, and end its turn; one that another part waits for is closed."""
        gives, self._gives = self._gives, False
        pause = 0.0 if not gives else CONTENT if self.size > 1 else _HANDOVER
        try:
            if gives:
                break_off(connection)
            await self._released(connection)
        finally:
            self._end_turn(pause)

    async def rest(self, connection: Lent) -> None:
        """End the turn of a connection that stays acquired, and is lent first: `put` costs turns of the event loop."""
        if self._gives or not _is_there(connection) or connection.is_in_transaction():
            await self.put(connection)
            return
        self._resting.append(connection)
        self._end_turn()

    async def close_one(self) -> None:
        """Close a connection that is idle; the driver's errors pass."""
        # Of those in the pool the driver lends the connected ones first.
        connection = self._resting.pop() if self._resting else await self._pool.acquire()
        try:
            if _is_there(connection):
                await connection.close(timeout=_ROOM)
        finally:
            await self._released(connection)

    def close_next(self) -> None:
        """Close the connection that comes back next."""
        self._gives = True

    async def aclose(self) -> None:
        """Close the connections, those that are lent once their work is done, if that takes no longer than seconds."""
        self._closed = True
        self._turns.release()  # who waits for a turn is refused, one after the other
        while self._resting:
            await self._released(self._resting.pop())
        try:
            await asyncio.wait_for(self._pool.close(), CONNECT)
        except DRIVER_ERRORS:
            self._pool.terminate()  # the server, which is away or hangs, learns of it later

    async def _connected(self) -> Lent:
        """Acquire a connection, in the place of another part's where there is none and no other turn is taken."""
        until = monotonic() + _ROOM
        while not self._closed:
            if self._resting:
                connection = self._resting.pop()
                if _is_there(connection):
                    return connection
                await self._released(connection)
                continue
            try:
                return await self._pool.acquire()
            except asyncpg.PostgresError as error:
                if not has_no_room(error) or self._taken > 1 or monotonic() > until:
                    raise
                if not (self.idle or await self._parts.make_room(self)):
                    raise
            await asyncio.sleep(_PAUSE)
        raise closed(self._parts.where)

    async def _released(self, connection: Lent) -> None:
        try:
            await self._pool.release(connection)
        except DRIVER_ERRORS as error:  # it is closed: what was done by it is done, and the next one is new
            log.debug("%s: giving back: %s", self._parts.where, error)

    def _end_turn(self, pause: float = 0.0) -> None:
        """End a turn; with a pause, the next one who waits gets it only so many seconds later."""
        self._taken -= 1
        if pause:
            asyncio.get_running_loop().call_later(pause, self._turns.release)
        else:
            self._turns.release()


def break_off(connection: Lent) -> None:
    """Break a lent connection off, unless it broke before."""
    if _is_there(connection):
        connection.terminate()


def _is_there(connection: Lent) -> bool:
    """Return whether a lent connection did not break; the driver takes back one that it saw breaking."""
    try:
        return not connection.is_closed()
    except asyncpg.InterfaceError:
        return False


class Parts:
    """The parts of a store, so that none keeps the others waiting.

    Attributes:
        readers: for reads.
        writers: for what changes older rows.
        appenders: for the queue of appends.
        where: names the store in errors.
        waking: the connection of the wake-ups, which followers can do without.
    """

    def __init__(self, readers: Pool, writers: Pool, appenders: Pool, where: str) -> None:
        self.where = where
        self.readers: Part = Part(readers, self)
        self.writers: Part = Part(writers, self)
        self.appenders: Part = Part(appenders, self)
        self.waking: Connection | None = None
        self._all = (self.readers, self.writers, self.appenders)

    async def make_room(self, wanting: Part | None = None) -> bool:
        """Let the part that has most connections close one that is idle, or the next one; return whether one does.

        Args:
            wanting: the part that has none; without one, which is for the wake-ups, no part closes its last one.
        """
        least = 2 if wanting is None else 1
        able = [part for part in self._all if part is not wanting and part.size >= least]
        able.sort(key=lambda part: part.size, reverse=True)
        for part in able:
            if part.idle:
                await part.close_one()
                return True
        if able:
            able[0].close_next()
            return True
        if wanting is None or self.waking is None or self.waking.is_closed():
            return False
        self.waking.terminate()
        return True

    async def aclose(self) -> None:
        """Close them all."""
        await asyncio.gather(*(part.aclose() for part in self._all))
