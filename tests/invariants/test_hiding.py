from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from hypothesis import given
from hypothesis import strategies as st

from tests.invariants import reference
from tests.invariants.hide_checks import AUTOMATIC, age, batches, check_untouched
from tests.invariants.places import new_store
from tests.invariants.playing import AT, read_log, run, search
from tests.invariants.strategies import HIDINGS, LONG_RUNS, ORDERLY_LOGS, Call, Manual, Say, Step, Wait, small
from tests.invariants.watched import Watched
from timeline.blocks import AssistantCompletion, Attachment, ToolResult, UserPrompt
from timeline.planning.hide import is_notice
from timeline.timeline import Timeline
from timeline.usage import KeptLong

if TYPE_CHECKING:
    from timeline.policy.model import Hiding

ROOMY = 1_000_000
"""A limit that nothing comes near: whatever is hidden is hidden because of the clock."""


async def _watched(hiding: Hiding, limit: int = ROOMY, *, kept_long: KeptLong = "nothing") -> Watched:
    store, policy = await new_store(), small(limit, hiding=hiding, cache_points={"kept_long": kept_long})
    return Watched(store, await Timeline.open(store, "c", policy=policy, now=AT))


@search(30)
@given(LONG_RUNS, HIDINGS, st.booleans(), st.sampled_from(get_args(KeptLong)), st.integers(0, 1))
def test_nothing_is_hidden_while_every_pause_is_shorter_than_the_cache_lives(
    steps: list[Step],
    hiding: Hiding,
    long: bool,  # noqa: FBT001 - drawn
    kept_long: KeptLong,
    short: int,
) -> None:
    """With room to spare and a call before each pause, one second decides; a clock that goes back hides nothing."""
    lives = (hiding.ttl or (3_600 if long or kept_long == "everything" else 300)) + hiding.grace
    call = Call("1h" if long else "5m", None, failed=False)

    async def story() -> None:
        watched = await _watched(hiding, kept_long=kept_long)
        for step in steps:
            if isinstance(step, Call):
                continue
            await watched.play(step if not isinstance(step, Wait) else Wait(min(step.seconds, lives - 1)))
            await watched.outcome()
            await watched.play(call)
        assert not batches(await read_log(watched.store, "c"))
        await watched.play(Wait(lives - short))
        await watched.render()
        assert short == 0 or not batches(await read_log(watched.store, "c"))

    run(story())


@search(25)
@given(ORDERLY_LOGS, HIDINGS)
def test_once_the_cache_is_cold_all_old_tool_output_is_hidden_in_one_batch(steps: list[Step], hiding: Hiding) -> None:
    """What is old enough for its kind, and clearly longer than what would stand for it, is hidden at once."""
    hiding = hiding.model_copy(update={"minimum": 0.0})

    async def story() -> None:
        watched = await _watched(hiding)
        await watched.play(*steps, Call("5m", None, failed=False))
        log = await read_log(watched.store, "c")
        blocks = reference.blocks_of(log)
        due = {
            item.version
            for item in watched.timeline.window.items
            if isinstance(item.block, ToolResult)
            and age(log, item.version, hiding) >= max(hiding.intact, hiding.files)
            and item.tokens > 200
        }
        await watched.play(Wait(10_000))
        await watched.render()
        made = batches(await read_log(watched.store, "c"))
        hidden = {replacement.version for _, batch in made for replacement in batch.blocks}
        assert due <= hidden
        assert len(made) <= 1
        assert not any(isinstance(blocks[v], UserPrompt | Attachment) for v in hidden if age(log, v, hiding) == 0)

    run(story())


@search(25)
@given(LONG_RUNS, HIDINGS, st.sampled_from([3_000, ROOMY]))
def test_the_model_is_told_of_every_hide_and_never_inside_a_response(
    steps: list[Step], hiding: Hiding, limit: int
) -> None:
    """Once the newest response is complete, a message stands behind the last hide, or a summary came since."""
    complete = Say((AssistantCompletion(text="done", response_id="done"), UserPrompt(text="later")))

    async def story() -> None:
        watched = await _watched(hiding, limit)
        for step in steps:
            if not isinstance(step, Manual):
                await watched.play(step, Wait(5_000))
                await watched.outcome()
        await watched.play(complete)
        await watched.render()
        items = watched.timeline.window.items
        told = [n for n, item in enumerate(items) if is_notice(item.block)]
        for place in told:
            before, behind = ({item.response for item in part} for part in (items[:place], items[place:]))
            assert not (before & behind) - {0}
        hides = [i.hide.version for i in items if i.hide is not None and i.hide.reason in AUTOMATIC]
        assert told or not hides or max(hides) < max((i.version for i in items if i.is_summary), default=0)

    run(story())


@search(25)
@given(LONG_RUNS, HIDINGS, st.sampled_from([1_000, 3_000, ROOMY]))
def test_what_was_hidden_by_itself_stays_hidden_until_it_is_revealed(
    steps: list[Step], hiding: Hiding, limit: int
) -> None:
    """Its replacement never changes while it is in the window; and what was revealed is not hidden anew."""

    async def story() -> None:
        watched = await _watched(hiding, limit)
        for step in steps:
            if not isinstance(step, Manual):
                await watched.play(step, Wait(5_000))
                await watched.outcome()
        recorded = {r.version: r for _, batch in batches(await read_log(watched.store, "c")) for r in batch.blocks}
        hidden = [item for item in watched.timeline.window.items if item.version in recorded]
        for item in hidden:
            assert item.replacement == recorded[item.version]
            await watched.timeline.reveal(item.block.path, now=watched.now)
        await watched.play(Say((UserPrompt(text="later"),)), Wait(10_000))
        await watched.render()
        check_untouched(await read_log(watched.store, "c"))
        if limit == ROOMY:
            states = {item.version: item.state for item in watched.timeline.window.items}
            assert all(states.get(item.version) != "hidden" for item in hidden)

    run(story())
