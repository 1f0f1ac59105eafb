"""Renders of a policy that counts abridged results whole: it decides by whole sizes, and sends less (ADR 0104)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import anyio
import pytest

from tests.engine.test_lease import Slow
from tests.scenes import AT, after, payloads_of
from timeline import Timeline, policies
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.errors import ContextOverflow
from timeline.policy.model import Hiding, Repeats
from timeline.projection.diff import reuse
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline import RenderedContext
    from timeline.policy.model import Policy

LINES = "\n".join(f"    line {number} of the file says something of its own" for number in range(1, 41))


def counting(how: Literal["shown", "whole"], **changes: Any) -> Policy:
    """Return a cut-point policy that leaves repeats out, and counts them in one of the two ways."""
    return policies.cut_point(max_tokens=6_000, counter="chars4", repeats=Repeats(), abridged_counted_as=how, **changes)


async def reading(policy: Policy, times: int, store: MemoryStore | None = None) -> Timeline:
    """Return a conversation in which one file is read a number of times, with a render behind each."""
    timeline = await Timeline.open(store or MemoryStore(), "c", policy=policy, now=AT)
    await timeline.append(UserPrompt(text="Read it."), now=AT)
    for number in range(times):
        await read(timeline, number)
    return timeline


async def read(timeline: Timeline, number: int) -> RenderedContext:
    """Read the file in a round of that number, and render behind it."""
    await timeline.append(
        ToolCall(call_id=f"call{number}", name="read", arguments={"path": "a.txt"}, response_id=f"r{number}"),
        ToolResult(call_id=f"call{number}", text=LINES),
        now=after(number),
    )
    return await timeline.render(now=after(number))


async def test_it_compacts_when_whole_results_are_above_the_trigger() -> None:
    """Eleven whole results are above 5,400 tokens; what is sent of them is far below."""
    as_shown, whole, never_abridged = [
        await reading(policy, 11)
        for policy in (counting("shown"), counting("whole"), policies.cut_point(max_tokens=6_000, counter="chars4"))
    ]
    assert not as_shown.window.summaries
    assert len(whole.window.summaries) == 1
    [made], [expected] = whole.window.summaries, never_abridged.window.summaries
    assert made.block.text.count("a.txt") == expected.block.text.count("a.txt")
    assert (made.covered_blocks, made.covered_tokens, made.before_tokens) == (
        expected.covered_blocks,
        expected.covered_tokens,
        expected.before_tokens,
    )
    assert (await whole.verify()).ok


async def test_the_figures_of_a_compaction_are_the_accounts() -> None:
    """What it promises is what the next account counts, whole results included."""
    timeline = await reading(counting("whole"), 11)
    account = (await timeline.render(now=after(20))).account
    assert account.messages == timeline.window.summaries[0].after_tokens
    assert account.unsent > 0


async def test_the_limit_is_held_against_what_is_sent() -> None:
    """A context that fits is not refused, whatever it would have been."""
    policy = counting("whole", trigger="never")
    timeline = await reading(policy, 14)
    context = await timeline.render(now=after(20))
    account = context.account
    assert account.total > policy.max_tokens > account.needed
    assert account.available == policy.max_tokens - account.needed
    assert (await timeline.render(now=after(21))).account == account


async def test_a_refusal_ends_above_the_limit_as_it_does_for_whole_results() -> None:
    """Three results cannot be made smaller. The fourth is above the limit, so that both try again at once."""
    policy = policies.cut_point(
        max_tokens=1_800, counter="chars4", trigger=0.7, min_progress=0.0, min_progress_tokens=1_200
    )
    whole = policy.model_copy(update={"repeats": Repeats(), "abridged_counted_as": "whole"})
    plain, counted = [await reading(each, 4) for each in (policy, whole)]
    [expected], [made] = plain.window.summaries, counted.window.summaries
    assert made.covered_blocks == expected.covered_blocks


async def test_above_the_limit_a_batch_need_not_be_paid_back_as_for_whole_results() -> None:
    """The fifth result is above the limit: old ones are hidden, although the prefix is sent anew for it."""
    hiding = Hiding(intact=1, old=1, files=1, minimum=0.0, pressure_minimum=0.0, payback=1)
    policy = policies.cut_point(max_tokens=2_400, counter="chars4", hiding=hiding)
    whole = policy.model_copy(update={"repeats": Repeats(), "abridged_counted_as": "whole"})
    plain, counted = [await reading(each, 5) for each in (policy, whole)]
    hidden = [[item.block.path for item in each.window.items if item.state == "hidden"] for each in (plain, counted)]
    assert hidden[0]
    assert hidden[0] == hidden[1]


async def test_above_the_limit_it_waits_for_another_writers_summary_as_for_whole_results() -> None:
    """What it counts is above the limit, and what it would send is far below: the call sees the summary, too."""
    store, slow = MemoryStore(), Slow()
    await reading(counting("whole"), 10, store)
    first = await Timeline.open(store, "c", summarizer=slow)
    second = await Timeline.open(store, "c")
    rendered: list[RenderedContext] = []

    async def render_too() -> None:
        rendered.append(await read(second, 12))

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: first.compact(now=after(10)))
        await slow.begun.wait()
        await second.append(UserPrompt(text=600 * "abc "), now=after(11))
        group.start_soon(render_too)
        await anyio.sleep(0.3)
        assert rendered == []
        slow.may_answer.set()
    assert [taken.kind for taken in rendered[0].decisions if taken.kind == "refused"] == []
    assert rendered[0].window.summaries


async def test_what_is_shown_again_makes_no_decision_due() -> None:
    """It was counted whole before. The block that it left out is hidden, and what is held is held once."""
    decided = []
    for policy in (policies.cut_point(max_tokens=6_000, counter="chars4"), counting("whole")):
        timeline = await reading(policy, 11)
        await timeline.undo_compaction(now=after(20))
        await read(timeline, 20)
        await timeline.hide("tc:turn_1.call0.result", now=after(20))
        context = await timeline.render(now=after(21))
        decided.append([taken for taken in context.decisions if taken.kind != "revealed"])
    assert [taken.kind for taken in decided[0]] == ["held"]
    assert decided[0] == decided[1]


async def test_a_refusal_says_how_much_was_counted() -> None:
    """There is nothing to hide, in either of the two."""
    decided = []
    for name in ("clear-tool-uses", "lean-clear-tool-uses"):
        timeline = await reading(policies.by_name(name, max_tokens=2_000, counter="chars4"), 1)
        context = await read(timeline, 1)
        decided.append([taken for taken in context.decisions if taken.kind == "refused"])
    assert decided[0]
    assert decided[0] == decided[1]


async def test_a_context_that_is_refused_is_said_to_need_what_would_be_sent() -> None:
    """The error says it, and so does the log."""
    store = MemoryStore()
    timeline = await reading(counting("whole", trigger="never"), 9, store)
    await timeline.append(UserPrompt(text=5_500 * "abc "), now=after(20))
    with pytest.raises(ContextOverflow) as refused:
        await timeline.render(now=after(20))
    account = refused.value.account
    needed = account["total"] - account["unsent"]
    assert account["unsent"] > 0
    assert str(refused.value).startswith(f"The context needs {needed} tokens and the limit is 6000.")
    assert [overflowed.tokens for overflowed in await payloads_of(store, "context.overflowed")] == [needed]


async def test_what_is_recorded_and_compared_with_the_providers_count_is_what_is_sent() -> None:
    """The other way of counting records the same tokens."""
    sent = []
    ways: tuple[Literal["shown"], Literal["whole"]] = ("shown", "whole")
    for how in ways:
        store = MemoryStore()
        await reading(counting(how, trigger="never"), 6, store)
        recorded = await payloads_of(store, "context.rendered")
        sent.append([(rendered.tokens, rendered.counted) for rendered in recorded])
    assert sent[0] == sent[1]


async def test_what_the_cache_answers_is_counted_as_it_was_sent() -> None:
    """The tokens left out were never written to the cache, and are not read from it."""
    found = []
    ways: tuple[Literal["shown"], Literal["whole"]] = ("shown", "whole")
    for how in ways:
        timeline = await reading(counting(how, trigger="never"), 9)
        before = await timeline.render(now=after(20))
        await timeline.append(UserPrompt(text="Go on."), now=after(21))
        found.append(reuse(before, await timeline.render(now=after(21))))
    assert found[0] == found[1]
    assert found[0].cached > 0


async def test_the_explanation_says_how_much_is_counted_and_not_sent() -> None:
    """The rows of the account add up to what is counted. What is sent of it is held against the limit."""
    timeline = await reading(counting("whole", trigger="never"), 3)
    context = await timeline.render(now=after(20))
    unsent = context.account.unsent
    table = context.explain()
    assert [line.split(maxsplit=3) for line in table.splitlines()[-5:-2]] == [
        [f"{context.account.total:,}", "25", "%", "counted: decisions go by this"],
        [f"{-unsent:,}", "-16", "%", "of results: left out, but counted"],
        [f"{context.account.needed:,}", "10", "%", f"of 6,000; {context.account.available:,} left"],
    ]
    assert context.account.facts()["unsent"] == unsent
