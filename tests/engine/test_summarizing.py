"""Asking for summaries: which requests are made, who answers when one fails, and what is known of those broken off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from tests.engine.compacting import FINISHED, POLICY, split
from tests.scenes import (
    AT,
    Interrupted,
    Mute,
    Scribe,
    answer,
    exchange,
    log_of,
    opened,
    paths,
    payloads_of,
    prompt,
    turn,
    words,
)
from timeline.ports import StoppedClock, Summary
from timeline.store.memory import MemoryStore
from timeline.usage import Usage

if TYPE_CHECKING:
    from timeline.ports import SummaryRequest


class Barrier(Scribe):
    """A summarizer that answers only when two requests are under way."""

    def __init__(self) -> None:
        super().__init__()
        self.both = anyio.Event()

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Wait for the other request."""
        self.asked.append(request)
        if len(self.asked) == 2:
            self.both.set()
        with anyio.fail_after(10):
            await self.both.wait()
        return Summary(text=request.kind, summarizer="barrier")


async def test_history_and_turn_prefix_are_asked_for_at_the_same_time() -> None:
    """A summarizer that needs both requests to run gets them."""
    barrier = Barrier()
    timeline = await split(MemoryStore(), summarizer=barrier)
    await timeline.render()
    assert sorted(barrier.kinds) == ["history", "turn_prefix"]
    compaction = timeline.window.compaction
    assert compaction is not None
    assert (compaction.parts.history, compaction.parts.turn_prefix) == ("history", "turn_prefix")
    assert compaction.written_by.summarizer == "barrier"


async def test_the_same_turn_split_again_makes_one_request_and_keeps_the_history() -> None:
    """History stays verbatim; the old prefix and the new rounds are integrated."""
    scribe = Scribe()
    timeline = await split(MemoryStore(), summarizer=scribe)
    await timeline.render()
    scribe.asked.clear()
    await timeline.append(*exchange("e", 1_500), *exchange("f", 1_500), *exchange("g", 400))
    await timeline.render()
    assert scribe.kinds == ["turn_prefix"]
    assert scribe.asked[0].previous == "turn prefix 1"
    assert scribe.asked[0].blocks[0].path == "tc:turn_2.d.call"
    compaction = timeline.window.compaction
    assert compaction is not None
    assert compaction.parts.history == "history 1"
    assert paths(timeline.window.items)[:2] == ["su:turn_2.conv.range.summary.2", "ar:turn_2.user.prompt"]


async def test_both_parts_become_history_when_the_turn_is_over() -> None:
    """One request integrates the old history and the old prefix; no prefix is left."""
    scribe = Scribe()
    timeline = await split(MemoryStore(), summarizer=scribe)
    await timeline.render()
    scribe.asked.clear()
    await timeline.append(answer(1_500), *turn(1_500), *turn(400, asked=300))
    await timeline.render()
    assert scribe.kinds == ["history"]
    assert scribe.asked[0].previous == "history 1\n\nturn prefix 1"
    compaction = timeline.window.compaction
    assert compaction is not None
    assert compaction.parts.turn_prefix == ""
    assert "Turn Context" not in compaction.block.text


async def test_nothing_to_summarise_makes_no_request() -> None:
    """A conversation of nothing but one open turn asks for its prefix only."""
    scribe = Scribe()
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=scribe)
    await timeline.append(prompt(), *exchange("a", 3_000), *exchange("b", 700))
    await timeline.render()
    assert scribe.kinds == ["turn_prefix"]


async def test_previews_alone_make_no_request() -> None:
    """A pasted prompt becomes a preview without any summary."""
    store, scribe = MemoryStore(), Scribe()
    timeline = await opened(store, policy=POLICY, summarizer=scribe)
    await timeline.append(prompt(9_000))
    context = await timeline.render()
    assert scribe.asked == []
    assert [d.kind for d in context.decisions] == ["previewed"]
    assert [event.type for event in await log_of(store)][2:] == ["blocks.hidden", "context.rendered"]
    assert "; all of it: @2 …]" in context.neutral.entries[0].text
    assert (await timeline.read("@2")).text == words(9_000)


