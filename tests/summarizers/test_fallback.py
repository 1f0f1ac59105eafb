from __future__ import annotations

import re
from typing import Any, Final

import anyio
import pytest

from timeline.blocks import UserPrompt
from timeline.errors import SummarizerFailed
from timeline.ports import Summary, SummaryRequest
from timeline.summarizers import CallableSummarizer, ExtractiveSummarizer, FallbackSummarizer
from timeline.tokens import get_counter

REQUEST: Final = SummaryRequest("history", (UserPrompt(text="Fix it"),), None, None, 50, get_counter("o200k_base"))


async def _down(_: str) -> str:
    raise ConnectionError("down")


async def _hang(_: str) -> str:
    await anyio.sleep_forever()
    return "never"


class Scripted:
    """An application's summarizer that does as it was told."""

    name = "scripted"

    def __init__(self, outcome: Summary | Exception) -> None:
        self._outcome = outcome

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Return or raise the outcome, whatever the request."""
        assert request is REQUEST
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


class Silent:
    """A summarizer that never answers."""

    name = "silent"

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Wait for ever."""
        del request
        await anyio.sleep_forever()
        raise AssertionError


class Nameless:
    """A summarizer that forgot its name."""

    def __init__(self, outcome: Any) -> None:
        self._outcome = outcome

    async def summarize(self, request: SummaryRequest) -> Any:
        """Return or raise the outcome."""
        del request
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


async def test_the_first_answers_when_it_can() -> None:
    """A usable first answer is passed on as it is."""
    answer = Summary("All is well", "scripted", model="m")
    assert await FallbackSummarizer(Scripted(answer), ExtractiveSummarizer()).summarize(REQUEST) == answer


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (CallableSummarizer(_down, name="cheap"), "cheap: ConnectionError: down"),
        (Scripted(RuntimeError("odd")), "scripted: RuntimeError: odd"),
        (Nameless(RuntimeError("odd")), "Nameless: RuntimeError: odd"),
        (Nameless("a text"), "Nameless: the answer is an object of type str, not a Summary"),
        (Scripted(Summary(" ", "scripted")), "scripted: the answer is empty"),
        (Scripted(Summary("word " * 51, "scripted")), "scripted: the answer has 52 tokens where 50 are allowed"),
    ],
)
async def test_the_next_answers_and_says_why(first: Any, reason: str) -> None:
    """An error, an empty or an over-long answer leads to the next summarizer, whose summary names the reason."""
    chain = FallbackSummarizer(first, ExtractiveSummarizer())
    summary = await chain.summarize(REQUEST)
    assert (summary.text, summary.summarizer) == ("## Task\n- Fix it", "extractive")
    assert summary.fallback_reason == reason
    assert chain.name == f"{reason.partition(':')[0]}, then extractive"


async def test_a_remark_of_the_one_that_answers_is_kept() -> None:
    """Where the answering summarizer has a remark of its own, it follows the earlier problems."""
    second = Scripted(Summary("Short", "scripted", fallback_reason="cut"))
    summary = await FallbackSummarizer(CallableSummarizer(_down, name="a"), second).summarize(REQUEST)
    assert summary.fallback_reason == "a: ConnectionError: down; cut"


async def test_when_all_fail_each_says_how() -> None:
    """The error holds one problem for each summarizer of the chain, in order."""
    chain = FallbackSummarizer(CallableSummarizer(_down, name="a"), CallableSummarizer(_down, name="b"))
    with pytest.raises(SummarizerFailed) as caught:
        await chain.summarize(REQUEST)
    assert caught.value.problems == ["a: ConnectionError: down", "b: ConnectionError: down"]


async def test_cancellation_asks_nobody_else() -> None:
    """A chain that is cancelled does not go on to the next summarizer."""
    asked: list[str] = []

    async def second(prompt: str) -> str:
        asked.append(prompt)
        return "late"

    chain = FallbackSummarizer(CallableSummarizer(_hang), CallableSummarizer(second))
    async with anyio.create_task_group() as group:
        group.start_soon(chain.summarize, REQUEST)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert asked == []


async def test_those_that_are_asked_share_the_time_that_their_caller_has() -> None:
    """One that never answers leaves time for the next, whatever the caller's deadline is."""
    chain = FallbackSummarizer(Silent(), Silent(), Scripted(Summary("in time", "scripted")))
    with anyio.fail_after(0.3):
        answer = await chain.summarize(REQUEST)
    assert answer.text == "in time"
    shares = re.findall(r"silent: no answer within ([\d.]+) s", answer.fallback_reason or "")
    assert [0 < float(share) <= 0.1 for share in shares] == [True, True]  # less, where the machine was busy meanwhile


async def test_an_answer_is_judged_as_it_will_be_used() -> None:
    """A heading that the form adds by itself is taken off first: it neither fills an answer nor makes it too long."""
    long = "HEADING " * 60 + "\n" + "word " * 45

    def without_heading(_: SummaryRequest, text: str) -> str:
        return text.rpartition("\n")[2].strip()

    chain = FallbackSummarizer(Scripted(Summary(long, "scripted")), edit=without_heading)
    assert (await chain.summarize(REQUEST)).text == ("word " * 45).strip()
    grown = FallbackSummarizer(Scripted(Summary("word", "scripted")), edit=lambda _, text: text * 60)
    with pytest.raises(SummarizerFailed, match="tokens where 50 are allowed"):
        await grown.summarize(REQUEST)


async def test_a_reason_that_is_no_text_is_a_failure_and_no_crash() -> None:
    """What an application says of its summarizer is checked as its answer is."""
    wrong: Any = 5
    chain = FallbackSummarizer(Scripted(Summary("fine", "scripted", fallback_reason=wrong)), ExtractiveSummarizer())
    answer = await chain.summarize(REQUEST)
    assert answer.summarizer == "extractive"
    assert "what the answer says of its author cannot be stored" in (answer.fallback_reason or "")
