"""What each design does where no summary could be written, and what is logged of a compaction (seeds 000 to 004)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.scenes import Mute, Scribe, after, answer, opened, payloads_of, prompt, turn, words
from timeline import policies
from timeline.errors import CompactionRefused, ContextOverflow, SummarizerFailed
from timeline.ports import Summary
from timeline.store.memory import MemoryStore
from timeline.summarizers import CallableSummarizer

if TYPE_CHECKING:
    from timeline import Timeline
    from timeline.blocks import Block
    from timeline.policy.model import Policy
    from timeline.ports import SummaryRequest

UNCHANGED = policies.keep_last(max_tokens=20_000)
"""Due at 7,200 tokens of messages."""
TRUNCATE = policies.keep_ratio(max_tokens=20_000, output_reserve=2_000)
NEXT_STEP = policies.priority_chain(max_tokens=10_000)
FALLBACK = policies.prune_then_summarize(counter="chars4")


@dataclass
class Echo(Scribe):
    """A summarizer that answers with all that it was shown: its summary is as long as what it replaces."""

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Say it all again."""
        self.asked.append(request)
        return Summary(text="\n".join(block.text for block in request.blocks), summarizer=self.name)


def talk(turns: int, tokens: int) -> list[Block]:
    """Return so many turns of a question and an answer of that size."""
    return [block for n in range(turns) for block in (prompt(text=f"Question {n}?"), answer(tokens))]


async def due(policy: Policy, summarizer: Any, blocks: list[Block]) -> Timeline:
    """Return a conversation above its policy's trigger and below its limit."""
    timeline = await opened(MemoryStore(), policy=policy, summarizer=summarizer)
    await timeline.append(*blocks)
    return timeline


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what the library warned of."""
    return [r.getMessage() for r in caplog.records if r.name == "timeline" and r.levelno == logging.WARNING]


# Unchanged (seed 001)


async def test_unchanged_leaves_the_messages_and_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    """The render goes on with what there is; nothing is tried again until the conversation has grown."""
    store = MemoryStore()
    timeline = await opened(store, policy=UNCHANGED, summarizer=Mute())
    await timeline.append(*talk(20, 480))
    before = timeline.window.items
    context = await timeline.render()
    again = await timeline.render(now=after(60))
    assert timeline.window.items == before
    assert [(d.kind, "out of service" in d.reason) for d in context.decisions] == [("failed", True)]
    assert [d.kind for d in again.decisions] == ["refused"]
    [warning] = warnings(caplog)
    assert "out of service" in warning
    assert [f.reason for f in await payloads_of(store, "compaction.failed")] == ["summarizer"]
    assert (await timeline.verify()).ok


@pytest.mark.shows("001-53")
@pytest.mark.parametrize(
    ("summarizer", "problem"),
    [
        (Mute(problem=ConnectionError("no route")), "mute: ConnectionError: no route"),
        (Mute(problem=TimeoutError("30 s")), "mute: TimeoutError: 30 s"),
        (Scribe(answers=["", ""]), "scribe: the answer is empty"),
        (Scribe(answers=[" \n", "\t"]), "scribe: the answer is empty"),
        (Scribe(answers=[words(5_000)] * 2), "5000 tokens where"),
        (Echo(), "tokens where"),
    ],
    ids=["error", "timeout", "empty", "blank", "over-long", "growing"],
)
async def test_every_failure_of_a_lone_summarizer_is_typed(summarizer: Any, problem: str) -> None:
    """Error, timeout, an empty, an over-long or a growing answer: without a chain behind it, too."""
    timeline = await due(UNCHANGED, summarizer, talk(20, 480))
    [decision] = (await timeline.render()).decisions
    assert decision.kind == "failed"
    assert problem in decision.reason
    with pytest.raises(SummarizerFailed) as caught:
        await timeline.compact()
    assert any(problem in told for told in caught.value.problems)


async def test_a_model_that_does_not_answer_in_time_is_a_failure() -> None:
    """The timeout is the summarizer's own."""

    async def slow(_: str) -> str:
        raise TimeoutError

    timeline = await due(UNCHANGED, CallableSummarizer(slow, name="slow"), talk(20, 480))
    [decision] = (await timeline.render()).decisions
    assert "slow: TimeoutError" in decision.reason


@pytest.mark.shows("001-48", "001-53", "001-54", "R-001-22", "003-30", "R-003-10")
@pytest.mark.parametrize("policy", [UNCHANGED, policies.keep_ratio(max_tokens=20_000, on_failure="unchanged")])
async def test_above_the_limit_a_failure_is_a_typed_overflow(policy: Policy) -> None:
    """Unchanged messages that do not fit are refused with their figures, by the step hook as well."""
    timeline = await due(policy, Mute(), talk(50, 480))
    with pytest.raises(ContextOverflow):
        await timeline.render()
    messages = [{"role": "user", "content": "go on"}]
    with pytest.raises(ContextOverflow):
        await timeline.step_hook("openai_chat").prepare_step(messages=messages)


# Truncate (seed 003)


async def test_truncate_covers_the_messages_with_a_notice(caplog: pytest.LogCaptureFixture) -> None:
    """Keep the newest 40 %, and say how many messages are gone and what they were about."""
    timeline = await due(TRUNCATE, Mute(), talk(10, 1_500))
    await timeline.render()
    compaction = timeline.window.compaction
    assert compaction is not None
    about = "; ".join(f"Question {n}?" for n in range(6))
    assert compaction.block.text == (
        f"[COMPACT SUMMARY]\n[Context truncated. Earlier conversation contained 12 messages about: {about}]"
    )
    assert len(timeline.window.items) == 1 + 8
    assert compaction.written_by.summarizer == "notice"
    assert "out of service" in (compaction.written_by.fallback_reason or "")
    assert len(warnings(caplog)) == 1
    assert (await timeline.verify()).ok


