"""Going back behind any block of any log: what left is gone from every view, and a redo brings all of it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tests.invariants import reference
from tests.invariants.places import new_store
from tests.invariants.playing import AT, play, read_log, run, search
from tests.invariants.strategies import ANY_BLOCK, LOGS, LONG_RUNS, Say, Step, small
from tests.invariants.watched import check_near
from tests.scenes import words
from timeline.agent.going_back import left_at_the_end
from timeline.blocks import CONTINUES_KEY, AssistantCompletion, RangeSummary, UserPrompt
from timeline.errors import BlockProtected, CompactionRefused, InvalidArgument
from timeline.events import appended_block
from timeline.fold.states import block_states
from timeline.timeline import Timeline
from timeline.wire import SENT

if TYPE_CHECKING:
    from timeline.fold.window import Item

PARTS: st.SearchStrategy[Step] = st.lists(
    st.builds(
        lambda block, continues: block.model_copy(update={"meta": {**block.meta, CONTINUES_KEY: continues}}),
        ANY_BLOCK.filter(lambda block: not block.path),
        st.booleans(),
    ),
    max_size=12,
).map(lambda blocks: Say(tuple(blocks)))
"""Messages of several parts, between calls, results without calls and responses that interleave."""


@search(80)
@given(
    steps=st.builds(lambda log, parts: [*log, parts], LONG_RUNS | LOGS, PARTS),
    number=st.integers(0, 200),
    most=st.sampled_from([1, 2, 5, 64]),
)
def test_the_end_of_a_log_says_what_leaves_as_the_whole_log_does(steps: list[Step], number: int, most: int) -> None:
    """Wherever the end begins that is read first, and behind whichever block the history goes back."""

    async def story() -> None:
        store = await new_store()
        timeline = await Timeline.open(store, "c", policy=small(), now=AT)
        await play(timeline, store, steps)
        log = await read_log(store, "c")
        said = [v for v, block in reference.blocks_of(log).items() if not isinstance(block, RangeSummary)]
        for version in (None, *said[number % 3 :: 3]):
            left = await left_at_the_end(store, "c", version, first=1, last=timeline.version, most=most)
            assert sorted(left) == reference.leaving(log, version)
        blocks = reference.blocks_of(log)
        expected = [blocks[v].path for v in reference.leaving(log, None)]
        assert sorted(block.path for block in await timeline.go_back(now=AT)) == sorted(expected)

    run(story())


@search(60)
@given(steps=LOGS, number=st.none() | st.integers(0, 200))
def test_what_left_is_in_no_view_until_it_is_revealed(steps: list[Step], number: int | None) -> None:
    """Behind the newest prompt, or any block, also one that is covered; in this handle and in another one."""

    async def story() -> None:
        store = await new_store()
        timeline = await Timeline.open(store, "c", policy=small(), now=AT)
        await play(timeline, store, steps)
        paths = [block.path for line in await read_log(store, "c") if (block := appended_block(line.payload))]
        if not paths:
            return
        version = timeline.version
        try:
            gone = await timeline.go_back(None if number is None else paths[number % len(paths)], now=AT)
        except BlockProtected:
            assert timeline.version == version
            return
        left = {block.path for block in gone}
        assert bool(left) == (timeline.version > version)
        other = await Timeline.open(store, "c", policy=small(), now=AT)
        for view in (timeline, other):
            stayed = {item.block.path for item in view.window.items if not item.omitted}
            assert not left & stayed
            context = await view.render(record=False, now=AT)
            assert not left & {block.path for block in context.blocks if block.state != "omitted"}
            assert all(context.request(wire, model="m") for wire in SENT)
        await check_near(store, "c")
        assert (await timeline.verify()).ok
        if left:
            await timeline.reveal(min(left), now=AT)
            assert not any(item.disowned for item in timeline.window.items if item.block.path in left)

    run(story())


@search(60)
@given(steps=LOGS, number=st.none() | st.integers(0, 200), times=st.integers(1, 2))
def test_an_undo_and_its_redo_leave_each_block_as_it_was(steps: list[Step], number: int | None, times: int) -> None:
    """Hidden, abridged, omitted, pinned or asked for, once or twice over, wherever no compaction goes with the undo."""

    async def story() -> None:
        store = await new_store()
        timeline = await Timeline.open(store, "c", policy=small(), now=AT)
        await play(timeline, store, steps)
        before = {item.version: _as_decided(item) for item in timeline.window.items}
        prompts = [item for item in timeline.window.items if not item.disowned and not item.is_summary]
        path = None if number is None or not prompts else prompts[number % len(prompts)].block.path
        compactions = timeline.window.compactions
        for _ in range(times):
            try:
                gone = await timeline.go_back(path, now=AT)
            except BlockProtected:
                return
            if not gone or timeline.window.compactions != compactions:
                return
            await timeline.reveal(gone[0].path, now=AT)
            assert {item.version: _as_decided(item) for item in timeline.window.items} == before
        await check_near(store, "c")
        assert (await timeline.verify()).ok

    run(story())


def _as_decided(item: Item) -> tuple[object, ...]:
    """Return what decisions say of a block, without when they were taken."""
    reason = None if item.hide is None else item.hide.reason
    return item.state, item.replacement, reason, item.pinned, item.revealed


@search(40)
@given(steps=LOGS, page=st.sampled_from([1, 3, 500]))
def test_the_list_of_the_history_says_what_the_naive_fold_says(steps: list[Step], page: int) -> None:
    """Each block once, the newest first, with its state and whether it was taken back; from any of them on, too."""

    async def story() -> None:
        store = await new_store()
        timeline = await Timeline.open(store, "c", policy=small(), now=AT)
        await play(timeline, store, steps)
        log = await read_log(store, "c")
        _, states = block_states([event async for event in store.read("c")], "c")
        rows = [row async for row in timeline.history(page=page)]
        said = [(row.version, row.state, row.covered_by) for row in rows]
        assert said == [(row.version, row.state, row.covered_by) for row in reversed(states)]
        assert {row.version for row in rows if row.abandoned} == reference.abandoned(reference.standing(log))
        for row in rows[:: max(1, len(rows) // 3)]:
            rest = [other async for other in timeline.history(before=row.version, page=page)]
            assert rest == [other for other in rows if other.version < row.version]

    run(story())


@search(40)
@given(steps=LOGS)
def test_going_back_again_and_again_ends_at_the_beginning(steps: list[Step]) -> None:
    """Each time one prompt is gone, until there is none left that could leave."""

    async def story() -> None:
        store = await new_store()
        timeline = await Timeline.open(store, "c", policy=small(), now=AT)
        await play(timeline, store, steps)
        prompts = len(
            [line for line in await read_log(store, "c") if isinstance(appended_block(line.payload), UserPrompt)]
        )
        for _ in range(prompts):
            if not await timeline.go_back(now=AT):
                break
        assert await timeline.go_back(now=AT) == []

    run(story())


@search(60)
@given(steps=LOGS, number=st.none() | st.integers(0, 200), kept=st.integers(0, 200))
def test_a_redo_behind_a_compaction_brings_back_all_that_left_or_nothing(
    steps: list[Step], number: int | None, kept: int
) -> None:
    """Whatever the compaction covers of it; once that is undone, all of it comes back."""

    async def story() -> None:
        store = await new_store()
        timeline = await Timeline.open(store, "c", policy=small(), now=AT)
        await timeline.append(UserPrompt(text=words(600)), AssistantCompletion(text=words(600)), now=AT)
        await play(timeline, store, steps)
        prompts = [item for item in timeline.window.items if not item.disowned and not item.is_summary]
        try:
            path = None if number is None or not prompts else prompts[number % len(prompts)].block.path
            gone = await timeline.go_back(path, now=AT)
            left = {block.path for block in gone}
            if not left:
                return
            items = timeline.window.items
            await timeline.compact(until=items[kept % len(items)].block.path, now=AT)
        except (BlockProtected, CompactionRefused, InvalidArgument):
            return

        async def away() -> set[str]:
            return {row.block.path for row in [row async for row in timeline.history()] if row.abandoned} & left

        try:
            await timeline.reveal(gone[0].path, now=AT)
        except BlockProtected:
            assert await away() == left
            await timeline.undo_compaction(now=AT)
            await timeline.reveal(gone[0].path, now=AT)
        assert await away() == set()
        assert left <= {item.block.path for item in timeline.window.items}
        assert (await timeline.verify()).ok

    run(story())
