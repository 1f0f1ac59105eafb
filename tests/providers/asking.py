"""One question put through each SDK, whole or streamed, and what is heard in answer, in words of no provider."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from anthropic import AsyncAnthropic, omit
from google import genai
from google.genai.types import FunctionDeclaration, GenerateContentConfig, HttpOptions, Tool
from openai import AsyncOpenAI

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.providers.script import WireName

WIRES: Final[tuple[WireName, ...]] = ("anthropic", "openai_chat", "openai_responses", "gemini")
NAME: Final = "ls"
_PARAMETERS: Final[dict[str, Any]] = {"type": "object", "properties": {"path": {"type": "string"}}}


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer as an SDK gives it.

    Attributes:
        kind: the type of the SDK's object.
        text: all that is said.
        calls: names and arguments.
        stop: why it ended, in the provider's word.
        usage: the figures of tokens that are above 0, by the SDK's names.
    """

    kind: str
    text: str
    calls: tuple[tuple[str, str], ...]
    stop: str
    usage: frozenset[str]


def anthropic_client(url: str) -> AsyncAnthropic:
    """Return a client that tries once."""
    return AsyncAnthropic(api_key="none", base_url=url, max_retries=0)


def openai_client(url: str) -> AsyncOpenAI:
    """Return a client that tries once."""
    return AsyncOpenAI(api_key="none", base_url=url, max_retries=0)


def google_client(url: str) -> genai.Client:
    """Return a client that tries once."""
    return genai.Client(api_key="none", http_options=HttpOptions(base_url=url, api_version="v1beta"))


async def ask(wire: WireName, url: str, question: str, *, stream: bool = False, tools: bool = False) -> Heard:
    """Ask through the wire's SDK, with a base URL as it wants it; a stream is put together by the SDK where it can."""
    match wire:
        case "anthropic":
            return await _ask_anthropic(url, question, stream=stream, tools=tools)
        case "openai_chat":
            return await _ask_chat(url, question, stream=stream, tools=tools)
        case "openai_responses":
            return await _ask_responses(url, question, stream=stream, tools=tools)
        case "gemini":
            return await _ask_gemini(url, question, stream=stream, tools=tools)


async def _ask_anthropic(url: str, question: str, *, stream: bool, tools: bool) -> Heard:
    request: dict[str, Any] = {
        "model": "m",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": question}],
        "tools": [{"name": NAME, "input_schema": _PARAMETERS}] if tools else omit,
    }
    async with anthropic_client(url) as client:
        if stream:
            async with client.messages.stream(**request) as events:
                reply: Any = await events.get_final_message()
        else:
            reply = await client.messages.create(**request)
    calls = tuple((part.name, json.dumps(part.input)) for part in reply.content if part.type == "tool_use")
    text = "".join(part.text for part in reply.content if part.type == "text")
    return Heard(type(reply).__name__, text, calls, reply.stop_reason, _figures(reply.usage))


async def _ask_chat(url: str, question: str, *, stream: bool, tools: bool) -> Heard:
    request: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": question}]}
    if tools:
        request["tools"] = [{"type": "function", "function": {"name": NAME, "parameters": _PARAMETERS}}]
    async with openai_client(url) as client:
        if stream:
            async with client.chat.completions.stream(**request, stream_options={"include_usage": True}) as events:
                reply: Any = await events.get_final_completion()
        else:
            reply = await client.chat.completions.create(**request)
    said = reply.choices[0].message
    calls = tuple((call.function.name, _compact(call.function.arguments)) for call in said.tool_calls or ())
    return Heard(type(reply).__name__, said.content or "", calls, reply.choices[0].finish_reason, _figures(reply.usage))


async def _ask_responses(url: str, question: str, *, stream: bool, tools: bool) -> Heard:
    request: dict[str, Any] = {"model": "m", "input": question}
    if tools:
        request["tools"] = [{"type": "function", "name": NAME, "parameters": _PARAMETERS, "strict": False}]
    async with openai_client(url) as client:
        if stream:
            async with client.responses.stream(**request) as events:
                reply: Any = await events.get_final_response()
        else:
            reply = await client.responses.create(**request)
    calls = tuple((item.name, _compact(item.arguments)) for item in reply.output if item.type == "function_call")
    return Heard(type(reply).__name__, reply.output_text, calls, reply.status, _figures(reply.usage))


async def _ask_gemini(url: str, question: str, *, stream: bool, tools: bool) -> Heard:
    declared = [Tool(function_declarations=[FunctionDeclaration(name=NAME, parameters_json_schema=_PARAMETERS)])]
    config = GenerateContentConfig(tools=[*declared] if tools else None)
    async with google_client(url).aio as client:
        if stream:
            pieces: AsyncIterator[Any] = await client.models.generate_content_stream(
                model="m", contents=question, config=config
            )
            replies = [piece async for piece in pieces]
        else:
            replies = [await client.models.generate_content(model="m", contents=question, config=config)]
    parts = [part for reply in replies for part in (reply.candidates[0].content.parts or ())]
    calls = tuple(
        (part.function_call.name, json.dumps(part.function_call.args)) for part in parts if part.function_call
    )
    last = replies[-1]
    text = "".join(part.text or "" for part in parts)
    stop = last.candidates[0].finish_reason.value
    return Heard(type(last).__name__, text, calls, stop, _figures(last.usage_metadata))


def _compact(arguments: str) -> str:
    return json.dumps(json.loads(arguments))


def _figures(usage: Any) -> frozenset[str]:
    return frozenset(name for name, value in usage.model_dump().items() if isinstance(value, int) and value > 0)
