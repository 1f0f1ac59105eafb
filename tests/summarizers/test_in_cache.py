"""Summarizers over the providers' SDKs, asked in the context that the provider has in its cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.engine.warming import MODEL, SYSTEM, author, begun, in_cache
from tests.providers import Answer, Asked, Call, FakeProvider, Trouble
from tests.providers.sending import client_of
from tests.providers.summarizing import SUMMARIZERS
from tests.scenes import AT, prompt, words
from timeline.frozen import compact_json
from timeline.usage import Usage

if TYPE_CHECKING:
    from timeline import Timeline
    from timeline.events import WrittenBy
    from timeline.wire.request import Request

WIRES: Final = list(SUMMARIZERS)
SCHEMA: Final = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS: Final[dict[str, list[Any]]] = {
    "anthropic": [{"name": "run", "description": "Run.", "input_schema": SCHEMA}],
    "openai_chat": [{"type": "function", "function": {"name": "run", "description": "Run.", "parameters": SCHEMA}}],
    "openai_responses": [
        {"type": "function", "name": "run", "description": "Run.", "parameters": SCHEMA, "strict": False}
    ],
    "gemini": [{"function_declarations": [{"name": "run", "description": "Run."}]}],
}
PARAMETERS: Final[dict[str, dict[str, Any]]] = {
    "anthropic": {"max_tokens": 99},
    "openai_chat": {},
    "openai_responses": {},
    "gemini": {"config": {"max_output_tokens": 99}},
}
MESSAGES: Final = {
    "anthropic": "messages",
    "openai_chat": "messages",
    "openai_responses": "input",
    "gemini": "contents",
}
CLOSED: Final = {"anthropic": "]}]", "openai_chat": "]", "openai_responses": "]", "gemini": '],"role":"user"}]'}
"""What closes the list of messages behind the last part, to which a question may be added."""
CAPS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "store")
FIRST: Final = Answer(words(400), input_tokens=100, cached_tokens=2_900)
"""The answer of the agent's own call, whose input was in the cache."""
NOTED: Final = Answer("- noted", input_tokens=120, cached_tokens=2_900, output_tokens=4)


async def agents_call(timeline: Timeline, wire: str, provider: FakeProvider, **parameters: Any) -> Request:
    """Make the agent's call through the provider's SDK, record it, and append what makes the next render compact."""
    context = await timeline.render(system=SYSTEM, tools=TOOLS[wire])
    request = context.request(wire, model=MODEL, **{**PARAMETERS[wire], **parameters})
    async with client_of(wire, provider) as client:
        ask = {
            "anthropic": lambda: client.messages.create,
            "openai_chat": lambda: client.chat.completions.create,
            "openai_responses": lambda: client.responses.create,
            "gemini": lambda: client.models.generate_content,
        }[wire]()
        reply = await ask(**request.arguments)
    await timeline.record(reply, request=request, now=AT)
    await timeline.append(prompt(400))
    return request


async def summarized(
    wire: str, *steps: Any, options: dict[str, Any] | None = None, **parameters: Any
) -> tuple[list[Asked], WrittenBy]:
    """Return what a provider is asked by an agent's call and by the summary behind it, and the summary's author."""
    with FakeProvider([FIRST, *steps]) as provider:
        timeline = await begun(in_cache(), summarizer=SUMMARIZERS[wire](provider, **(options or {})))
        await agents_call(timeline, wire, provider, **parameters)
        who = await author(timeline, tools=TOOLS[wire])
    assert provider.refused == []
    return provider.asked, who


def unlike(body: dict[str, Any], wire: str) -> dict[str, Any]:
    """Return what a body has besides its messages and what a cache does not depend on."""
    plain = {**body, **body.get("generationConfig", {})}
    return {key: value for key, value in plain.items() if key not in {*CAPS, MESSAGES[wire], "generationConfig"}}


@pytest.mark.parametrize("wire", WIRES)
async def test_the_question_follows_the_context_byte_for_byte(wire: str) -> None:
    """All before it is the last body: tools, system prompt and messages with their cache markers."""
    (sent, question), who = await summarized(wire, NOTED)
    assert (who.asked, who.alone_because, who.model) == ("in_cache", None, MODEL)
    prefix = compact_json(sent.body[MESSAGES[wire]]).removesuffix(CLOSED[wire])
    told = compact_json(question.body[MESSAGES[wire]])
    assert len(prefix) > 11_000
    assert told.startswith(prefix)
    assert "call no" in told[len(prefix) :]
    assert "cache_control" not in told[len(prefix) :]
    assert unlike(question.body, wire) == unlike(sent.body, wire)
    assert "run" in str(question.body.get("tools"))


