"""The one pass of a render: hide, then fold (design, section 6; seed 002, render pipeline order)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.invariants.wires import check_grown
from tests.scenes import (
    AT,
    Scribe,
    after,
    answer,
    call,
    exchange,
    log_of,
    opened,
    payloads_of,
    prompt,
    result,
    small_policy,
    turn,
    words,
)
from timeline import Timeline, open_store, policies
from timeline.blocks import Reasoning
from timeline.events import ModelCalled, event_id
from timeline.events.other_payloads import CompactionStarted
from timeline.planning.hide import NOTICE, is_notice
from timeline.policy.model import Hiding, Policy
from timeline.store.memory import MemoryStore
from timeline.usage import Usage

if TYPE_CHECKING:
    from pathlib import Path

    from timeline import RenderedContext
    from timeline.blocks import Block
    from timeline.ports import EventStore

COLD = 360.0
"""Seconds after a call at which the cache is cold by default."""


def policy(hiding: Hiding | None = None, **changes: Any) -> Policy:
    """Return a policy of 4,000 tokens that keeps two rounds intact."""
    return small_policy(max_tokens=4_000, hiding=hiding or Hiding(intact=2, old=20, files=30), **changes)


def rounds(count: int, tokens: int, first: int = 0) -> list[Block]:
    """Return rounds with results of that size, each a response of its own."""
    return [block for n in range(first, first + count) for block in exchange(f"r{n}", tokens, response_id=f"r{n}")]


async def called(timeline: Timeline, seconds: float = 0, **usage: int) -> None:
    """Record a model call at so many seconds after `AT`."""
    payload = ModelCalled(usage=Usage(**usage))
    await timeline.decide([payload], at=after(seconds), ids=[event_id(AT)])


async def agent(store: EventStore, results: int = 5, tokens: int = 200, **options: Any) -> Timeline:
    """Return an agent's conversation with that many results, which a model saw at `AT`."""
    timeline = await opened(store, **{"policy": policy(), "summarizer": Scribe(), **options})
    await timeline.append(prompt(), *rounds(results, tokens))
    await called(timeline)
    return timeline


def kinds(context: Any) -> list[tuple[str, str]]:
    """Return what a render decided."""
    return [(taken.kind, taken.reason) for taken in context.decisions]


# Cold


async def test_while_the_cache_is_warm_nothing_is_hidden() -> None:
    """Changing what the provider has cached would cost more than it saves."""
    store = MemoryStore()
    timeline = await agent(store)
    context = await timeline.render(now=after(COLD - 1))
    assert context.decisions == ()
    assert await payloads_of(store, "blocks.hidden") == []


@pytest.mark.shows("002-2")
async def test_once_the_cache_is_cold_old_results_are_hidden_in_one_batch() -> None:
    """One event, with the figures that made it so, and the notice for the model."""
    store = MemoryStore()
    timeline = await agent(store)
    context = await timeline.render(now=after(COLD))
    assert kinds(context) == [("hidden", "cold")]
    [hidden] = await payloads_of(store, "blocks.hidden")
    assert (hidden.mode, hidden.reason, [r.version for r in hidden.blocks]) == ("replace", "cold", [4, 6, 8])
    freed = 600 - sum(r.tokens for r in hidden.blocks)
    assert hidden.facts == {
        "idle_seconds": 360,
        "ttl_seconds": 300,
        "grace_seconds": 60,
        "blocks": 3,
        "freed_tokens": freed,
        "least_tokens": 40,
    }
    told = context.decisions[0].facts
    assert hidden.facts.items() <= told.items()
    assert (told["outputs"], told["tools"]) == (3, "run")
    assert [e.text for e in context.neutral.entries if e.path == "tc:turn_1.r0.result"] == [hidden.blocks[0].text]
    assert (await timeline.verify()).ok


async def test_the_ttl_follows_what_the_calls_reported() -> None:
    """Cached for an hour, nothing is hidden within it."""
    timeline = await agent(MemoryStore())
    await called(timeline, 10, cache_write_1h_tokens=5)
    assert (await timeline.render(now=after(3_600))).decisions == ()
    assert kinds(await timeline.render(now=after(3_670))) == [("hidden", "cold")]


