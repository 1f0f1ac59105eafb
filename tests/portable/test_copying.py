from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenes import after, answer, call, prompt, result, small_policy
from timeline import Timeline
from timeline.errors import ConversationErased, HistoryUnavailable, ImportFailed
from timeline.portable import Copied, NotCopied, copy_conversation, copy_store, export_log
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


@pytest.fixture(params=["memory", "sqlite"])
async def other(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventStore]:
    """Give the store to copy into."""
    async with open_store("memory://" if request.param == "memory" else tmp_path / "other.db") as store:
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


async def test_a_scavenged_conversation_is_reported_and_not_copied(store: EventStore) -> None:
    """Its past is gone, and a copy begins at the beginning."""
    await talk(store, "a", rounds=30)
    await store.set_retention("window")
    assert (await scavenge(store)).events
    (refused,) = await copied(store, MemoryStore())
    assert isinstance(refused, NotCopied)
    assert isinstance(refused.error, HistoryUnavailable)


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
