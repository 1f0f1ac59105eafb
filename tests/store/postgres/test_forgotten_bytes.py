"""What is forgotten in a PostgreSQL store: no query finds it, and where its bytes still are is said."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.postgres import schema_of, with_query, without
from tests.project.pages import code_blocks
from tests.project.sources import ROOT
from tests.scenes import Scribe, small_policy
from timeline import Timeline, open_store
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.errors import StoreLocked
from timeline.events import BlockAppended
from timeline.forgetting import redact
from timeline.retention import rehearse, scavenge
from timeline.store.postgres.rehearsing import measured
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing.samples import block_event

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.postgres_server import Server
    from timeline.ports import EventStore

asyncpg = pytest.importorskip("asyncpg")

MARK: Final = "zebrafinch"
"""In the texts that go; a word of its own, so that a digest, a fact or the index of words shows it too."""
_STATISTICS: Final = (
    "SELECT tablename, attname, concat(most_common_vals, histogram_bounds, most_common_elems)"
    " FROM pg_stats WHERE schemaname = $1"
)
POLICY: Final = small_policy(max_tokens=1_000, keep_recent_tokens=200)


async def planted(store: EventStore, conversation: str = "c") -> None:
    """Write a conversation whose prompt, call, result, title and summary hold the mark."""
    timeline = await Timeline.open(store, conversation, policy=POLICY, summarizer=Scribe(), title=f"About {MARK}")
    await timeline.append(UserPrompt(text=f"Deploy to {MARK}. " + "filler text. " * 40))
    call = ToolCall(call_id="c1", name="Bash", arguments={"command": f"ssh {MARK}"})
    await timeline.append(call, ToolResult(call_id="c1", text=f"denied by {MARK} " * 30, is_error=True, exit_status=1))
    for number in range(8):
        await timeline.append(UserPrompt(text=f"And now, {number}? " + "filler text. " * 60))
    await timeline.render(system=f"You work for {MARK}.")


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Any]:
    """Open a connection past the store."""
    connection: Any = await asyncpg.connect(without(url, "schema"))
    try:
        yield connection
    finally:
        await connection.close()


async def shown(url: str) -> list[str]:
    """Return the columns of all tables, and of the planner's statistics, in which a query finds the mark."""
    found = []
    async with connected(url) as connection:
        tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1", schema_of(url))
        for (table,) in tables:
            rows = await connection.fetch(f'SELECT to_jsonb(t) AS row FROM "{schema_of(url)}"."{table}" AS t')  # noqa: S608
            found += [table for (row,) in rows if MARK in row]
        for *column, sample in await connection.fetch(_STATISTICS, schema_of(url)):
            found += [f"pg_stats {'.'.join(column)}"] if MARK in sample else []
    return sorted(set(found))


async def everything_asked(store: EventStore) -> None:
    """Ask what makes rows: facts, the index of words, digests."""
    assert [hit async for hit in store.search(MARK)]
    assert [fact async for fact in store.facts()]
    assert [digest async for digest in store.digests()]


async def test_no_query_finds_what_was_redacted(postgres_url: str) -> None:
    """Neither in the log, nor in what was made of it, nor in the planner's statistics."""
    async with open_store(postgres_url) as store:
        await planted(store)
        await everything_asked(store)
        async with connected(postgres_url) as connection:
            await connection.execute("ANALYZE")
        appended = [event.payload async for event in store.read("c", types=["block.appended"])]
        paths = [
            each.block.path for each in appended if isinstance(each, BlockAppended) and MARK in each.model_dump_json()
        ]
        assert "events" in await shown(postgres_url)
        report = await redact(store, "c", paths, "asked for", text=MARK)
        assert report.physical
        assert [hit async for hit in store.search(MARK)] == []
    assert await shown(postgres_url) == []