async def test_without_a_cache_old_results_are_hidden_at_once() -> None:
    """A local model answers no prefix for less: nothing is saved by waiting for a pause."""
    store = MemoryStore()
    timeline = await agent(store, policy=policy(cache="none"))
    context = await timeline.render(now=after(1))
    assert kinds(context) == [("hidden", "cold")]
    [hidden] = await payloads_of(store, "blocks.hidden")
    assert (hidden.facts["idle_seconds"], hidden.facts["ttl_seconds"], hidden.facts["grace_seconds"]) == (1, 0, 0)
    assert (await timeline.render(now=after(2))).decisions == ()


async def test_without_a_cache_a_cold_compaction_waits_for_a_pause() -> None:
    """Else each call would have a summary of its own."""
    timeline = await opened(MemoryStore(), policy=policy(compact_when_cold=0.35, cache="none"), summarizer=Scribe())
    await timeline.append(*turn(800), *turn(700), prompt(), *rounds(5, 100))
    await called(timeline)
    assert kinds(await timeline.render(now=after(299))) == [("hidden", "cold")]
    assert kinds(await timeline.render(now=after(300))) == [("compacted", "cold")]


async def test_recorded_renders_stand_for_calls_that_nobody_records() -> None:
    """An agent that records no calls is hidden for by the time between its renders."""
    timeline = await opened(MemoryStore(), policy=policy())
    await timeline.append(prompt(), *rounds(5, 200))
    assert (await timeline.render(now=AT)).decisions == ()
    assert (await timeline.render(now=after(COLD), record=False)).decisions != ()
    await timeline.append(answer(response_id="more"))
    assert (await timeline.render(now=after(100))).decisions == ()
    assert (await timeline.render(now=after(COLD + 99), record=False)).decisions == ()


async def test_a_batch_below_the_minimum_waits() -> None:
    """1 % of the limit: 40 tokens here. The next one takes what has become old meanwhile."""
    store = MemoryStore()
    timeline = await opened(store, policy=policy())
    await timeline.append(prompt(), *rounds(1, 45), *rounds(2, 5, first=1))
    await called(timeline)
    assert (await timeline.render(now=after(COLD))).decisions == ()
    await timeline.append(*rounds(1, 55, first=3), *rounds(2, 5, first=4))
    context = await timeline.render(now=after(COLD))
    assert context.decisions[0].facts["blocks"] == 2


async def test_a_render_right_after_a_hide_decides_nothing() -> None:
    """Though the cache is still cold; and its bytes are the same."""
    store = MemoryStore()
    timeline = await agent(store)
    first = await timeline.render(now=after(COLD))
    before = len(await log_of(store))
    second = await timeline.render(now=after(COLD))
    assert second.decisions == ()
    assert second.fingerprint == first.fingerprint
    assert len(await log_of(store)) == before


async def test_a_hide_is_sticky() -> None:
    """Warm or cold, its text stays what it was; only `reveal` undoes it, for good."""
    store = MemoryStore()
    timeline = await agent(store)
    await timeline.render(now=after(COLD))
    [hidden] = await payloads_of(store, "blocks.hidden")
    await called(timeline, COLD)
    await timeline.append(*rounds(3, 200, first=5))
    context = await timeline.render(now=after(5_000))
    shown = {e.path: e.text for e in context.neutral.entries}
    assert shown["tc:turn_1.r0.result"] == hidden.blocks[0].text
    await timeline.reveal("tc:turn_1.r0.result", now=after(5_000))
    context = await timeline.render(now=after(10_000))
    shown = {e.path: e.text for e in context.neutral.entries}
    assert shown["tc:turn_1.r0.result"] == words(200)


async def test_a_dry_run_hides_to_the_same_bytes_and_writes_nothing() -> None:
    """As for every other decision."""
    store = MemoryStore()
    timeline = await agent(store)
    before = await log_of(store)
    dry = await timeline.render(now=after(COLD), record=False)
    assert await log_of(store) == before
    wet = await timeline.render(now=after(COLD))
    assert dry.fingerprint == wet.fingerprint


async def test_hiding_is_the_policys_choice() -> None:
    """Without it, nothing is ever hidden."""
    timeline = await agent(MemoryStore(), policy=small_policy(hiding=None))
    assert (await timeline.render(now=after(10**6))).decisions == ()
    timeline = await agent(MemoryStore(), policy=policies.none(counter="chars4"))
    assert (await timeline.render(now=after(10**6))).decisions == ()


