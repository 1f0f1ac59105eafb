"""Whatever a log holds, each wire's SDK takes its context, and each wire gives back what went in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from tests.invariants.designs import DESIGNS
from tests.invariants.places import new_store
from tests.invariants.playing import AT, play, run, search
from tests.invariants.strategies import LOGS, Step
from tests.scenes import after, answer, call, prompt, result
from tests.wire.validity import check_kept, check_taken
from timeline import policies
from timeline.errors import BudgetError
from timeline.policy.presets import PRESETS
from timeline.store.memory import MemoryStore
from timeline.timeline import Timeline
from timeline.wire import WIRES

if TYPE_CHECKING:
    from timeline.policy.model import Policy
    from timeline.wire.neutral import NeutralContext


async def context_of(steps: list[Step], policy: Policy, **prompt: Any) -> NeutralContext:
    """Play steps, and return the context that the model would see."""
    store = await new_store()
    timeline = await Timeline.open(store, "c", policy=policy, now=AT)
    now = await play(timeline, store, steps)
    return (await timeline.render(now=now, record=False, **prompt)).neutral


@search(15)
@given(LOGS)
def test_every_wire_gives_back_the_texts_calls_and_results_of_any_log(steps: list[Step]) -> None:
    """Nothing that was said is lost on any of them, and each SDK takes it."""
    context = run(context_of(steps, policies.none(max_tokens=1_000_000), system="Be brief."))
    for wire in WIRES:
        check_taken(wire, context)
        check_kept(wire, context)


@search(15)
@given(LOGS, DESIGNS)
def test_every_sdk_takes_what_a_design_shows_of_any_log(steps: list[Step], policy: Policy) -> None:
    """Summaries, replacements and previewed results are no exception."""

    async def story() -> None:
        store = await new_store()
        timeline = await Timeline.open(store, "c", policy=policy, now=AT)
        now = await play(timeline, store, steps)
        try:
            neutral = (await timeline.render(now=now)).neutral
        except BudgetError:
            return  # a single block may be larger than these small limits
        for wire in WIRES:
            check_taken(wire, neutral)
            check_kept(wire, neutral)

    run(story())


@pytest.mark.parametrize("name", sorted(PRESETS))
async def test_the_markers_of_every_preset_stand_at_its_cache_points(name: str) -> None:
    """Behind a summary of any form, too: at most three in the messages, the last one on the last block."""
    policy = policies.by_name(name, max_tokens=24_000 if name != "none" else 1_000_000)
    timeline = await Timeline.open(MemoryStore(), "c", policy=policy, now=after(0))
    context = await timeline.render(now=after(0))
    for n in range(60):
        said = prompt(text=f"Question {n}. " + "The details. " * 100)
        calls = (call(f"c{n}", "bash", response_id=f"r{n}"), result(f"c{n}", text=f"Output {n}. " + "Lines. " * 100))
        await timeline.append(said, *calls, answer(text=f"Answer {n}.", response_id=f"s{n}"), now=after(n * 10))
        context = await timeline.render(system="Be brief.", now=after(n * 10 + 5))
    states = {block.state for block in context.blocks}
    assert bool(context.window.summaries or "hidden" in states) is (name != "none")
    marked = [
        part.get("text") or part.get("content")
        for message in context.to_anthropic()["messages"]
        for part in message["content"]
        if "cache_control" in part
    ]
    in_sdk = [
        part.get("text") or part["output"]["value"]
        for message in context.to_ai_sdk()["messages"]
        for part in message["content"]
        if "providerOptions" in part
    ]
    texts = [context.neutral.entries[point.index].text for point in context.cache_points]
    assert marked == in_sdk == texts
    assert 0 < len(texts) <= 3
    assert texts[-1] == "Answer 59."
    ends = [prefix.contents for prefix in context.gemini_prefixes()]
    assert ends == sorted(set(ends))
    for wire in WIRES:
        check_taken(wire, context.neutral)
        check_kept(wire, context.neutral)
