"""What holds of every wire: its SDK takes the output, calls and results are paired, what went in comes out again."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from anthropic.types import MessageParam
from google.genai.types import Content, GenerateContentConfig
from jsonschema import Draft202012Validator
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses.response_input_param import ResponseInputParam
from pydantic import TypeAdapter

from tests.invariants.wires import check_anthropic, check_converse, check_openai_chat, closing_text
from tests.wire.entries import validated
from tests.wire.sdk_schemas import check_model_messages, check_ui_messages
from timeline.blocks import ToolCall, ToolResult
from timeline.frozen import canonical_json
from timeline.wire import decoder, encoder
from timeline.wire.groups import Call, Response, fit, gather, said_to_model
from timeline.wire.providers import OPENAI_CHAT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from timeline.blocks import Block
    from timeline.wire.neutral import Entry, NeutralContext

Body = dict[str, Any]

_ANTHROPIC: Final[TypeAdapter[Any]] = TypeAdapter(list[MessageParam])
_CHAT: Final[TypeAdapter[Any]] = TypeAdapter(list[ChatCompletionMessageParam])
_RESPONSES: Final[TypeAdapter[Any]] = TypeAdapter(ResponseInputParam)
_CONTENTS: Final = TypeAdapter(list[Content])
_CONVERSE: Final = Draft202012Validator(
    json.loads((Path(__file__).parent / "schemas" / "bedrock-converse.json").read_text())
)


def _anthropic(body: Body) -> None:
    validated(_ANTHROPIC, body["messages"])
    check_anthropic(body)
    assert not closing_text(body)[-1:].isspace()


def _openai_chat(body: Body) -> None:
    validated(_CHAT, body["messages"])
    check_openai_chat(body)


def _openai_responses(body: Body) -> None:
    validated(_RESPONSES, body["input"])
    calls = [item["call_id"] for item in body["input"] if item["type"] == "function_call"]
    outputs = [item["call_id"] for item in body["input"] if item["type"] == "function_call_output"]
    assert len(set(calls)) == len(calls)
    assert sorted(outputs) == sorted(calls)


def _gemini(body: Body) -> None:
    contents = _CONTENTS.validate_python(body["contents"])
    GenerateContentConfig.model_validate({k: v for k, v in body.get("config", {}).items() if k != "tools"})
    waiting: list[str | None] = []
    before = None
    for content in contents:
        assert content.parts
        assert (content.role, before) != ("model", "model")
        answers = [part.function_response.id for part in content.parts if part.function_response]
        assert answers == waiting
        waiting = [part.function_call.id for part in content.parts if part.function_call]
        before = content.role
    assert not waiting
    assert not contents or contents[0].role == "user"


def _bedrock_converse(body: Body) -> None:
    _CONVERSE.validate({"modelId": "m", **body})
    check_converse(body)


def _ai_sdk(body: Body) -> None:
    check_model_messages(body["messages"])
    waiting: list[str] = []
    for message in body["messages"]:
        assert [p["toolCallId"] for p in message["content"] if p["type"] == "tool-result"] == waiting
        waiting = [p["toolCallId"] for p in message["content"] if p["type"] == "tool-call"]
    assert not waiting


def _ai_sdk_ui(body: Body) -> None:
    check_ui_messages(body["messages"])
    tools = [p for m in body["messages"] for p in m["parts"] if p["type"].startswith("tool-")]
    assert all(part["state"] in {"output-available", "output-error"} for part in tools)


TAKEN: Final[dict[str, Callable[[Body], None]]] = {
    "anthropic": _anthropic,
    "openai_chat": _openai_chat,
    "openai_responses": _openai_responses,
    "gemini": _gemini,
    "bedrock_converse": _bedrock_converse,
    "ai_sdk": _ai_sdk,
    "ai_sdk_ui": _ai_sdk_ui,
}
"""By wire: what asserts that its SDK takes a body."""


def check_taken(wire: str, context: NeutralContext) -> None:
    """Assert that a wire's SDK takes a context."""
    TAKEN[wire](encoder(wire)(context))


def check_kept(wire: str, context: NeutralContext) -> list[Block]:
    """Assert that a context comes back from a wire with every text, call and result; return its blocks."""
    body = encoder(wire)(context.model_copy(update={"ephemeral": ()}))
    blocks = decoder(wire)(body)
    found = said(blocks)
    closing = closing_text(body) if wire in {"anthropic", "bedrock_converse"} else ""
    for what, wanted in _wanted(context.entries).items():
        missing = wanted - found[what]
        missing -= Counter([text for text in missing if closing and text.rstrip() == closing][:1])
        assert not missing, f"{wire} lost {what}: {list(missing)[:3]}"
    return blocks


def said(blocks: Iterable[Block]) -> dict[str, Counter[str]]:
    """Count what blocks say: texts that are no reasoning, calls by name and arguments, results by text."""
    told: dict[str, Counter[str]] = {"texts": Counter(), "calls": Counter(), "results": Counter()}
    for block in blocks:
        if isinstance(block, ToolCall):
            told["calls"][_call(block.name, block.arguments)] += 1
        if isinstance(block, ToolResult):
            told["results"][block.text.strip()] += 1
        elif block.type != "assistant.reasoning" and block.text.strip():
            told["texts"][block.text] += 1
    return told


def _wanted(entries: Sequence[Entry]) -> dict[str, Counter[str]]:
    """Count what entries say, as their wires are to say it."""
    told: dict[str, Counter[str]] = {"texts": Counter(), "calls": Counter(), "results": Counter()}
    for item in gather(entries):
        if not isinstance(item, Response):
            told["texts"].update(filter(str.strip, [said_to_model(item.entry)]))
            continue
        for part in item.parts:
            entry = part.placed.entry if isinstance(part, Call) else part.entry
            if isinstance(part, Call):
                told["calls"][_call(entry.name or "unknown", entry.arguments)] += 1
                # A result without an output may say so in words, and one with pictures may name those.
                if part.result and part.result.entry.text.strip() and part.result.entry.data is None:
                    told["results"][part.result.entry.text.strip()] += 1
            elif entry.type != "assistant.reasoning":
                told["texts"].update(filter(str.strip, [entry.text]))
    return told


def _call(name: str, arguments: Any) -> str:
    known = fit(name, OPENAI_CHAT.name_pattern, OPENAI_CHAT.name_length)
    return f"{known}{canonical_json(arguments or {})}"
