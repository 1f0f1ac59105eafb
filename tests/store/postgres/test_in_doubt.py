"""Appends whose connection breaks in their commit: what a server has by itself is not acknowledged for its standby."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from timeline import open_store
from timeline.errors import AppendUncertain, StoreUnavailable
from timeline.store.postgres.examining import examine
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import events
from timeline.store.testing.samples import versions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.postgres_server import Server
    from timeline.ports import Appended, EventStore

_WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@asynccontextmanager
async def administrator(server: Server) -> AsyncIterator[Any]:
    """Open a connection of the server's owner."""
    connection = await asyncpg.connect(server.url())
    try:
        yield connection
    finally:
        await connection.close()


async def set_and_tell(connection: Any, name: str, value: str) -> None:
    """Change a setting of the server, for all its sessions."""
    await connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
    await connection.execute("SELECT pg_reload_conf()")
    async with asyncio.timeout(30):
        while await connection.fetchval("SELECT current_setting($1)", name) != value:  # noqa: ASYNC110 - the server knows
            await asyncio.sleep(0.01)


async def until_commits_wait(server: Server, connection: Any) -> None:
    """Wait until the commits of all sessions wait for a standby.

    A session that shows the new setting is too early: it is the checkpointer that tells the others, in its own time.
    """
    async with asyncio.timeout(30), administrator(server) as probe:
        process = probe.get_server_pid()
        while True:
            commit = asyncio.create_task(probe.execute("SELECT pg_logical_emit_message(true, 'probe', '')"))
            while not (waits := await connection.fetchval(_WAITING) == process) and not commit.done():  # noqa: ASYNC110 - the server knows
                await asyncio.sleep(0.01)
            if waits:
                await connection.execute("SELECT pg_cancel_backend($1)", process)
            await commit
            if waits:
                return


async def waiting_for_a_standby(connection: Any, besides: int = 0) -> int:
    """Wait until a commit waits for a standby; return the number of its process."""
    async with asyncio.timeout(30):
        while (process := await connection.fetchval(_WAITING)) in {None, besides}:  # noqa: ASYNC110 - the server knows
            await asyncio.sleep(0.01)
    return int(process)


@asynccontextmanager
async def broken_off(
    server: Server, store: EventStore, again: dict[str, str]
) -> AsyncIterator[tuple[asyncio.Task[Appended], Any, int]]:
    """Append while no standby answers, and break the connection off in the commit, which the server then has.

    What is ``again`` set on the server holds for the connection that follows.
    """
    async with administrator(server) as connection:
        await set_and_tell(connection, "synchronous_standby_names", "nobody")
        await until_commits_wait(server, connection)
        append = asyncio.create_task(store.append("a", events(1)))
        process = await waiting_for_a_standby(connection)
        for name, value in again.items():
            await set_and_tell(connection, name, value)
        await connection.execute("SELECT pg_terminate_backend($1)", process)
        yield append, connection, process


async def test_an_append_is_acknowledged_only_when_the_standby_has_it(own_postgres: Server) -> None:
    """The server shows the event after the break, and no standby has it yet: the same append again waits for one."""
    async with open_store(own_postgres.url()) as store:
        await store.append("a", events(1))
        async with broken_off(own_postgres, store, {}) as (append, connection, process):
            await waiting_for_a_standby(connection, besides=process)
            assert await versions(store, "a") == [1, 2]
            assert not append.done()
            await set_and_tell(connection, "synchronous_standby_names", "")
            appended = await asyncio.wait_for(append, 30)
            assert (appended.version, appended.repeated) == (2, False)
        assert await versions(store, "a") == [1, 2]


@pytest.mark.parametrize(("awaited", "words"), [("nobody", "for 1 of"), ("ANY 2 (one, two)", "for 2 of")])
async def test_doctor_names_the_standby_that_appends_wait_for(own_postgres: Server, awaited: str, words: str) -> None:
    """Nothing else on the server says why no append comes back; where nothing is awaited, nothing is said."""
    async with open_store(own_postgres.url()) as store, administrator(own_postgres) as connection:
        assert isinstance(store, PostgresStore)
        assert "standby" not in {finding.code for finding in (await examine(store.database)).findings}
        await set_and_tell(connection, "synchronous_standby_names", awaited)
        found = {finding.code: finding for finding in (await examine(store.database)).findings}
        await set_and_tell(connection, "synchronous_standby_names", "")
    assert found["standby"].level == "warning"
    assert words in found["standby"].text
    assert awaited in found["standby"].text


async def test_a_server_that_only_reads_after_a_break_does_not_settle_an_append(own_postgres: Server) -> None:
    """Whether the event lasts is not known then: nobody says that nothing was written, nor that all was."""
    async with open_store(own_postgres.url()) as store:
        await store.append("a", events(1))
        reads = {"default_transaction_read_only": "on"}
        async with broken_off(own_postgres, store, reads) as (append, _, _):
            with pytest.raises(AppendUncertain, match="read-only transaction") as doubt:
                await asyncio.wait_for(append, 30)
            assert "Nothing was written" not in str(doubt.value)
    async with administrator(own_postgres) as connection:
        await connection.execute("SET default_transaction_read_only = off")
        await set_and_tell(connection, "synchronous_standby_names", "")
        await connection.execute("ALTER SYSTEM RESET default_transaction_read_only")
        await connection.execute("SELECT pg_reload_conf()")
    async with open_store(own_postgres.url()) as store:
        repeated = await store.append(**doubt.value.arguments)
        assert repeated.repeated
        assert await versions(store, "a") == [1, 2]


async def test_an_append_that_reached_no_server_is_not_uncertain(
    own_postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was sent, so nothing can have been written."""
    monkeypatch.setattr("timeline.store.postgres.committing.PATIENCE", 0.3)
    async with open_store(own_postgres.url()) as store:
        await store.append("a", events(1))
        await asyncio.to_thread(own_postgres.stop)
        with pytest.raises((AppendUncertain, StoreUnavailable)):  # the first one still had its connection
            await store.append("a", events(1))
        with pytest.raises(StoreUnavailable):
            await store.append("a", events(1))
        await asyncio.to_thread(own_postgres.start)
        assert (await store.append("a", events(1))).version == 2
