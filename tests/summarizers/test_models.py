"""Summarizers over the providers' SDKs, which talk to a fake of the provider on loopback."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import anyio
import pytest
from anthropic import AsyncAnthropic
from anyio import to_thread
from openai import AsyncOpenAI

from tests.providers import Answer, Asked, Cut, FakeProvider, Hang, Raw, Trouble
from tests.providers.summarizing import MODEL, SUMMARIZERS
from tests.providers.wires import BrokenRequest
from timeline import summarizers
from timeline.blocks import AssistantCompletion, UserPrompt
from timeline.errors import MissingExtra, SummarizerFailed
from timeline.fold.counts import in_unit
from timeline.ports import SummaryRequest
from timeline.summarizers import AnthropicSummarizer, ChatCompletions, FallbackSummarizer, OpenAISummarizer
from timeline.tokens import get_counter
from timeline.usage import Usage

if TYPE_CHECKING:
    from tests.providers import Step

COUNTER: Final = get_counter("o200k_base")
TALK: Final = (UserPrompt(text="Build a flashcard app"), AssistantCompletion(text="I chose SQLite."))
WIRES: Final = list(SUMMARIZERS)


def request_of(*texts: str, **fields: Any) -> SummaryRequest:
    """Return a request for a summary of at most 100 tokens."""
    blocks = tuple(AssistantCompletion(text=text) for text in texts) or TALK
    return SummaryRequest(
        **{
            "kind": "history",
            "blocks": blocks,
            "previous": None,
            "task": None,
            "max_tokens": 100,
            "counter": COUNTER,
            **fields,
        }
    )


@pytest.mark.shows("001-68", "004-144")
@pytest.mark.parametrize("wire", WIRES)
async def test_the_instructions_are_the_systems_and_the_record_is_the_users(wire: str) -> None:
    """Nothing of the conversation stands where only the application speaks."""
    with FakeProvider("- a flashcard app on SQLite") as provider:
        await SUMMARIZERS[wire](provider).summarize(request_of(task="Build a flashcard app", instructions="Be brief."))
    (asked,) = provider.asked
    assert (asked.wire, asked.model) == (wire, MODEL)
    assert "You write the summary" in asked.system
    assert "Be brief." in asked.system
    assert "flashcard" not in asked.system
    assert [role for role, _ in asked.said] == ["user"]
    assert "[1] USER: Build a flashcard app" in asked.text
    assert "You write the summary" not in asked.text


@pytest.mark.parametrize("wire", WIRES)
async def test_a_summary_says_who_wrote_it_and_what_it_took(wire: str) -> None:
    """Model, prompt version and the tokens that the provider reported, without those that the cache answered."""
    answer = Answer("- a flashcard app on SQLite", input_tokens=900, cached_tokens=100, output_tokens=30)
    with FakeProvider(answer) as provider:
        summary = await SUMMARIZERS[wire](provider, retries=2).summarize(request_of())
    assert summary.text == "- a flashcard app on SQLite"
    assert (summary.model, summary.prompt_version, summary.fallback_reason) == (MODEL, "history.v2", None)
    assert summary.usage == Usage(input_tokens=900, cache_read_tokens=100, output_tokens=30)


def output_cap(asked: Asked) -> int:
    """Return the output cap of a request."""
    body = {**asked.body, **asked.body.get("generationConfig", {})}
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")
    return int(next(body[name] for name in names if name in body))


@pytest.mark.parametrize("wire", WIRES)
async def test_an_output_cap_is_sent_and_a_temperature_where_it_is_given(wire: str) -> None:
    """The model may write twice the cap unless told otherwise; what is longer than the cap is cut."""
    with FakeProvider("- noted") as provider:
        await SUMMARIZERS[wire](provider).summarize(request_of())
        await SUMMARIZERS[wire](provider, output_tokens=70, temperature=0.3).summarize(request_of())
    plain, wished = provider.asked
    assert (output_cap(plain), output_cap(wished)) == (200, 70)
    assert "temperature" not in str(plain.body)
    assert {**wished.body, **wished.body.get("generationConfig", {})}["temperature"] == 0.3
    assert "at most 100 tokens" in plain.system
    assert "at most 70 tokens" in wished.system


@pytest.mark.shows("003-21")
@pytest.mark.parametrize("wire", WIRES)
async def test_a_record_longer_than_the_window_is_asked_for_in_chunks(wire: str) -> None:
    """Each chunk's answer is the earlier summary of the next, and all of them are counted."""
    with FakeProvider(lambda asked: Answer(f"answer {asked.number}", input_tokens=5, output_tokens=2)) as provider:
        summary = await SUMMARIZERS[wire](provider, window_tokens=1_500).summarize(request_of(*["words " * 300] * 6))
    assert len(provider.asked) > 1
    assert sum(asked.text.count("words ") for asked in provider.asked) >= 6 * 299
    for number, asked in enumerate(provider.asked[1:]):
        assert f"answer {number}" in asked.text
    assert all(COUNTER.count(asked.system + asked.text) + 200 <= 1_500 for asked in provider.asked)
    assert summary.usage == Usage(input_tokens=5 * len(provider.asked), output_tokens=2 * len(provider.asked))