async def test_signed_thoughts_are_hidden_with_their_round() -> None:
    """Nothing is left of them on the wire, and the request stays valid."""
    thought: Any = {"type": "thinking", "thinking": words(100), "signature": "s" * 40}
    timeline = await opened(MemoryStore(), policy=policy(Hiding(intact=2, old=4)))
    first: Any = {"response_id": "first"}
    await timeline.append(prompt(), Reasoning(text=words(100), data=thought, **first), call("f", **first), result("f"))
    await timeline.append(*rounds(5, 5))
    await called(timeline)
    request = (await timeline.render(now=after(COLD))).to_anthropic()
    assert "thinking" not in str(request)
    assert [p["type"] for p in request["messages"][1]["content"]] == ["tool_use"]


# The notice


@pytest.mark.shows("002-2")
async def test_the_model_is_told_once_that_content_is_hidden() -> None:
    """With the first batch, behind everything: the prefix does not change for it."""
    store = MemoryStore()
    timeline = await agent(store)
    context = await timeline.render(now=after(COLD))
    assert context.neutral.entries[-1].text == NOTICE
    await called(timeline, COLD)
    await timeline.append(prompt(), *rounds(5, 200, first=5))
    await timeline.render(now=after(3 * COLD))
    assert len(await payloads_of(store, "blocks.hidden")) == 2
    notices = [p for p in await payloads_of(store, "block.appended") if is_notice(p.block)]
    assert len(notices) == 1


async def test_the_notice_comes_again_when_it_is_no_longer_in_view() -> None:
    """A summary covered it and does not repeat it."""
    store = MemoryStore()
    timeline = await agent(store)
    await timeline.render(now=after(COLD))
    await timeline.append(*turn(800), *turn(800))
    await timeline.compact(now=after(COLD))
    await timeline.append(prompt(), *rounds(5, 200, first=5))
    await called(timeline, COLD)
    await timeline.render(now=after(3 * COLD))
    notices = [p for p in await payloads_of(store, "block.appended") if is_notice(p.block)]
    assert len(notices) == 2
    assert len({p.block.path for p in notices}) == 2
    assert (await timeline.verify()).ok


@pytest.mark.parametrize("response_id", ["r5", None])
@pytest.mark.parametrize("said", [1, 2, 3])
async def test_the_notice_never_divides_a_response(said: int, response_id: str | None) -> None:
    """Hidden between two of its blocks, or before its last result: the message waits until the response is complete."""
    response = [answer(response_id=response_id), *(call(id_, response_id=response_id) for id_ in "xy")]
    timeline = await agent(MemoryStore())
    await timeline.append(*response[:said], *([result("x")] if said == len(response) else []))
    hidden = await timeline.render(now=after(COLD))
    assert kinds(hidden) == [("hidden", "cold")]
    assert not any(is_notice(item.block) for item in timeline.window.items)
    await timeline.append(*response[said:], *([] if said == len(response) else [result("x")]), result("y"))
    complete = await timeline.render(now=after(COLD))
    assert kinds(complete) == [("told", "hidden")]
    assert [entry.path for entry in complete.neutral.entries if entry.loose] == []
    await timeline.append(answer(response_id="next"))
    check_grown(complete, await timeline.render(now=AT))
    assert (await timeline.verify()).ok


async def test_a_notice_that_waited_is_given_once() -> None:
    """By the first render that finds the response complete; a dry run reports it, and the next render gives none."""
    store = MemoryStore()
    timeline = await agent(store)
    await timeline.append(answer(response_id="r5"))
    await timeline.render(now=after(COLD))
    assert (await timeline.render(now=after(COLD))).decisions == ()
    await timeline.append(prompt())
    dry = await timeline.render(now=after(COLD), record=False)
    told = await timeline.render(now=after(COLD))
    assert kinds(dry) == kinds(told) == [("told", "hidden")]
    assert dry.fingerprint == told.fingerprint
    assert told.neutral.entries[-1].text == NOTICE
    before = len(await log_of(store))
    assert (await timeline.render(now=after(COLD))).decisions == ()
    assert len(await log_of(store)) == before


