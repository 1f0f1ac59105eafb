"""Renders of a policy that counts abridged results whole: it decides by whole sizes, and sends less (ADR 0104)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from tests.scenes import AT, after, payloads_of
from timeline import Timeline, policies
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.policy.model import Repeats
from timeline.projection.diff import reuse
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
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
        await timeline.append(
            ToolCall(call_id=f"call{number}", name="read", arguments={"path": "a.txt"}, response_id=f"r{number}"),
            ToolResult(call_id=f"call{number}", text=LINES),
            now=after(number),
        )
        await timeline.render(now=after(number))
    return timeline


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
    """The rows of the account add up to its total; a row behind them says what is left out."""
    timeline = await reading(counting("whole", trigger="never"), 3)
    context = await timeline.render(now=after(20))
    unsent = context.account.unsent
    table = context.explain()
    assert f"{-unsent:,}" in table
    assert "of results: left out, but counted" in table
    assert context.account.facts()["unsent"] == unsent
