"""What a provider received by hand of its SDK, against what `timeline call` says that it was sent, on every wire."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.providers.asking import WIRES
from tests.providers.script import Answer, Call
from tests.providers.sending import client_of
from tests.providers.server import FakeProvider
from timeline import Timeline, open_store, policies
from timeline.blocks import ToolCall, ToolResult, UserPrompt

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.providers.script import Asked
    from timeline.wire.request import Request

_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["command"],
    "properties": {"wait_for": {"type": "integer"}, "command": {"description": "To run.", "type": "string"}},
}
TOOLS: Final[dict[str, list[Any]]] = {
    "anthropic": [{"name": "bash", "input_schema": _SCHEMA, "description": "Run it."}],
    "openai_chat": [
        {"type": "function", "function": {"name": "bash", "parameters": _SCHEMA, "description": "Run it."}}
    ],
    "openai_responses": [{"type": "function", "name": "bash", "parameters": _SCHEMA, "strict": False}],
    "gemini": [
        {
            "function_declarations": [
                {"name": "bash", "parameters": _SCHEMA, "description": "Run it."},
                {"name": "read", "parameters_json_schema": _SCHEMA},
            ]
        }
    ],
}
PARAMETERS: Final[dict[str, dict[str, Any]]] = {
    "anthropic": {"max_tokens": 99, "stop_sequences": ["END"], "extra_body": {"temperature": 1.0}},
    "openai_chat": {"temperature": 1.0, "max_completion_tokens": 99, "stop": None},
    "openai_responses": {"max_output_tokens": 99, "store": False},
    "gemini": {
        "config": {
            "temperature": 1.0,
            "maxOutputTokens": 99,
            "thinking_config": {"thinkingBudget": 5, "include_thoughts": False},
            "tool_config": {"function_calling_config": {"mode": "AUTO", "allowed_function_names": ["bash"]}},
            "automatic_function_calling": {"disable": True},
        }
    },
}
STREAMED: Final[dict[str, dict[str, Any]]] = {
    "anthropic": {"stream": True},
    "openai_chat": {"stream": True, "stream_options": {"include_usage": True}},
    "openai_responses": {"stream": True},
    "gemini": {},
}
PICTURE: Final[Any] = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo+/w=="},
}
ROUNDS: Final = 9


def model(asked: Asked) -> Answer:
    """Call a tool with keys in an order of its own; end after some rounds."""
    if asked.number >= ROUNDS:
        return Answer("All tests pass - ünd mehr. \u2028")
    return Answer(f"Round {asked.number}.", (Call("bash", {"wait_for": 1, "command": f"pytest {asked.number}"}),))


def method_of(wire: str, client: Any, *, stream: bool) -> Callable[..., Awaitable[Any]]:
    """Return the method of the wire's SDK."""
    methods: dict[str, Callable[[], Any]] = {
        "anthropic": lambda: client.messages.create,
        "openai_chat": lambda: client.chat.completions.create,
        "openai_responses": lambda: client.responses.create,
        "gemini": lambda: client.models.generate_content_stream if stream else client.models.generate_content,
    }
    found: Callable[..., Awaitable[Any]] = methods[wire]()
    return found


async def loop(file: Path, wire: str, provider: FakeProvider, *, stream: bool) -> list[Request]:
    """Let an agent work through the wire's SDK until the model says that it is done; return what was requested."""
    requests: list[Request] = []
    given = {**PARAMETERS[wire], **(STREAMED[wire] if stream else {})}
    async with open_store(file) as store, client_of(wire, provider) as client:
        timeline = await Timeline.open(store, "c", policy=policies.balanced(max_tokens=2_500))
        await timeline.append(UserPrompt(text="Make the tests pass. \x85 ünd", data=[PICTURE]))
        method = method_of(wire, client, stream=stream)
        while True:
            context = await timeline.render(
                system="You code.", tools=TOOLS[wire], ephemeral=[f"{len(requests)} so far"]
            )
            request = context.request(wire, model="m", **given)
            requests.append(request)
            reply = await method(**request.arguments)
            if stream:
                blocks = await timeline.record_stream(reply, request=request)
            else:
                blocks = await timeline.record(reply, request=request)
            calls = [block for block in blocks if isinstance(block, ToolCall)]
            if not calls:
                return requests
            await timeline.append(
                *(ToolResult(call_id=call.call_id, text="E   assert 1 == 2\n" * 60) for call in calls)
            )


def received(asked: Asked) -> dict[str, Any]:
    """Return the body as it came; the fake adds the model of Google's address."""
    return {key: value for key, value in asked.body.items() if asked.wire != "gemini" or key != "model"}


def assert_same(sent: dict[str, Any], body: dict[str, Any]) -> None:
    """Compare bodies as parsed JSON: top-level keys by name; inside system, tools and messages the order too."""
    assert sent == body
    for key in sent.keys() - {"generationConfig", "toolConfig"}:
        assert json.dumps(sent[key]) == json.dumps(body[key])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", WIRES)
async def test_the_body_of_every_call_is_what_the_provider_received(tmp_path: Path, wire: str, stream: bool) -> None:  # noqa: FBT001 - parametrized
    """Through each provider's own SDK, across compactions, whole and streamed."""
    file = tmp_path / "agent.db"
    with FakeProvider(model) as provider:
        requests = await loop(file, wire, provider, stream=stream)
    assert provider.refused == []
    async with open_store(file) as store:
        timeline = await Timeline.open(store, "c")
        calls = [call async for call in timeline.calls()]
        report = await timeline.verify()
    assert [call.number for call in calls] == [*range(1, ROUNDS + 2)]
    assert [call.unproved for call in calls] == [None] * len(calls)
    for call, request, asked in zip(calls, requests, provider.asked, strict=True):
        assert_same(received(asked), call.request or {})
        assert (call.text, call.sha256, call.parameters) == (request.text, request.sha256, request.parameters)
    assert (report.ok, report.calls, report.unverifiable) == (True, len(calls), {})
    assert any(call.cause is not None and call.cause.kind == "compaction" for call in calls)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_fresh_shell_prints_the_bytes_whose_hash_was_recorded(tmp_path: Path, wire: str) -> None:
    """`timeline call ID N --body` ends without a newline, so that its sha256 is the recorded one."""
    file = tmp_path / "agent.db"
    with FakeProvider(model) as provider:
        requests = await loop(file, wire, provider, stream=False)
    number = len(requests) - 2
    command = [sys.executable, "-m", "timeline.cli", "call", "c", str(number), "--body", "--db", str(file)]
    out = subprocess.run(command, check=True, capture_output=True, timeout=60).stdout  # noqa: ASYNC221 - nothing else runs
    assert hashlib.sha256(out).hexdigest() == requests[number - 1].sha256
    assert_same(received(provider.asked[number - 1]), json.loads(out))