async def test_the_notice_is_no_system_message_on_the_wire() -> None:
    """Text of the conversation never becomes one: it is labelled text of the user."""
    timeline = await agent(MemoryStore())
    request = (await timeline.render(system="You help.", now=after(COLD))).to_anthropic()
    [part] = [p for p in request["messages"][-1]["content"] if p["type"] == "text"]
    assert part["text"] == f"[system message] {NOTICE}"
    assert NOTICE not in str(request["system"])


# Folding when cold


async def test_a_policy_may_compact_when_cold() -> None:
    """Above its share of the limit; the prefix is rewritten anyway."""
    store = MemoryStore()
    timeline = await opened(store, policy=policy(compact_when_cold=0.35), summarizer=Scribe())
    await timeline.append(*turn(800), *turn(700), prompt(), *rounds(5, 100))
    await called(timeline)
    assert (await timeline.render(now=after(COLD - 1))).decisions == ()
    assert kinds(await timeline.render(now=after(COLD)))[:2] == [("hidden", "cold"), ("compacted", "cold")]
    [completed] = await payloads_of(store, "compaction.completed")
    assert completed.reason == "cold"
    assert (await timeline.verify()).ok


async def test_a_policy_that_never_hides_may_compact_when_cold() -> None:
    """The cache clock runs all the same."""
    never_hides = small_policy(max_tokens=4_000, hiding=None, compact_when_cold=0.35)
    timeline = await opened(MemoryStore(), policy=never_hides, summarizer=Scribe())
    await timeline.append(*turn(800), *turn(700), prompt(), *rounds(5, 100))
    await called(timeline)
    assert (await timeline.render(now=after(COLD - 1))).decisions == ()
    assert kinds(await timeline.render(now=after(COLD))) == [("compacted", "cold")]


async def test_below_its_share_a_cold_context_is_not_folded() -> None:
    """Nor without a share at all."""
    for share in (0.6, None):
        timeline = await opened(MemoryStore(), policy=policy(compact_when_cold=share), summarizer=Scribe())
        await timeline.append(*turn(800), *turn(700))
        await called(timeline)
        assert (await timeline.render(now=after(COLD))).decisions == ()


async def test_a_cold_fold_that_cannot_reach_its_share_is_made_once_and_is_no_refusal() -> None:
    """The prefix is new by then: until the cache was used and went cold again, no other fold is due."""
    store = MemoryStore()
    timeline = await opened(store, policy=policy(compact_when_cold=0.1, keep_recent_tokens=1_500), summarizer=Scribe())
    await timeline.append(*turn(800), *turn(400), *turn(1_000))
    await called(timeline)
    assert kinds(await timeline.render(now=after(COLD))) == [("compacted", "cold")]
    before = len(await log_of(store))
    assert kinds(await timeline.render(now=after(COLD))) == []
    assert len(await log_of(store)) == before
    assert timeline.window.setback is None
    await called(timeline, COLD)
    assert kinds(await timeline.render(now=after(2 * COLD))) == [("refused", "nothing_to_cover")]


# Pressure


def pressing(**changes: Any) -> Policy:
    """Return a policy that hides under pressure what frees 15 % of the limit."""
    return policy(Hiding(intact=2, old=20, files=30, pressure_minimum=0.15), **changes)


async def test_under_pressure_enough_old_output_is_hidden_without_a_summary() -> None:
    """Warm, above the trigger, and at the target afterwards: no summary is written."""
    store = MemoryStore()
    timeline = await agent(store, results=9, tokens=400, policy=pressing())
    context = await timeline.render(now=AT)
    assert kinds(context) == [("hidden", "pressure")]
    [hidden] = await payloads_of(store, "blocks.hidden")
    assert hidden.facts["least_tokens"] == 600
    assert "idle_seconds" not in hidden.facts
    assert context.account.total <= context.account.target
    assert await payloads_of(store, "compaction.completed") == []


async def test_at_or_below_the_trigger_there_is_no_pressure() -> None:
    """A warm cache is left alone."""
    timeline = await agent(MemoryStore(), results=8, tokens=400, policy=pressing())
    assert (await timeline.render(now=AT)).decisions == ()


