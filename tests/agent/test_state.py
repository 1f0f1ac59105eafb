"""What a runtime and its interface ask of a conversation: compaction state, tools in use, the end of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.scenes import AT, FULL, Scribe, after, answer, call, opened, payloads_of, prompt, result, small_policy
from timeline import policies
from timeline.errors import CompactionInProgress, StoreFull
from timeline.events import event_id
from timeline.events.other_payloads import CompactionStarted
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline.timeline import Timeline

POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=400)
PRUNE = policies.prune_then_summarize(
    max_tokens=100_000, counter="chars4", protect=2_000, minimum=1_000, keep_turns=2, output_reserve=0
)


@pytest.mark.shows("004-57", "004-104", "R-004-28")
async def test_the_state_counts_the_compactions_and_says_when_the_newest_was() -> None:
    """None at first; an undo takes one back."""
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=Scribe())
    assert (timeline.compaction_state().count, timeline.compaction_state().last_at) == (0, None)
    await timeline.append(*FULL)
    await timeline.render(now=after(9))
    state = timeline.compaction_state()
    assert (state.count, state.last_at, state.compacting, state.until) == (1, after(9), False, None)
    await timeline.append(*FULL)
    await timeline.render(now=after(20))
    state = timeline.compaction_state()
    assert (state.count, state.last_at, len(timeline.window.summaries)) == (2, after(20), 1)
    for left in (1, 0):
        await timeline.undo_compaction()
        assert timeline.compaction_state().count == left


@pytest.mark.shows("004-76", "004-104", "004-106", "R-004-28")
async def test_the_state_says_that_somebody_compacts_until_the_lease_expires() -> None:
    """By the moment that is asked about."""
    timeline = await opened(MemoryStore(), policy=POLICY)
    await timeline.decide([CompactionStarted(expires_at=after(120))], at=AT, ids=[event_id(AT)])
    state = timeline.compaction_state(now=after(119))
    assert (state.compacting, state.until) == (True, after(120))
    assert not timeline.compaction_state(now=after(120)).compacting


@pytest.mark.shows("004-110", "R-004-29")
async def test_whoever_comes_meanwhile_is_asked_to_wait() -> None:
    """In words that a user may be shown."""
    timeline = await opened(MemoryStore(), policy=POLICY)
    await timeline.append(*FULL)
    await timeline.decide([CompactionStarted(expires_at=after(120))], at=AT, ids=[event_id(AT)])
    with pytest.raises(CompactionInProgress, match="is being optimized, please wait"):
        await timeline.compact(wait=False, now=AT)


@pytest.mark.shows("004-107", "R-004-30")
async def test_tools_are_in_use_while_the_window_shows_a_call_of_them() -> None:
    """A tool whose calls are all covered may go; names, and schemas of both providers, are told apart by name."""
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=Scribe())
    await timeline.append(prompt(), call("a", "find"), result("a", 800), answer(800))
    await timeline.append(prompt(), call("b", "bash"), result("b", 800), answer(800))
    await timeline.append(prompt(), call("c", "read"), result("c", 100), answer(20))
    assert timeline.tools_in_use() == ("find", "bash", "read")
    await timeline.compact(now=AT)
    assert timeline.tools_in_use() == ("read",)
    schemas: list[Any] = [{"name": "find"}, {"type": "function", "function": {"name": "read"}}, "read", "bash", 3]
    assert timeline.still_used(schemas) == [schemas[1], "read"]
    await timeline.hide("tc:turn_3.c.result", mode="omit")
    assert (timeline.tools_in_use(), timeline.still_used(schemas)) == ((), [])


async def long_run(store: MemoryStore, policy: Any) -> Timeline:
    """Return a timeline with much old tool output, far below its trigger."""
    timeline = await opened(store, policy=policy)
    for number in range(6):
        await timeline.append(prompt(), call(f"c{number}", "bash"), result(f"c{number}", 1_000), answer())
    return timeline


@pytest.mark.shows("004-75", "R-004-14")
async def test_old_outputs_are_cleared_when_a_run_ends() -> None:
    """Below the trigger and with a warm cache; the newest turns and what is protected stay, and the calls do."""
    store = MemoryStore()
    timeline = await long_run(store, PRUNE)
    async with timeline.run():
        await timeline.render()
        assert await payloads_of(store, "blocks.hidden") == []
    [hidden] = await payloads_of(store, "blocks.hidden")
    states = {b.path: b.state for b in (await timeline.render()).blocks if b.type == "react.tool.result"}
    assert list(states.values()) == ["hidden"] * 2 + ["visible"] * 4
    assert hidden.reason == "tool_output"
    assert (await timeline.verify()).ok


@pytest.mark.shows("004-108", "R-004-14")
async def test_they_are_cleared_after_an_error_and_a_cancellation_too() -> None:
    """What ended the run is what the caller sees."""
    store = MemoryStore()
    timeline = await long_run(store, PRUNE)
    with pytest.raises(ZeroDivisionError):
        async with timeline.run():
            raise ZeroDivisionError
    assert len(await payloads_of(store, "blocks.hidden")) == 1
    other = await long_run(MemoryStore(), PRUNE)
    with anyio.move_on_after(0.01) as scope:
        async with other.run():
            await anyio.sleep(60)
    assert scope.cancelled_caught
    assert any(item.replacement for item in other.window.items)


async def test_a_clean_up_that_fails_does_not_hide_what_ended_the_run() -> None:
    """The error of the run gets a note; without one, the clean-up's own error is raised."""

    class Full(MemoryStore):
        full = False

        async def append(self, *args: Any, **options: Any) -> Any:
            if self.full:
                raise StoreFull("full")
            return await super().append(*args, **options)

    store = Full()
    timeline = await long_run(store, PRUNE)
    store.full = True
    with pytest.raises(ZeroDivisionError) as caught:
        async with timeline.run():
            raise ZeroDivisionError
    assert caught.value.__notes__ == ["The run was not cleaned up: full"]
    with pytest.raises(StoreFull):
        async with timeline.run():
            pass


@pytest.mark.shows("R-004-14")
async def test_a_policy_without_such_a_step_clears_nothing() -> None:
    """With a warm cache it would cost more than it saves."""
    store = MemoryStore()
    timeline = await long_run(store, small_policy(max_tokens=100_000))
    assert await timeline.end_run() == []
    assert await payloads_of(store, "blocks.hidden") == []


@pytest.mark.shows("004-44")
async def test_the_end_of_a_run_says_what_it_cleared() -> None:
    """Outputs, tools and tokens; a second time there is nothing left."""
    timeline = await long_run(MemoryStore(), PRUNE)
    [taken] = await timeline.end_run()
    assert (taken.facts["outputs"], taken.facts["tools"]) == (2, "bash")
    assert int(taken.facts["before_tokens"]) - int(taken.facts["after_tokens"]) == taken.facts["freed_tokens"]
    assert await timeline.end_run() == []