@pytest.mark.shows("004-94")
async def test_instructions_reach_the_summarizer() -> None:
    """What the caller of a forced compaction wants attended to."""
    scribe = Scribe()
    timeline = await split(MemoryStore(), summarizer=scribe)
    await timeline.compact(instructions="keep the names")
    assert {request.instructions for request in scribe.asked} == {"keep the names"}


# Summarizers that fail


class Unreadable(Exception):
    """An error of an application whose message fails."""

    def __str__(self) -> str:
        raise ValueError("no message")


async def test_when_the_summarizer_fails_the_extractive_one_answers() -> None:
    """The conversation is compacted all the same, and the summary says why it was not the first choice."""
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=Mute())
    await timeline.append(*FINISHED)
    [taken] = (await timeline.render()).decisions
    assert taken.kind == "compacted"
    compaction = timeline.window.compaction
    assert compaction is not None
    assert compaction.written_by.summarizer == "extractive"
    assert "out of service" in (compaction.written_by.fallback_reason or "")
    assert compaction.block.meta["written_by"] == compaction.written_by.model_dump(exclude_defaults=True)


@pytest.mark.parametrize(
    ("summarizer", "reason"),
    [
        (Mute(problem=TimeoutError("30 s")), "mute: TimeoutError: 30 s"),
        (Mute(problem=Unreadable()), "mute: Unreadable: its message cannot be read (ValueError)"),
        (Scribe(answers=["", ""]), "empty"),
        (Scribe(answers=["  \n", " "]), "empty"),
        (Scribe(answers=[words(5_000), words(5_000)]), "more than 4000 tokens"),
    ],
    ids=["error", "error of a broken class", "empty", "blank", "over-long"],
)
async def test_an_error_an_empty_and_an_over_long_answer_are_failures(summarizer: Any, reason: str) -> None:
    """Failure means error, timeout, empty or over-long; the reason is recorded with the summary."""
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=summarizer)
    await timeline.append(*FINISHED)
    await timeline.render()
    compaction = timeline.window.compaction
    assert compaction is not None
    assert reason in (compaction.written_by.fallback_reason or "")


async def test_a_summarizer_that_answers_has_no_fallback_reason() -> None:
    """Who wrote the summary, with model and prompt version."""
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=Scribe(), clock=StoppedClock(AT))
    await timeline.append(*FINISHED)
    await timeline.render()
    compaction = timeline.window.compaction
    assert compaction is not None
    assert compaction.written_by.model_dump() == {
        "summarizer": "scribe",
        "model": "model-x",
        "prompt_version": "7",
        "fallback_reason": None,
        "repaired": None,
        "asked": "alone",
        "alone_because": None,
        "usage": None,
        "duration": None,
    }


async def test_a_cancelled_compaction_leaves_the_conversation_as_it_was() -> None:
    """Cancelling while the summary is written covers nothing, and the next try works."""
    store = MemoryStore()

    async def forever() -> None:
        await anyio.sleep_forever()

    timeline = await opened(store, policy=POLICY, summarizer=Interrupted(meanwhile=[forever]))
    await timeline.append(*FINISHED)
    before = timeline.window.items
    with anyio.move_on_after(0.05) as scope:
        await timeline.compact()
    assert scope.cancelled_caught
    assert timeline.window.items == before
    assert [d.kind for d in await timeline.compact()] == ["compacted"]
    assert (await timeline.verify()).ok


class HalfAnswered(Scribe):
    """A summarizer that answers for the history, and never for the turn's prefix."""

    def __init__(self) -> None:
        super().__init__()
        self.answered = anyio.Event()

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Answer, or wait for ever."""
        if request.kind == "turn_prefix":
            await self.answered.wait()
            await anyio.sleep_forever()
        self.answered.set()
        return Summary(text="- done", summarizer="half", usage=Usage(input_tokens=50))


async def test_a_cancelled_compaction_says_what_is_known_of_its_requests() -> None:
    """The usage of the answered request is counted; that of the cancelled one is unknown, and the log says so."""
    store, summarizer = MemoryStore(), HalfAnswered()
    timeline = await split(store, summarizer=summarizer)
    async with anyio.create_task_group() as group:
        group.start_soon(timeline.compact)
        await summarizer.answered.wait()
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    [failed] = await payloads_of(store, "compaction.failed")
    assert (failed.reason, failed.usage, failed.unanswered) == ("cancelled", Usage(input_tokens=50), 1)
