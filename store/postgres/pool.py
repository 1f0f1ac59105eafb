"""Pools of connections that share what the server allows: who has none gets one of those who have several.

A role, a database and a server have a limit of connections. The driver's own pool keeps each that it ever opened, so
that a store whose reads took the last one could not append any more. Here a pool that the server refuses one makes do
with those that it has, and one that has none takes one of another pool's: at once if it rests, else when its work is
done.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Final

import asyncpg

from ..failures import closed
from .failures import DRIVER_ERRORS, has_no_room

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from .connections import Connection

READERS: Final = 4
"""Most connections that read at once."""
WRITERS: Final = 2
"""Most connections that write at once, beside those of the queue of appends."""
APPENDERS: Final = 2
"""Most groups of appends that are under way at once."""
CONTENT: Final = 30.0
"""Seconds that a pool makes do with the connections that it has, before it asks the server for one more."""
_ROOM: Final = 1.0
"""Seconds that a pool without a connection tries to open one in the place of another one's."""
_PAUSE: Final = 0.02
"""Seconds between two of these tries: a server notices a moment later that a connection ended."""
_FAREWELL: Final = 10.0
"""Seconds that connections have to close, and their work to end."""


class Pool:
    """Lends connections, up to so many at once; each is opened when it is first needed, and kept.

    Args:
        connect: opens a connection.
        most: most connections at once.
        others: the other pools of the store, which may give one back.
    """

    def __init__(self, connect: Callable[[], Awaitable[Connection]], most: int, others: Pools) -> None:
        self._connect, self._most, self._others = connect, most, others
        self._resting: list[Connection] = []
        self._lent: set[Connection] = set()
        self._opening = 0
        self._owed = 0
        """Connections that are given back when their work is done."""
        self._content = 0.0
        """Until when no more are asked for than there are."""
        self._waiting: deque[asyncio.Future[Connection | None]] = deque()
        self._closed = False

    @property
    def size(self) -> int:
        """Number of connections that it keeps, or is about to."""
        return len(self._resting) + len(self._lent) + self._opening - self._owed

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[Connection]:
        """Lend a connection; the driver's errors pass."""
        connection = await self.take()
        try:
            yield connection
        except asyncpg.InternalClientError:
            connection.terminate()  # the driver lost track of what the server says
            raise
        finally:
            self.put(connection)

    async def take(self) -> Connection:
        """Lend a connection, until `put` gives it back, when there is one; the driver's errors pass.

        Raises:
            StoreClosed: the pool is closed.
        """
        while not self._closed:
            connection: Connection | None
            if self._resting:
                connection = self._resting.pop()
            elif self.size < self._most and (not self.size or monotonic() > self._content):
                connection = await self._opened()
            else:
                connection = await self._turn()
            if connection is None:
                continue
            if not connection.is_closed():
                self._lent.add(connection)
                return connection
            self._lent.discard(connection)
        raise closed(self._others.where)

    def put(self, connection: Connection) -> None:
        """Take a connection back that was lent; one that broke, or is in the midst of something, is dropped."""
        self._lent.discard(connection)
        owed, self._owed = self._owed > 0, max(0, self._owed - 1)
        if not connection.is_closed() and (owed or self._closed or connection.is_in_transaction()):
            connection.terminate()
        self._pass_on(None if connection.is_closed() else connection)

    def give_back(self, *, the_last: bool) -> bool:
        """Give a connection up, at once or when its work is done; return whether there is one to give up.

        Args:
            the_last: also the only one, if it rests.
        """
        if self.size <= (not the_last):
            return False
        self._content = monotonic() + CONTENT
        if self._resting:
            self._resting.pop(0).terminate()
            return True
        if self.size > 1 and self._lent:
            self._owed += 1
            return True
        return False

    async def aclose(self) -> None:
        """Close the connections, those that are lent once their work is done, if that takes no longer than seconds."""
        self._closed = True
        while self._waiting:
            self._pass_on(None)
        until = monotonic() + _FAREWELL
        for connection in self._resting:
            try:
                await connection.close(timeout=max(_PAUSE, until - monotonic()))
            except DRIVER_ERRORS:
                connection.terminate()  # the server, which is away or hangs, learns of it later
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, until - monotonic())):
                while self._lent:
                    await self._turn()
        for connection in self._lent:
            connection.terminate()

    async def _opened(self) -> Connection | None:
        """Open a connection; None where the pool has to make do with those that it has."""
        until = monotonic() + _ROOM
        self._opening += 1
        try:
            while True:
                try:
                    return await self._connect()
                except DRIVER_ERRORS as error:
                    if not has_no_room(error):
                        raise
                    if self.size > 1:
                        self._content = monotonic() + CONTENT
                        return None
                    if monotonic() > until or not self._others.make_room(self):
                        raise
                await asyncio.sleep(_PAUSE)
        except BaseException as error:
            self._fail(error)
            raise
        finally:
            self._opening -= 1

    async def _turn(self) -> Connection | None:
        """Wait until a connection is put back; None where there is room for one."""
        turn: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                connection = turn.result()
                self._pass_on(None) if connection is None else self.put(connection)
            raise

    def _pass_on(self, connection: Connection | None) -> None:
        """Give a connection, or the room for one, to the one that has waited longest; without one it rests."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(connection)
                if connection is not None:
                    self._lent.add(connection)
                return
        if connection is not None:
            self._resting.append(connection)

    def _fail(self, error: BaseException) -> None:
        """Let all who wait fail as well, where there is no connection that they could wait for."""
        if self.size > 1 or isinstance(error, asyncio.CancelledError):
            self._pass_on(None)
            return
        for turn in self._waiting:
            if not turn.done():
                turn.set_exception(error)
        self._waiting.clear()


class Pools:
    """The pools of a store, one for each kind of work, so that none keeps the others waiting.

    Args:
        connect: opens a connection.
        where: names the store in errors.

    Attributes:
        where: names the store in errors.
        readers: for reads.
        writers: for what changes older rows.
        appenders: for the queue of appends.
    """

    def __init__(self, connect: Callable[[], Awaitable[Connection]], where: str) -> None:
        self.where = where
        self.readers = Pool(connect, READERS, self)
        self.writers = Pool(connect, WRITERS, self)
        self.appenders = Pool(connect, APPENDERS, self)

    def make_room(self, wanting: Pool | None = None) -> bool:
        """Let a pool give a connection back, the one that has most; return whether one does.

        Args:
            wanting: the pool that has none; without one, no pool gives its last connection.
        """
        pools = [pool for pool in (self.readers, self.writers, self.appenders) if pool is not wanting]
        pools.sort(key=lambda pool: pool.size, reverse=True)
        if any(pool.give_back(the_last=False) for pool in pools):
            return True
        return wanting is not None and any(pool.give_back(the_last=True) for pool in pools)

    async def aclose(self) -> None:
        """Close them all."""
        await asyncio.gather(*(pool.aclose() for pool in (self.readers, self.writers, self.appenders)))
