"""Wake the followers in other processes: NOTIFY and LISTEN, on a connection that no append waits for.

A notification inside an append's transaction makes every commit of the server wait for the one before it; so it is sent
afterwards, in a transaction of its own, and what is committed meanwhile goes with the next one. It is a hint: one that
is lost with its connection costs a follower its interval, since it looks at the log by itself as well. Where another
transaction of the server hides what was appended for a moment, all are woken once more when it has ended.

Where nobody listens, nothing is sent. A connection that listens shares a lock with the others that do, for as long as
it lasts; a notification is sent only where that lock cannot be had for itself. Who finds that nobody listens takes it
for true for a moment, and who begins to listen looks at the log once more when that moment is over.

What is sent names no conversation: everybody who may connect to the database may listen. Conversations are named by a
hash, whose key is the store's schema and tenant.
"""

from __future__ import annotations

import asyncio
import json
import logging
from base64 import b64encode
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

import asyncpg

from timeline.errors import StoreError

from .connecting import Servers
from .failures import DRIVER_ERRORS, has_no_room, is_away
from .statements import ALIVE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping

    from .database import Database
    from .horizon import Horizon

    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record]

log: Final = logging.getLogger("timeline.store")
TOGETHER: Final = 0.008
"""Seconds between two notifications: what is committed in between goes into one."""
UNHEARD: Final = 0.25
"""Seconds for which nothing is sent, nor asked, once nobody listened."""
HEARTBEAT: Final = 30.0
"""Seconds after which a silent connection is asked whether it is there."""
_ANSWER: Final = 10.0
_FAREWELL: Final = 1.0
_LEAST_PAUSE, _MOST_PAUSE = 0.1, 5.0
_MOST_BYTES: Final = 7_900
"""PostgreSQL refuses a payload of 8,000 bytes."""
_MOST_CONVERSATIONS: Final = 10_000
_HASH: Final = 9
_MOST_HASHES: Final = 1_024
"""Conversations whose hash is remembered: a busy one is in every notification."""
_ALL: Final = "*"
_NOBODY: Final = "SELECT 0"
"""What the server answers to a notification that nobody would have heard: it gave no row, and sent nothing."""


class Heard:
    """A wake-up: which conversations got events of which types; without any, all may have got some."""

    def __init__(self, heard: Mapping[str, frozenset[str]] | None, key: bytes) -> None:
        self._heard, self._key = heard, key

    def concerns(self, conversation: str | None, types: Collection[str]) -> bool:
        """Return whether a conversation, or any one if None, may have got an event of these types."""
        if self._heard is None:
            return True
        if conversation is None:
            return any(not of.isdisjoint(types) for of in self._heard.values())
        return not self._heard.get(_hashed(self._key, conversation), frozenset()).isdisjoint(types)


