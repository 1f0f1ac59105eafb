from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from tests.invariants import reference
from tests.invariants.checks import check_window
from tests.invariants.places import new_store
from tests.invariants.playing import AT, play, read_log, run, search
from tests.invariants.strategies import LOGS, LONG_RUNS, ORDERLY_LOGS, Compact, Step, Undo, small
from tests.invariants.watched import Watched, check_same_fold
from timeline.blocks import UserPrompt
from timeline.errors import CompactionError, CompactionRefused, UndoUnavailable
from timeline.events import BlockAppended, CompactionCompleted
from timeline.policy.steps import CutPoint, Summarize
from timeline.projection.context import RenderedContext
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from timeline.fold.window import Window
    from timeline.ports import EventStore

Rows: TypeAlias = "list[tuple[str, str]]"


def rows(window: Window) -> Rows:
    """Return path and state of every live block, in order."""
    return [(item.block.path, item.state) for item in window.items]


async def _squeeze(timeline: Timeline) -> dict[int, Rows]:
    """Compact again and again, under ever smaller keeps; return what each compaction found, by its version."""
    found: dict[int, Rows] = {}
    store = timeline._store
    for keep in (3_000, 1_000, 300, 50, 1):
        steps = (Summarize(cut=CutPoint(keep_recent_tokens=keep)),)
        changes = {"steps": steps, "min_progress": 0.0, "min_progress_tokens": 1}
        policy = timeline.policy.model_copy(update=changes)
        tighter = await Timeline.open(store, timeline.id, policy=policy, now=AT)
        before = rows(tighter.window)
        known = {line.version for line in await read_log(store, timeline.id)}
        try:
            await tighter.compact(now=AT)
        except CompactionRefused:
            continue
        log = await read_log(store, timeline.id)
        found |= {v: before for v, p, _ in log if isinstance(p, CompactionCompleted) and v not in known}
    return found


@search(25)
@given(LOGS, st.sampled_from([2_000, 20_000]))
def test_undoing_forced_compactions_one_by_one_gives_back_what_each_one_found(steps: list[Step], limit: int) -> None:
    """Paths, order and states are those from before each compaction; a fresh timeline sees the same."""

    async def story() -> None:
        store = await new_store()
        timeline = await Timeline.open(store, "c", policy=small(limit), now=AT)
        await play(timeline, store, [step for step in steps if not isinstance(step, Compact | Undo)])
        found = await _squeeze(timeline)
        for version in sorted(found, reverse=True):
            assert await timeline.undo_compaction(now=AT) == [version]
            assert rows(timeline.window) == found[version]
            opened = await Timeline.open(store, "c", policy=timeline.policy, create=False)
            check_same_fold(opened._log.fold, timeline._log.fold)
        report = await timeline.verify()
        assert report.ok, report.problems

    run(story())


@search(25)
@given(ORDERLY_LOGS, st.sampled_from([1_000, 2_000]))
def test_undoing_automatic_compactions_gives_back_what_each_one_found_and_what_came_since(
    steps: list[Step], limit: int
) -> None:
    """A render compacts while the agent works on; undone one by one, each leaves the log as if it had not been made."""

    async def story() -> None:
        store = await new_store()
        watched = Watched(store, await Timeline.open(store, "c", policy=small(limit, hiding=None), now=AT))
        for step in steps:
            await watched.play(step)
            await watched.outcome()
        await _undo_all(watched.timeline, store)

    run(story())


async def _undo_all(timeline: Timeline, store: EventStore) -> None:
    while True:
        log = await read_log(store, timeline.id)
        made = sorted(reference.summaries_of(reference.standing(log)))
        if not made:
            break
        before = (await timeline.at(made[-1] - 1)).window
        known = {item.version for item in before.items}
        assert await timeline.undo_compaction(now=AT) == made[-1:]
        # Previews that came without a compaction, after it, are decisions of their own.
        now = [(i.version, i.block.path) for i in timeline.window.items]
        assert [(i.version, i.block.path) for i in before.items] == [row for row in now if row[0] in known]
        since = [(v, p.block.path) for v, p, _ in log if isinstance(p, BlockAppended) and v > made[-1]]
        assert now == [(i.version, i.block.path) for i in before.items] + since
        check_window(timeline.window, await read_log(store, timeline.id))


@search(25)
@given(LONG_RUNS, st.sampled_from([1_000, 2_000]))
def test_undoing_all_gives_the_full_log(steps: list[Step], limit: int) -> None:
    """Whatever happened between, every block that was appended is live again, at its own place; and it verifies."""

    async def story() -> None:
        store = await new_store()
        watched = Watched(store, await Timeline.open(store, "c", policy=small(limit), now=AT))
        for step in steps:
            await watched.play(step)
            await watched.outcome()
        timeline = watched.timeline
        while True:
            try:
                await timeline.undo_compaction(cascade=True, now=watched.now)
            except UndoUnavailable:
                break
        log = await read_log(store, "c")
        assert [i.version for i in timeline.window.items] == [v for v, p, _ in log if isinstance(p, BlockAppended)]
        assert not any(item.carried for item in timeline.window.items)
        await watched.check_everything()

    run(story())


@search(20)
@given(ORDERLY_LOGS)
def test_nothing_is_folded_again_after_an_undo_until_it_is_forced(steps: list[Step]) -> None:
    """Under the same policy renders report what is over the budget; a forced compaction ends the hold."""

    async def story() -> None:
        store = await new_store()
        watched = Watched(store, await Timeline.open(store, "c", policy=small(1_000, hiding=None), now=AT))
        await watched.play(*steps)
        timeline = watched.timeline
        try:
            await timeline.compact(now=AT)
            await timeline.undo_compaction(now=AT)
        except CompactionError:
            return  # there was nothing to fold, or previews alone were enough
        await timeline.append(UserPrompt(text="and then " * 600), now=AT)
        made = len(reference.summaries_of(await read_log(store, "c")))
        context = await watched.render()
        assert isinstance(context, RenderedContext)
        assert context.overflow
        assert {taken.kind for taken in context.decisions} == {"held"}
        assert len(reference.summaries_of(await read_log(store, "c"))) == made
        await timeline.compact(now=AT)
        assert timeline.window.hold is None
        await watched.render()
        await watched.check_everything()

    run(story())
