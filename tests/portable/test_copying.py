from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import sqlite3
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.depth import sampled
from tests.postgres import new_schema
from tests.recorded import needs_recordings, swept
from tests.scenes import after, answer, call, prompt, result, small_policy
from timeline import Timeline
from timeline.audit.deep import repair, verify_deep
from timeline.errors import (
    ConversationErased,
    ConversationNotFound,
    HistoryUnavailable,
    ImportFailed,
    InvalidArgument,
    StoreCorrupt,
)
from timeline.forgetting import find_subject
from timeline.importers import read_recording
from timeline.portable import Copied, NotCopied, copy_conversation, copy_conversations, copy_store, export_log
from timeline.portable.recordings import import_recording
from timeline.retention import scavenge
from timeline.store import open_store
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from timeline.ports import EventStore

POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=400)
HIDDEN = "sesame-4711"


async def talk(store: EventStore, id_: str, rounds: int = 12) -> Timeline:
    """Store a conversation that was compacted, and rendered with a system prompt."""
    timeline = await Timeline.open(store, id_, policy=POLICY, title=f"about {id_}")
    await timeline.append(prompt(text="look", turn_id="turn_1"))
    await more(timeline, 0, rounds)
    return timeline


async def more(timeline: Timeline, first: int, last: int) -> None:
    """Go on with rounds of a call and a long result."""
    for n in range(first, last):
        await timeline.append(call(f"c{n}", turn_id="turn_1", response_id=f"m{n}"))
        await timeline.append(result(f"c{n}", 900, turn_id="turn_1"))
        await timeline.render(system="be brief")


async def exported(store: EventStore) -> list[str]:
    """Return all lines of an export of all conversations."""
    ids = [info.id async for info in store.conversations()]
    return [line async for line in export_log(store, ids)]


