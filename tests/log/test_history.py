"""Reading a whole log: for undo, the past and forks (design, sections 4 and 5.7)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.bench.growth import cycles
from tests.log.counted import Counted
from tests.scenes import AT, Scribe, after, answer, call, opened, result, small_policy, turn
from timeline import Timeline, open_store
from timeline.audit.deep import verify_deep
from timeline.blocks import UserPrompt
from timeline.errors import ConversationNotFound, HistoryUnavailable
from timeline.events import ABANDONED, BlocksHidden, CompactionReverted, Covers, NewEvent, Replacement, event_id
from timeline.log.history import (
    asked_of,
    compactions_over,
    first_prompt,
    fold_history,
    fold_past,
    load_fold,
    record_within,
    reverted_versions,
)
from timeline.store.memory import MemoryStore
from timeline.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from timeline.ports import EventStore

POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=400, hiding=None)


async def compacted(store: EventStore, times: int = 1) -> Timeline:
    """Return a conversation that was compacted so often."""
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    for _ in range(times):
        await timeline.append(*turn(1_500), *turn(1_500), *turn(400, asked=300))
        await timeline.render(now=AT)
    return timeline


async def test_the_whole_log_folds_to_the_window_of_snapshot_and_tail(tmp_path: Path) -> None:
    """From the first version on, and from the newest snapshot on."""
    async with open_store(str(tmp_path / "a.db")) as store:
        timeline = await compacted(store, times=2)
        whole, short = await fold_history(store, "c"), await load_fold(store, "c")
        assert whole.window == short.window == timeline.window


async def test_a_fold_up_to_a_version_is_what_was_known_then() -> None:
    """It ends there."""
    store = MemoryStore()
    timeline = await compacted(store)
    fold = await fold_history(store, "c", until=4)
    assert fold.version == 4
    assert fold.window.items == (await timeline.at(4)).window.items


async def test_a_compaction_can_be_left_out_before_its_undo_is_written() -> None:
    """What an undo shows is folded first, and then appended."""
    store = MemoryStore()
    await compacted(store, times=2)
    first, second = [e.version async for e in store.read("c", types=["compaction.completed"])]
    without = await fold_history(store, "c", without=[second])
    summary = without.window.summary
    assert summary is not None
    assert summary.version == first


async def test_reverted_versions_are_those_that_had_been_taken_back_by_then() -> None:
    """Up to a version, or by now."""
    store = MemoryStore()
    timeline = await compacted(store, times=2)
    first, second = [e.version async for e in store.read("c", types=["compaction.completed"])]
    before = timeline.version
    await timeline.undo_compaction(now=AT)
    await timeline.undo_compaction(now=AT)
    assert await reverted_versions(store, "c") == {first, second}
    assert await reverted_versions(store, "c", before + 1) == {second}
    assert await reverted_versions(store, "c", before) == set()


async def test_an_undo_without_a_snapshot_is_folded_from_the_whole_log() -> None:
    """A snapshot from before it cannot be gone on from."""
    store = MemoryStore()
    timeline = await compacted(store)
    [version] = [e.version async for e in store.read("c", types=["compaction.completed"])]
    reverted = CompactionReverted(versions=(version,), policy="p")
    await store.append("c", [NewEvent(id=event_id(AT), at=AT, payload=reverted)])
    again = await opened(store, policy=POLICY)
    assert again.window.summary is None
    await timeline.append(*turn(1))
    assert timeline.window.items == (await fold_history(store, "c")).window.items
    assert (await again.verify()).ok


async def test_a_log_with_a_gap_is_refused() -> None:
    """The error names what is left."""

    class Holed(MemoryStore):
        """A store that lost version 3."""

        async def _kept(self, events: Any) -> Any:
            async for event in events:
                if event.version != 3:
                    yield event

        def read(self, conversation: str, **options: Any) -> Any:
            """Leave out what was lost."""
            return self._kept(super().read(conversation, **options))

    store = Holed()
    timeline = await opened(store)
    await timeline.append(*turn(), *turn())
    with pytest.raises(HistoryUnavailable, match="at version 3: it holds the versions 4 to 5"):
        await fold_history(store, "c")


async def test_an_unknown_conversation_is_not_found() -> None:
    """In either way of reading."""
    with pytest.raises(ConversationNotFound):
        await load_fold(MemoryStore(), "c")
    with pytest.raises(ConversationNotFound):
        await fold_history(MemoryStore(), "c")


async def test_the_past_reads_what_its_window_is_however_long_the_log() -> None:
    """At any version, forks and undos read no more events of a log that is four times as long."""
    read: list[tuple[int, int, int]] = []
    for events in (3_000, 12_000):
        store = Counted()
        timeline = await cycles(store, "c", events)
        most = [0, 0, 0]
        for version in range(1, timeline.version, timeline.version // 7):
            ways: tuple[Callable[[], Awaitable[object]], ...] = (
                partial(timeline.at, version),
                partial(timeline.fork, at=version),
            )
            for number, look_back in enumerate(ways):
                store.events = 0
                await look_back()
                most[number] = max(most[number], store.events)
        store.events = 0
        await timeline.undo_compaction(now=AT)
        most[2] = store.events
        read.append((most[0], most[1], most[2]))
    assert all(late <= 1.2 * early for early, late in zip(*read, strict=True))
    assert max(read[1]) < 3_000


async def test_a_log_without_snapshots_of_its_past_is_folded_from_its_beginning() -> None:
    """An earlier release left none; what is seen is the same."""
    store = MemoryStore()
    timeline = await compacted(store, times=3)
    near = [(await timeline.at(version)).window for version in range(1, timeline.version + 1)]
    await store.replace_waypoints("c", [], dropped=await store.waypoints("c"))
    assert [(await timeline.at(version)).window for version in range(1, timeline.version + 1)] == near


async def test_a_snapshot_that_says_less_of_the_reported_usage_is_completed_from_the_log() -> None:
    """Those of the first version that measured it do not say whether the newest figure followed: here it did not."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    for input_tokens in (3_000, 500):
        await timeline.append(*turn(1_500))
        await timeline.render(now=AT)
        await timeline.record_model_call(Usage(input_tokens=input_tokens), model="m", now=AT)
    await timeline.compact(now=AT)
    snapshot = (await store.load_window("c")).snapshot
    assert snapshot is not None
    assert not timeline.window.reported.followed
    reported = snapshot.state["reported"]
    assert isinstance(reported, list)
    earlier = snapshot.model_copy(update={"state": {**snapshot.state, "reported": reported[:-1]}})
    await store.replace_snapshot("c", earlier)
    assert (await load_fold(store, "c")).window == (await fold_history(store, "c")).window
    assert (await verify_deep(store)).ok