async def test_no_query_finds_what_was_erased(postgres_url: str) -> None:
    """A path that its application chose goes, too."""
    async with open_store(postgres_url) as store:
        await planted(store)
        await store.append("other", [block_event("stays", "stays")])
        await store.append("paths", [block_event(f"{MARK}.{number}", "text") for number in range(50)])
        await everything_asked(store)
        async with connected(postgres_url) as connection:
            await connection.execute("ANALYZE")
        report = await store.erase("c")
        assert (report.physical, set(report.left)) == (True, {"ids", "log"})
        await store.erase("paths")
    assert await shown(postgres_url) == []


def in_files(server: Server) -> dict[str, int]:
    """Return how often the mark is in the files of a server's folder, by their place: tables, or the log."""
    found: dict[str, int] = {}
    for file in _files(server.data):
        times = len(re.findall(MARK.encode(), file.read_bytes()))
        place = file.relative_to(server.data).parts[0]
        if times:
            found[place] = found.get(place, 0) + times
    return found


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


async def test_what_a_crash_left_of_a_rewriting_is_named_by_the_report_and_listed_by_the_page(
    own_postgres: Server,
) -> None:
    """The server knows nothing of such a file: what is removed later is in it for good."""
    url = with_query(own_postgres.url(), schema="kept")
    page = (ROOT / "docs" / "postgres" / "operations.md").read_text(encoding="utf-8")
    [listing] = [block.text for block in code_blocks(page) if "pg_ls_dir" in block.text]
    async with open_store(url) as store:
        await store.append("c", [block_event(f"p{number}", MARK) for number in range(50)])
    connection = await asyncpg.connect(without(url, "schema"))
    assert await connection.fetch(listing) == []
    process = await connection.fetchval("SELECT pg_backend_pid()")
    await connection.execute("BEGIN; CLUSTER kept.events USING events_pkey")
    os.kill(process, signal.SIGKILL)  # behind which the server begins anew by itself
    while not connection.is_closed():  # noqa: ASYNC110 - it has no event
        await asyncio.sleep(0.02)
    async with open_store(url) as store:
        report = await store.erase("c")
    assert report.physical
    assert "a crash of it left behind" in report.not_reached["server"]
    async with connected(url) as connection:
        await connection.execute("CHECKPOINT")
        listed = [own_postgres.data / file for file, _ in await connection.fetch(listing)]
    assert in_files(own_postgres)["base"] > 0
    await asyncio.to_thread(own_postgres.stop)
    for file in listed:
        file.unlink()
    await asyncio.to_thread(own_postgres.start)
    assert "base" not in in_files(own_postgres)
    async with open_store(url) as store:
        assert await store.examine() == []


async def test_a_rewriting_takes_it_out_of_the_tables_files_and_the_log_is_named(own_postgres: Server) -> None:
    """Overwriting alone leaves the old row in its file; the write-ahead log is the server's."""
    url = with_query(own_postgres.url(), schema="kept")
    async with open_store(url) as store:
        await planted(store)
        await everything_asked(store)
        async with connected(url) as connection:
            await connection.execute("CHECKPOINT")
        before = in_files(own_postgres)
        assert before["base"] > 0
        report = await store.erase("c")
        async with connected(url) as connection:
            await connection.execute("CHECKPOINT")
        after = in_files(own_postgres)
    assert "base" not in after
    assert after["pg_wal"] > 0
    assert "write-ahead log" in report.left["log"]
    assert "logged of statements" in report.left["log"]


