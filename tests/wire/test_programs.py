"""Programs of Anthropic's server that call the client's tools: what goes back of them, and until when."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from anthropic import AsyncAnthropic

from tests.providers import FakeProvider
from tests.providers.script import Raw
from timeline import Timeline
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.providers.script import Asked, Step
    from timeline.blocks import Block

PROGRAM: dict[str, Any] = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {}}
ENDED = {"type": "code_execution_result", "stdout": "3", "stderr": "", "return_code": 0, "content": []}
RESULT = {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": ENDED}
CALLER = {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}
SAID = {"type": "text", "text": "Three."}
LOST = {"type": "code_execution_tool_result_error", "error_code": "unavailable"}


def called(number: int) -> dict[str, Any]:
    """Return a call that the program made."""
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "ls", "input": {}, "caller": CALLER}


ROUNDS: list[list[Any]] = [
    [{"type": "text", "text": "I count."}, PROGRAM, called(1)],
    [called(2), called(3)],
    [RESULT, SAID],
]


def reply(number: int, content: Sequence[Any] | None = None) -> dict[str, Any]:
    """Return a response."""
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5",
        "content": content or ROUNDS[number],
        "stop_reason": "end_turn" if number == len(ROUNDS) - 1 else "tool_use",
        "usage": {"input_tokens": 9, "output_tokens": 9},
        "container": {"id": "container_1", "expires_at": "2026-11-28T12:00:00Z"},
    }


def streamed(number: int) -> bytes:
    """Return a response as a stream, which names the container at its end."""
    whole = reply(number)
    opened = {**whole, "content": [], "stop_reason": None, "container": None}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": opened}]
    for index, part in enumerate(whole["content"]):
        events.append({"type": "content_block_start", "index": index, "content_block": part})
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None, "container": whole["container"]}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}})
    events.append({"type": "message_stop"})
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


def answering(asked: Asked) -> Step:
    """Run the program: two responses with calls of it, then its result."""
    if asked.stream:
        return Raw(streamed(asked.number), content_type="text/event-stream")
    return Raw(json.dumps(reply(asked.number)).encode())


async def recorded(*rounds: Sequence[Any]) -> Timeline:
    """Return a conversation with a prompt and responses, whose calls are answered."""
    timeline = await Timeline.open(MemoryStore(), "c")
    await timeline.append(UserPrompt(text="go"))
    for number, content in enumerate(rounds):
        await answered(timeline, await timeline.record(reply(number, content)))
    return timeline


async def answered(timeline: Timeline, blocks: Sequence[Block]) -> None:
    """Append a result of each call."""
    await timeline.append(*[ToolResult(call_id=b.call_id, text="1") for b in blocks if isinstance(b, ToolCall)])


def said(body: dict[str, Any]) -> list[list[Any]]:
    """Return the parts of the model's messages in a request, without cache markers."""
    return [
        [{key: value for key, value in part.items() if key != "cache_control"} for part in message["content"]]
        for message in body["messages"]
        if message["role"] == "assistant"
    ]


async def sent(timeline: Timeline) -> dict[str, Any]:
    """Return a request that Anthropic takes."""
    body = (await timeline.render(ephemeral=["remember"])).request("anthropic", model="claude-opus-5", max_tokens=9)
    with FakeProvider(["yes"]) as provider:
        client = AsyncAnthropic(api_key="none", base_url=provider.url, max_retries=0)
        await client.messages.create(**body.arguments)
    return body.body


@pytest.mark.parametrize("stream", [False, True])
async def test_a_program_gets_the_results_of_its_calls_until_it_ends(stream: bool) -> None:  # noqa: FBT001
    """Each request names the container, has the callers, and nothing behind the results."""
    timeline = await Timeline.open(MemoryStore(), "c")
    await timeline.append(UserPrompt(text="go"))
    with FakeProvider(answering) as provider:
        client = AsyncAnthropic(api_key="none", base_url=provider.url, max_retries=0)
        for _ in ROUNDS:
            request = (await timeline.render(ephemeral=["remember"])).request(
                "anthropic", model="claude-opus-5", max_tokens=9
            )
            answer: Any = await client.messages.create(**request.arguments, stream=stream)
            record = timeline.record_stream if stream else timeline.record
            await answered(timeline, await record(answer, request=request))
    assert provider.refused == []
    assert [asked.body.get("container") for asked in provider.asked] == [None, "container_1", "container_1"]
    assert said(provider.asked[2].body) == ROUNDS[:2]
    assert (await timeline.verify()).ok


async def test_a_program_that_ended_needs_no_container() -> None:
    """All of it stays in later requests, as it came."""
    body = await sent(await recorded(*ROUNDS))
    assert said(body) == ROUNDS
    assert "container" not in body


@pytest.mark.parametrize("rounds", [1, 2])
async def test_a_user_who_goes_on_ends_a_program(rounds: int) -> None:
    """The API takes no text behind results that a program waits for."""
    timeline = await recorded(*ROUNDS[:rounds])
    await timeline.append(UserPrompt(text="stop"))
    body = await sent(timeline)
    assert said(body)[-1] == [{**RESULT, "content": LOST}]
    assert "container" not in body


async def test_a_program_whose_result_is_hidden_has_ended_all_the_same() -> None:
    """The API refuses each request in which it has no result."""
    timeline = await recorded(*ROUNDS)
    await timeline.hide(timeline.window.items[-2].block.path, text="[gone]")
    end, gone, _ = said(await sent(timeline))[-1]
    assert end == {**RESULT, "content": LOST}
    assert gone["text"] == "[gone]"


@pytest.mark.parametrize("hidden", [3, 4])
async def test_a_hidden_call_of_a_program_still_names_it(hidden: int) -> None:
    """And its result is one of the program's: without either the program would have no way on."""
    timeline = await recorded(*ROUNDS[:1])
    await timeline.hide(timeline.window.items[hidden].block.path, text="[gone]")
    body = await sent(timeline)
    assert said(body)[0][-1]["caller"] == CALLER
    assert body["container"] == "container_1"


async def test_a_call_whose_program_is_hidden_is_the_models_own() -> None:
    """The API knows no such program."""
    timeline = await recorded(*ROUNDS[:2])
    await timeline.hide(timeline.window.items[2].block.path, text="[gone]")
    assert "caller" not in json.dumps((await sent(timeline))["messages"])


async def test_a_container_that_the_application_names_is_sent() -> None:
    """It may have skills to load."""
    own = {"id": "container_1", "skills": [{"type": "anthropic", "skill_id": "pptx"}]}
    context = await (await recorded(*ROUNDS[:1])).render()
    assert context.request("anthropic", model="claude-opus-5", max_tokens=9, container=own).body["container"] == own


async def test_a_call_of_a_toolset_goes_back_with_its_family() -> None:
    """The API knows the tool by both."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "browser_click", "input": {}, "toolset_name": "browser"}
    assert said(await sent(await recorded([call]))) == [[call]]
