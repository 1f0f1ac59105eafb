"""The connections of a PostgreSQL store: pools of asyncpg, the session's settings, and the translation of errors.

Reads are single statements on any connection of the readers' pool. A write has a transaction on one of the writers'
pool. The queue of appends waits for neither: it has a pool of its own.

The schema and the tenant are settings of the session, made when a connection is opened. Behind pgbouncer a session is
not ours between two transactions: there each transaction sets them for itself, also around a single read.
"""

from __future__ import annotations

import asyncio
import logging
import random
import warnings
from contextlib import asynccontextmanager, contextmanager, nullcontext
from functools import partial
from ssl import SSLCertVerificationError
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar

import asyncpg

from timeline.errors import StoreError

from ..addresses import WRITE_IT
from ..failures import closed
from ..open_database import OpenDatabase
from . import statements
from .connecting import CONNECT, Servers
from .failures import (
    AGAIN,
    DRIVER_ERRORS,
    bypasses,
    has_no_room,
    is_away,
    is_coming,
    no_server_behind,
    pooled,
    reading_only,
    store_error,
)
from .migrations import check_version, migrate
from .parts import APPENDERS, READERS, WRITERS, Parts
from .replayed import Replayed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from ..codec import Row
    from ..durability import Durability
    from .address import ServerAddress
    from .connecting import Answering, Watched
    from .connections import Connection, Pool

T = TypeVar("T")

log: Final = logging.getLogger("timeline.store")
LEAST_SERVER: Final = 15
PATIENCE: Final = 10.0
"""Seconds that a read, and an append, wait for a server that went away to come back."""
ATTEMPTS: Final = 10
"""Times that a transaction is tried which the server gives up for another one."""
SLOW: Final = 5.0
"""Seconds after which it is said that the server has not answered."""
_BETWEEN: Final = 60.0
"""Seconds between two times that it is said."""
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0


