"""A standby that is read, and that takes over while appends are under way; a server that is stopped in their midst."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

import asyncpg
import pytest

from tests.depth import DEPTH, Depth, at_night
from tests.histories import Players, logs_of, problems
from tests.postgres import Postgres, with_query
from tests.postgres_server import Pool, Server, new_folder
from timeline import open_store
from timeline.errors import StoreReadOnly, StoreTooOld, StoreUnavailable
from timeline.store.postgres import replayed
from timeline.store.postgres.parts import READERS
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import block_event, events
from timeline.store.testing.samples import versions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.histories import Operation

SECONDS = {Depth.QUICK: 1.0, Depth.FULL: 1.0, Depth.NIGHT: 20.0}[DEPTH]
PROCESSES = 2
SOCKET = ".s.PGSQL.5432"
BOTH = [pytest.param(Postgres("oldest"), id="oldest"), pytest.param(Postgres("newest"), id="newest", marks=at_night)]


@contextmanager
def standing_by(primary: Server) -> Iterator[Server]:
    """Run a server that follows another one."""
    server = Server(new_folder(), primary.binaries.major)
    try:
        server.stand_by(primary)
        yield server
    finally:
        server.remove()


@pytest.fixture
def standby(own_postgres: Server) -> Iterator[Server]:
    """A server that follows the test's own one."""
    with standing_by(own_postgres) as server:
        yield server


@pytest.fixture
def lagging(own_postgres: Server) -> Iterator[Server]:
    """Another one, which replays only what it is told to."""
    with standing_by(own_postgres) as server:
        yield server


@pytest.fixture
def name(standby: Server) -> Iterator[Path]:
    """A name that stands for several servers: a folder whose socket is that of one of them, the standby at first."""
    folder = new_folder()
    point(folder, standby)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(params=["directly", "pgbouncer"])
def named(request: pytest.FixtureRequest, name: Path) -> Iterator[str]:
    """The URL of the name."""
    if request.param == "directly":
        yield f"postgresql://postgres@/postgres?host={name}"
        return
    if Pool.program() is None:
        pytest.skip("there is no pgbouncer on this machine; Debian's package is called pgbouncer")
    pool = Pool(new_folder(), name)
    try:
        pool.start()
        yield pool.url()
    finally:
        pool.stop()
        shutil.rmtree(pool.folder)


def point(name: Path, server: Server) -> None:
    """Let the next connections of a name reach a server."""
    socket = name / SOCKET
    socket.unlink(missing_ok=True)
    socket.symlink_to(server.folder / SOCKET)


async def until_caught_up(standby: Server, primary: Server) -> None:
    """Wait until a standby has played all that its primary has written: before that it may have no store at all."""
    leader, follower = await asyncpg.connect(primary.url()), await asyncpg.connect(standby.url())
    try:
        written = await leader.fetchval("SELECT pg_current_wal_lsn()::text")
        async with asyncio.timeout(60):
            while not await follower.fetchval(  # noqa: ASYNC110 - it has no event
                "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn", written
            ):
                await asyncio.sleep(0.02)
    finally:
        await leader.close()
        await follower.close()


async def tell(server: Server, statement: str) -> None:
    """Run a statement on a server."""
    connection = await asyncpg.connect(server.url())
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def let_lag(lagging: Server, standby: Server, primary: Server) -> None:
    """Append two events to a conversation, of which one standby has both and the other one the first."""
    async with open_store(primary.url()) as store:
        await store.append("a", events(1))
        await until_caught_up(lagging, primary)
        await tell(lagging, "SELECT pg_wal_replay_pause()")
        await store.append("a", events(1))
        await until_caught_up(standby, primary)


def check(operations: list[Operation], logs: dict[str, list[str]], least: int) -> None:
    """Check that one order explains what all processes did, and that they did something."""
    assert problems(operations, logs) == []
    assert len([one for one in operations if one.ids and one.outcome == "ok"]) > least