class Waking:
    """One store's wake-ups: it notifies other stores of its appends, and hears of theirs.

    The connection is made when it is first needed, and again whenever it is lost.

    Args:
        connect: makes a connection to the server: a direct one if ``listens``.
        name: of the log, the same in every store on it: its schema and its tenant.
        where: names the store in messages.
        horizon: knows what readers of all conversations do not see yet.
        listens: the connection keeps its session, as one behind pgbouncer does not.

    Attributes:
        channel: on which the log's notifications are sent.
        lock: the key of the advisory lock that every connection shares which listens to it.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Connection]],
        name: str,
        where: str,
        *,
        horizon: Horizon,
        listens: bool = True,
    ) -> None:
        self._connect, self._where, self._horizon, self._listens = connect, where, horizon, listens
        self._key = blake2b(name.encode(), digest_size=16).digest()
        self.channel: str = f"timeline_{self._key.hex()}"
        self.lock: int = int.from_bytes(self._key[:8], "big", signed=True)
        self._unheard_until = 0.0
        """Until when nobody is told of what is appended."""
        self._queued: dict[str, set[str]] = {}
        """The types of what was appended since the last notification, by conversation."""
        self._all = False
        self._work = asyncio.Event()
        self._ears: set[asyncio.Queue[Heard | None]] = set()
        self._listening = False
        self._running: asyncio.Task[None] | None = None
        self._heard: list[Heard] = []
        """What others said, until the followers are woken."""
        self._passing: asyncio.Task[None] | None = None
        self._hidden = 0
        """Up to where the followers are woken once more, when they can see it; 0 where they see all."""
        self._looking: asyncio.Task[None] | None = None
        self._closed = self._warned = False
        self._pause = _LEAST_PAUSE
        """Seconds until the next connection, if there is none that can be used."""

    @classmethod
    def of(cls, database: Database, horizon: Horizon) -> Self:
        """Return the wake-ups of a store."""
        address = database.address
        servers = database.servers if address.listen_url is None else Servers(address.listen_url)

        async def connect() -> Connection:
            try:
                # No statement is prepared: those of this connection have no parameters.
                connection = await servers.connect(statement_cache_size=0)
            except asyncpg.PostgresError as error:
                if has_no_room(error):
                    await database.parts.make_room()  # for the next time
                raise
            if address.listen_url is None:
                database.parts.waking = connection
            return connection

        listens = address.listen_url is not None or not address.pgbouncer
        name = f"{address.schema}\n{address.tenant or 0}"
        return cls(connect, name, address.where, horizon=horizon, listens=listens)

    def notify(self, appended: Iterable[tuple[str, Iterable[str]]]) -> None:
        """Note that conversations got events of these types; it is sent soon. It never waits and never fails."""
        if monotonic() < self._unheard_until:
            return
        queued = self._queued
        for conversation, types in appended:
            if (of := queued.get(conversation)) is not None:
                of.update(types)
            elif len(queued) < _MOST_CONVERSATIONS:
                queued[conversation] = set(types)
            else:
                self._all = True
        self._wake()

    async def hear(self) -> AsyncIterator[Heard]:
        """Iterate over the wake-ups of others until the store is closed; none come where no connection can listen."""
        if not self._listens:
            self._say_that_none_come()
            return
        if self._closed:
            return
        ears: asyncio.Queue[Heard | None] = asyncio.Queue()
        self._ears.add(ears)
        self._wake()
        try:
            while (heard := await ears.get()) is not None:
                yield heard
        finally:
            self._ears.discard(ears)

    async def aclose(self) -> None:
        """Send what is left, if that is quick, and end."""
        self._closed = True
        running, self._running = self._running, None
        for task in (self._passing, self._looking):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        if running is not None:
            self._work.set()
            await asyncio.wait([running], timeout=_FAREWELL)
            running.cancel()
            await asyncio.wait([running])
        for ears in self._ears:
            ears.put_nowait(None)

    def _say_that_none_come(self) -> None:
        if not self._warned:
            self._warned = True
            log.warning(
                "%s: followers look for new events by themselves, since pgbouncer passes no wake-ups on. Name the "
                "server itself in the URL, with listen_url=postgresql://..., for followers that are woken at once",
                self._where,
            )

    def _say_that_none_go(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            log.warning(
                "%s: followers look for new events by themselves, since there is no connection for wake-ups. Check"
                " listen_url, if the URL has one (%s)",
                self._where,
                why,
            )

    def _wake(self) -> None:
        self._work.set()
        if self._running is None and not self._closed:
            self._running = asyncio.create_task(self._run())

    async def _run(self) -> None:
        """Keep a connection, and do over it what there is to do."""
        while True:
            connection: Connection | None = None
            try:
                connection = await self._connect()
                await self._serve(connection)
            except DRIVER_ERRORS as error:
                self._all = self._all or connection is not None  # some of what was taken may not have been sent
                if is_away(error):
                    log.info("%s: wake-ups rest until the server is back, followers poll (%s)", self._where, error)
                else:
                    self._say_that_none_go(f"PostgreSQL: {error}")
            except (ValueError, OverflowError):  # without its words: they repeat what may be a part of the password
                self._say_that_none_go("listen_url is not a URL that can be used")
                return
            finally:
                self._listening = False
                if connection is not None:
                    connection.terminate()
            if self._closed:
                return
            pause = self._pause
            self._pause = min(2 * pause, _MOST_PAUSE)
            await asyncio.sleep(pause)

    async def _serve(self, connection: Connection) -> None:
        connection.add_termination_listener(lambda _: self._work.set())
        self._work.set()  # a new connection listens at once
        while not connection.is_closed():
            if not self._work.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(HEARTBEAT):
                        await self._work.wait()
            silent = not self._work.is_set()
            self._work.clear()
            if self._ears and not self._listening:
                await self._listen(connection)
            for payload in self._payloads():
                asked = monotonic()
                if not await self._send(connection, payload):
                    self._unheard_until = asked + UNHEARD
                    break
            if silent:
                await connection.execute(ALIVE, timeout=_ANSWER)
            self._pause = _LEAST_PAUSE  # now, as a server that takes connections may still refuse what they are for
            if self._closed:
                return
            await asyncio.sleep(TOGETHER)

    async def _listen(self, connection: Connection) -> None:
        """Listen, and wake the followers of what came before, also of what others did not tell who knew of nobody."""
        await connection.execute(f"SELECT pg_advisory_lock_shared({self.lock})", timeout=_ANSWER)
        await connection.add_listener(self.channel, self._hear)
        self._listening = True
        anything = Heard(None, self._key)
        self._note(anything)
        asyncio.get_running_loop().call_later(UNHEARD, self._note, anything)

    async def _send(self, connection: Connection, payload: str) -> bool:
        """Notify those that listen, except this connection; return whether there are any."""
        # As one message, so that it goes through pgbouncer as well; and as a query, of which the server's statistics
        # keep one for all texts, where they keep a NOTIFY for each.
        quoted = payload.replace("'", "''")
        # A standby has locks of its own and no listener: there it is an error, and not taken for nobody.
        heard = f"pg_is_in_recovery() OR NOT pg_try_advisory_xact_lock({self.lock})"
        sent = f"SELECT pg_notify('{self.channel}', '{quoted}') WHERE {heard}"
        return await connection.execute(sent, timeout=_ANSWER) != _NOBODY

    def _payloads(self) -> Iterator[str]:
        """Take what is queued, as texts that the server accepts: hashes of conversations, by the same types."""
        queued, self._queued = self._queued, {}
        everything, self._all = self._all, False
        if everything:
            yield _ALL
            return
        by_types: dict[tuple[str, ...], list[str]] = {}
        for conversation, types in queued.items():
            by_types.setdefault(tuple(sorted(types)), []).append(_hashed(self._key, conversation))
        for types_, hashes in by_types.items():
            room = _MOST_BYTES - len(json.dumps(types_)) - 8
            if room <= 2 * _HASH:
                yield _ALL
                return
            most = room // (len(hashes[0]) + 4)
            for start in range(0, len(hashes), most):
                yield json.dumps([types_, hashes[start : start + most]])

    def _hear(self, connection: Any, pid: int, channel: str, payload: object) -> None:
        del channel
        if pid != connection.get_server_pid():  # this store's own followers know already
            self._note(Heard(_read(str(payload)), self._key))

    def _note(self, heard: Heard) -> None:
        self._heard.append(heard)
        if not self._closed and (self._passing is None or self._passing.done()):
            self._passing = asyncio.create_task(self._pass_on())

    async def _pass_on(self) -> None:
        """Wake the followers with what was heard.

        Whether another transaction hides it is asked before they look: they may find nothing, and it ends meanwhile.
        """
        while self._heard:
            hidden = 0
            try:
                hidden = await self._horizon.hidden()
            except StoreError as error:
                log.info("%s: followers poll (%s)", self._where, error)
            heard, self._heard = self._heard, []
            for each in heard:
                self._spread(each)
            self._hidden = max(self._hidden, hidden)
            if self._hidden and (self._looking is None or self._looking.done()):
                self._looking = asyncio.create_task(self._look_again())

    async def _look_again(self) -> None:
        """Wake all once more when what they may not have found is no longer hidden."""
        while hidden := self._hidden:
            try:
                await self._horizon.pass_by(hidden)
            except StoreError as error:
                log.info("%s: followers poll (%s)", self._where, error)
            self._hidden = 0 if self._hidden == hidden else self._hidden
            self._spread(Heard(None, self._key))

    def _spread(self, heard: Heard) -> None:
        for ears in self._ears:
            ears.put_nowait(heard)


@lru_cache(maxsize=_MOST_HASHES)
def _hashed(key: bytes, conversation: str) -> str:
    named = conversation.encode(errors="surrogatepass")
    return b64encode(blake2b(named, digest_size=_HASH, key=key).digest(), b"-_").decode()


def _read(payload: str) -> dict[str, frozenset[str]] | None:
    """Read a notification; one that another version sent, or another program, may mean anything."""
    try:
        types, hashes = json.loads(payload)
        return dict.fromkeys(hashes, frozenset(types))
    except (ValueError, TypeError):
        return None
