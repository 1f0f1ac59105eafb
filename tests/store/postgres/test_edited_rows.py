# ruff: noqa: S608 - the statements edit rows of a test's own schema
"""Rows that are edited behind the store's back, one at a time: a verification in depth finds each."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.postgres import Postgres, direct_url, schema_of, with_query, without
from tests.scenes import Scribe, after, call, result, small_policy, turn
from timeline import Timeline, open_store
from timeline.audit.deep import repair, verify_deep
from timeline.blocks import ToolCall, ToolResult
from timeline.errors import StoreCorrupt, TimelineError
from timeline.ports import Finding
from timeline.retention import rehearse, scavenge
from timeline.store.postgres import create
from timeline.store.postgres.keeping import take_turn
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import block_event, events

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from timeline.ports import EventStore

asyncpg = pytest.importorskip("asyncpg")

POLICY: Final = small_policy(max_tokens=4_000, keep_recent_tokens=400)
_OF = "(SELECT key FROM conversations WHERE id = '{}')"
_C, _FORK, _OLD = (f"conversation = {_OF.format(id_)}" for id_ in ("c", "fork", "old"))
_COMPACTION = "(SELECT position FROM compactions ORDER BY position LIMIT 1)"
_FACT = "(position, number) = (SELECT position, number FROM facts WHERE conversation = {} ORDER BY 1, 2 LIMIT 1)"
_WORDS = "(SELECT min(position) FROM search_index)"
EDITS: Final = {
    "payload": f"UPDATE events SET payload = replace(payload, 'a', 'b') WHERE {_C} AND version = 3",
    "time": f"UPDATE events SET at = '2026-01-01T00:00:00.000001Z' WHERE {_C} AND version = 3",
    "path": f"UPDATE events SET path = 'x' WHERE {_C} AND version = 2",
    "tokens": f"UPDATE events SET tokens = tokens + 1 WHERE {_C} AND version = 2",
    "salt": f"UPDATE events SET salt = decode(repeat('01', 16), 'hex') WHERE {_C} AND version = 2",
    "link": f"UPDATE events SET link = decode('01', 'hex') WHERE {_C} AND version = 2",
    "event dropped": f"DELETE FROM events WHERE {_C} AND version = 4",
    "newest event dropped": f"DELETE FROM events WHERE {_FORK} AND version ="
    " (SELECT version FROM conversations WHERE id = 'fork')",
    "newest event renumbered": f"UPDATE events SET version = version + 3 WHERE {_FORK} AND version ="
    " (SELECT version FROM conversations WHERE id = 'fork')",
    "row dropped": "DELETE FROM conversations WHERE id = 'fork'",
    "type of a scavenged event": f"UPDATE events SET type = 'model.called' WHERE {_OLD} AND version ="
    " (SELECT min(version) FROM events WHERE checksum = '' AND type = 'block.appended')",
    "base of a fork": "UPDATE conversations SET base = base - 1 WHERE id = 'fork'",
    "base": "UPDATE bases SET body = replace(body, '1', '2')",
    "text": "UPDATE stored_values SET text = text || 'x' WHERE hash = (SELECT min(hash) FROM stored_values)",
    "text dropped": "DELETE FROM stored_values WHERE hash = (SELECT min(hash) FROM stored_values)",
    "facts of a scavenged event": (
        "UPDATE facts SET subject = subject || 'x' WHERE (position, number) = (SELECT f.position, f.number"
        " FROM facts AS f JOIN events AS e ON e.position = f.position WHERE e.checksum = '' ORDER BY 1, 2 LIMIT 1)"
    ),
    "retention": "UPDATE settings SET value = 'keep' WHERE name = 'retention'",
}
"""By what is edited; nothing makes these anew."""
DERIVED: Final = {
    "version": "UPDATE conversations SET version = version - 1 WHERE id = 'c'",
    "title": "UPDATE conversations SET title = 'x' WHERE id = 'c'",
    "head": "UPDATE conversations SET head = decode('01', 'hex') WHERE id = 'c'",
    "window": "UPDATE conversations SET window_start = window_start + 1 WHERE id = 'c'",
    "first version": "UPDATE conversations SET first_version = 1 WHERE id = 'old'",
    "snapshot": f"UPDATE snapshots SET body = replace(body, '1', '2') WHERE {_C}",
    "waypoint": "UPDATE waypoints SET body = body || '\\x00'::bytea, checksum = 'x'"
    " WHERE version = (SELECT max(version) FROM waypoints)",
    "compaction": f"UPDATE compactions SET before_tokens = before_tokens + 1 WHERE position = {_COMPACTION}",
    "compaction dropped": f"DELETE FROM compactions WHERE position = {_COMPACTION}",
    "digest entry": f"UPDATE digest_entries SET errors = errors + 1 WHERE position = {_COMPACTION}",
    "digest entry dropped": f"DELETE FROM digest_entries WHERE position = {_COMPACTION}",
    "fact": f"UPDATE facts SET subject = subject || 'x' WHERE {_FACT.format(_OF.format('c'))}",
    "fact dropped": f"DELETE FROM facts WHERE {_FACT.format(_OF.format('c'))}",
    "fact of another conversation": f"UPDATE facts SET {_FORK} WHERE {_FACT.format(_OF.format('c'))}",
    "reach of the facts": "UPDATE facts_progress SET position = position * 2",
    "word": f"UPDATE search_index SET found = found || $$'wx':1$$::tsvector WHERE position = {_WORDS}",
    "number of words": f"UPDATE search_index SET words = words + 1 WHERE position = {_WORDS}",
    "words dropped": f"DELETE FROM search_index WHERE position = {_WORDS}",
    "words of no text": "INSERT INTO search_index (position, part, conversation, words, several, found)"
    " SELECT 7, 0, conversation, 1, false, found FROM search_index LIMIT 1",
    "words of another conversation": f"UPDATE search_index SET {_FORK} WHERE position = {_WORDS}",
    "reach of the words": "UPDATE search_progress SET position = position * 2",
    "index": "DROP INDEX events_path",
    "another index": "DROP INDEX events_rare; CREATE INDEX events_rare ON events (type)",
    "trigger": (
        "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
        " CREATE TRIGGER lost BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION nothing()"
    ),
}
"""By what is edited; a repair makes these anew."""
TABLES: Final = {f"table {table}": f"DROP TABLE {table} CASCADE" for table in sorted(create.DERIVED)}
FUNCTION: Final = "DROP FUNCTION search_found"
CATALOGUE: Final = """
    SELECT c.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod), a.attcollation::bigint, a.attnotnull,
        a.attstattarget::text, a.attcompression::text, c.relrowsecurity, c.relforcerowsecurity,
        (SELECT count(*) FROM pg_policy AS p WHERE p.polrelid = c.oid),
        pg_get_expr(d.adbin, d.adrelid), pg_get_indexdef(c.oid)
    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
    LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE c.relnamespace = current_schema()::regnamespace AND a.attnum > 0 ORDER BY 1, 2"""
"""What the server knows of the tables and indexes of a schema: columns, policies, compression, statistics."""


def _work(id_: str, file: str) -> list[ToolCall | ToolResult]:
    return [
        ToolCall(call_id=f"{id_}1", name="Read", arguments={"file_path": file}),
        ToolResult(call_id=f"{id_}1", text=f"def main_{id_}(): pass"),
        ToolCall(call_id=f"{id_}2", name="Bash", arguments={"command": f"make {id_}"}),
        ToolResult(call_id=f"{id_}2", text=f"failed {id_}", is_error=True, exit_status=2),
    ]


async def _conversation(store: EventStore, id_: str) -> Timeline:
    timeline = await Timeline.open(store, id_, policy=POLICY, summarizer=Scribe(), title=f"About {id_}")
    await timeline.append(*turn(1_500), *_work("a", "src/main.py"))
    await timeline.render(system="S", tools=[{"name": "run"}], now=after(1))
    await timeline.append(*turn(1_500), *turn(1_000), call("e"), result("e", 1_500))
    await timeline.render(system="S", now=after(2))
    await timeline.append(*_work("h", "src/other.py"), *turn(400))
    await timeline.render(system="S", now=after(3))
    return timeline


async def _whole(store: EventStore) -> None:
    timeline = await _conversation(store, "c")
    fork = await timeline.fork(conversation="fork")
    await fork.append(*turn(40), *_work("g", "src/fork.py"))


async def make(store: EventStore) -> None:
    """Write rows into every table: compactions, a fork, what was scavenged, facts."""
    await _whole(store)
    old = await _conversation(store, "old")
    await old.set_retention("window")
    await scavenge(store, ["old"])
    await store.set_retention("window")
    assert [fact async for fact in store.facts()]
    assert [hit async for hit in store.search("make")]


async def _answers(store: EventStore) -> list[object]:
    facts = [fact async for fact in store.facts()]
    hits = [hit async for hit in store.search("make")]
    digests = [digest async for digest in store.digests()]
    return [facts, hits, digests, [info async for info in store.conversations()]]


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Any]:
    """Open a connection to the schema of a store, past the store."""
    connection = await asyncpg.connect(without(url, "schema"))
    try:
        await connection.execute(f"SET search_path TO {schema_of(url)}")
        yield connection
    finally:
        await connection.close()


async def edit(connection: Any, statement: str) -> None:
    """Edit what a statement names, which is something."""
    assert await connection.execute(statement) not in {"UPDATE 0", "DELETE 0"}, statement


@asynccontextmanager
async def edited(connection: Any, statement: str) -> AsyncIterator[None]:
    """Edit a table, and put its rows back as they were."""
    table = statement.removeprefix("DELETE FROM ").removeprefix("UPDATE ").partition(" ")[0]
    await connection.execute(f"CREATE TEMPORARY TABLE kept AS TABLE {table}")
    try:
        await edit(connection, statement)
        yield
    finally:
        await connection.execute(f"DELETE FROM {table}; INSERT INTO {table} TABLE kept; DROP TABLE kept")


async def problems(store: EventStore) -> list[str]:
    """Return what a deep verification finds."""
    try:
        report = await verify_deep(store)
    except TimelineError as refusal:
        return [str(refusal)]
    named = [f"{each.what}: {each.problem}" for each in report.differences]
    return [*named, *(problem for each in report.conversations for problem in each.problems)]


async def test_a_sound_store_is_sound_in_depth(postgres_url: str) -> None:
    """Nothing that is derived differs from the log, and each conversation is proved to its head."""
    async with open_store(postgres_url) as store:
        await make(store)
    async with open_store(postgres_url, readonly=True) as store:
        report = await verify_deep(store)
    assert report.ok, (report.differences, [each.problems for each in report.conversations])
    assert [each.proved for each in report.conversations] == [each.events for each in report.conversations]


async def test_the_texts_of_a_context_that_was_recorded_by_hashes_are_not_missed(postgres_url: str) -> None:
    """The store never had them."""
    async with open_store(postgres_url) as store:
        timeline = await Timeline.open(store, "c")
        await timeline.append(*turn(400, asked=300))
        await timeline.render(system="S", tools=[{"name": "run"}], ephemeral=("Noon.",), record="hash")
        assert (await verify_deep(store)).differences == ()


async def test_a_store_is_sound_where_the_server_quotes_all_names(postgres_url: str) -> None:
    """It writes the definitions of indexes and policies otherwise then; they are the same ones."""
    async with await PostgresStore.open(with_query(postgres_url, quote_all_identifiers="on", partitions="2")) as store:
        assert await store.examine() == []


async def test_an_edit_of_what_nothing_makes_anew_is_found(postgres_url: str) -> None:
    """Events, bases and texts are the record itself."""
    async with open_store(postgres_url) as store, connected(postgres_url) as connection:
        await make(store)
        for what, statement in EDITS.items():
            async with edited(connection, statement):
                assert await problems(store), what
        assert await problems(store) == []


async def test_an_edit_of_what_is_derived_is_found_and_mended(postgres_url: str) -> None:
    """No event is changed by that, and a second look finds nothing."""
    async with open_store(postgres_url) as store, connected(postgres_url) as connection:
        await make(store)
        events = [event async for event in store.read_all()]
        for what, statement in DERIVED.items():
            await edit(connection, statement)
            assert await problems(store), what
            assert (await repair(store, dry_run=False)).left == (), what
            assert await problems(store) == [], what
        assert [event async for event in store.read_all()] == events


@pytest.mark.parametrize("postgres_url", [Postgres(pooled=True)], ids=["pgbouncer"], indirect=True)
async def test_a_repair_mends_what_is_derived_behind_a_pool(postgres_url: str) -> None:
    """Its settings come with each transaction there, by a query, and the repair's lock comes before."""
    direct = with_query(direct_url(), schema=schema_of(postgres_url))
    async with open_store(postgres_url) as store, connected(direct) as connection:
        await _whole(store)
        await edit(connection, DERIVED["title"])
        assert await problems(store)
        assert (await repair(store, dry_run=False)).left == ()
        assert await problems(store) == []