async def test_under_pressure_a_small_gain_is_not_worth_a_cache() -> None:
    """Then the summary comes at once, and nothing is hidden."""
    store = MemoryStore()
    timeline = await opened(store, policy=pressing(), summarizer=Scribe())
    await timeline.append(*turn(1_500), prompt(), *rounds(3, 300), *turn(1_200))
    assert kinds(await timeline.render(now=AT)) == [("compacted", "over_trigger")]
    assert await payloads_of(store, "blocks.hidden") == []


@pytest.mark.parametrize(
    ("usage", "decided"), [("cache_write_5m_tokens", "hidden"), ("cache_write_1h_tokens", "compacted")]
)
async def test_a_batch_that_pays_back_too_late_is_left_to_the_summary(usage: str, decided: str) -> None:
    """The same batch: what stands behind it is written for five minutes at 1.25, for an hour at 2.0."""
    hiding = Hiding(intact=2, old=20, files=30, pressure_minimum=0.15, payback=6)
    timeline = await opened(MemoryStore(), policy=policy(hiding), summarizer=Scribe())
    await timeline.append(prompt(), *rounds(9, 400))
    await called(timeline, **{usage: 100})
    assert kinds(await timeline.render(now=AT))[0][0] == decided


async def test_a_batch_that_pays_back_too_late_is_made_where_nothing_else_helps() -> None:
    """After an undo no summary is written by itself: what hiding frees is needed."""
    hiding = Hiding(intact=2, old=20, files=30, pressure_minimum=0.05, payback=0)
    timeline = await opened(MemoryStore(), policy=policy(hiding), summarizer=Scribe())
    await timeline.append(*turn(800), *turn(800), prompt(), *rounds(5, 400))
    assert kinds(await timeline.render(now=AT)) == [("compacted", "over_trigger")]
    await timeline.undo_compaction()
    assert kinds(await timeline.render(now=AT))[0] == ("hidden", "pressure")


@pytest.mark.shows("002-7")
async def test_under_pressure_a_hide_that_misses_the_target_goes_on_to_the_summary() -> None:
    """Though it is below the trigger by then: the prefix is rewritten already."""
    store = MemoryStore()
    timeline = await opened(store, policy=pressing(), summarizer=Scribe())
    await timeline.append(*turn(1_300), *turn(900), prompt(), *rounds(4, 400))
    context = await timeline.render(now=AT)
    assert kinds(context) == [("hidden", "pressure"), ("compacted", "over_trigger")]
    [completed] = await payloads_of(store, "compaction.completed")
    assert 0.7 * 4_000 < completed.before_tokens <= 0.9 * 4_000


async def test_without_a_pressure_minimum_a_warm_context_is_only_folded() -> None:
    """The default: a boundary that slides costs more than it saves."""
    store = MemoryStore()
    timeline = await agent(store, results=9, tokens=400)
    assert kinds(await timeline.render(now=AT)) == [("compacted", "over_trigger")]
    assert await payloads_of(store, "blocks.hidden") == []


@pytest.mark.shows("002-6")
async def test_what_cold_hiding_freed_is_not_folded() -> None:
    """Hiding runs first: at the trigger or below it afterwards, no summary is due."""
    store = MemoryStore()
    timeline = await agent(store, results=9, tokens=400)
    assert kinds(await timeline.render(now=after(COLD))) == [("hidden", "cold")]


@pytest.mark.shows("002-7")
async def test_a_forced_compaction_is_made_on_the_pruned_timeline() -> None:
    """The model refuses what the cold cache let be hidden already: the summary is planned on what is left of it."""
    store = MemoryStore()
    timeline = await agent(store, results=30, tokens=100, policy=small_policy(max_tokens=8_000))

    async def call(context: RenderedContext) -> str:
        if context.account.sent > 800:
            raise RuntimeError("This model's maximum context length is 1200 tokens, you requested 1201 tokens")
        return "Done."

    assert await timeline.retry_with_compaction(call, now=after(COLD)) == "Done."
    decided = {"blocks.hidden", "compaction.completed"}
    assert [event.type for event in await log_of(store) if event.type in decided] == sorted(decided)
    pruned, _ = await payloads_of(store, "context.rendered")
    [completed] = await payloads_of(store, "compaction.completed")
    assert (completed.reason, completed.before_tokens) == ("refused", pruned.tokens)
    assert pruned.tokens < 30 * 100