async def test_a_standby_is_read_and_refuses_to_be_written_to(
    own_postgres: Server, standby: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """All reads and questions are answered, an examination too; what writes is one clear error; later it may write.

    A reader that comes from its primary is ahead of it, and that is no news: it lags.
    """
    async with open_store(own_postgres.url()) as store:
        await store.append("a", [block_event("p", "first words"), *events(2)])
    await until_caught_up(standby, own_postgres)
    async with open_store(standby.url()) as store, open_store(standby.url(), readonly=True) as reader:
        for one in (store, reader):
            assert await versions(one, "a") == [1, 2, 3]
            assert [event.version async for event in one.read_all()] == [1, 2, 3]
            assert [event async for event in one.read_all(after=2**50)] == []
            assert "anew" not in caplog.text
            assert [found.path async for found in one.search("words")] == ["p"]
            assert len([fact async for fact in one.facts()]) == 3
            assert [found async for found in one.digests()] == []
            assert (await one.load_window("a")).info.version == 3
            assert await one.examine() == []
            assert (await one.rehearse(["a"])).removals["a"].events == 0
            for refused in (one.append("a", events(1)), one.append("new", events(1)), one.erase("a"), one.mend()):
                with pytest.raises(StoreReadOnly):
                    await refused
        await asyncio.to_thread(own_postgres.stop, "immediate")
        await asyncio.to_thread(standby.promote)
        assert (await store.append("a", events(1), expected=3)).version == 4
        assert [event.version async for event in reader.read_all()] == [1, 2, 3, 4]


async def test_a_reader_of_a_standby_is_woken_by_its_primary(own_postgres: Server, standby: Server) -> None:
    """A standby passes no wake-ups on; the URL's `listen_url` may name the server that does."""
    async with open_store(own_postgres.url()) as store:
        await store.append("a", events(1))
        await until_caught_up(standby, own_postgres)
        url = with_query(standby.url(), listen_url=own_postgres.url())
        async with await PostgresStore.open(url, readonly=True) as reader, asyncio.timeout(30):
            heard = reader.wakeups()
            for _ in range(2):  # when it listens, and when everybody knows that somebody does
                assert (await anext(heard)).concerns("another", {"any.type"})
            await store.append("a", events(1))
            told = await anext(heard)
            assert told.concerns("a", {"block.appended"})
            assert not told.concerns("another", {"block.appended"})


async def test_wakeups_that_would_go_to_a_standby_are_said_to_go_nowhere(
    own_postgres: Server, standby: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody can listen there, and its locks are its own: without a word, followers elsewhere would only poll."""
    url = with_query(own_postgres.url(), listen_url=standby.url())
    async with open_store(url) as store, asyncio.timeout(30):
        await store.append("a", events(1))
        while "Check listen_url" not in caplog.text:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.02)


async def test_what_one_standby_showed_is_waited_for_on_another_one(
    own_postgres: Server, standby: Server, lagging: Server, name: Path, named: str
) -> None:
    """A follower that took the log's end from the first, and its events from the second, would miss them for good."""
    await let_lag(lagging, standby, own_postgres)
    async with open_store(named, readonly=True) as reader:
        assert await versions(reader, "a") == [1, 2]
        point(name, lagging)
        reads = [asyncio.create_task(versions(reader, "a")) for _ in range(READERS)]
        done, waiting = await asyncio.wait(reads, timeout=0.5)
        assert done
        assert waiting
        await tell(lagging, "SELECT pg_wal_replay_resume()")
        assert await asyncio.gather(*reads) == [[1, 2]] * READERS


async def test_a_standby_that_stays_behind_is_one_clear_error(
    own_postgres: Server, standby: Server, lagging: Server, name: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have lost for good, in a failover, what another one showed: a store that is opened anew goes by it."""
    monkeypatch.setattr(replayed, "PATIENCE", 0.2)
    await let_lag(lagging, standby, own_postgres)
    url = with_query(standby.url(), host=str(name))
    async with open_store(url, readonly=True) as reader:
        assert await versions(reader, "a") == [1, 2]
        point(name, lagging)
        reads = await asyncio.gather(*(versions(reader, "a") for _ in range(READERS)), return_exceptions=True)
        refused = [read for read in reads if isinstance(read, StoreUnavailable)]
        assert refused
        assert "a standby has not replayed" in str(refused[0])
        assert [read for read in reads if read not in refused] == [[1, 2]] * (READERS - len(refused))
    async with open_store(url, readonly=True) as reader:
        assert await versions(reader, "a") == [1]


async def test_a_standby_that_has_no_store_yet_is_named_as_one(own_postgres: Server, standby: Server) -> None:
    """It lags; who may not write to it could not bring its schema up to date either."""
    connection = await asyncpg.connect(standby.url())
    await connection.execute("SELECT pg_wal_replay_pause()")
    async with open_store(own_postgres.url()) as store:
        await store.append("a", events(1))
    for opened in (open_store(standby.url()), open_store(standby.url(), readonly=True)):
        with pytest.raises(StoreTooOld, match=r"is a standby.*wait until it has caught up.*URL of the primary"):
            await opened
    await connection.execute("SELECT pg_wal_replay_resume()")
    await connection.close()
    await until_caught_up(standby, own_postgres)
    async with open_store(standby.url(), readonly=True) as store:
        assert await versions(store, "a") == [1]


@pytest.mark.timeout(8 * SECONDS + 120)
@pytest.mark.parametrize("own_postgres", BOTH, indirect=True)
async def test_appends_go_on_with_a_standby_that_takes_over(
    own_postgres: Server, standby: Server, tmp_path: Path
) -> None:
    """With a synchronous standby, all that was acknowledged is there, once; the rest is settled by its ids."""
    connection = await asyncpg.connect(own_postgres.url())
    await connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
    await connection.execute("SELECT pg_reload_conf()")
    await connection.close()
    hosts = f"{own_postgres.folder},{standby.folder}"
    url = with_query(own_postgres.url(), host=hosts, port="5432,5432", target_session_attrs="primary")
    async with open_store(url) as store:
        await store.append("before", events(1))
        players = Players(url, tmp_path)
        try:
            for _ in range(PROCESSES):
                await asyncio.to_thread(players.join)
            await asyncio.sleep(SECONDS)
            await asyncio.to_thread(own_postgres.kill)
            await asyncio.to_thread(standby.promote)
            await asyncio.sleep(SECONDS)
            operations = await asyncio.to_thread(players.end)
        finally:
            players.kill()
        assert (await store.append("before", events(1))).version == 2
        logs = {id_: ids for id_, ids in (await logs_of(store)).items() if id_ != "before"}
        assert await store.examine() == []
    check(operations, logs, 20)


async def test_appends_and_reads_wait_for_a_standby_that_has_not_taken_over_yet(
    own_postgres: Server, standby: Server
) -> None:
    """While none of the servers leads they are not refused; the standby answers all of that time."""
    hosts = f"{own_postgres.folder},{standby.folder}"
    url = with_query(own_postgres.url(), host=hosts, port="5432,5432", target_session_attrs="primary")
    async with open_store(url) as store:
        await store.append("a", events(1))
        await until_caught_up(standby, own_postgres)
        await asyncio.to_thread(own_postgres.kill)
        waiting = [asyncio.create_task(store.append("a", events(1))), asyncio.create_task(store.append("b", events(1)))]
        reading = asyncio.create_task(versions(store, "a"))
        await asyncio.sleep(0.5)
        assert not any(task.done() for task in (*waiting, reading))
        await asyncio.to_thread(standby.promote)
        assert [(await append).version for append in waiting] == [2, 1]
        assert (await reading)[0] == 1


async def test_opening_waits_for_a_standby_that_has_not_taken_over_yet(own_postgres: Server, standby: Server) -> None:
    """A program that starts during a failover is as patient as one that runs, whichever server it asks last."""
    async with open_store(own_postgres.url()) as store:
        await store.append("a", events(1))
        await until_caught_up(standby, own_postgres)
    await asyncio.to_thread(own_postgres.kill)
    folders = (own_postgres.folder, standby.folder)
    urls = [
        with_query(own_postgres.url(), host=f"{one},{other}", target_session_attrs="primary")
        for one, other in (folders, reversed(folders))
    ]
    opening = [asyncio.create_task(PostgresStore.open(url)) for url in urls]
    await asyncio.sleep(0.5)
    assert not any(task.done() for task in opening)
    await asyncio.to_thread(standby.promote)
    for task in opening:
        async with await task as store:
            assert await versions(store, "a") == [1]


@pytest.mark.timeout(16 * SECONDS + 120)
@pytest.mark.parametrize("own_postgres", BOTH, indirect=True)
async def test_appends_under_way_when_a_server_is_stopped_are_there_once_or_not_at_all(
    own_postgres: Server, tmp_path: Path
) -> None:
    """Fast, as an upgrade stops it, and immediate: what was acknowledged is there, and one order explains the rest."""
    url = own_postgres.url(schema="timeline")
    async with open_store(url) as store:
        players = Players(url, tmp_path)
        try:
            for _ in range(PROCESSES):
                await asyncio.to_thread(players.join)
            for mode in ("fast", "immediate") * (5 if DEPTH is Depth.NIGHT else 1):
                await asyncio.sleep(SECONDS / 2)
                await asyncio.to_thread(own_postgres.stop, mode)
                await asyncio.sleep(0.2)
                await asyncio.to_thread(own_postgres.start)
            await asyncio.sleep(SECONDS / 2)
            operations = await asyncio.to_thread(players.end)
        finally:
            players.kill()
        logs = await logs_of(store)
    check(operations, logs, 20)
