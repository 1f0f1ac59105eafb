"""Every wrong way in which a summarizer can end, under every preset, in the first and the second round.

Whatever it does, nothing is covered behind an empty summary: the next of the chain answers, or the policy's
``on_failure`` holds, or the cancellation from outside ends the compaction.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import anyio
import pytest

from tests.depth import at_night, sampled
from tests.scenes import Scribe, exchange, opened, payloads_of, prompt, turn
from timeline.engine.lease import LEASE
from timeline.errors import InvalidArgument, SummarizerFailed
from timeline.planning.drop_oldest import NOTICE_BY
from timeline.planning.summary_block import NOTHING
from timeline.policy.presets import PRESETS
from timeline.ports import SUMMARY_TIMEOUT, Summary
from timeline.store.memory import MemoryStore
from timeline.summarizers import ExtractiveSummarizer, FallbackSummarizer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from _pytest.mark import ParameterSet

    from timeline import Timeline
    from timeline.events import CompactionCompleted
    from timeline.ports import SummaryRequest

SPLITTING: Final = ("balanced", "cut_point", "economical", "gentle", "none")
"""Presets whose cut counts tokens, so that it may fall inside a turn: history and turn prefix are two requests."""
DEADLINE: Final = 0.05
TOO_LONG: Final = "tokens where"
"""What is said of an answer above its cap."""
EACH_FAILURE: Final = ("balanced", "keep_last", "keep_ratio", "priority_chain")
"""A preset for each ``on_failure``: what follows a wrong ending differs by that. The others are played at night."""


def by_depth(presets: Iterable[str]) -> list[ParameterSet]:
    """Return each preset with each ending as parameters, of which a run selects what its depth plays."""
    return [
        pytest.param(preset, ending, marks=() if preset in EACH_FAILURE else at_night)
        for preset, ending in product(presets, ENDINGS)
    ]


class Panic(BaseException):
    """What a binding to another language raises when that panics: no `Exception`."""


async def cancel_a_task_of_its_own() -> None:
    """Do as an SDK does that gives up a request it runs in a task."""
    task = asyncio.create_task(anyio.sleep_forever())
    task.cancel()
    await task


async def cancel_its_own_task() -> None:
    """Cancel the very task that it was asked in."""
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await anyio.sleep(1)


async def fail_in_a_group() -> None:
    """Raise as a task group does."""
    raise ExceptionGroup("two requests", [ConnectionError("down"), ValueError("half an answer")])


async def cancel_in_a_group() -> None:
    """Raise as a task group does of which a task was cancelled."""
    raise BaseExceptionGroup("a request", [asyncio.CancelledError(), ConnectionError("down")])


async def panic() -> None:
    """Raise what is no exception."""
    raise Panic("index out of bounds")


async def complain_in_broken_text() -> None:
    """Raise an error whose words cannot be stored as they are."""
    raise ConnectionError("half an emoji \ud83d" + "x" * 5_000)


def saying(text: Any, **fields: Any) -> Callable[[], Awaitable[Any]]:
    """Return an ending that is an answer."""

    async def say() -> Summary:
        return Summary(**{"text": text, "summarizer": "wrong", **fields})

    return say


async def answer_with_a_text() -> str:
    """Forget the `Summary`."""
    return "a text, not a Summary"


ENDINGS: Final[dict[str, tuple[Callable[[], Awaitable[Any]], str]]] = {
    "cancels a task of its own": (cancel_a_task_of_its_own, "cancelled from inside"),
    "cancels its own task": (cancel_its_own_task, "cancelled from inside"),
    "never answers": (anyio.sleep_forever, "no answer within 0.05 s"),
    "exception group": (fail_in_a_group, "ExceptionGroup: two requests"),
    "cancelled in a group": (cancel_in_a_group, "BaseExceptionGroup: a request"),
    "panic": (panic, "Panic: index out of bounds"),
    "error in broken text": (complain_in_broken_text, "ConnectionError: half an emoji"),
    "empty": (saying(""), "the answer is empty"),
    "white space": (saying(" \n\t\u3000"), "the answer is empty"),
    "zero width": (saying("\u200b\ufeff\x00"), "the answer is empty"),
    "headings alone": (saying("# Task\n\n## Decisions\n-\n---\n**Files:**\n"), "the answer is empty"),
    "lone surrogate": (saying("all is \ud83d well"), "cannot be stored as UTF-8"),
    "10 MB": (saying("word " * 2_000_000), TOO_LONG),
    "10 MB without a seam": (saying("x" * 10_000_000), TOO_LONG),
    "a text": (answer_with_a_text, "not a Summary"),
    "no text": (saying(None), "the answer's text is an object of type NoneType"),
    "no name": (saying("fine", summarizer=None), "what the answer says of its author"),
    "name in broken text": (saying("fine", model="\ud83d"), "what the answer says of its author"),
    "usage of another type": (saying("fine", usage={"input_tokens": 3}), "not a Usage"),
}


def deadline_of(ending: object) -> float:
    """Return a short deadline for what never answers, and for all else one that a busy machine does not reach."""
    return DEADLINE if ending is anyio.sleep_forever else SUMMARY_TIMEOUT


@dataclass
class Wrong(Scribe):
    """A summarizer that answers by rote until it is to end wrongly; ``kinds_wrong`` are the requests that do."""

    ending: Callable[[], Awaitable[Any]] | None = None
    kinds_wrong: tuple[str, ...] = ("history", "turn_prefix")
    ended: list[str] = field(default_factory=list)

    async def summarize(self, request: SummaryRequest) -> Summary:
        """End as the test says."""
        if self.ending is None or request.kind not in self.kinds_wrong:
            return await super().summarize(request)
        self.ended.append(request.kind)
        answer: Summary = await self.ending()
        return answer


async def conversation(
    preset: str, summarizer: Any, *, split: bool, store: MemoryStore | None = None, deadline: float = DEADLINE
) -> Timeline:
    """Return a conversation of finished turns, or of one and another one that goes on."""
    policy = PRESETS[preset](max_tokens=30_000, counter="chars4")
    timeline = await opened(store or MemoryStore(), policy=policy, summarizer=summarizer, summary_timeout=deadline)
    await grow(timeline, split=split)
    return timeline


async def grow(timeline: Timeline, *, split: bool) -> None:
    """Add what the next compaction covers."""
    if split:
        calls = [exchange(f"{len(timeline.window.items)}{name}", 4_500) for name in "abcd"]
        await timeline.append(*turn(2_000), prompt(20), *(block for blocks in calls for block in blocks))
    else:
        await timeline.append(*(block for _ in range(36) for block in turn(200, 20)))


async def compacted(timeline: Timeline) -> CompactionCompleted | None:
    """Force a compaction; return it where there is a new one."""
    before = timeline.window.compaction
    try:
        await timeline.compact()
    except SummarizerFailed:
        assert timeline.policy.on_failure in {"unchanged", "next_step"}
    after = timeline.window.compaction
    return None if after is before else after


async def check_usable(timeline: Timeline) -> None:
    """Check that nobody holds the compaction, that renders work, and that the log verifies."""
    assert timeline.window.lease is None
    await timeline.append(*turn(5))
    assert (await timeline.render()).to_anthropic()["messages"]
    report = await timeline.verify()
    assert report.ok, report.problems


def check_written(timeline: Timeline, done: CompactionCompleted | None, problem: str) -> None:
    """Check that what is covered has a summary, by the next of the chain or by what ``on_failure`` puts there.

    Where that would say less than the beginning of a long answer, the answer is cut.
    """
    on_failure = timeline.policy.on_failure
    if on_failure == "unchanged":
        assert done is None
        return
    assert done is not None, on_failure
    assert NOTHING not in done.block.text
    writer = done.written_by
    if on_failure == "fallback":
        assert writer.summarizer == ExtractiveSummarizer().name
        assert problem in (writer.fallback_reason or "")
    elif problem == TOO_LONG:
        assert writer.summarizer == "wrong"
        assert "was cut to" in (writer.fallback_reason or "")
    else:
        assert writer.summarizer == NOTICE_BY
    assert done.parts.history or done.parts.turn_prefix


@sampled
@pytest.mark.parametrize("second_round", [False, True], ids=["first", "second"])
@pytest.mark.parametrize(("preset", "ending"), by_depth(PRESETS))
async def test_one_request_that_ends_wrongly_covers_nothing_without_a_summary(
    preset: str, ending: str, *, second_round: bool
) -> None:
    """The next of the chain answers it, or the policy's ``on_failure`` holds."""
    end, problem = ENDINGS[ending]
    wrong = Wrong()
    timeline = await conversation(preset, wrong, split=False, deadline=deadline_of(end))
    if second_round:
        assert await compacted(timeline) is not None
        await grow(timeline, split=False)
    known = timeline.window.compaction
    wrong.ending = end
    done = await compacted(timeline)
    assert wrong.ended == ["history"]
    check_written(timeline, done, problem)
    assert done is None or known is None or done.parts.history != known.parts.history
    await check_usable(timeline)