async def test_a_loaded_fold_knows_the_time_of_the_newest_event() -> None:
    """Also where its snapshot is of that event: what comes next is not before it."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    await timeline.append(*turn(1_500), *turn(400, asked=300), now=AT)
    await timeline.compact(now=after(90))
    assert (await load_fold(store, "c")).at == (await store.info("c")).updated_at == after(90)


async def test_a_log_that_lost_its_newest_events_has_no_such_past() -> None:
    """The error names the last version that is there."""

    class CutOff(MemoryStore):
        """A store that lost what came after version 4, and still says that there was more."""

        def read(self, conversation: str, *, until: int | None = None, **options: Any) -> Any:
            """Leave out what is gone."""
            return super().read(conversation, until=min(until or 4, 4), **options)

    store = CutOff()
    timeline = await opened(store)
    await timeline.append(*turn(), *turn(), *turn())
    with pytest.raises(HistoryUnavailable, match="at version 6: it holds the versions 1 to 4"):
        await fold_past(store, "c", 6)


async def worked(store: EventStore) -> None:
    """Have two requests of a user answered, of which the framework left the first one."""
    timeline = await opened(store, policy=POLICY)
    await timeline.append(UserPrompt(text=" "), UserPrompt(text="Always use tabs."), answer(), now=AT)
    for name in ("one", "two", "three"):
        asked = call(name, "Write", arguments={"file_path": f"src/{name}.py"}, response_id=name)
        await timeline.append(UserPrompt(text=f"Never push {name}."), asked, result(name), now=AT)
    hidden = BlocksHidden(
        mode="omit", reason=ABANDONED, blocks=tuple(Replacement(version=version) for version in (3, 4, 5, 6, 7))
    )
    await timeline.decide([hidden], at=AT, ids=[event_id(AT)])


async def test_a_record_is_of_what_its_versions_did_without_what_the_framework_left() -> None:
    """What comes behind them is in view, and what was left never happened."""
    store = MemoryStore()
    await worked(store)
    record = await record_within(store, "c", Covers(ranges=((2, 10),)))
    assert [entry.subject for entry in record.done["file_written"]] == ["src/two.py"]
    assert [entry.subject for entry in record.done["request"]] == ["Never push two."]
    assert (await asked_of(store, "c", Covers(ranges=((2, 10),)))).done == {"request": record.done["request"]}


async def test_the_first_prompt_is_the_first_that_says_something_and_was_not_left() -> None:
    """It is the original task, for summaries."""
    store = MemoryStore()
    await worked(store)
    assert await first_prompt(store, "c") == "Never push two."


def test_compactions_over_a_block_are_those_that_cover_it_and_their_successors() -> None:
    """The newest comes first; what covers other blocks stays."""
    in_force = {
        10: Covers(ranges=((2, 8),)),
        20: Covers(ranges=((2, 18),), summaries=(10,)),
        40: Covers(ranges=((35, 38),)),
    }
    assert compactions_over(in_force, [5]) == [20, 10]
    assert compactions_over(in_force, [12, 36]) == [40, 20]
    assert compactions_over(in_force, [25]) == []
