"""Snapshots: opening costs the same however long the history is (design, section 4)."""

from __future__ import annotations

import json

import pytest

from tests.scenes import AT, answer, apply, call, exchange, log_of, opened, prompt, result, small_policy, words
from timeline.blocks import Note
from timeline.errors import InvalidArgument, StoreCorrupt
from timeline.events import BlocksHidden, BlocksPinned, ModelCalled, Replacement, event_id
from timeline.events.other_payloads import CompactionFailed
from timeline.fold.fold import Fold
from timeline.fold.snapshot import is_far, restore, take_snapshot
from timeline.ports import Snapshot
from timeline.store.memory import MemoryStore


async def compacted(store: MemoryStore) -> Fold:
    """Store a conversation with a split turn, a pin, a hidden block and an open call; return its full fold."""
    timeline = await opened(store, policy=small_policy(max_tokens=4_000, keep_recent_tokens=300))
    await timeline.append(Note(text="always answer in French"), prompt(50), answer(900))
    await timeline.append(
        prompt(60), call("p", pending=True, response_id="m1"), *exchange("a", 600), *exchange("b", 600)
    )
    await timeline.compact(now=AT)
    await timeline.append(*exchange("d", 700), call("open"))
    fields = {"at": AT, "ids": [event_id(AT), event_id(AT), event_id(AT)]}
    await timeline.decide(
        [
            BlocksHidden(
                reason="cold", facts={"idle": 400}, blocks=(Replacement(version=timeline.version - 1, text="[d]"),)
            ),
            BlocksPinned(versions=(timeline.version,)),
            CompactionFailed(reason="no_progress", visible_tokens=9, retry_after=256),
        ],
        **fields,  # type: ignore[arg-type]  # as named
    )
    fold = Fold("c")
    for event in await log_of(store):
        apply(fold, event.version, event.payload)
    return fold


async def test_a_window_from_snapshot_and_tail_equals_the_full_fold() -> None:
    """Nothing of the window is lost on the way through the snapshot."""
    store = MemoryStore()
    fold = await compacted(store)
    stored = await store.load_window("c")
    again = restore("c", stored.snapshot, stored.events)
    assert again.window == fold.window
    assert again.turns.dump() == fold.turns.dump()


async def test_a_snapshot_keeps_why_live_blocks_are_hidden() -> None:
    """Reason and figures of a hide survive the opening."""
    store = MemoryStore()
    await compacted(store)
    stored = await store.load_window("c")
    fold = restore("c", stored.snapshot, stored.events)
    [hide] = [item.hide for item in fold.window.items if item.hide is not None]
    assert (hide.reason, hide.facts) == ("cold", {"idle": 400})


async def test_a_snapshot_goes_on_like_the_fold_that_it_was_taken_of() -> None:
    """The next block gets the same turn, path and call from either."""
    store = MemoryStore()
    fold = await compacted(store)
    stored = await store.load_window("c")
    again = restore("c", stored.snapshot, stored.events)
    new = [(block, AT) for block in (result("open"), result("p"), answer(), call("a"), prompt(), answer())]
    assert again.address(new) == fold.address(new)


async def test_a_snapshot_holds_no_block_bodies() -> None:
    """It names versions and small state; the bodies are read from the log."""
    fold = await compacted(MemoryStore())
    text = take_snapshot(fold).model_dump_json()
    assert words(3) not in text
    assert "French" not in text
    assert Snapshot.model_validate(json.loads(text)) == take_snapshot(fold)


@pytest.mark.shows("002-36", "004-58", "R-002-2")
async def test_opening_reads_carried_blocks_and_what_follows_the_start_of_the_window() -> None:
    """Covered blocks are not read; carried ones are, one by one."""
    store = MemoryStore()
    fold = await compacted(store)
    stored = await store.load_window("c")
    assert stored.snapshot is not None
    read = {event.version for event in stored.events}
    live = {item.version for item in fold.window.items}
    assert {v for v in read if v < stored.snapshot.window_start} == set(stored.snapshot.blocks)
    assert [v for v in sorted(read) if v < 9] == [
        2,
        5,
        6,
    ]  # the note, the prompt, the call that waits
    assert live <= read
    assert stored.snapshot.window_start == fold.window.window_start
    assert len(read) < fold.version


async def test_a_snapshot_that_names_a_version_without_a_block_is_corruption() -> None:
    """A damaged snapshot is told, not folded."""
    store = MemoryStore()
    await compacted(store)
    stored = await store.load_window("c")
    with pytest.raises(StoreCorrupt, match="holds no block"):
        restore("c", stored.snapshot, [e for e in stored.events if e.type != "block.appended"])


async def test_a_snapshot_keeps_the_number_of_the_newest_model_call() -> None:
    """Calls go on being counted; of a snapshot that lacks the number nobody guesses it."""
    store = MemoryStore()
    await compacted(store)
    stored = await store.load_window("c")
    assert stored.snapshot is not None
    counted = stored.snapshot.model_copy(update={"state": {**stored.snapshot.state, "calls": 83}})
    fold = restore("c", counted, stored.events)
    apply(fold, fold.version + 1, ModelCalled())
    assert fold.window.calls == 84
    del (state := dict(stored.snapshot.state))["calls"]
    old = stored.snapshot.model_copy(update={"state": state})
    with pytest.raises(InvalidArgument, match="does not count the model calls"):
        restore("c", old, stored.events)
    assert restore("c", old, stored.events, calls=3).window.calls == 3


@pytest.mark.parametrize(
    ("version", "since", "blocks", "far"),
    [
        (999, 0, 1, False),
        (1_000, 0, 1, True),
        (2_999, 2_000, 500, False),
        (3_000, 2_000, 500, True),
        (3_000, 2_000, 501, False),
        (3_002, 2_000, 501, True),
    ],
)
def test_snapshots_are_a_thousand_events_apart_and_twice_the_blocks_of_a_larger_window(
    version: int, since: int, blocks: int, *, far: bool
) -> None:
    """What is written of a window stays a small share of the log."""
    assert is_far(version, since, blocks) is far


def test_without_a_snapshot_the_fold_begins_empty() -> None:
    """A conversation before its first compaction is folded from its first event."""
    assert restore("c", None, []).window == Fold("c").window