@sampled
@pytest.mark.parametrize("kinds", [("history", "turn_prefix"), ("history",), ("turn_prefix",)], ids="+".join)
@pytest.mark.parametrize("second_round", [False, True], ids=["first", "second"])
@pytest.mark.parametrize(("preset", "ending"), by_depth(SPLITTING))
async def test_two_requests_of_which_one_ends_wrongly_have_both_an_answer(
    preset: str, ending: str, kinds: tuple[str, ...], *, second_round: bool
) -> None:
    """An answer to one request is never taken for the other's."""
    end, problem = ENDINGS[ending]
    wrong = Wrong()
    timeline = await conversation(preset, wrong, split=True, deadline=deadline_of(end))
    if second_round:
        assert await compacted(timeline) is not None
        await grow(timeline, split=True)
    wrong.asked.clear()
    wrong.ending, wrong.kinds_wrong = end, kinds
    done = await compacted(timeline)
    assert sorted([*wrong.ended, *wrong.kinds]) == ["history", "turn_prefix"]
    check_written(timeline, done, problem)
    assert done is not None
    assert done.parts.history
    assert done.parts.turn_prefix
    await check_usable(timeline)


@pytest.mark.parametrize("by", ["scope", "task", "deadline of the caller"])
@pytest.mark.parametrize("second_round", [False, True], ids=["first", "second"])
@pytest.mark.parametrize(
    ("preset", "split"), [*((preset, False) for preset in PRESETS), *((preset, True) for preset in SPLITTING)]
)
async def test_a_cancellation_from_outside_ends_the_compaction(
    preset: str, by: str, *, split: bool, second_round: bool
) -> None:
    """It reaches the caller, nobody else is asked, and the lease is given back."""
    wrong, begun, store = Wrong(), asyncio.Event(), MemoryStore()
    timeline = await conversation(preset, wrong, split=split, store=store)
    if second_round:
        assert await compacted(timeline) is not None
        await grow(timeline, split=split)

    async def never() -> None:
        begun.set()
        await anyio.sleep_forever()

    wrong.ending, known = never, timeline.window.compaction
    await cancelled(timeline, begun, by)
    assert timeline.window.compaction is known
    failed = await payloads_of(store, "compaction.failed")
    assert failed[-1].reason == "cancelled"
    wrong.ending = None
    assert await compacted(timeline) is not None
    await check_usable(timeline)