@pytest.mark.parametrize("wire", WIRES)
async def test_a_summary_that_was_asked_in_the_cache_says_so_and_what_it_read_there(wire: str) -> None:
    """The reported usage has the cache read; the prompt's version names both texts."""
    _, who = await summarized(wire, NOTED)
    assert who.usage == Usage(input_tokens=120, cache_read_tokens=2_900, output_tokens=4)
    assert who.prompt_version == "history.v2+in_cache.v1"


@pytest.mark.parametrize("wire", WIRES)
async def test_the_question_names_where_the_range_begins_and_ends(wire: str) -> None:
    """The model has the whole conversation before it, and sums up a part."""
    (_, question), _ = await summarized(wire, NOTED)
    asked = question.said[-1][1]
    assert "the user's message that begins with: abc abc" in asked
    assert "up to and including your answer that begins with: abc" in asked
    assert "at most" in asked


@pytest.mark.parametrize("wire", WIRES)
async def test_a_model_that_calls_a_tool_instead_is_asked_alone(wire: str) -> None:
    """Nobody would carry the call out; both answers are paid for."""
    calling = Answer(calls=(Call("run", {"path": "x"}),), input_tokens=120, cached_tokens=2_900, output_tokens=7)
    (_, inside, alone), who = await summarized(wire, calling, Answer("- noted", input_tokens=900, output_tokens=4))
    assert (who.asked, who.alone_because, who.fallback_reason) == ("alone", "tool_call", None)
    assert who.usage == Usage(input_tokens=1_020, cache_read_tokens=2_900, output_tokens=11)
    assert ("tools" in inside.body, "tools" in alone.body) == (True, False)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer("I can", stop="filter"), "refused"),
        (Answer("- half of", stop="length"), "length"),
        (Answer(""), "empty"),
        (Answer(words(4_000)), "too_long"),
        (Trouble("context_limit"), "context_limit"),
    ],
)
async def test_an_answer_that_cannot_be_used_is_asked_for_alone(answer: Answer | Trouble, why: str) -> None:
    """What may be different without the rest of the context."""
    (*_, alone), who = await summarized("openai_chat", answer, "- noted")
    assert (who.asked, who.alone_because) == ("alone", why)
    assert "tools" not in alone.body


async def test_a_provider_in_trouble_is_not_asked_a_second_time() -> None:
    """Asked alone it would be in the same trouble; the extractive summarizer writes it."""
    with FakeProvider([FIRST, Trouble("overloaded")]) as provider:
        timeline = await begun(in_cache(), summarizer=SUMMARIZERS["anthropic"](provider))
        await agents_call(timeline, "anthropic", provider)
        who = await author(timeline, tools=TOOLS["anthropic"])
    assert (who.summarizer, who.asked, len(provider.asked)) == ("extractive", "alone", 2)
    assert "overloaded" in str(who.fallback_reason).lower()


async def test_another_model_is_asked_alone() -> None:
    """A cheaper one that only writes summaries has nothing in its cache."""
    with FakeProvider([FIRST, "- noted"]) as provider:
        summarizer = SUMMARIZERS["anthropic"](provider)
        summarizer._model = "smaller-1"
        timeline = await begun(in_cache(), summarizer=summarizer)
        await agents_call(timeline, "anthropic", provider)
        who = await author(timeline, tools=TOOLS["anthropic"])
    assert (who.asked, who.alone_because, who.model) == ("alone", "model", "smaller-1")


async def test_another_wire_is_asked_alone() -> None:
    """The same model by another API is another cache."""
    with FakeProvider([FIRST, "- noted"]) as provider:
        timeline = await begun(in_cache(), summarizer=SUMMARIZERS["openai_responses"](provider))
        await agents_call(timeline, "openai_chat", provider)
        who = await author(timeline, tools=TOOLS["openai_chat"])
    assert (who.asked, who.alone_because) == ("alone", "wire")


async def test_a_question_that_has_no_room_behind_the_context_is_asked_alone() -> None:
    """Context, question and answer fit the model's window together, or nothing is sent."""
    (_, *alone), who = await summarized("anthropic", "- noted", "- noted", options={"window_tokens": 4_400})
    assert (who.asked, who.alone_because) == ("alone", "window")
    assert all("tools" not in asked.body for asked in alone)


async def test_a_stream_is_not_asked_for_and_thoughts_keep_their_room() -> None:
    """Thinking is as it was, or the messages would not be in the cache; its tokens come on top of the answer's."""
    thinking: dict[str, Any] = {"thinking": {"type": "enabled", "budget_tokens": 2_000}, "max_tokens": 4_000}
    (sent, question), who = await summarized("anthropic", NOTED, **thinking, stop_sequences=["END"])
    assert who.asked == "in_cache"
    assert question.body["thinking"] == sent.body["thinking"]
    assert 2_000 < question.body["max_tokens"] < 4_000
    assert "stop_sequences" not in question.body
