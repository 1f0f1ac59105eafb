"""What happens while a summary is written: appends leave its plan valid, a decision inside its range does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.engine.compacting import FINISHED, POLICY, texts
from tests.scenes import (
    AT,
    COUNTER,
    Interrupted,
    Scribe,
    answer,
    call,
    exchange,
    opened,
    payloads_of,
    prompt,
    result,
    turn,
)
from timeline import policies
from timeline.engine.lease import LEASE
from timeline.errors import CompactionInProgress, CompactionSuperseded
from timeline.events import BlocksHidden, BlocksPinned, Replacement, event_id
from timeline.store.memory import MemoryStore
from timeline.usage import Usage

if TYPE_CHECKING:
    from timeline import Timeline
    from timeline.blocks import Block
    from timeline.events import Payload


async def decide(timeline: Timeline, *payloads: Payload) -> None:
    """Append decisions."""
    await timeline.decide(list(payloads), at=AT, ids=[event_id(AT) for _ in payloads])


async def test_blocks_that_are_appended_meanwhile_are_kept_behind_the_summary() -> None:
    """Only appends behind the range: the compaction is committed at the log's end, they stay visible."""
    store, scribe = MemoryStore(), Interrupted()
    timeline = await opened(store, policy=POLICY, summarizer=scribe)
    await timeline.append(*FINISHED)
    scribe.meanwhile.append(lambda: timeline.append(prompt(text="meanwhile"), answer(text="yes")))
    await timeline.render()
    assert scribe.kinds == ["history"]
    assert texts(timeline)[-2:] == ["meanwhile", "yes"]
    assert timeline.window.items[0].version > timeline.window.items[-1].version
    assert (await timeline.verify()).ok


async def test_blocks_of_another_writer_are_kept_too() -> None:
    """Another process may append while this one summarises."""
    store, scribe = MemoryStore(), Interrupted()
    timeline = await opened(store, policy=POLICY, summarizer=scribe)
    await timeline.append(*FINISHED)
    other = await opened(store, policy=POLICY)
    scribe.meanwhile.append(lambda: other.append(prompt(text="from elsewhere")))
    context = await timeline.render()
    assert scribe.kinds == ["history"]
    assert texts(timeline)[-1] == context.neutral.entries[-1].text == "from elsewhere"
    assert (await timeline.verify()).ok


async def test_model_calls_and_renders_meanwhile_do_not_matter() -> None:
    """Events that change nothing in the range leave the plan valid."""
    store, scribe = MemoryStore(), Interrupted()
    timeline = await opened(store, policy=POLICY, summarizer=scribe)
    await timeline.append(*FINISHED)
    reader = await opened(store, policy=policies.none(counter="chars4"))

    async def used() -> None:
        await reader.record_model_call(model="m", now=AT)
        await reader.render()

    scribe.meanwhile.append(used)
    await timeline.render()
    assert scribe.kinds == ["history"]
    assert timeline.window.compaction is not None


async def test_the_result_of_a_carried_call_joins_it_behind_the_summary() -> None:
    """An answer that arrives meanwhile is shown as the answer to its call."""
    scribe = Interrupted()
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=scribe)
    waiting: tuple[Block, ...] = (prompt(), call("p", response_id="m1", pending=True))
    await timeline.append(*waiting, *FINISHED)
    scribe.meanwhile.append(lambda: timeline.append(result("p", text="approved")))
    context = await timeline.render()
    assert scribe.kinds == ["history"]
    [shown] = [e for e in context.neutral.entries if e.text == "approved"]
    assert not shown.loose
    assert "tc:turn_1.p.call" in [e.path for e in context.neutral.entries]


async def test_a_late_result_of_a_covered_dead_call_goes_out_as_text() -> None:
    """A call that the model gave up is covered; its answer comes behind the summary with its path."""
    scribe = Interrupted()
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=scribe)
    await timeline.append(prompt(), call("x", response_id="m1"), answer(100, response_id="m2"), *FINISHED)
    scribe.meanwhile.append(lambda: timeline.append(result("x", text="too late")))
    context = await timeline.render()
    [shown] = [e for e in context.neutral.entries if e.text == "too late"]
    assert shown.loose
    assert (await timeline.verify()).ok


async def test_a_decision_inside_the_range_makes_a_new_plan() -> None:
    """A pin meanwhile is respected: the range is planned and summarised once more."""
    scribe = Interrupted(usage=Usage(input_tokens=50))
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=scribe)
    await timeline.append(prompt(text="remember this"), *FINISHED)
    scribe.meanwhile.append(lambda: decide(timeline, BlocksPinned(versions=(2,))))
    context = await timeline.render()
    assert scribe.kinds == ["history", "history"]
    assert "remember this" not in [block.text for block in scribe.asked[1].blocks]
    assert "remember this" in [e.text for e in context.neutral.entries]
    assert timeline.window.compaction is not None
    assert timeline.window.compaction.written_by.usage == Usage(input_tokens=100)
    assert (await timeline.verify()).ok