class Database(OpenDatabase):
    """One store's connections, which the parts of the store share; `connect` makes the pools.

    Args:
        address: the store's URL, read.
        durability: ``normal`` does not wait for the disk at a commit.
        readonly: write nothing.

    Attributes:
        where: names the store in errors.
        address: the store's URL, read.
        servers: the servers that the URL names.
        read_only: nothing is written.
        begin: what a transaction begins with where the session's settings are not ours.
    """

    def __init__(self, address: ServerAddress, durability: Durability = "full", *, readonly: bool = False) -> None:
        super().__init__(address.where)
        self.address = address
        self.read_only = readonly
        self._durability = durability
        self.servers: Servers = Servers(address.dsn)
        self._replayed = Replayed(address.where)
        self._said: float | None = None
        """When it was last said that the server has not answered."""
        self._said_away: float | None = None
        """When it was last said that the server is waited for."""
        self._parts: Parts | None = None
        self._jobs: set[asyncio.Task[Any]] = set()
        self.begin: str = self._beginning()

    async def connect(self) -> None:
        """Make the pools, and bring the schema up to date.

        Raises:
            StoreUnavailable: the server cannot be reached.
            StoreTooOld, StoreTooNew, NotAStore, StoreCorrupt: the schema is not this version's.
            StoreError: the server is too old, or refused the role.
        """
        async with self.alone() as connection:
            await self._prepare(connection)
        readers = await self._pool(READERS, partial(self._answering, "a read"))
        writers = await self._pool(WRITERS, partial(self._answering, "a write"))
        appenders = await self._pool(APPENDERS, nullcontext)  # their queue watches, and says how many wait
        self._parts = Parts(readers, writers, appenders, self.where)

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[Connection]:
        """Open a connection of its own to a server that a store may be on; one that is about to lead is waited for.

        Raises:
            StoreUnavailable: the server cannot be reached.
            StoreError: the URL cannot be used, the server is too old or refused the role, or work on it failed.
        """
        try:
            connection = await self.patiently(self._reached, is_coming)
            try:
                yield connection
            finally:
                await connection.close()
        except DRIVER_ERRORS as error:
            raise store_error(error, self.where) from error

    async def _reached(self) -> Watched:
        """Open a connection to a server that a store may be on; the driver's errors pass."""
        connection = await self.connected()
        connection.answering = partial(self._answering, "what makes the store ready")
        try:
            self._check_server(connection)
            await self._check_session(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection

    def _check_server(self, connection: Connection) -> None:
        server = connection.get_server_version()
        if server.major < LEAST_SERVER:
            raise StoreError(
                f"{self.where}: the server is PostgreSQL {server.major}.{server.minor}, and a store needs "
                f"{LEAST_SERVER} or later. Upgrade the server, or name another one."
            )

    async def _check_session(self, connection: Connection) -> None:
        """Check that the session has our settings: a pooler that leaves them out would show another tenant's rows."""
        if self.address.pgbouncer:  # which has answered so far, whatever is behind it
            try:
                await connection.execute(statements.ALIVE, timeout=CONNECT)
            except TimeoutError as error:
                raise no_server_behind(self.where, CONNECT) from error
            return
        wanted = (self.address.quoted_schema, str(self.address.tenant or 0))
        if tuple(await connection.fetchrow(statements.SESSION) or ()) != wanted:
            raise pooled(self.where)

    async def _prepare(self, connection: Connection) -> None:
        if self.read_only or not self.address.migrate:
            await check_version(connection, self.address)
        else:
            await migrate(connection, self.address)
        async with connection.transaction(isolation="read_committed"):
            await connection.execute(self.begin)
            await self._check_tenant(connection)
            if not self.read_only:
                await self._check_counter(connection)
                await self._check_keys(connection)

    async def _check_tenant(self, connection: Connection) -> None:
        """Check that the role sees its own tenant's rows alone, if there are several."""
        role, unbound, tenants = await connection.fetchrow(statements.ROLE) or ("", False, False)
        if unbound and (tenants or self.address.tenant):
            raise bypasses(self.where, role)
        if self.address.tenant and not tenants and not self.read_only:
            await connection.execute(statements.HAS_TENANTS)

    async def _check_counter(self, connection: Connection) -> None:
        """Raise the offset of positions where the server counts transactions lower than the one they come from."""
        if await connection.fetchval(statements.COUNTER_IS_BEHIND):
            await connection.execute(statements.LOCK_META)
            await connection.execute(statements.RAISE_OFFSET)
            log.warning("%s: restored into another server; its positions go on after the stored ones", self.where)

    async def _check_keys(self, connection: Connection) -> None:
        """Let new conversations have keys above those that are there: a fork's has to be above its parent's.

        Logical replication, and a dump of the rows alone, bring the rows without the sequence that gives keys.
        """
        behind = await connection.fetchval(statements.KEYS_BEHIND)
        if behind is not None and behind > 0:
            await connection.execute(statements.PASS_KEYS, behind)
            log.warning("%s: brought here without its sequence; keys go on after the stored ones", self.where)

    async def connected(self) -> Watched:
        """Open a connection outside the pools, which the caller closes; the driver's errors pass."""
        try:
            connection = await self.servers.connect(**self._options())
        except asyncpg.exceptions.ClientConfigurationError as error:
            raise StoreError(f"{self.where}: {error}") from error
        except SSLCertVerificationError:  # a ValueError, too
            raise
        except (ValueError, OverflowError):  # the latter is of a port that there cannot be
            # Without the driver's words: they repeat what is wrong in the URL, which may be a part of the password.
            raise StoreError(f"{self.where}: this is not a URL that can be used. {WRITE_IT}") from None
        return connection

    @property
    def parts(self) -> Parts:
        """The pools of an open store.

        Raises:
            StoreClosed: it is closed.
        """
        if self._parts is None:
            raise closed(self.where)
        return self._parts

    def _pool(self, most: int, answering: Answering) -> Pool:
        """Make a pool of the driver's, of at most so many connections; each is opened when it is first needed."""
        return asyncpg.create_pool(
            self.address.dsn,
            min_size=0,  # the driver logs a traceback for each that it cannot open ahead of use
            max_size=most,
            max_inactive_connection_lifetime=0,
            reset=_keep,
            connect=partial(self.servers.connect, answering=answering),
            timeout=CONNECT,
            **self._options(),
        )

    def _options(self) -> dict[str, Any]:
        if self.address.pgbouncer:
            # Each transaction may have another server connection, which knows no statement that we prepared.
            return {"statement_cache_size": 0}
        settings = {
            **self._settings(),
            "default_transaction_isolation": "read committed",  # what waits for others has to see what they did
        }
        if self.read_only:
            settings["default_transaction_read_only"] = "on"
        return {"server_settings": settings}

    def _beginning(self) -> str:
        """Write what a transaction begins with where the session's settings are not ours.

        As a query, of which the server's statistics keep one for all tenants, where they keep a SET for each.
        """
        settings = self._settings().items()
        return "SELECT " + ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings)

    def _settings(self) -> dict[str, str]:
        """Return the settings that are the store's own, wherever they are made."""
        settings = {
            "search_path": self.address.quoted_schema,
            "timeline.tenant": str(self.address.tenant or 0),
            "jit": "off",  # to compile the list of many conversations takes a second, to run it 10 ms
        }
        if self._durability == "normal":
            settings["synchronous_commit"] = "off"
        return settings

    async def rows(self, statement: str, *parameters: Any) -> list[Row]:
        """Run one statement that reads, and return its rows. It waits for a server that is away, some seconds.

        A text that UTF-8 cannot encode is in no database: there are no rows.
        """
        self.check_open()
        try:
            return await self.patiently(lambda: self._fetched(statement, parameters))
        except UnicodeEncodeError:
            return []
        except asyncpg.DataError as error:
            if isinstance(error.__cause__, UnicodeEncodeError):
                return []
            raise store_error(error, self.where) from error
        except DRIVER_ERRORS as error:
            self.check_open()
            raise store_error(error, self.where) from error

    @asynccontextmanager
    async def moment(self) -> AsyncIterator[Connection]:
        """Open a transaction that reads the store as it is now, by several statements, whatever comes meanwhile.

        It gets no number, so that it holds nobody up; only what VACUUM may free waits for its end. A server that is
        away is waited for as by `connection`.
        """
        self.check_open()
        readers = self.parts.readers
        try:
            async with (
                readers.lent(await self.patiently(readers.take)) as connection,
                self._replayed.reading(connection),
                connection.transaction(isolation="repeatable_read", readonly=True),
            ):
                if self.address.pgbouncer:
                    await connection.execute(self.begin)
                yield connection
        except DRIVER_ERRORS as error:
            raise store_error(error, self.where) from error

    async def _fetched(self, statement: str, parameters: tuple[Any, ...]) -> list[Row]:
        async with self.parts.readers.lend() as connection:
            return [tuple(row) for row in await self._asked(connection, statement, parameters)]

    async def _asked(self, connection: Connection, statement: str, parameters: tuple[Any, ...]) -> list[Any]:
        if not self.address.pgbouncer:
            async with self._replayed.reading(connection):
                return await connection.fetch(statement, *parameters)
        async with connection.transaction(isolation="read_committed", readonly=True):
            await connection.execute(self.begin)
            async with self._replayed.reading(connection):  # within, as the next transaction may have another server
                return await connection.fetch(statement, *parameters)

    @contextmanager
    def _answering(self, what: str) -> Iterator[None]:
        """Warn that the server has not answered a statement, where it takes long: it may hang, or others hold locks.

        What it may take is the caller's to know: a search of a large store takes its time, and a lock ends.
        """
        waiting = asyncio.get_running_loop().call_later(SLOW, self.say_unanswered, what, SLOW)
        try:
            yield
        finally:
            waiting.cancel()

    def say_unanswered(self, what: str, seconds: float) -> None:
        """Warn that the server has not answered for some seconds, once a minute."""
        now = monotonic()
        if self._said is None or now - self._said >= _BETWEEN:
            self._said = now
            log.warning(
                "%s: the server has not answered %s for %.0f seconds; still waiting. Others may hold locks, a"
                " synchronous standby may be missing, the server may hang, or it has much to do: pg_stat_activity says"
                " what it waits for",
                self.where,
                what,
                seconds,
            )

    def _say_away(self, error: BaseException) -> None:
        """Name what is waited for in a warning, once a minute: many wait for the same."""
        now = monotonic()
        if self._said_away is None or now - self._said_away >= _BETWEEN:
            self._said_away = now
            lacks = "has no connection left" if has_no_room(error) else "is away"
            log.warning("%s: the server %s, waiting for it (%s)", self.where, lacks, error)

    async def patiently(self, work: Callable[[], Awaitable[T]], waits: Callable[[BaseException], bool] = is_away) -> T:
        """Do work again while the server is away, for some seconds; the work may have been done each time.

        ``waits`` says of an error whether it is waited for. The seconds begin where it is first found so: the work may
        have waited for long before.
        """
        until: float | None = None
        pause = _FIRST_PAUSE
        while True:
            try:
                return await work()
            except DRIVER_ERRORS as error:
                if until is None and waits(error) and self._closing is None:
                    self._say_away(error)
                until = until or monotonic() + PATIENCE
                if not waits(error) or monotonic() + pause > until or self._closing is not None:
                    raise
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))  # noqa: S311 - so that not all come back at once
            pause = min(pause * 2, _LONGEST_PAUSE)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Take a connection that may write, without a transaction; the driver's errors pass.

        A server that is away, or has no connection left, is waited for, some seconds: nothing was done on it yet.

        Raises:
            StoreReadOnly: the store is open for reading only.
        """
        if self.read_only:
            raise reading_only(self.where)
        writers = self.parts.writers
        async with writers.lent(await self.patiently(writers.take)) as connection:
            yield connection

    @asynccontextmanager
    async def begun(self, lock: str = "") -> AsyncIterator[Connection]:
        """Open a writing transaction; the driver's errors pass. See `transaction`."""
        async with self.connection() as connection, self.transaction(connection, lock):
            yield connection

    @asynccontextmanager
    async def transaction(self, connection: Connection, lock: str = "") -> AsyncIterator[None]:
        """Open a writing transaction on a connection; the driver's errors pass.

        Args:
            connection: of the store.
            lock: a statement that takes a lock, before anything is read: the transaction then sees the store as it is
                at one moment behind the wait. Its tables come with their schema.
        """
        async with connection.transaction(isolation="repeatable_read" if lock else "read_committed"):
            if lock:
                await connection.execute(lock)
            if self.address.pgbouncer:  # a query, behind which no lock would come before the moment that is seen
                await connection.execute(self.begin)
            yield

    async def do(self, work: Callable[[Connection], Awaitable[T]], lock: str = "") -> T:
        """Do work in a writing transaction that goes on to its end, also when the caller is cancelled.

        Work that the server gives up for another transaction is done again.

        Args:
            work: gets the transaction's connection.
            lock: see `transaction`.

        Raises:
            StoreReadOnly: the store is open for reading only.
            StoreError: the database failed; nothing was written, or, where the connection broke, perhaps all.
        """
        self.check_writable()
        job = asyncio.create_task(self._done(work, lock))
        self._jobs.add(job)
        job.add_done_callback(self._forget)
        return await asyncio.shield(job)

    def _forget(self, job: asyncio.Task[Any]) -> None:
        self._jobs.discard(job)
        if not job.cancelled():
            job.exception()  # its caller may be gone

    async def _done(self, work: Callable[[Connection], Awaitable[T]], lock: str) -> T:
        for attempt in range(ATTEMPTS):
            try:
                async with self.begun(lock) as connection:
                    return await work(connection)
            except asyncpg.PostgresError as error:
                if error.sqlstate not in AGAIN or attempt == ATTEMPTS - 1:
                    raise store_error(error, self.where) from error
            except DRIVER_ERRORS as error:
                raise store_error(error, self.where) from error
            await asyncio.sleep(random.uniform(0, 0.01 * 2**attempt))  # noqa: S311 - so that they do not meet again
        raise AssertionError("the last attempt returned or raised")

    async def _close(self) -> None:
        while self._jobs:
            await asyncio.wait(self._jobs)
        if self._parts is not None:
            await self._parts.aclose()
            self._parts = None

    def check_writable(self) -> None:
        """Check that the store is open, and not for reading only.

        Raises:
            StoreReadOnly: it is.
        """
        self.check_open()
        if self.read_only:
            raise reading_only(self.where)

    def __del__(self) -> None:
        if self._closing is None and self._parts is not None and not self._home.forked:
            warnings.warn(f"{self.where}: the store was not closed. Use `async with`.", ResourceWarning, 2, self)


async def _keep(connection: object) -> None:
    """Leave a connection as it is when it goes back to its pool: its settings are the store's."""
    del connection
