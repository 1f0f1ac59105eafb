from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from tests.postgres import Postgres, direct_url, restored, schema_of, without
from timeline import Timeline
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.errors import StoreMoved
from timeline.events import Covers
from timeline.integrations.conversations import Conversations, Ours
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import block_event, events
from timeline.store.testing.samples import fork, versions

if TYPE_CHECKING:
    from tests.postgres_server import Server
    from timeline.integrations.conversations import Steps


async def _as_if_restored(postgres_url: str) -> None:
    """Give what is stored the positions of a server that has counted a million transactions more than this one."""
    schema = postgres_url.partition("schema=")[2].partition("&")[0]
    connection = await asyncpg.connect(without(direct_url(), "schema"), server_settings={"search_path": schema})
    try:
        await connection.execute("UPDATE events SET position = position + (1000000::bigint << 20)")
    finally:
        await connection.close()


BURN = "DO $$ BEGIN FOR i IN 1..3000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$"
"""Take so many numbers that a new server's counter is below them."""


NEWEST = "SELECT version, link FROM events ORDER BY version DESC LIMIT 1"


async def asked(url: str, statement: str) -> Any:
    """Ask one question of a database, in a schema."""
    connection = await asyncpg.connect(without(url, "schema"), server_settings={"search_path": schema_of(url)})
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


async def test_a_dump_that_is_restored_into_another_cluster_goes_on_behind_its_events(
    postgres_url: str, own_postgres: Server
) -> None:
    """By pg_dump and pg_restore: a new cluster counts lower; positions rise, the epoch is another, followers go on."""
    epoch, counter = "SELECT epoch FROM store_meta", "SELECT pg_current_xact_id()::text::bigint"
    await asked(postgres_url, BURN)
    async with await PostgresStore.open(postgres_url) as store:
        await store.append("a", [block_event("p", "first words"), *events(2)])
        before = await store.head()
        first_epoch = await asked(postgres_url, epoch)
    there = await restored(schema_of(postgres_url), Postgres(), own_postgres)
    assert await asked(there, counter) < before >> 20, "the new cluster has to count lower"
    async with await PostgresStore.open(there, readonly=True) as reader:
        assert [event.version async for event in reader.read("a")] == [1, 2, 3]
    async with await PostgresStore.open(there) as store, await PostgresStore.open(there) as other:
        assert [event.version async for event in store.read_all()] == [1, 2, 3]
        appended = await store.append("a", events(1), expected=3)
        assert (await other.append("new", events(2))).position > appended.position > before
        assert [event.conversation async for event in other.read_all(after=before)] == ["a", "new", "new"]
        assert [found.path async for found in store.search("words")] == ["p"]
        assert await store.examine() == []
    assert await asked(there, epoch) != first_epoch
    assert await asked(postgres_url, epoch) == first_epoch


async def test_a_store_that_is_restored_into_another_server_goes_on_behind_its_events(postgres_url: str) -> None:
    """The transactions of a new server begin at a low number; positions rise all the same, for tails too."""
    async with await PostgresStore.open(postgres_url) as store:
        await store.append("a", events(3))
    await _as_if_restored(postgres_url)
    async with await PostgresStore.open(postgres_url) as store:
        before = await store.head()
        assert [event.version async for event in store.read_all()] == [1, 2, 3]
        appended = await store.append("a", events(2), expected=3)
        assert appended.position > before
        assert await store.head() == appended.position
        assert [event.version async for event in store.read_all(after=before)] == [4, 5]
    async with await PostgresStore.open(postgres_url) as store:
        assert (await store.append("b", events(1))).position > appended.position