async def test_facts_and_an_index_of_a_newer_release_are_no_damage(postgres_url: str) -> None:
    """They follow other rules than this release's, whose next question makes its own."""
    async with open_store(postgres_url) as store, connected(postgres_url) as connection:
        await _whole(store)
        answers = await _answers(store)
        await edit(connection, "UPDATE facts SET subject = subject || 'x'")
        for table in ("facts_progress", "search_progress"):
            await edit(connection, f"UPDATE {table} SET form = form + 1")
        assert await problems(store) == []
        assert await _answers(store) == answers


async def test_a_table_that_was_dropped_is_made_anew_as_it_was(postgres_url: str) -> None:
    """With its indexes, policies and rows, where the log gives the rows; questions have the same answers again."""
    async with open_store(postgres_url) as store, connected(postgres_url) as connection:
        await _whole(store)  # nothing gives the facts of what was scavenged
        catalogue, answers = await connection.fetch(CATALOGUE), await _answers(store)
        for what, statement in {**TABLES, "function": FUNCTION}.items():
            await connection.execute(statement)
            assert await problems(store), what
            assert (await repair(store, dry_run=False)).left == (), what
            assert await problems(store) == [], what
            assert await connection.fetch(CATALOGUE) == catalogue, what
            assert await _answers(store) == answers, what