async def test_bytes_that_an_older_transaction_may_see_are_said_to_be_left(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The erasure is done; calling it again reaches the files once that transaction has ended."""
    monkeypatch.setattr("timeline.store.postgres.table_files._PATIENCE", 0.2)
    async with open_store(postgres_url) as store, connected(postgres_url) as other:
        await planted(store)
        await other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
        report = await store.erase("c")
        assert not report.physical
        assert "may still see it" in report.left["files"]
        await other.execute("ROLLBACK")
        assert (await store.erase("c")).physical


async def test_a_table_that_lost_its_key_is_said_to_hold_the_bytes_until_it_is_rewritten(postgres_url: str) -> None:
    """It was left out of the rewriting, and the report said that nothing was left."""
    async with open_store(postgres_url) as store, connected(postgres_url) as connection:
        await planted(store)
        await connection.execute(f"ALTER TABLE {schema_of(postgres_url)}.events DROP CONSTRAINT events_pkey")
        assert (await rehearse(store)).conversations
        report = await store.erase("c", reason="asked for")
        assert not report.physical
        assert "events has lost its key" in report.left["files"]
        await store.mend()
        assert await store.shrink() is not None


async def test_a_large_table_is_left_to_a_quiet_time(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the command; once its owner ran it, nothing is due any more."""
    monkeypatch.setattr("timeline.store.postgres.table_files.AT_ONCE", 1)
    async with open_store(postgres_url) as store:
        await planted(store)
        await scavenge(store, ["c"])
        report = await store.erase("c")
        assert not report.physical
        command = re.search(r"run (VACUUM \(FULL\) [^;]*);", report.left["files"])
        assert command is not None
        with pytest.raises(StoreLocked, match="At a quiet time"):
            await store.shrink()
        async with connected(postgres_url) as connection:
            await connection.execute(command[1])
        assert await store.shrink() is not None
        assert await store.shrink() is None


async def test_a_rehearsal_makes_the_index_of_words_once_when_its_copy_is_full(postgres_url: str) -> None:
    """Row by row, and twice, it took most of the time, in which followers of all conversations see nothing new."""
    asked: list[str] = []
    async with await PostgresStore.open(postgres_url) as store:
        await planted(store)
        await everything_asked(store)
        async with store.database.connection() as connection:
            transaction = connection.transaction()
            await transaction.start()
            connection.add_query_logger(lambda query: asked.append(query.query))
            size = await measured(connection, ["c"], store.database.address)
            await transaction.rollback()
        assert size == (await store.rehearse(["c"])).after
    filled = [n for n, each in enumerate(asked) if re.match(r'INSERT INTO pg_temp\."search_index', each)]
    indexed = [n for n, each in enumerate(asked) if " USING gin " in each]
    dropped = [n for n, each in enumerate(asked) if re.match(r"DROP INDEX \S*search_index", each)]
    assert len(filled) == len(dropped) == 2
    assert dropped[0] < filled[0] < dropped[1] < filled[1] < indexed[0] == indexed[-1]


_ENDED: Final = (
    "SELECT count(pg_{}_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'CLUSTER \"' || $1 || '\"%'"
    " AND wait_event_type = 'Lock'"
)


@asynccontextmanager
async def ended_rewriting(url: str, how: str) -> AsyncIterator[None]:
    """Let an administrator end the rewriting of a table, as statement_timeout or a restart does."""
    async with connected(url) as reader, connected(url) as administrator:
        await reader.execute(f'BEGIN; LOCK TABLE "{schema_of(url)}".conversations IN ACCESS SHARE MODE')

        async def end() -> None:
            ended = 0
            while not ended:
                await asyncio.sleep(0.01)
                ended = await administrator.fetchval(_ENDED.format(how), schema_of(url))

        ending = asyncio.create_task(end())
        yield
        await asyncio.wait_for(ending, 30)
        await reader.execute("ROLLBACK")


@pytest.mark.parametrize("how", ["cancel", "terminate"])
async def test_what_is_forgotten_is_reported_where_the_server_ends_the_rewriting(postgres_url: str, how: str) -> None:
    """The rows are gone by then: no error says that nothing was written, and the same call again reaches the files."""
    async with open_store(postgres_url) as store:
        await planted(store)
        await planted(store, "d")
        async with ended_rewriting(postgres_url, how):
            redacted = await redact(store, "d", ["ar:turn_1.user.prompt"], "asked for")
        async with ended_rewriting(postgres_url, how):
            erased = await store.erase("c")
        for report in (redacted, erased):
            assert not report.physical
            assert "no longer read" in report.left["files"]
            assert "othing was written" not in report.left["files"]
        assert [info.id async for info in store.conversations()] == ["d"]
        assert (await store.erase("c")).physical