@pytest.mark.parametrize("preset", ["cut_point", "keep_last", "keep_ratio"])
async def test_an_answer_that_is_a_heading_alone_is_empty(preset: str) -> None:
    """The form puts its heading there by itself; without it nothing is left."""
    heading = PRESETS[preset]().form.heading.replace("{round}", "1")
    timeline = await conversation(preset, Scribe(answers=[heading]), split=False)
    check_written(timeline, await compacted(timeline), "the answer is empty")
    await check_usable(timeline)


async def test_in_a_chain_of_the_applications_the_next_one_answers_in_time() -> None:
    """One that never answers takes its share of the deadline, and no more."""
    silent = Wrong(ending=anyio.sleep_forever)
    timeline = await conversation("cut_point", FallbackSummarizer(silent, Scribe()), split=False, deadline=0.2)
    done = await compacted(timeline)
    assert done is not None
    assert (done.written_by.summarizer, done.parts.history) == ("scribe", "history 1")
    assert (done.written_by.fallback_reason or "").startswith("scribe: no answer within 0.1")


def test_the_next_of_the_chain_answers_before_the_lease_expires() -> None:
    """A summary that came too late would be refused where another writer took the compaction over."""
    assert LEASE.total_seconds() > SUMMARY_TIMEOUT


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan"), None, "60", True])
async def test_every_summarizer_has_a_deadline(seconds: Any) -> None:
    """No deadline at all is refused at the door."""
    with pytest.raises(InvalidArgument, match=r"summary_timeout.*must be a number of seconds above 0"):
        await opened(MemoryStore(), summary_timeout=seconds)


async def cancelled(timeline: Timeline, begun: asyncio.Event, by: str) -> None:
    """Cancel a compaction once its summarizer works."""
    if by == "scope":
        async with anyio.create_task_group() as group:
            group.start_soon(timeline.compact)
            await begun.wait()
            group.cancel_scope.cancel()
    elif by == "task":
        task = asyncio.create_task(timeline.compact())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        with pytest.raises(TimeoutError):
            await compact_until(timeline, begun)


async def compact_until(timeline: Timeline, begun: asyncio.Event) -> None:
    """Compact with a deadline that comes as soon as the summarizer works, however busy the machine is."""
    async with asyncio.timeout(None) as deadline:

        async def end() -> None:
            await begun.wait()
            deadline.reschedule(asyncio.get_running_loop().time())

        ending = asyncio.create_task(end())
        await timeline.compact()
        await ending