@pytest.mark.parametrize("table", sorted({*create.WITH_TENANT} - create.DERIVED - {"events", "settings"}))
async def test_a_table_of_the_record_that_was_dropped_is_named(postgres_url: str, table: str) -> None:
    """Nothing gives its rows: an examination names it, and a repair leaves the rest as it is."""
    async with open_store(postgres_url) as store, connected(postgres_url) as connection:
        await make(store)
        await connection.execute(f"DROP TABLE {table}")
        lost = [Finding("schema", f"the table {table} is missing", derivable=False)]
        assert await store.examine() == lost
        assert await store.mend() == lost


async def test_a_detached_partition_is_named_and_nothing_is_lost_until_it_is_back(postgres_url: str) -> None:
    """Its events were called damaged, as was what is derived from them, and a repair took that for superfluous."""
    async with open_store(with_query(postgres_url, partitions="2")) as store, connected(postgres_url) as connection:
        await make(store)
        answers = await _answers(store)
        for number in range(2):
            await connection.execute(f"ALTER TABLE events DETACH PARTITION events_{number}")
        found = await store.examine()
        assert [(each.what, each.derivable) for each in found] == [("schema", False)] * 2
        assert await store.mend() == found
        with pytest.raises(StoreCorrupt, match="a partition of the events is missing or detached"):
            await store.append("new", [block_event("one")])
        for each in found:
            await connection.execute(each.problem[each.problem.index("ALTER TABLE") :])
        assert await store.examine() == []
        assert await _answers(store) == answers


