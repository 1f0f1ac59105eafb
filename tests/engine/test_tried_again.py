"""Seeds 000 and 003 from outside: the budget is worked out before each model call, whatever came of the one before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

from tests.agent.test_length_stop import anthropic_reply
from tests.scenes import AT, Mute, Scribe, answer, opened, payloads_of, prompt, turn
from timeline import policies
from timeline.blocks import UserPrompt
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline import Policy, RenderedContext, Timeline
    from timeline.blocks import Block
    from timeline.ports import Summarizer, Summary, SummaryRequest

HUGE: Final = 109_000
"""A prompt above 85 % of 128,000, which nothing makes smaller."""


async def refused(policy: Policy, *blocks: Block, summarizer: Summarizer) -> Timeline:
    """Return a conversation whose first render could compact nothing."""
    timeline = await opened(MemoryStore(), policy=policy, summarizer=summarizer)
    if not blocks:
        await timeline.enter_stage("gagasan", "Gagasan")
    await timeline.append(*(blocks or [prompt(HUGE)]))
    assert done(await timeline.render())[-1] == "refused"
    return timeline


def done(context: RenderedContext) -> list[str]:
    """Return what a render did."""
    return [taken.kind for taken in context.decisions]


@pytest.mark.shows("000-9", "R-000-1")
async def test_a_stage_that_was_approved_since_is_collapsed_by_the_next_render() -> None:
    """The refusal before it was about another conversation: 30 tokens more are enough to look again."""
    timeline = await refused(policies.priority_chain(), summarizer=Mute())
    await timeline.append(answer(10))
    await timeline.approve_stage(decision="d")
    await timeline.enter_stage("topik", "Topik")
    await timeline.append(prompt(20))
    context = await timeline.render()
    assert done(context) == ["compacted"]
    assert context.account.total < 1_000


@pytest.mark.shows("000-9", "R-000-1")
async def test_chitchat_that_came_since_is_stripped_by_the_next_render() -> None:
    """Although that frees far too little to end the pressure."""
    timeline = await refused(policies.priority_chain(), prompt(HUGE), summarizer=Mute())
    await timeline.append(*[block for _ in range(12) for block in (answer(5), UserPrompt(text="ok"))], *turn(5))
    context = await timeline.render()
    assert done(context) == ["hidden", "refused"]
    assert "ok" not in [entry.text for entry in context.neutral.entries]


@pytest.mark.shows("000-37", "R-000-20")
async def test_the_newest_fifty_messages_are_kept_as_soon_as_there_are_more() -> None:
    """A hundred messages after a refusal P5 has something to drop."""
    timeline = await refused(policies.priority_chain(), prompt(HUGE), summarizer=Mute())
    await timeline.append(*turn(90, asked=90) * 50)
    context = await timeline.render()
    assert done(context) == ["compacted"]
    assert len(context.neutral.entries) == 1 + 50


@dataclass
class SlowOnce(Scribe):
    """A summarizer that does not answer the first time."""

    calls: int = 0

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Raise once, then answer."""
        self.calls += 1
        if self.calls == 1:
            raise TimeoutError("slow")
        return await super().summarize(request)


@pytest.mark.shows("000-9", "000-34", "R-000-17")
async def test_a_model_that_failed_once_is_asked_again() -> None:
    """Before the next call, and not only when the messages are a tenth more."""
    scribe = SlowOnce(answers=["- a\n- b\n- c"])
    blocks = turn(2_750, asked=2_750) * 20
    timeline = await refused(policies.priority_chain(), *blocks, summarizer=scribe)
    await timeline.append(*turn(10))
    context = await timeline.render()
    assert (done(context), scribe.calls) == (["compacted"], 2)


@pytest.mark.shows("003-1", "003-2", "003-31")
@pytest.mark.parametrize("tokens", [500, 1])
async def test_what_is_due_is_compacted_before_the_next_call_although_the_last_was_refused(tokens: int) -> None:
    """A single message could not be divided; seven can, however short the six that came since are."""
    timeline = await refused(policies.keep_ratio(), prompt(147_000), summarizer=Scribe())
    await timeline.append(*turn(tokens, asked=tokens) * 3)
    context = await timeline.render()
    assert done(context) == ["compacted"]
    assert context.account.utilization < 0.1


@pytest.mark.shows("003-8", "R-003-6")
async def test_a_length_stop_compacts_although_the_last_call_was_refused() -> None:
    """The loop goes on instead of ending."""
    timeline = await refused(policies.keep_ratio(), prompt(147_000), summarizer=Scribe())
    await timeline.append(*turn(500, asked=500) * 3)
    stop = await timeline.after_length_stop(anthropic_reply(), now=AT)
    assert (stop.exit, [taken.kind for taken in stop.decisions]) == (None, ["compacted"])


@pytest.mark.shows("000-9", "003-1")
@pytest.mark.parametrize("policy", [policies.priority_chain(), policies.keep_ratio()], ids=["000", "003"])
async def test_a_refusal_about_the_same_messages_is_not_repeated(policy: Policy) -> None:
    """Without a new block the next render says what is on record, and appends nothing."""
    timeline = await refused(policy, prompt(150_000 if policy.name == "keep_ratio" else HUGE), summarizer=Mute())
    version = timeline.version
    assert done(await timeline.render()) == ["refused"]
    assert timeline.version == version
    assert len(await payloads_of(timeline._store, "compaction.failed")) == 1