async def copied(store: EventStore, other: EventStore) -> list[Copied | NotCopied]:
    """Copy all, and return the outcomes."""
    return [outcome async for outcome in copy_store(store, other)]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def other_url(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    """Give the place to copy into."""
    if request.param == "postgres":
        async with new_schema() as url:
            yield url
    else:
        yield "memory://" if request.param == "memory" else str(tmp_path / "other.db")


@pytest.fixture
async def other(other_url: str) -> AsyncIterator[EventStore]:
    """Give the store to copy into."""
    async with open_store(other_url) as store:
        yield store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[EventStore]:
    """Give the store to copy from."""
    async with open_store(tmp_path / "agent.db") as store:
        yield store


async def test_exports_of_both_stores_are_the_same_bytes(store: EventStore, other: EventStore) -> None:
    """With compactions, an undo, a fork of a fork, and a redaction that rewrote a summary; and back again."""
    timeline = await talk(store, "first")
    await timeline.undo_compaction()
    branch = await timeline.fork(at=9, conversation="branch")
    await more(branch, 30, 40)
    await (await branch.fork(conversation="leaf")).append(answer(text="done", turn_id="turn_1"))
    secret = await Timeline.open(store, "second", policy=POLICY)
    asked = await secret.append(prompt(text=f"use {HIDDEN}", turn_id="turn_1"))
    await more(secret, 0, 12)
    await secret.redact(asked[0].path, "a secret")
    assert all(isinstance(outcome, Copied) for outcome in await copied(store, other))
    lines = await exported(other)
    assert lines == await exported(store)
    assert HIDDEN not in "".join(lines)
    async with open_store("memory://") as back:
        await copied(other, back)
        assert await exported(back) == lines
    for id_ in ("first", "branch", "leaf", "second"):
        assert await other.chain_head(id_) == await store.chain_head(id_)
        assert (await (await Timeline.open(other, id_)).verify()).ok


async def test_a_copy_opens_with_the_same_window_and_the_same_past(store: EventStore, other: EventStore) -> None:
    """Its snapshots come along, those of the past too, so that nothing has to be folded from the beginning."""
    await talk(store, "a", rounds=20)
    await copied(store, other)
    ours, theirs = await store.load_window("a"), await other.load_window("a")
    assert ours.snapshot is not None
    assert theirs.snapshot == ours.snapshot
    assert theirs.info.window_start == ours.info.window_start > 1
    assert [event.id for event in theirs.events] == [event.id for event in ours.events]
    assert await other.waypoints("a") == await store.waypoints("a") != []
    assert (await (await Timeline.open(other, "a")).render(system="be brief", record=False)).to_anthropic() == (
        await (await Timeline.open(store, "a")).render(system="be brief", record=False)
    ).to_anthropic()


async def test_an_interrupted_copy_goes_on_where_it_stopped(store: EventStore, other: EventStore) -> None:
    """What was acknowledged stays; what came in the meantime comes along."""
    timeline = await talk(store, "a", rounds=4)
    long = await talk(store, "b", rounds=1)
    await long.append(*[prompt(text=f"and {n}", turn_id=f"turn_{n}") for n in range(2, 1_000)])
    reached: dict[str, int] = {}

    def stop(id_: str, events: int) -> None:
        reached[id_] = events
        if id_ == "b":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        [outcome async for outcome in copy_store(store, other, on_progress=stop)]
    there = (await other.info("b")).version
    assert 0 < there == reached["b"] < (await store.info("b")).version
    await more(timeline, 50, 52)
    first, second = await copied(store, other)
    assert isinstance(first, Copied)
    assert isinstance(second, Copied)
    assert first.known > 0 < first.events
    assert (second.known, second.events) == (there, second.version - there)
    assert await exported(other) == await exported(store)
    assert [outcome.events for outcome in await copied(store, other) if isinstance(outcome, Copied)] == [0, 0]


async def killed_further_on(words: list[str], other_url: str, before: int) -> int:
    """Kill a process that copies as soon as the copy is longer than before; return its version then."""
    process = await asyncio.create_subprocess_exec(*words)
    async with open_store(other_url, readonly=True) as watched:
        there = before
        while there == before and process.returncode is None:
            with contextlib.suppress(ConversationNotFound):
                there = (await watched.info("a")).version
            await asyncio.sleep(0.002)
        process.kill()
        assert await process.wait() == -signal.SIGKILL
        return (await watched.info("a")).version


@pytest.mark.parametrize("other_url", ["sqlite", "postgres"], indirect=True)
async def test_a_copy_that_was_killed_again_and_again_goes_on_where_it_stopped(
    store: EventStore, other_url: str, tmp_path: Path
) -> None:
    """A process that is killed leaves whole events; the next one finds them, and adds the others once."""
    timeline = await talk(store, "a", rounds=4)
    for page in range(8):
        long = "that takes some transactions to write " * 60
        await timeline.append(*[prompt(text=f"and {n} {long}", turn_id=f"turn_{page}_{n}") for n in range(500)])
    whole = (await store.info("a")).version
    async with open_store(other_url):
        pass
    words = [sys.executable, "-m", "timeline.cli", "copy", "--from", str(tmp_path / "agent.db"), "--to", other_url]
    reached = [0]
    for _ in range(3):
        reached.append(await killed_further_on(words, other_url, reached[-1]))
    assert reached == sorted(set(reached))
    async with open_store(other_url) as other:
        there = (await other.info("a")).version
        assert reached[-1] <= there < whole
        (done,) = await copied(store, other)
        assert isinstance(done, Copied)
        assert (done.known, done.events) == (there, whole - there)
        assert await exported(other) == await exported(store)
        assert (await (await Timeline.open(other, "a")).verify()).ok


@needs_recordings
@sampled
async def test_every_recording_is_copied_to_a_server_and_back(tmp_path: Path, postgres_url: str) -> None:
    """The exports of all three stores are the same bytes, and so are the heads of their chains."""
    files = [file for file in swept("*/*") if file.suffix in {".json", ".jsonl", ".traj"}]
    async with open_store(tmp_path / "agent.db") as store, open_store(postgres_url) as server:
        for file in files:
            for recording in read_recording(file):
                await import_recording(store, recording)
        assert all(isinstance(outcome, Copied) for outcome in await copied(store, server))
        lines = await exported(store)
        assert await exported(server) == lines
        async with open_store(tmp_path / "back.db") as back:
            assert all(isinstance(outcome, Copied) for outcome in await copied(server, back))
            assert await exported(back) == lines
            ids = [info.id async for info in store.conversations()]
            assert len(ids) >= len(files)
            for id_ in ids:
                assert await store.chain_head(id_) == await server.chain_head(id_) == await back.chain_head(id_)


async def test_another_conversation_of_the_same_id_is_left_alone(store: EventStore, other: EventStore) -> None:
    """And the copy goes on with the next one."""
    await talk(store, "a", rounds=2)
    await talk(store, "b", rounds=2)
    await talk(other, "a", rounds=2)
    before = [line async for line in export_log(other, ["a"])]
    refused, done = await copied(store, other)
    assert isinstance(refused, NotCopied)
    assert isinstance(refused.error, ImportFailed)
    assert isinstance(done, Copied)
    assert [line async for line in export_log(other, ["a"])] == before


async def test_what_was_redacted_since_an_earlier_copy_is_named(store: EventStore, other: EventStore) -> None:
    """The copy still holds it, so that appending the redaction alone would be a lie."""
    timeline = await talk(store, "a", rounds=2)
    said = await timeline.append(prompt(text=HIDDEN, turn_id="turn_2"))
    await copied(store, other)
    await timeline.redact(said[0].path, "a secret")
    (refused,) = await copied(store, other)
    assert isinstance(refused, NotCopied)
    assert "redacted" in str(refused.error)


@pytest.mark.parametrize("known", [False, True], ids=["new there", "copied before"])
async def test_a_fork_is_not_copied_behind_a_past_that_was_redacted_since_it_was_copied(
    store: EventStore, other: EventStore, *, known: bool
) -> None:
    """Its parent is left alone: the fork would show there what is gone here, against its own snapshot."""
    timeline = await Timeline.open(store, "a", policy=POLICY)
    [said] = await timeline.append(prompt(text=f"use {HIDDEN}", turn_id="turn_1"))
    await more(timeline, 0, 12)
    if not known:
        await copied(store, other)
    fork = await timeline.fork(conversation="fork")
    await fork.append(answer(text="done", turn_id="turn_1"))
    if known:
        await copied(store, other)
    before = await exported(other)
    await timeline.redact(said.path, "a secret")
    outcomes = await copied(store, other)
    assert [str(outcome.error) for outcome in outcomes if isinstance(outcome, NotCopied)] == [
        f"{id_}: version 2 was redacted in one of the stores since it was copied. No more was copied. Redact it in the"
        " other store too, and copy the conversation into another store: the two logs differ."
        for id_ in ("a", "fork")
    ]
    assert await exported(other) == before
    assert (await verify_deep(other)).ok


async def test_a_fork_is_not_copied_behind_another_conversation_of_its_parents_id(
    store: EventStore, other: EventStore
) -> None:
    """It would be a conversation that never was."""
    timeline = await talk(store, "a", rounds=1)
    await (await timeline.fork(conversation="fork")).append(answer(text="done", turn_id="turn_1"))
    await talk(other, "a", rounds=4)
    _, outcome = await copied(store, other)
    assert isinstance(outcome, NotCopied)
    assert "'a', and the other store holds another conversation of that id" in str(outcome.error)
    with pytest.raises(ConversationNotFound):
        await other.info("fork")


async def test_a_scavenged_conversation_is_reported_and_not_copied(store: EventStore) -> None:
    """Its past is gone, and a copy begins at the beginning."""
    await talk(store, "a", rounds=30)
    await store.set_retention("window")
    assert (await scavenge(store)).events
    (refused,) = await copied(store, MemoryStore())
    assert isinstance(refused, NotCopied)
    assert isinstance(refused.error, HistoryUnavailable)


DAMAGE = {
    "payload": "UPDATE events SET checksum = '00' WHERE conversation = 2 AND version = 30",
    "lost": "DELETE FROM events WHERE conversation = 2 AND version = 30",
    "link": "UPDATE events SET link = zeroblob(33) WHERE conversation = 2 AND version = 30",
    "salt": "UPDATE events SET salt = zeroblob(16) WHERE conversation = 2 AND version = 30",
}


async def damaged(source: Path, *statements: str) -> Path:
    """Make a store of five conversations, two of them forks of the second one; return a copy that was damaged."""
    async with open_store(source) as store:
        await talk(store, "a", rounds=2)
        timeline = await talk(store, "b", rounds=20)
        await more(await timeline.fork(at=9, conversation="early"), 30, 32)
        await more(await timeline.fork(at=40, conversation="late"), 30, 32)
        await talk(store, "c", rounds=2)
    broken = source.with_name("broken.db")
    shutil.copy(source, broken)
    with closing(sqlite3.connect(broken)) as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount
        connection.commit()
    return broken


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_damaged_conversation_leaves_out_no_other(damage: str, other: EventStore, tmp_path: Path) -> None:
    """What lies before the damage comes along, with the fork that shares no more; a repeated copy does the rest.

    Nothing is written that the chain of its store does not prove: the copy could not be continued behind it.
    """
    whole = tmp_path / "agent.db"
    async with open_store(await damaged(whole, DAMAGE[damage]), readonly=True) as store:
        outcomes = {outcome.conversation: outcome for outcome in await copied(store, other)}
    assert [id_ for id_, outcome in outcomes.items() if isinstance(outcome, Copied)] == ["a", "early", "c"]
    broken, fork = outcomes["b"], outcomes["late"]
    assert isinstance(broken, NotCopied)
    assert isinstance(fork, NotCopied)
    assert isinstance(broken.error, StoreCorrupt)
    assert (broken.events, (await other.info("b")).version, fork.events) == (29, 29, 0)
    assert "versions 1 to 40 of 'b', of which the other store holds 29" in str(fork.error)
    async with open_store(whole) as store:
        assert all(isinstance(outcome, Copied) for outcome in await copied(store, other))
        assert set(await exported(other)) == set(await exported(store))
        for id_ in ("b", "late"):
            assert await other.waypoints(id_) == await store.waypoints(id_)
            assert (await other.info(id_)).window_start == (await store.info(id_)).window_start


async def test_a_named_conversation_that_is_damaged_says_how_much_of_it_was_copied(
    other: EventStore, tmp_path: Path
) -> None:
    """Of a fork, the log that keeps it from being copied is named as well; what is unknown leaves out nothing."""
    async with open_store(await damaged(tmp_path / "agent.db", DAMAGE["payload"]), readonly=True) as store:
        outcomes = [outcome async for outcome in copy_conversations(store, ["nobody", "late", "c"], other)]
    unknown, parent, fork, done = outcomes
    assert isinstance(unknown, NotCopied)
    assert isinstance(unknown.error, ConversationNotFound)
    assert isinstance(parent, NotCopied)
    assert (parent.conversation, parent.events) == ("b", (await other.info("b")).version)
    assert parent.events == 29
    assert isinstance(fork, NotCopied)
    assert (fork.conversation, fork.events) == ("late", 0)
    assert isinstance(done, Copied)


async def test_a_damaged_row_of_a_conversation_ends_a_copy_behind_all_others(other: EventStore, tmp_path: Path) -> None:
    """It is not listed; its events can be copied when the row was made anew."""
    broken = await damaged(tmp_path / "agent.db", "UPDATE conversations SET created_at = 'then' WHERE id = 'c'")
    async with open_store(broken) as store:
        with pytest.raises(StoreCorrupt, match=r"the row of conversation 'c' is damaged.*timeline repair"):
            await copied(store, other)
        assert [info.id async for info in other.conversations()] == ["a", "b", "early", "late"]
        await store.mend()
        assert all(isinstance(outcome, Copied) for outcome in await copied(store, other))
        assert await exported(other) == await exported(store)


async def test_snapshots_that_an_earlier_copy_did_not_bring_come_with_the_next_one(
    other: EventStore, tmp_path: Path
) -> None:
    """They are damaged, so that only events were copied; `repair` makes them anew."""
    damage = ("UPDATE snapshots SET checksum = 'x' WHERE conversation = 2", "UPDATE waypoints SET checksum = 'x'")
    async with open_store(await damaged(tmp_path / "agent.db", *damage)) as store:
        outcomes = {outcome.conversation: outcome for outcome in await copied(store, other)}
        assert isinstance(outcomes["b"], NotCopied)
        assert (await other.info("b")).version == outcomes["b"].events
        await repair(store, dry_run=False)
        assert all(isinstance(outcome, Copied) for outcome in await copied(store, other))
        assert await other.waypoints("b") == await store.waypoints("b") != []
        assert (await other.load_window("b")).snapshot == (await store.load_window("b")).snapshot


async def test_an_erased_id_is_not_taken_again(store: EventStore, other: EventStore) -> None:
    """Where it was erased in the other store, it stays erased."""
    await talk(store, "a", rounds=2)
    await copied(store, other)
    await other.erase("a", at=after(1))
    (refused,) = await copied(store, other)
    assert isinstance(refused, NotCopied)
    assert isinstance(refused.error, ConversationErased)


async def test_an_empty_store_takes_over_the_retention(store: EventStore, other: EventStore) -> None:
    """One that holds conversations keeps its own."""
    await store.set_retention("window")
    await talk(store, "a", rounds=1)
    await copied(store, other)
    assert await other.retention() == await store.retention()
    await other.set_retention("keep")
    await copied(store, other)
    assert await other.retention() == "keep"


async def test_a_fork_is_copied_behind_what_it_shares(store: EventStore, other: EventStore) -> None:
    """Of its parent comes what the fork shares, and no more; later the whole parent can follow."""
    timeline = await talk(store, "a", rounds=3)
    branch = await timeline.fork(at=5, conversation="branch")
    await more(branch, 20, 22)
    parent, fork = await copy_conversation(store, "branch", other)
    assert (parent.conversation, parent.version) == ("a", 5)
    assert fork.version == (await store.info("branch")).version
    await copied(store, other)
    assert await exported(other) == await exported(store)


async def test_a_single_id_for_a_list_of_ids_is_refused() -> None:
    """Its letters were taken for ids, and one of them might be one."""
    store, into = MemoryStore(), MemoryStore()
    for asked in (
        lambda: copy_conversations(store, "cards", into),
        lambda: export_log(store, "cards"),
        lambda: find_subject(store, "hello", conversations="cards"),
    ):
        with pytest.raises(InvalidArgument, match="conversations"):
            await anext(aiter(asked()))