async def test_a_follower_that_has_seen_more_than_a_restored_server_has_is_warned_of(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The server went back to a moment in the past: what comes below the remembered position is never seen."""
    async with await PostgresStore.open(postgres_url) as store:
        await store.append("a", events(2))
        assert [event async for event in store.read_all(after=await store.head())] == []
        assert "anew" not in caplog.text
    async with await PostgresStore.open(postgres_url) as store:
        lost = await store.head() + (100_000 << 20)  # of transactions
        assert [event async for event in store.read_all(after=lost)] == []
    assert "let it begin anew" in caplog.text


async def test_a_follower_is_not_warned_of_where_what_it_has_seen_was_restored(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It goes on once the store was opened for writing; beginning anew, it would see no more before."""
    async with await PostgresStore.open(postgres_url) as store:
        await store.append("a", events(2))
    await _as_if_restored(postgres_url)
    seen = await asked(postgres_url, "SELECT max(position) FROM events")
    async with await PostgresStore.open(postgres_url, readonly=True) as store:
        assert [event async for event in store.read_all(after=seen)] == []
    assert "begin anew" not in caplog.text


async def test_a_fork_in_a_copy_without_its_sequence_reads_what_it_shares(postgres_url: str) -> None:
    """Logical replication brings the rows alone: a fork would have a key below its parent's, and not find that."""
    async with await PostgresStore.open(postgres_url) as store:
        for id_ in ("gone", "a", "b"):
            await store.append(id_, events(2))
        await store.erase("gone")
    await asked(postgres_url, "SELECT setval('conversations_key_seq', 1, false)")
    async with await PostgresStore.open(postgres_url) as store:
        await store.append("c", [fork("a", 2), *events(1)])
        assert await versions(store, "c") == [1, 2, 3, 4]
        assert [info.id async for info in store.conversations()] == ["a", "b", "c"]
        assert await store.examine() == []


async def _lose_last_event(url: str) -> None:
    """Leave of the one conversation what a server has that took over without its newest event."""
    await asked(url, "DELETE FROM events AS e USING conversations AS c WHERE c.version = e.version")
    await asked(url, f"UPDATE conversations SET (version, head) = ({NEWEST})")  # noqa: S608 - a constant


async def _taken_back(url: str, store: PostgresStore) -> Timeline:
    """Return the timeline of a conversation whose last append its server has lost."""
    timeline = await Timeline.open(store, "c")
    for text in ("kept", "lost"):
        await timeline.append(UserPrompt(text=text))
    await _lose_last_event(url)
    return timeline


async def test_an_append_to_a_log_that_has_lost_its_end_says_so(postgres_url: str) -> None:
    """Trying again would find the same for ever; the conversation goes on from what is there once it is opened anew."""
    async with await PostgresStore.open(postgres_url) as store:
        timeline = await _taken_back(postgres_url, store)
        with pytest.raises(StoreMoved, match="lacks the newest appends"):
            await timeline.append(UserPrompt(text="more"))
        again = await Timeline.open(store, "c")
        await again.append(UserPrompt(text="lost"))
        assert (await again.verify()).ok


async def test_an_append_behind_what_others_wrote_in_the_place_of_a_lost_end_is_refused(postgres_url: str) -> None:
    """The window of who saw the lost events would hold them, and lack those that are there."""
    async with await PostgresStore.open(postgres_url) as store, await PostgresStore.open(postgres_url) as other:
        timeline = await _taken_back(postgres_url, store)
        elsewhere = await Timeline.open(other, "c")
        for text in ("in its place", "and behind it"):
            await elsewhere.append(UserPrompt(text=text))
        with pytest.raises(StoreMoved, match="another event"):
            await timeline.append(UserPrompt(text="more"))
        assert (await elsewhere.verify()).ok


@pytest.mark.parametrize("looked", ["wrote", "read", "opened"])
@pytest.mark.parametrize("then", ["catches up", "renders"])
async def test_what_others_wrote_in_the_place_of_a_lost_end_is_not_read_behind_it(
    postgres_url: str, looked: str, then: str
) -> None:
    """A window with the lost events and what came behind those in their place would be that of no log, and be sent."""
    async with await PostgresStore.open(postgres_url) as store, await PostgresStore.open(postgres_url) as other:
        wrote, read = await Timeline.open(store, "c"), await Timeline.open(store, "c")
        for text in ("kept", "lost"):
            await wrote.append(UserPrompt(text=text))
        await read.catch_up()
        handle = {"wrote": wrote, "read": read, "opened": await Timeline.open(store, "c")}[looked]
        await _lose_last_event(postgres_url)
        elsewhere = await Timeline.open(other, "c")
        for text in ("in its place", "and behind it"):
            await elsewhere.append(UserPrompt(text=text))
        for _ in range(2):  # also when it tries again
            with pytest.raises(StoreMoved, match="another event"):
                await (handle.catch_up() if then == "catches up" else handle.render())
        assert [item.block.text for item in handle.window.items] == ["kept", "lost"]
        assert (await elsewhere.verify()).ok


@pytest.mark.parametrize("now", ["c", "another"])
async def test_a_record_of_facts_holds_none_of_events_that_its_server_has_lost(postgres_url: str, now: str) -> None:
    """A compaction's record goes on from the one before; a new conversation may have the key of one that is lost."""

    async def ran(timeline: Timeline, command: str) -> None:
        call = ToolCall(call_id=command, name="Bash", arguments={"command": command})
        await timeline.append(call, ToolResult(call_id=command, text="done"))

    async with await PostgresStore.open(postgres_url) as store, await PostgresStore.open(postgres_url) as other:
        timeline = await Timeline.open(store, "c")
        for command in ("make kept", "make lost"):
            await ran(timeline, command)
        assert [fact async for fact in store.facts()]
        for _ in range(2):
            before = await store.fact_record("c", covers=Covers(ranges=((1, 5),)))
        assert "make lost" in str(before)
        kept = 3 if now == "c" else 0
        await asked(postgres_url, "DELETE FROM facts")  # they are made anew of what is left
        await asked(postgres_url, "DELETE FROM facts_progress")
        await asked(postgres_url, f"DELETE FROM events WHERE version > {kept}")  # noqa: S608 - a number
        await asked(postgres_url, f"DELETE FROM conversations WHERE {kept} = 0")  # noqa: S608
        await asked(postgres_url, f"UPDATE conversations SET (version, head) = ({NEWEST})")  # noqa: S608
        await asked(postgres_url, "SELECT setval('conversations_key_seq', 1, false)")
        elsewhere = await Timeline.open(other, now)
        for command in ("make new", "make more", "make all"):
            await ran(elsewhere, command)
        assert [fact async for fact in store.facts()]
        covers = Covers(ranges=((1, 7),))
        assert await store.fact_record(now, covers=covers) == await other.fact_record(now, covers=covers)
        assert "make lost" not in str(await store.fact_record(now, covers=covers))


async def test_an_adapter_opens_a_conversation_again_whose_log_has_lost_its_end(postgres_url: str) -> None:
    """The call in which it is found fails; the next one finds the log as it is."""

    def said(text: str) -> Steps[None]:
        followed = yield from adapter.opened("c")
        yield Ours(partial(followed.timeline.append, UserPrompt(text=text)))

    async with await PostgresStore.open(postgres_url) as store:
        adapter = Conversations(store)
        for text in ("kept", "lost"):
            await adapter.carry_out_async(said(text))
        await _lose_last_event(postgres_url)
        with pytest.raises(StoreMoved):
            await adapter.carry_out_async(said("more"))
        await adapter.carry_out_async(said("more"))
        opened = await Timeline.open(store, "c", create=False)
        assert [item.block.text for item in opened.window.items] == ["kept", "more"]
