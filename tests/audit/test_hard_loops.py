"""Long agent loops through each provider's SDK, with all that goes wrong in one: calls against what was received."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.audit.test_call_bodies import PICTURE, STREAMED, TOOLS, assert_same, method_of, received
from tests.depth import at_night, sampled
from tests.providers.asking import WIRES
from tests.providers.script import Answer, Call, Hang, Trouble
from tests.providers.sending import client_of
from tests.providers.server import FakeProvider
from timeline import Timeline, open_store, policies
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.cli import main

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from tests.providers.script import Asked, Step
    from timeline.audit.calls import Call as RecordedCall
    from timeline.blocks import Block
    from timeline.projection.context import RenderedContext
    from timeline.wire.request import Request

MODELS: Final = {
    "anthropic": "claude-opus-5",
    "openai_chat": "gpt-6",
    "openai_responses": "gpt-6",
    "gemini": "gemini-3.8-flash",
}
_ANSWER: Final[dict[str, Any]] = {
    "type": "object",
    "title": "Ünd 🎴",
    "properties": {f"field_{n}": {"type": "string", "description": "x" * 40} for n in range(200, 0, -1)},
    "required": ["field_7"],
}
PARAMETERS: Final[dict[str, list[dict[str, Any]]]] = {
    "anthropic": [
        {"max_tokens": 99},
        {
            "thinking": {"type": "enabled", "budget_tokens": 1_024},
            "max_tokens": 4_096,
            "metadata": {"user_id": "ünd 🎴"},
            "tool_choice": {"type": "auto", "disable_parallel_tool_use": False},
            "extra_body": {"top_k": 5, "temperature": 1},
        },
        {"max_tokens": 9, "output_config": {"format": {"type": "json_schema", "schema": _ANSWER}}},
    ],
    "openai_chat": [
        {},
        {
            "temperature": 0,
            "stop": ["\u2028", "END 🎴"],
            "logit_bias": {"50256": -100},
            "metadata": {"z": "1", "a": "2"},
        },
        {
            "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": _ANSWER}},
            "reasoning_effort": "low",
            "tool_choice": {"type": "function", "function": {"name": "bash"}},
            "extra_body": {"prompt_cache_key": "k"},
        },
    ],
    "openai_responses": [
        {"store": False, "include": ["reasoning.encrypted_content"]},
        {"temperature": 0.5, "metadata": {"z": "1", "a": "2"}, "truncation": "auto", "service_tier": None},
        {
            "text": {"format": {"type": "json_schema", "name": "a", "schema": _ANSWER}},
            "reasoning": {"summary": "auto", "effort": "low"},
            "extra_body": {"prompt_cache_key": "k"},
        },
    ],
    "gemini": [
        {},
        {
            "config": {
                "stopSequences": ["\u2028", "END 🎴"],
                "seed": 7,
                "thinking_config": {"thinking_level": "LOW", "includeThoughts": True},
                "safety_settings": [{"threshold": "BLOCK_NONE", "category": "HARM_CATEGORY_HARASSMENT"}],
                "response_modalities": ["TEXT"],
            }
        },
        {"config": {"response_mime_type": "application/json", "responseJsonSchema": _ANSWER, "top_p": 0.5}},
        {"config": {"response_mime_type": "application/json", "response_schema": _ANSWER, "topK": 5}},
    ],
}
"""Parameters that the calls of a loop have in turn."""
PDF: Final[Any] = {
    "type": "document",
    "title": "A “title” 🎴",
    "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjc+/w=="},
}
FAILING: Final = (4, 17)
HANGING: Final = (9, 22)
TOO_LONG: Final = (7, 15, 26)
ENDING: Final = (12, 24, 36)
"""Numbers of requests: answered with an error, never, with a refusal for the size, and with a text and no call."""
SYSTEM: Final = "You code. ünd 🎴 \x85\u2028 \ud83d"
OUTPUT: Final = "E   assert 1 == 2 \U0001f3b4 \u2028 \x1b[31mred\x1b[0m\n" * 40


def model(asked: Asked) -> Step:
    """Think, say something and call one or two tools; fail at the given numbers."""
    number = asked.number
    if number in FAILING:
        return Trouble("server")
    if number in HANGING:
        return Hang()
    if number in TOO_LONG:
        return Trouble("context_limit", limit=asked.tokens * 4 // 5)
    thought = f"Thought {number}, ünd 🎴."
    if number in ENDING:
        return Answer(f"All tests pass - ünd mehr 🎴 {number}. \u2028", thought=thought)
    calls = [Call("bash", {"wait_for": number, "command": f"pytest '{number}' 🎴 \u2028"}), Call("bash", {})]
    return Answer(f"Round {number}." if number % 2 else "", tuple(calls[: 1 + number % 2]), thought=thought)


class Loop:
    """An agent's loop over one wire.

    Attributes:
        requests: what was requested of each call, refused ones included.
    """

    def __init__(self, timeline: Timeline, wire: str, client: Any, provider: FakeProvider, *, stream: bool) -> None:
        self._timeline = timeline
        self._wire = wire
        self._method = method_of(wire, client, stream=stream)
        self._provider = provider
        self._stream = stream
        self.requests: list[Request] = []

    async def turn(self, number: int) -> None:
        """Go on until the model calls no more tools."""
        prompt = UserPrompt(text=f"Make the tests pass, {number}. \x85 ünd 🎴", data=[PICTURE, PDF])
        await self._timeline.append(prompt)
        while calls := [block for block in await self._step() if isinstance(block, ToolCall)]:
            data = [PICTURE] if number == 1 else None
            await self._timeline.append(*(ToolResult(call_id=c.call_id, text=OUTPUT, data=data) for c in calls))

    async def _step(self) -> list[Block]:
        """Call the model until it answers; record the calls that fail otherwise than by their context's size."""
        options: dict[str, Any] = {"system": SYSTEM, "tools": TOOLS[self._wire]}
        while True:
            try:
                return await self._timeline.retry_with_compaction(self._ask, ephemeral=["Go on. 🎴"], **options)
            except Exception as error:  # noqa: BLE001 - as an application that retries whatever its SDK raises
                await self._timeline.record_model_call(error=str(error), request=self.requests[-1])

    async def _ask(self, context: RenderedContext) -> list[Block]:
        sets = PARAMETERS[self._wire]
        given = {**sets[len(self.requests) % len(sets)], **(STREAMED[self._wire] if self._stream else {})}
        request = context.request(self._wire, model=MODELS[self._wire], **given)
        self.requests.append(request)
        return await self._unless_it_hangs(self._heard(request))

    async def _heard(self, request: Request) -> list[Block]:
        reply = await self._method(**request.arguments)
        if self._stream:
            return await self._timeline.record_stream(reply, request=request)
        return await self._timeline.record(reply)

    async def _unless_it_hangs(self, call: Coroutine[Any, Any, list[Block]]) -> list[Block]:
        """Wait for an answer; give a call up once the provider has it and does not answer.

        Raises:
            TimeoutError: the provider does not answer.
        """
        number = len(self._provider.asked)
        task = asyncio.create_task(call)
        if number not in HANGING:
            return await task
        await asyncio.to_thread(self._provider.wait_for, asked=number + 1)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        raise TimeoutError("Request timed out.")


