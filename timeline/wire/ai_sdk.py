"""The AI SDK's model messages: encode a context as ``instructions`` and ``messages``, and decode messages into blocks.

The SDK demands a tool message with all the results right behind the assistant's message with the calls, and system
messages apart, as instructions. Checked against the SDK's own schemas, versions 6 and 7; version 6
calls the instructions ``system``. Cache points carry Anthropic's marker in ``providerOptions``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import AssistantCompletion, CustomBlock, SystemMessage, ToolCall, UserPrompt
from timeline.wire import Stepwise
from timeline.wire.ai_sdk_earlier import later_part
from timeline.wire.ai_sdk_parts import (
    attachment_of,
    output_of,
    reasoning_of,
    result_of,
    signature_of,
    signed_options,
    user_parts,
)
from timeline.wire.foreign import as_object, from_object, text_of
from timeline.wire.groups import OPENING_LINE, Call, Response, fit, gather
from timeline.wire.markers import marked, own_markers
from timeline.wire.media import text_part, unseen_lines
from timeline.wire.neutral import INTERRUPTED
from timeline.wire.openai_chat import parts_of
from timeline.wire.providers import ANTHROPIC, OPENAI_CHAT
from timeline.wire.writing import PlacedWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pydantic import JsonValue

    from timeline.blocks import Block
    from timeline.wire.ai_sdk_parts import File
    from timeline.wire.groups import Placed
    from timeline.wire.markers import Marker
    from timeline.wire.media import Part
    from timeline.wire.neutral import Entry, NeutralContext

ENCODER: Final = 6
GIVEN: Final = frozenset({"instructions", "system", "messages"})


def encode(context: NeutralContext) -> dict[str, Any]:
    """Return ``instructions``, only where given, and ``messages``, with Anthropic's marker at the cache points."""
    return _body(context, _Writer(context.model), gather(context.entries))


def _body(context: NeutralContext, writer: _Writer, items: Iterable[Placed | Response]) -> dict[str, Any]:
    for item in items:
        writer.add(item)
    chosen = marked(context, lambda position: writer.part(position)["type"] != "reasoning", writer.reached)
    for position in chosen.positions:
        part = {**writer.part(position)}
        _mark(part, chosen.marker)
        writer.replace(position, part)
    for item in gather(context.ephemeral, first_number=len(context.entries)):
        writer.add(item)
    writer.open_if_empty()
    system = instructions(context.system, marker=chosen.fixed)
    return {**({"instructions": system} if system else {}), "messages": writer.messages}


def instructions(system: JsonValue, *, marker: Marker | None = None) -> str | list[Part]:
    """Return a system prompt in the SDK's form: a text, or a system message for each part where a part has a marker.

    Args:
        system: the prompt.
        marker: our cache marker for its last part; None adds none.
    """
    if isinstance(system, str) and marker is None:
        return system if system.strip() else ""
    parts = [part for part in parts_of(system) if text_of(part).strip()]
    if marker is None and not own_markers(parts):
        return "\n\n".join(map(text_of, parts))
    messages: list[Part] = []
    for part in parts:
        message: Part = {"role": "system", "content": text_of(part)}
        if isinstance(own := part.get("cache_control"), dict):
            _mark(message, own)
        messages.append(message)
    if marker is not None and messages:
        _mark(messages[-1], marker)
    return messages


def _mark(part: Part, marker: dict[str, JsonValue]) -> None:
    options = part.get("providerOptions", {})
    part["providerOptions"] = {**options, "anthropic": {**options.get("anthropic", {}), "cacheControl": dict(marker)}}


class _Writer(PlacedWriter):
    """Writes messages; a written message never moves.

    Args:
        model: the model that the request is for.
    """

    call_ids = (ANTHROPIC.id_pattern, OPENAI_CHAT.id_length)

    def add(self, item: Placed | Response) -> None:
        """Write a response with its results, or an entry addressed to the model."""
        if isinstance(item, Response):
            self._add_response(item)
        else:
            parts = [(item.number, part) for part in user_parts(item.entry, _file_part)]
            self._write("user", parts, joined=item.entry.continues)

    def open_if_empty(self) -> None:
        """Write the opening line where nothing was written yet: a request begins with the user's message."""
        if not self.messages:
            self._write("user", [(None, text_part(OPENING_LINE))])

    def _add_response(self, response: Response) -> None:
        written = list(self._said(response))
        while written and written[-1][1]["type"] == "reasoning":
            written.pop()  # a message may not end in reasoning
        if written:
            self.open_if_empty()
        self._write("assistant", written)
        calls = [part for _, part in written if part["type"] == "tool-call"]
        results = [_result(call, sent_call) for call, sent_call in zip(response.calls, calls, strict=True)]
        self._write("tool", results)

    def _said(self, response: Response) -> Iterator[tuple[int | None, Part]]:
        pending: Part = {}
        for spoken in response.parts:
            number, entry = spoken.placed if isinstance(spoken, Call) else spoken
            if entry.type == "assistant.reasoning" and not isinstance(spoken, Call):
                signed = signed_options(entry, self._model)
                is_whole = signed is not None and not is_bare_signature(entry)
                pending = signed[1] if signed is not None and not is_whole else {}
                if signed is not None and is_whole:
                    yield number, {"type": "reasoning", "text": signed[0], "providerOptions": signed[1]}
                continue
            is_call = isinstance(spoken, Call)
            parts = [text_part(text) for text in said_texts(entry, is_call=is_call)]
            if is_call:
                parts.append(self._call(entry))
            if parts and pending:
                parts[-1]["providerOptions"] = pending
            pending = {}  # options never go to a later part
            for part in parts:
                yield number, part

    def _call(self, entry: Entry) -> Part:
        return {
            "type": "tool-call",
            "toolCallId": self.ids.give(str(entry.call_id)),
            "toolName": tool_name(entry),
            "input": as_object(entry.arguments),
        }

    def _write(self, role: str, parts: Sequence[tuple[int | None, Part]], *, joined: bool = False) -> None:
        for place, (number, part) in enumerate(parts):
            self._put(role, part, number, joined=joined or place > 0)


