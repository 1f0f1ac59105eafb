"""How blocks were shown before: what a fold keeps of it, and what is read for a snapshot that does not say it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scenes import AT, answer, apply, compact_fold, exchange, fold_of, log_of, opened, prompt, small_policy, turn
from timeline.blocks import Reasoning
from timeline.errors import InvalidArgument
from timeline.events import (
    BlockRedacted,
    BlocksHidden,
    BlocksRevealed,
    CompactionReverted,
    Payload,
    Replacement,
    event_id,
)
from timeline.fold.changes import changes_in
from timeline.fold.fold import Fold
from timeline.fold.snapshot import has_changes, restore, take_snapshot
from timeline.log.history import load_fold
from timeline.store.memory import MemoryStore

_DECIDED = st.lists(st.tuples(st.sampled_from(["hide", "omit", "reveal", "redact"]), st.integers(0, 11)), max_size=20)


def decided(what: str, version: int, number: int) -> Payload:
    """Return a decision about a block."""
    replaced = Replacement(version=version, text=f"[gone {number}]", tokens=1)
    match what:
        case "hide":
            return BlocksHidden(reason="manual", blocks=(replaced,))
        case "omit":
            return BlocksHidden(mode="omit", reason="manual", blocks=(Replacement(version=version),))
        case "reveal":
            return BlocksRevealed(versions=(version,))
        case _:
            return BlockRedacted(version=version, reason="asked")


@given(_DECIDED)
def test_what_is_read_of_the_log_is_what_the_fold_keeps(choices: list[tuple[str, int]]) -> None:
    """The newest decision is the item's own state; those before it are its changes."""
    fold = fold_of(prompt(), answer(), *exchange("a"), *exchange("b"), prompt(), answer())
    decisions: list[tuple[int, Payload]] = []
    for number, (what, place) in enumerate(choices):
        payload = decided(what, fold.window.items[place % len(fold.window.items)].version, number)
        apply(fold, fold.version + 1, payload)
        decisions.append((fold.version, payload))
    read = changes_in(decisions)
    for item in fold.window.items:
        assert read.get(item.version, ()) == item.changes_so_far
        assert read.get(item.version, ())[:-1] == item.changes


def test_previews_of_an_undone_compaction_are_no_decision() -> None:
    """The fold passes over them with the compaction that they came with."""
    preview = BlocksHidden(reason="spill", blocks=(Replacement(version=5, text="[preview]", tokens=1),))
    undone = CompactionReverted(versions=(7,))
    assert set(changes_in([(8, preview)])) == {5}
    assert changes_in([(8, preview), (9, undone)]) == {}


async def in_two_branches(store: MemoryStore) -> None:
    """Store a conversation that was compacted, went back twice, and was compacted again behind it."""
    timeline = await opened(store, policy=small_policy(max_tokens=4_000, keep_recent_tokens=300))
    await timeline.append(prompt(60), answer(900), prompt(60), *exchange("a", 600), answer(600))
    thought = Reasoning(text="hm", data={"type": "thinking", "thinking": "hm", "signature": "c2ln"}, response_id="t")
    await timeline.append(prompt(), *exchange("b"), thought, answer(response_id="t"))
    newest = tuple(range(timeline.version - 4, timeline.version + 1))
    for what in ("omit", "reveal"):
        await timeline.decide(
            [decided(what, version, 0) for version in newest], at=AT, ids=[event_id(AT) for _ in newest]
        )
    await timeline.compact(now=AT)
    await timeline.append(*turn())


async def test_a_snapshot_of_an_earlier_release_is_completed_from_the_log() -> None:
    """It does not say how blocks were shown before; the window is the full fold's in any case."""
    store = MemoryStore()
    await in_two_branches(store)
    whole = Fold("c")
    for event in await log_of(store):
        apply(whole, event.version, event.payload)
    assert any(item.changes for item in whole.window.items)
    stored = await store.load_window("c")
    assert stored.snapshot is not None
    assert restore("c", stored.snapshot, stored.events).window == whole.window
    del (state := dict(stored.snapshot.state))["changes"]
    earlier = stored.snapshot.model_copy(update={"state": state})
    with pytest.raises(InvalidArgument, match="does not say how blocks were shown before"):
        restore("c", earlier, stored.events)
    await store.replace_snapshot("c", earlier)
    assert (await load_fold(store, "c")).window == whole.window


def test_a_snapshot_whose_blocks_were_never_decided_about_lacks_nothing() -> None:
    """Nothing is read of the log for it; a summary's own version is no decision about it."""
    fold = fold_of(*turn(), *turn())
    compact_fold(fold, 3)
    snapshot = take_snapshot(fold)
    del (state := dict(snapshot.state))["changes"]
    assert has_changes(snapshot.model_copy(update={"state": state}))