async def play(file: Path, wire: str, provider: FakeProvider, *, stream: bool) -> list[Request]:
    """Play three turns; return what was requested."""
    policy = policies.balanced(max_tokens=6_000)
    async with open_store(file) as store, client_of(wire, provider) as client:
        timeline = await Timeline.open(store, "c", policy=policy)
        loop = Loop(timeline, wire, client, provider, stream=stream)
        for number in range(1, len(ENDING) + 1):
            await loop.turn(number)
    return loop.requests


async def read_back(file: Path) -> list[RecordedCall]:
    """Read each call by itself, as a process that opens the log later does."""
    async with open_store(file) as store:
        timeline = await Timeline.open(store, "c")
        assert (await timeline.verify()).ok
        return [await timeline.call(call.number) async for call in timeline.calls()]


WAYS: Final = [
    pytest.param(wire, stream, marks=() if stream == bool(number % 2) else at_night, id=f"{wire}-{how}")
    for number, wire in enumerate(WIRES)
    for stream, how in ((False, "whole"), (True, "streamed"))
]
"""Each wire one way by day, and both at night."""


@sampled
@pytest.mark.parametrize(("wire", "stream"), WAYS)
async def test_calls_that_fail_are_refused_or_are_tried_again_are_what_the_provider_received(
    tmp_path: Path,
    wire: str,
    stream: bool,  # noqa: FBT001 - parametrized
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Across compactions, with signed reasoning, pictures, documents and large parameters; the CLI says so too."""
    file = tmp_path / "agent.db"
    with FakeProvider(model) as provider:
        requests = await play(file, wire, provider, stream=stream)
    assert provider.refused == []
    assert len(provider.asked) == ENDING[-1] + 1
    calls = await read_back(file)
    assert [call.unproved for call in calls] == [None] * len(provider.asked)
    for call, request, asked in zip(calls, requests, provider.asked, strict=True):
        assert_same(received(asked), call.request or {})
        assert (call.text, call.parameters) == (request.text, request.parameters)
    failed = {call.number - 1 for call in calls if call.finish_reason == "error"}
    assert failed == {*FAILING, *HANGING, *TOO_LONG}
    assert all(call.error for call in calls if call.number - 1 in failed)
    assert any(call.cause is not None and call.cause.kind == "compaction" for call in calls)
    for number in (*TOO_LONG, *FAILING, *HANGING, ENDING[-1]):
        words = ["call", "c", str(number + 1), "--body", "--db", str(file)]
        assert await asyncio.to_thread(main, words) == 0
        assert_same(received(provider.asked[number]), json.loads(capsys.readouterr().out))
