"""Compacting up to a block that the caller chose: what it covers, what stays, and when it is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenes import Scribe, answer, exchange, opened, payloads_of, prompt, small_policy, turn
from timeline import policies
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.errors import BlockNotFound, CompactionRefused, InvalidArgument
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline.policy.model import Policy

POLICIES = [
    policies.cut_point(max_tokens=20_000),
    policies.balanced(max_tokens=20_000),
    policies.keep_last(max_tokens=20_000),
    policies.keep_ratio(max_tokens=20_000),
    policies.priority_chain(max_tokens=20_000),
    policies.prune_then_summarize(max_tokens=20_000),
    policies.none(max_tokens=20_000),
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
async def test_all_before_the_chosen_prompt_is_summarised_and_all_from_it_on_stays(policy: Policy) -> None:
    """Whatever the policy would keep, and however small the conversation is."""
    store = MemoryStore()
    timeline = await opened(store, policy=policy, summarizer=Scribe())
    blocks = await timeline.append(*turn(2_500), *turn(2_500), *turn(500), *turn(500))
    [_, _, _, _, chosen, *_] = blocks
    [taken] = await timeline.compact(until=chosen.path)
    assert (taken.kind, taken.reason) == ("compacted", "forced")
    left = [item.block.path for item in timeline.window.items if not item.is_summary and not item.carried]
    assert left == [block.path for block in blocks[4:]]
    assert (await timeline.verify()).ok


async def test_a_block_inside_a_response_keeps_the_response_whole() -> None:
    """No cut parts a call from its result, nor one call of a response from another."""
    timeline = await opened(MemoryStore(), policy=small_policy(), summarizer=Scribe())
    await timeline.append(*turn(1_500), prompt(), *exchange("a", 300))
    both = [ToolCall(call_id=id_, name="run", arguments={}, response_id="m9") for id_ in ("b", "c")]
    told = [ToolResult(call_id=id_, text="done " * 50) for id_ in ("b", "c")]
    blocks = await timeline.append(*both, *told)
    await timeline.compact(until=blocks[-1].path)
    left = [item.block.path for item in timeline.window.items if not item.is_summary and not item.carried]
    assert left == [block.path for block in blocks]


async def test_a_chosen_block_inside_a_turn_keeps_what_the_user_said_in_it() -> None:
    """The turn is split as by any compaction: its prompt is carried."""
    timeline = await opened(MemoryStore(), policy=small_policy(), summarizer=Scribe())
    asked, *_ = await timeline.append(prompt(30), *exchange("a", 800), *exchange("b", 800))
    last, _ = await timeline.append(*exchange("c", 800))
    await timeline.compact(until=last.path)
    assert [item.block.path for item in timeline.window.items if item.carried] == [asked.path]


async def test_an_address_names_the_chosen_block_and_a_pin_before_it_stays() -> None:
    """Protected blocks are carried past any cut."""
    timeline = await opened(MemoryStore(), policy=small_policy(), summarizer=Scribe())
    pinned, *_ = await timeline.append(*turn(1_500, asked=40))
    await timeline.append(*turn(1_500))
    await timeline.pin(pinned.path)
    version = timeline.version + 1
    await timeline.append(*turn(300))
    await timeline.compact(until=f"@{version}")
    assert pinned.path in [item.block.path for item in timeline.window.items]
    assert [item.version for item in timeline.window.items if isinstance(item.block, UserPrompt)][-1] == version


async def test_nothing_before_the_chosen_block_is_refused_and_holds_no_later_compaction_back() -> None:
    """The refusal is about this cut alone; the log has none of it."""
    store = MemoryStore()
    timeline = await opened(store, policy=small_policy(), summarizer=Scribe())
    first, *_ = await timeline.append(*turn(1_500))
    await timeline.append(*turn(1_500), *turn(1_500))
    with pytest.raises(CompactionRefused, match="name a later one") as caught:
        await timeline.compact(until=first.path)
    assert caught.value.reason == "nothing_to_cover"
    assert await payloads_of(store, "compaction.failed") == []
    assert timeline.window.setback is None


async def test_a_block_that_a_summary_covers_or_that_is_not_there_is_named() -> None:
    """Nothing is compacted then."""
    timeline = await opened(MemoryStore(), policy=small_policy(), summarizer=Scribe())
    first, *_ = await timeline.append(*turn(1_500))
    chosen, *_ = await timeline.append(*turn(1_500))
    await timeline.compact(until=chosen.path)
    version = timeline.version
    with pytest.raises(InvalidArgument, match="covered by a summary"):
        await timeline.compact(until=first.path)
    with pytest.raises(BlockNotFound):
        await timeline.compact(until="@999")
    with pytest.raises(InvalidArgument, match="until"):
        await timeline.compact(until=3)  # type: ignore[arg-type]
    assert timeline.version == version


async def test_a_second_choice_takes_the_first_summary_up() -> None:
    """Compactions go on from one another as they do by themselves."""
    scribe = Scribe()
    timeline = await opened(MemoryStore(), policy=small_policy(), summarizer=scribe)
    await timeline.append(*turn(2_500))
    second, *_ = await timeline.append(*turn(2_500))
    third, *_ = await timeline.append(*turn(500), answer(20))
    await timeline.compact(until=second.path)
    await timeline.compact(until=third.path)
    assert scribe.asked[-1].previous == "history 1"
    assert sum(item.is_summary for item in timeline.window.items) == 1
    await timeline.undo_compaction()
    assert second.path in [item.block.path for item in timeline.window.items]