async def test_a_second_notice_keeps_what_was_said_before_it() -> None:
    """A summary that was written stays, although the next one fails."""
    scribe = Scribe(answers=["They chose SQLite."])
    timeline = await due(TRUNCATE, scribe, talk(10, 1_500))
    await timeline.render()
    scribe.answers = [""]
    await timeline.append(*talk(8, 1_500))
    await timeline.render()
    compaction = timeline.window.compaction
    assert compaction is not None
    assert compaction.round == 2
    assert compaction.block.text.startswith("[COMPACT SUMMARY]\nThey chose SQLite.\n\n[Context truncated. Earlier")


# Next step (seed 000)


async def test_next_step_goes_on_to_the_brute_prune() -> None:
    """P3 fails, P5 keeps the newest 50 messages."""
    store = MemoryStore()
    timeline = await opened(store, policy=NEXT_STEP, summarizer=Mute())
    await timeline.append(*talk(60, 145))
    context = await timeline.render()
    [compaction] = await payloads_of(store, "compaction.completed")
    assert compaction.written_by.summarizer == "notice"
    assert len(timeline.window.items) == 1 + 50
    assert [d.kind for d in context.decisions] == ["compacted"]
    assert [f.reason for f in await payloads_of(store, "compaction.failed")] == ["summarizer"]
    assert timeline.window.setback is None


# Fallback (seeds 002 and 004)


async def test_fallback_writes_the_summary_without_a_model(caplog: pytest.LogCaptureFixture) -> None:
    """The extractive summarizer answers in the same shape, and says why; that is logged, too."""
    timeline = await due(FALLBACK, Mute(), talk(8, 1_600))
    await timeline.render()
    compaction = timeline.window.compaction
    assert compaction is not None
    assert compaction.written_by.summarizer == "extractive"
    assert compaction.block.text.startswith("## What Was Accomplished")
    [warning] = warnings(caplog)
    assert "out of service" in warning


# What is logged of a round


async def test_each_round_is_one_line_with_its_figures(caplog: pytest.LogCaptureFixture) -> None:
    """Seed 001: before, after, and how many messages were summarised; a refusal or a no-op is no round."""
    caplog.set_level(logging.INFO, logger="timeline")
    timeline = await due(UNCHANGED, Scribe(), talk(20, 480))
    await timeline.render(system="You help.")
    await timeline.render(system="You help.", now=after(60))
    compaction = timeline.window.compaction
    assert compaction is not None
    [line] = [r.getMessage() for r in caplog.records if r.levelno == logging.INFO]
    figures = f"{compaction.before_tokens} -> {compaction.after_tokens} tokens"
    assert line == f"conversation c: compaction 1: {figures} (30 messages summarised)"


async def test_what_a_dry_run_would_do_is_told_under_a_name_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    """So that a round in the log of the application is a round of the conversation."""
    caplog.set_level(logging.INFO, logger="timeline")
    timeline = await due(UNCHANGED, Scribe(), talk(20, 480))
    await timeline.render(record=False)
    assert [record.name for record in caplog.records] == ["timeline.dry_run"]


# What never makes a compaction due (seed 004)


@pytest.mark.shows("004-93", "R-004-27")
async def test_a_summary_alone_never_makes_a_compaction_due() -> None:
    """A summary answer's own tokens are nothing to summarise: nobody is asked about them a second time."""
    store, scribe = MemoryStore(), Scribe(answers=[words(1_400)])
    policy = policies.prune_then_summarize(counter="chars4", keep_turns=1)
    timeline = await opened(store, policy=policy, summarizer=scribe)
    await timeline.append(*talk(10, 1_300))
    await timeline.render()
    assert len(scribe.asked) == 1
    smaller = policies.prune_then_summarize(counter="chars4", keep_turns=1, max_tokens=6_500)
    with pytest.raises(ContextOverflow):
        await (await opened(store, policy=smaller, summarizer=scribe)).render()
    assert len(scribe.asked) == 1


async def test_turns_that_are_all_kept_are_a_typed_refusal() -> None:
    """Seed 004 with one prompt in a run: nothing can be covered, and that is said."""
    timeline = await due(FALLBACK, Scribe(), [prompt(), *(answer(1_600) for _ in range(8))])
    with pytest.raises(CompactionRefused) as caught:
        await timeline.compact()
    assert caught.value.reason == "nothing_to_cover"
    with pytest.raises(ContextOverflow):
        await timeline.render()
    assert not timeline.window.summaries


@pytest.mark.shows("004-70", "R-004-18")
async def test_the_kept_turns_are_never_covered() -> None:
    """Ruling: kept messages may be read, never covered."""
    timeline = await due(FALLBACK, Scribe(), talk(8, 1_600))
    await timeline.render()
    assert [item.block.turn_id for item in timeline.window.items[1:]] == ["turn_7", "turn_7", "turn_8", "turn_8"]


async def test_a_context_below_the_trigger_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is asked, nothing is decided."""
    timeline = await due(UNCHANGED, Mute(), turn())
    assert (await timeline.render()).decisions == ()
    assert warnings(caplog) == []