@pytest.mark.shows("002-7")
async def test_a_compaction_by_hand_prunes_nothing_first() -> None:
    """What is asked for is the summary; the timeline is compacted as it is shown."""
    store = MemoryStore()
    timeline = await agent(store, results=30, tokens=100, policy=small_policy(max_tokens=8_000))
    [taken] = await timeline.compact(now=after(COLD))
    assert taken.kind == "compacted"
    assert await payloads_of(store, "blocks.hidden") == []


# Other writers


async def test_a_hide_follows_what_another_writer_appended() -> None:
    """It is planned from the log as it is, and committed on it."""
    store = MemoryStore()
    timeline = await agent(store)
    other = await opened(store, policy=policy())
    await other.append(*rounds(2, 200, first=5))
    await timeline.render(now=after(COLD))
    [hidden] = await payloads_of(store, "blocks.hidden")
    assert [r.version for r in hidden.blocks] == [4, 6, 8, 10, 12]


async def test_two_writers_that_find_the_cache_cold_hide_once() -> None:
    """The second one finds it done."""
    store = MemoryStore()
    first = await agent(store)
    second = await opened(store, policy=policy())
    async with anyio.create_task_group() as group:
        for timeline in (first, second):
            group.start_soon(partial(timeline.render, now=after(COLD)))
    assert len(await payloads_of(store, "blocks.hidden")) == 1
    assert (await first.verify()).ok


async def test_above_the_limit_a_lease_that_died_is_waited_for_only_once() -> None:
    """A render waits until it expires, then compacts; it does not wait that long again."""
    store = MemoryStore()
    timeline = await opened(store, policy=policy(), summarizer=Scribe())
    await timeline.append(*turn(1_800), *turn(1_800), *turn(500))
    await timeline.decide([CompactionStarted(expires_at=after(0.4))], at=AT, ids=[event_id(AT)])
    assert kinds(await timeline.render(now=AT)) == [("compacted", "over_trigger")]
    ended = [e.at for e in await log_of(store) if e.type in {"compaction.started", "compaction.completed"}]
    assert ended == [AT, after(0.4), after(0.4)]  # the moment that it waited for, and not another wait later


async def test_below_the_limit_somebody_elses_compaction_is_not_waited_for() -> None:
    """The context still fits; the render reports the refusal."""
    store = MemoryStore()
    timeline = await opened(store, policy=policy(), summarizer=Scribe())
    await timeline.append(*turn(1_800), *turn(1_800), prompt())
    await timeline.decide([CompactionStarted(expires_at=after(100))], at=AT, ids=[event_id(AT)])
    context = await timeline.render(now=AT)
    assert kinds(context) == [("refused", "in_progress")]
    assert context.decisions[0].facts == {"lease": 7, "expires_at": "2026-03-01T12:01:40.000000Z"}
    assert context.overflow


# A real database


async def test_hides_and_their_clock_survive_in_a_file(tmp_path: Path) -> None:
    """A process that opens the log again sees the same texts and the same clock, from snapshot and tail."""
    async with open_store(str(tmp_path / "a.db")) as store:
        timeline = await agent(store, results=9, tokens=400)
        await called(timeline, 50, cache_write_1h_tokens=1)
        await timeline.render(now=AT)  # compacts, and takes a snapshot
        await timeline.append(prompt(), *rounds(6, 200, first=9))
        await called(timeline, 100)
        context = await timeline.render(now=after(3_760))
        assert kinds(context) == [("hidden", "cold")]
    async with open_store(str(tmp_path / "a.db")) as store:
        again = await opened(store, policy=policy())
        assert again.window == timeline.window
        assert (await again.render(now=after(3_760))).fingerprint == context.fingerprint
        report = await again.verify()
        assert (report.ok, report.problems) == (True, ())


async def test_hide_and_notice_are_one_append(tmp_path: Path) -> None:
    """They are neighbours in the log; where the notice cannot be written, nothing is hidden."""
    async with open_store(str(tmp_path / "a.db")) as store:
        timeline = await agent(store)
        await timeline.render(now=after(COLD))
        types = [event.type for event in await log_of(store)]
        at = types.index("blocks.hidden")
        assert types[at + 1] == "block.appended"