async def test_a_hide_of_what_was_appended_meanwhile_leaves_the_plan_valid() -> None:
    """A new result that is shown without its numbers is no change of what is summarised: it cost a second summary."""
    store, scribe = MemoryStore(), Interrupted()
    timeline = await opened(store, policy=POLICY, summarizer=scribe)
    await timeline.append(*FINISHED)

    async def read() -> None:
        await timeline.append(*exchange("new", 50))
        [shown] = [item for item in timeline.window.items if item.block.path == "tc:turn_3.new.result"]
        short = Replacement(version=shown.version, text="short", tokens=2)
        await decide(timeline, BlocksHidden(reason="numbered", blocks=(short,), counter=COUNTER.name))

    scribe.meanwhile.append(read)
    await timeline.render()
    assert scribe.kinds == ["history"]
    assert timeline.window.compaction is not None
    assert (await timeline.verify()).ok


async def test_no_batch_is_hidden_while_another_writer_summarises_it() -> None:
    """Either decision makes room, and one makes the other of no use; the next render decides anew."""
    store, scribe = MemoryStore(), Interrupted()
    policy = policies.balanced(max_tokens=8_000, counter="chars4")
    timeline = await opened(store, policy=policy, summarizer=scribe)
    await timeline.append(prompt(), *(block for n in range(10) for block in exchange(f"c{n}", 740)))
    other = await opened(store, policy=policy)
    seen: list[str] = []

    async def render_too() -> None:
        context = await other.render(now=AT)
        assert context.account.over_trigger
        seen.extend(taken.reason for taken in context.decisions)

    scribe.meanwhile.append(render_too)
    await timeline.compact(now=AT)
    assert seen == ["in_progress"]
    assert len(scribe.asked) == 1
    assert timeline.window.compaction is not None


async def test_a_range_that_changes_twice_is_given_up_with_a_typed_failure() -> None:
    """Re-planned once, then ``compaction.failed(superseded)``; the forced form raises it."""
    store, scribe = MemoryStore(), Interrupted(usage=Usage(input_tokens=50))
    timeline = await opened(store, policy=POLICY, summarizer=scribe)
    await timeline.append(*FINISHED)
    scribe.meanwhile += [lambda v=v: decide(timeline, BlocksPinned(versions=(v,))) for v in (2, 3)]  # type: ignore[misc]
    with pytest.raises(CompactionSuperseded):
        await timeline.compact()
    [failed] = await payloads_of(store, "compaction.failed")
    assert (failed.reason, failed.usage) == ("superseded", Usage(input_tokens=100))
    assert await payloads_of(store, "compaction.completed") == []
    assert len(scribe.asked) == 2


async def test_a_superseded_compaction_does_not_stop_a_render() -> None:
    """The render goes on with what there is, and says that the compaction failed."""
    store, scribe = MemoryStore(), Interrupted()
    timeline = await opened(store, policy=POLICY, summarizer=scribe)
    await timeline.append(*FINISHED)
    scribe.meanwhile += [lambda v=v: decide(timeline, BlocksPinned(versions=(v,))) for v in (2, 3)]  # type: ignore[misc]
    context = await timeline.render()
    assert [d.kind for d in context.decisions] == ["failed"]
    assert context.overflow


async def test_above_the_limit_a_race_that_was_lost_to_other_writers_is_run_again() -> None:
    """Every later render was a ContextOverflow, although the next try would have made the context small."""
    store, scribe = MemoryStore(), Interrupted()
    timeline = await opened(store, policy=POLICY, summarizer=scribe)
    await timeline.append(*FINISHED, *turn(600))
    scribe.meanwhile += [lambda v=v: decide(timeline, BlocksPinned(versions=(v,))) for v in (2, 3)]  # type: ignore[misc]
    context = await timeline.render()
    assert [taken.kind for taken in context.decisions][:2] == ["failed", "compacted"]
    assert context.account.total <= context.account.limit
    assert (await timeline.verify()).ok


async def test_another_compaction_meanwhile_is_told_who_compacts() -> None:
    """While one writer summarises, a second one that does not wait gets the lease's version and expiry."""
    store, scribe = MemoryStore(), Interrupted()
    timeline = await opened(store, policy=POLICY, summarizer=scribe)
    await timeline.append(*FINISHED)
    other = await opened(store, policy=POLICY, summarizer=Scribe())
    refused: list[CompactionInProgress] = []

    async def compact_too() -> None:
        with pytest.raises(CompactionInProgress) as caught:
            await other.compact(wait=False, now=AT)
        refused.append(caught.value)

    scribe.meanwhile.append(compact_too)
    await timeline.compact(now=AT)
    [completed] = await payloads_of(store, "compaction.completed")
    assert completed.lease == refused[0].version
    assert refused[0].expires_at == AT + LEASE
    assert (await timeline.verify()).ok