async def test_each_key_that_was_dropped_is_named_and_made_anew(postgres_url: str) -> None:
    """Those of a single column were not missed, and none was made anew."""
    keys = (
        "SELECT conrelid::regclass::text, conname FROM pg_constraint WHERE contype IN ('p', 'u')"
        " AND connamespace = current_schema()::regnamespace AND conrelid <> 'migrations'::regclass ORDER BY 1, 2"
    )
    async with open_store(postgres_url) as store, connected(postgres_url) as connection:
        await make(store)
        whole = [tuple(row) for row in await connection.fetch(keys)]
        assert len(whole) > len(create.WITH_TENANT)
        for table, name in whole:
            await connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
        found = await store.examine()
        assert sorted(each.problem.split()[2] for each in found) == sorted(table for table, _ in whole)
        assert all("lacks its key" in each.problem and each.derivable for each in found)
        with pytest.raises(StoreCorrupt, match="a table of the store has lost its key"):
            await store.set_retention("keep")
        await store.mend()
        assert [tuple(row) for row in await connection.fetch(keys)] == whole
        assert await store.examine() == []


async def test_nothing_is_removed_while_a_partition_is_detached(postgres_url: str) -> None:
    """An erased conversation was back when its partition was attached again, and the texts that others named, gone."""
    async with open_store(with_query(postgres_url, partitions="2")) as store, connected(postgres_url) as connection:
        await make(store)
        gone, cure = await _without_a_partition(connection, holding="c")
        texts = await connection.fetch("SELECT hash FROM stored_values ORDER BY hash")
        for removal in (
            store.erase("c", forks="erase", reason="asked for"),
            store.erase("old", forks="erase", reason="asked for"),
            store.remove("old", after=0, most=100),
            scavenge(store),
            rehearse(store),  # its dry run refuses what it refuses
        ):
            with pytest.raises(StoreCorrupt, match=re.escape(cure)):
                await removal
        assert await connection.fetch("SELECT hash FROM stored_values ORDER BY hash") == texts
        await connection.execute(cure)
        await store.erase("c", forks="erase", reason="asked for")
        assert await connection.fetchval(f"SELECT count(*) FROM events WHERE conversation = {gone}") == 0