STEPWISE: Final = Stepwise(_Writer, _body)


def tool_name(entry: Entry) -> str:
    """Return a tool's name in a form that every provider of the SDK takes."""
    return fit(entry.name or "unknown", OPENAI_CHAT.name_pattern, OPENAI_CHAT.name_length)


def is_bare_signature(entry: Entry) -> bool:
    """Return whether reasoning is only a signature that belongs to the part behind it."""
    return isinstance(entry.data, dict) and "type" not in entry.data and "text" not in entry.data


def said_texts(entry: Entry, *, is_call: bool) -> list[str]:
    """Return the assistant's texts in an entry: its text, or a line for content that has no form here."""
    if entry.text.strip():
        return [entry.text]
    return [] if is_call else unseen_lines(entry)


def _file_part(file: File) -> Part:
    named = {"filename": file.name} if file.name else {}
    return {"type": "file", "data": file.data, "mediaType": file.mime, **named}


def _result(call: Call, sent_call: Part) -> tuple[int | None, Part]:
    result = call.result
    output = {"type": "text", "value": INTERRUPTED} if result is None else output_of(result.entry)
    part = {
        "type": "tool-result",
        "toolCallId": sent_call["toolCallId"],
        "toolName": sent_call["toolName"],
        "output": output,
    }
    return (None if result is None else result.number), part


def decode(body: Any) -> list[Block]:
    """Decode the arguments of an SDK call, or its list of messages, into blocks; turn ids are left open.

    The placeholder result of a call without one is left out: the call stays open.
    """
    decoder = MessageDecoder()
    messages = body.get("messages") if isinstance(body, dict) else body
    blocks = decode_instructions(body)
    for message in messages if isinstance(messages, list) else []:
        blocks += decoder.decode(message)
    return blocks


def decode_instructions(body: Any) -> list[Block]:
    """Decode the instructions beside the messages: a text, a system message, or several."""
    value = body.get("instructions", body.get("system")) if isinstance(body, dict) else None
    listed = value if isinstance(value, list) else [value]
    texts = [part if isinstance(part, str) else text_of(part, "content") for part in listed if part]
    return [SystemMessage(text=text) for text in texts if text.strip()]


class MessageDecoder:
    """Decodes messages one by one; it keeps their number and the names of the calls."""

    def __init__(self) -> None:
        self._number = 0
        self._names: dict[str, str] = {}

    def decode(self, message: Any, name: str = "") -> list[Block]:
        """Decode one message; any other value gives no block."""
        self._number += 1
        if not isinstance(message, dict):
            return []
        parts = [later_part(part) for part in parts_of(message.get("content"))]
        if message.get("role") == "assistant":
            response = text_of(message, "id") or name or f"response_{self._number}"
            return [block for n, part in enumerate(parts) for block in self._said(part, response, n)]
        if message.get("role") == "system":
            return [SystemMessage(text=text) for text in map(text_of, parts) if text]
        read = (self._given_to_model(part, str(message.get("role"))) for part in parts)
        return [block for block in read if block is not None]

    def _said(self, part: Part, response: str, index: int) -> list[Block]:
        options = part.get("providerOptions")
        match part.get("type"):
            case "text":
                completion = AssistantCompletion(text=text_of(part), response_id=response)
                return [*signature_of(options, response), completion] if completion.text else []
            case "reasoning":
                return [reasoning_of(text_of(part), options, response)]
            case "tool-call":
                call = ToolCall(
                    call_id=text_of(part, "toolCallId") or f"call_{self._number}_{index}",
                    name=text_of(part, "toolName") or "unknown",
                    arguments=from_object(part.get("input", part.get("args", {}))),
                    response_id=response,
                )
                self._names[call.call_id] = call.name
                return [*signature_of(options, response), call]
            case "tool-result":
                result = self._result(part)
                return [] if result is None else [result]
            case _:
                return [CustomBlock(type="assistant.part", author="assistant", data=part, response_id=response)]

    def _given_to_model(self, part: Part, role: str) -> Block | None:
        match part.get("type"):
            case "tool-result":
                return self._result(part)
            case "text":
                text = text_of(part)
                return UserPrompt(text=text) if text and text != OPENING_LINE else None
            case "file" | "image" if role != "tool":
                return attachment_of(part)
            case _:
                author = "tool" if role == "tool" else "user"
                return CustomBlock(type=f"{author}.part", author=author, data=part)

    def _result(self, part: Part) -> Block | None:
        call_id = text_of(part, "toolCallId") or f"call_{self._number}"
        name = text_of(part, "toolName") or self._names.get(call_id, "")
        result = result_of(call_id, name, part.get("output", part.get("result")))
        if part.get("isError") is True:  # of version 4, whose result does not say so itself
            result = result.model_copy(update={"is_error": True})
        return None if result.text == INTERRUPTED else result