FAILURES: Final[dict[str, tuple[Step, str]]] = {
    "rate_limit": (Trouble("rate_limit"), "rate_limit"),
    "overloaded": (Trouble("overloaded"), "overloaded"),
    "server": (Trouble("server"), "server"),
    "context_limit": (Trouble("context_limit"), "context_limit"),
    "authentication": (Trouble("authentication"), "authentication"),
    "no model": (Trouble("no_model"), "error"),
    "filtered before": (Trouble("filter"), "refused"),
    "filtered after": (Answer("I can", stop="filter"), "refused"),
    "declined": (Answer("I cannot help with that.", stop="refusal"), "refused"),
    "declined in words": (Answer("I'm sorry, but I can't help with that."), "refused"),
    "stopped by its length": (Answer("## Task\n- half a", stop="length"), "length"),
    "empty": (Answer(""), "empty"),
    "blank": (Answer(" \n "), "empty"),
    "absurdly long": (Answer("word " * 20_000), "too_long"),
    "cut": (Cut(), "connection"),
    "half a body": (Raw(b'{"choices": [{'), "connection"),
    "a proxy's page": (Raw(b"<html>bad gateway</html>", 502, "text/html"), "server"),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("wire", WIRES)
async def test_a_failure_has_a_typed_cause(wire: str, failure: str) -> None:
    """Whatever a provider does, the summarizer fails in one way, and says why."""
    step, cause = FAILURES[failure]
    with FakeProvider(step) as provider, pytest.raises(SummarizerFailed) as failed:
        await SUMMARIZERS[wire](provider).summarize(request_of())
    assert failed.value.cause == cause, failed.value
    assert len(provider.asked) == 1


@pytest.mark.parametrize("wire", WIRES)
async def test_where_long_answers_are_cut_the_beginning_of_a_stopped_one_is_used(wire: str) -> None:
    """Nothing better would come instead; the summary says that its end is missing."""
    request = replace(request_of(), too_long="cut")
    with FakeProvider(Answer("## Task\n- half a", stop="length")) as provider:
        summary = await SUMMARIZERS[wire](provider).summarize(request)
    assert summary.text == "## Task\n- half a"
    assert "stopped by its length" in str(summary.fallback_reason)
    with FakeProvider(Answer("word " * 20_000)) as provider:
        summary = await SUMMARIZERS[wire](provider).summarize(request)
    assert COUNTER.count(summary.text) <= request.max_tokens
    assert "was cut to" in str(summary.fallback_reason)


UNUSABLE: Final = {
    "filter": "I can",
    "refusal": "I cannot help with that.",
    "length": "## Task\n- half a",
    "empty": "",
    "too long": "word " * 20_000,
}


@pytest.mark.parametrize("wire", WIRES)
async def test_an_answer_that_cannot_be_used_was_paid_for(wire: str) -> None:
    """The failure tells what it took; where the provider reported nothing, nothing is made up."""
    for kind, text in UNUSABLE.items():
        stop: Any = kind if kind in {"filter", "refusal", "length"} else None
        answer = Answer(text, stop=stop, input_tokens=700, output_tokens=12)
        with FakeProvider(answer) as provider, pytest.raises(SummarizerFailed) as failed:
            await SUMMARIZERS[wire](provider).summarize(request_of())
        assert failed.value.usage == Usage(input_tokens=700, output_tokens=12), kind
    with FakeProvider(Trouble("server")) as provider, pytest.raises(SummarizerFailed) as failed:
        await SUMMARIZERS[wire](provider).summarize(request_of())
    assert failed.value.usage is None


async def test_the_chunks_that_were_answered_before_one_failed_are_counted() -> None:
    """The connection broke with the second one."""
    script: list[Step] = [Answer("- a part", input_tokens=5, output_tokens=2), Cut()]
    with FakeProvider(script) as provider, pytest.raises(SummarizerFailed) as failed:
        await SUMMARIZERS["anthropic"](provider, window_tokens=1_500).summarize(request_of(*["words " * 300] * 6))
    assert (failed.value.cause, failed.value.usage) == ("connection", Usage(input_tokens=5, output_tokens=2))


async def test_a_refusal_of_one_chunk_is_no_earlier_summary_of_the_next() -> None:
    """What the chunks before it were summarised to would be lost."""
    script: list[Step] = [Answer("- a part"), Answer("I cannot assist with this request."), Answer("- the rest")]
    with FakeProvider(script) as provider, pytest.raises(SummarizerFailed) as failed:
        await SUMMARIZERS["anthropic"](provider, window_tokens=1_500).summarize(request_of(*["words " * 300] * 6))
    assert (failed.value.cause, len(provider.asked)) == ("refused", 2)


@pytest.mark.parametrize("wire", WIRES)
async def test_nobody_listening_is_a_failure_of_the_connection(wire: str) -> None:
    """As it is when a local server is not started."""
    with FakeProvider() as provider:
        summarizer = SUMMARIZERS[wire](provider)
    with pytest.raises(SummarizerFailed) as failed:
        await summarizer.summarize(request_of())
    assert failed.value.cause == "connection"


@pytest.mark.parametrize("wire", WIRES)
async def test_the_sdk_tries_again_as_often_as_it_is_told(wire: str) -> None:
    """An overload passes; how long it waits is the SDK's own affair."""
    with FakeProvider([Trouble("overloaded", 0.01), "- noted"]) as provider:
        summary = await SUMMARIZERS[wire](provider, retries=1).summarize(request_of())
    assert summary.text == "- noted"
    assert len(provider.asked) == 2


@pytest.mark.parametrize("step", [Hang(), Hang(Answer("word " * 40))], ids=["at once", "in the middle"])
@pytest.mark.parametrize("wire", WIRES)
async def test_an_answer_that_does_not_come_in_time_is_a_failure_and_closes_the_request(wire: str, step: Step) -> None:
    """The provider sees that nobody waits any more."""
    with FakeProvider(step) as provider:
        with pytest.raises(SummarizerFailed, match=r"no answer within|Timeout") as failed:
            await SUMMARIZERS[wire](provider, timeout=0.3).summarize(request_of())
        await to_thread.run_sync(lambda: provider.wait_for(gone=1))
    assert failed.value.cause == "timeout"


@pytest.mark.parametrize("wire", WIRES)
async def test_a_cancellation_is_passed_on_and_closes_the_request(wire: str) -> None:
    """It is no failure: whoever cancels wants no summary."""
    with FakeProvider(Hang()) as provider:
        async with anyio.create_task_group() as group:
            group.start_soon(SUMMARIZERS[wire](provider).summarize, request_of())
            await to_thread.run_sync(lambda: provider.wait_for(asked=1))
            group.cancel_scope.cancel()
        await to_thread.run_sync(lambda: provider.wait_for(gone=1))


async def test_a_client_of_the_application_is_used_and_left_open() -> None:
    """Its own settings hold, its retries too."""
    with FakeProvider(["- one", "- two"]) as provider:
        async with AsyncOpenAI(api_key="none", base_url=provider.openai_url, max_retries=0) as client:
            summarizer = OpenAISummarizer(MODEL, client=client)
            texts = [(await summarizer.summarize(request_of())).text for _ in range(2)]
        async with AsyncAnthropic(api_key="k", base_url=provider.url, max_retries=0) as other:
            with pytest.raises(SummarizerFailed, match="no step for request 2"):
                await AnthropicSummarizer(MODEL, client=other).summarize(request_of())
    assert texts == ["- one", "- two"]


async def test_an_older_server_is_told_its_cap_by_the_older_name() -> None:
    """Servers that speak like OpenAI's do not all know the newer one."""
    with FakeProvider("- noted") as provider:
        endpoint = ChatCompletions(cap_field="max_tokens")
        await OpenAISummarizer(MODEL, endpoint=endpoint, base_url=provider.openai_url, api_key="none").summarize(
            request_of()
        )
    assert provider.asked[0].body["max_tokens"] == 200


async def test_the_next_summarizer_of_a_chain_answers_and_says_why_the_first_did_not() -> None:
    """A second provider stands behind the first."""
    with FakeProvider(Trouble("overloaded")) as down, FakeProvider("- noted") as up:
        chain = FallbackSummarizer(SUMMARIZERS["anthropic"](down), SUMMARIZERS["openai_chat"](up))
        summary = await chain.summarize(request_of())
    assert (summary.text, summary.summarizer) == ("- noted", "openai")
    assert (summary.fallback_reason or "").startswith("anthropic: OverloadedError: Error code: 529")


async def test_a_chain_counts_the_answers_that_could_not_be_used() -> None:
    """Those of a summarizer before the one that answers, and all of them where none does."""
    took = {"input_tokens": 700, "output_tokens": 12}
    with FakeProvider(Answer("", **took)) as mute, FakeProvider(Answer("- noted", **took)) as up:  # type: ignore[arg-type]  # figures
        first = SUMMARIZERS["anthropic"](mute)
        answered = await FallbackSummarizer(first, SUMMARIZERS["openai_chat"](up)).summarize(request_of())
        with pytest.raises(SummarizerFailed) as failed:
            await FallbackSummarizer(first, first, first).summarize(request_of())
    assert answered.usage == Usage(input_tokens=1_400, output_tokens=24)
    assert failed.value.usage == Usage(input_tokens=2_100, output_tokens=36)


async def test_a_chain_that_fails_has_the_cause_of_its_first() -> None:
    """The one that was to answer."""
    with FakeProvider(Trouble("rate_limit")) as limited, FakeProvider(Trouble("server")) as broken:
        chain = FallbackSummarizer(SUMMARIZERS["anthropic"](limited), SUMMARIZERS["openai_chat"](broken))
        with pytest.raises(SummarizerFailed) as failed:
            await chain.summarize(request_of())
    assert failed.value.cause == "rate_limit"
    assert len(failed.value.problems) == 2


@pytest.mark.parametrize("wire", WIRES)
async def test_a_missing_key_is_a_failure_with_its_cause(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent goes on with another summarizer, and the log says why."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with FakeProvider() as provider, pytest.raises(SummarizerFailed) as failed:
        await SUMMARIZERS[wire](provider, api_key=None).summarize(request_of())
    assert failed.value.cause == "authentication", failed.value
    assert provider.asked == []


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("OpenAISummarizer", "openai", "openai"),
        ("AnthropicSummarizer", "anthropic", "anthropic"),
        ("GoogleSummarizer", "google.genai", "google"),
    ],
)
def test_a_missing_sdk_is_named_by_its_extra(
    name: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the summarizer is made, not in the middle of a conversation."""
    monkeypatch.setitem(sys.modules, module, None)
    if module == "google.genai":
        monkeypatch.delattr("google.genai")
    with pytest.raises(MissingExtra, match=rf"timeline-engine\[{extra}\]"):
        getattr(summarizers, name)(MODEL)


@pytest.mark.parametrize("option", [{"timeout": 0}, {"output_tokens": 0}, {"window_tokens": -1}, {"retries": -1}])
def test_an_option_that_cannot_be_is_refused(option: dict[str, int]) -> None:
    """By its name."""
    with FakeProvider() as provider, pytest.raises(ValueError, match=next(iter(option))):
        SUMMARIZERS["anthropic"](provider, **option)


async def test_a_known_model_is_asked_with_its_own_window() -> None:
    """The limits data says that all of this fits into one request of Claude's, and more than one of an unknown one."""
    long = request_of(*["words of a long session " * 80] * 200)
    with FakeProvider("- noted") as provider:
        options: Any = {"base_url": provider.url, "api_key": "none"}
        await AnthropicSummarizer("claude-opus-5", **options).summarize(long)
        known = len(provider.asked)
        await AnthropicSummarizer("unheard-of", **options).summarize(long)
    assert known == 1
    assert len(provider.asked) - known > 1


async def test_a_request_in_the_providers_tokens_fills_the_same_window() -> None:
    """The model's own window and the request's blocks are counted alike, whatever a token of the request is."""
    with FakeProvider("- noted") as provider:
        options: Any = {"base_url": provider.url, "api_key": "none", "window_tokens": 6_000}
        asked: list[int] = []
        for ratio in (1.0, 1.5):
            unit: dict[str, Any] = {"counter": in_unit(COUNTER, ratio), "max_tokens": round(100 * ratio)}
            request = request_of(*["words of a long session " * 80] * 40, **unit)
            await AnthropicSummarizer("unheard-of", **options).summarize(request)
            asked.append(len(provider.asked))
    assert asked[1] - asked[0] in range(asked[0] - 1, asked[0] + 2)
    assert asked[0] > 2


REFUSED: Final = "`temperature` is not supported with this model."


def without_temperature(asked: Asked) -> Step:
    """Answer as a model that takes no temperature."""
    said = {**asked.body, **asked.body.get("generationConfig", {})}
    if "temperature" in said:
        raise BrokenRequest(REFUSED)
    return "- noted"


@pytest.mark.shows("001-28")
@pytest.mark.parametrize("wire", WIRES)
async def test_a_model_that_takes_no_temperature_is_asked_without_the_policys(wire: str) -> None:
    """The policy's is a wish: the same question follows without it. The application's own is left as it is."""
    wished = replace(request_of(), temperature=0.3)
    with FakeProvider(without_temperature) as provider:
        summary = await SUMMARIZERS[wire](provider).summarize(wished)
        with pytest.raises(SummarizerFailed, match="temperature"):
            await SUMMARIZERS[wire](provider, temperature=0.2).summarize(wished)
    assert summary.text == "- noted"
    [taken] = provider.asked
    assert "temperature" not in str(taken.body)
    assert provider.refused == [REFUSED] * 2