async def test_no_partition_is_detached_while_something_is_removed(postgres_url: str) -> None:
    """A removal that has looked for its rows would miss those of a partition that goes behind that."""
    async with open_store(with_query(postgres_url, partitions="2")) as store, connected(postgres_url) as connection:
        await make(store)
        async with connected(postgres_url) as removing, removing.transaction():
            await take_turn(removing)
            await store.append("another", [block_event("appends do not wait")])
            await connection.execute("SET lock_timeout = '100ms'")
            with pytest.raises(asyncpg.LockNotAvailableError):
                await connection.execute("ALTER TABLE events DETACH PARTITION events_0 CONCURRENTLY")


async def _without_a_partition(connection: Any, *, holding: str) -> tuple[int, str]:
    """Detach the partition of a conversation; return its key, and the statement that attaches the partition again."""
    key, table = await connection.fetchrow(
        f"SELECT conversation, tableoid::regclass::text FROM events WHERE conversation = {_OF.format(holding)}"
    )
    await connection.execute(f"ALTER TABLE events DETACH PARTITION {table}")
    problem = create.no_partition(int(table.rpartition("_")[2]), 2)
    return key, problem[problem.index("ALTER TABLE") :]


@pytest.mark.parametrize("column", ["id", "id_key"])
async def test_an_edited_id_of_an_erased_conversation_is_found(postgres_url: str, column: str) -> None:
    """It would be given again: what is looked up by is no longer what was erased."""
    async with open_store(postgres_url) as store, connected(postgres_url) as connection:
        await _conversation(store, "c")
        await store.erase("c", reason="asked for")
        assert await problems(store) == []
        await edit(connection, f"UPDATE erased SET {column} = 'd'")
        (found,) = await store.examine()
        assert (found.what, found.derivable) == ("erased", False)


async def test_a_store_without_the_record_of_its_migrations_is_no_other_applications(postgres_url: str) -> None:
    """It would be given up for an empty one in another schema."""
    async with open_store(postgres_url), connected(postgres_url) as connection:
        await connection.execute("DROP TABLE migrations")
    with pytest.raises(StoreCorrupt, match="the table migrations is missing"):
        await open_store(postgres_url)


async def test_an_append_to_a_store_that_lost_what_positions_are_made_of_writes_nothing(postgres_url: str) -> None:
    """One event or several, to a conversation that is there or not: it is damage, with a cure, and no head moves on."""
    async with open_store(postgres_url) as store, connected(postgres_url) as connection:
        await store.append("c", events(2))
        await connection.execute("DELETE FROM store_meta")
        for conversation, many in (("c", 1), ("c", 2), ("new", 1)):
            with pytest.raises(StoreCorrupt, match=r"store_meta has no row.*timeline copy.*Nothing was written"):
                await store.append(conversation, events(many))
        assert [(info.id, info.version) async for info in store.conversations()] == [("c", 2)]
        assert [event.version async for event in store.read("c")] == [1, 2]
        found = await store.examine()
    assert [each.problem for each in found if each.what == "schema"] == [create.NO_META]


async def test_a_search_without_its_function_names_the_cure(postgres_url: str) -> None:
    """For each kind of search that calls it; after the repair that is named it finds again."""
    long = " ".join(f"w{number}" for number in range(20))
    async with open_store(postgres_url) as store, connected(postgres_url) as connection:
        await store.append("c", [block_event("p", f"words {long}")])
        assert [found async for found in store.search("words")]
        await connection.execute(FUNCTION)
        for query, within in (("words", None), ("words", "c"), (f'"{long}"', "c")):
            with pytest.raises(StoreCorrupt, match=r"function search_found.*timeline repair --yes"):
                assert [found async for found in store.search(query, conversation=within)]
        await repair(store, dry_run=False)
        assert [found.path async for found in store.search(f'"{long}"')] == ["p"]
