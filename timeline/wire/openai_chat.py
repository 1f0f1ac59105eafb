"""OpenAI's Chat Completions: encode a context as ``messages`` and ``tools``, and decode messages into blocks.

The API demands that an assistant message with `tool_calls` is followed at once by one `tool` message for each of them.
Reasoning goes back to servers that gave it (`timeline.wire.chat_thoughts`). Caching is automatic, so nothing is marked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import AssistantCompletion, CustomBlock, SystemMessage, ToolCall, ToolResult, UserPrompt
from timeline.frozen import compact_json
from timeline.wire import Stepwise
from timeline.wire.call_ids import CallIds
from timeline.wire.chat_content import is_thought
from timeline.wire.chat_thoughts import chunk_block, chunks_given_back, given_back, signature_blocks, thought_blocks
from timeline.wire.foreign import arguments_of, text_of
from timeline.wire.groups import OPENING_LINE, Call, Ids, Response, fit, gather, said_to_model
from timeline.wire.media import (
    attachment_block,
    content_parts,
    openai_media,
    shown_parts,
    text_part,
    unseen_line,
    unseen_lines,
)
from timeline.wire.neutral import FAILED, INTERRUPTED
from timeline.wire.ollama import pictures
from timeline.wire.providers import OPENAI_CHAT
from timeline.wire.read_only import plain
from timeline.wire.writing import MessageWriter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import JsonValue

    from timeline.blocks import Block
    from timeline.wire.groups import Placed
    from timeline.wire.media import Part
    from timeline.wire.neutral import Entry, NeutralContext

ENCODER: Final = 7
GIVEN: Final = frozenset({"messages", "tools"})
Message = dict[str, Any]


def encode(context: NeutralContext) -> dict[str, Any]:
    """Return the body of a request: ``tools`` only where given, the system prompt as the only system message."""
    return _body(context, _Writer(context.model), gather(context.entries))


def _body(context: NeutralContext, writer: _Writer, items: Iterable[Placed | Response]) -> dict[str, Any]:
    for item in items:
        writer.add(item)
    for item in gather(context.ephemeral, first_number=len(context.entries)):
        writer.add(item)
    writer.open_if_empty()
    body: dict[str, Any] = {"messages": [*_system_message(context.system, context.model), *writer.written()]}
    return {**body, "tools": plain(list(context.tools))} if context.tools else body


def _system_message(system: JsonValue, model: str) -> list[Message]:
    if isinstance(system, str):
        return [{"role": "system", "content": system}] if system.strip() else []
    texts = [text_part(text) for part in parts_of(system) if (text := _text_of(part)).strip()]
    if OPENAI_CHAT.takes_texts_only_whole(model):
        return [{"role": "system", "content": _content(texts, model)}] if texts else []
    return [{"role": "system", "content": texts}] if texts else []


class _Writer(MessageWriter):
    """Writes messages; a written message never moves."""

    call_ids = (OPENAI_CHAT.id_pattern, OPENAI_CHAT.id_length)

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self.ids = Ids(*OPENAI_CHAT.call_ids(model))

    def add(self, item: Placed | Response) -> None:
        """Write a response with its results, or an entry addressed to the model."""
        if isinstance(item, Response):
            self._add_response(item)
        elif parts := _user_parts(item.entry):
            if item.entry.continues and self.messages and self.messages[-1]["role"] == "user":
                parts = [*parts_of(self.messages.pop()["content"]), *parts]
            self.messages.append({"role": "user", "content": _content(parts, self._model)})

    def open_if_empty(self) -> None:
        """Write the opening line where nothing was written yet: a request begins with the user's message."""
        if not self.messages:
            self.messages.append({"role": "user", "content": OPENING_LINE})

    def _add_response(self, response: Response) -> None:
        content = [part for spoken in response.parts for part in _said(spoken, self._model)]
        thoughts, signatures = given_back(response, self._model)
        calls = [
            (call, {**self._call(call.placed.entry), **signature})
            for call, signature in zip(response.calls, signatures, strict=True)
        ]
        if not calls and not any(part["type"] == "text" for part in content):
            return
        self.open_if_empty()
        message: Message = {
            "role": "assistant",
            "content": _content(content, self._model) if content else None,
            **thoughts,
        }
        if calls:
            message["tool_calls"] = [made for _, made in calls]
        self.messages.append(message)
        pictures: list[Part] = []
        for call, made in calls:
            entry = call.result.entry if call.result else None
            output = entry.text if entry else INTERRUPTED
            shown = [_media(entry, part) for part in content_parts(entry.data)] if entry else []
            lines = [part["text"] for part in shown if part["type"] == "text"]
            text = "\n".join(filter(None, [output, *lines]))
            silent = entry is not None and entry.is_error and not text.strip()
            self.messages.append({"role": "tool", "tool_call_id": made["id"], "content": FAILED if silent else text})
            seen = [part for part in shown if part["type"] != "text"]
            if entry and seen:
                pictures += [text_part(f"[shown by {entry.name or entry.call_id}, {entry.path}]"), *seen]
        if pictures:  # a tool message takes text only
            self.messages.append({"role": "user", "content": pictures})

    def _call(self, entry: Entry) -> Part:
        arguments = entry.arguments if isinstance(entry.arguments, str) else compact_json(entry.arguments or {})
        name = fit(entry.name or "unknown", OPENAI_CHAT.name_pattern, OPENAI_CHAT.name_length)
        return {
            "id": self.ids.give(str(entry.call_id)),
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }


STEPWISE: Final = Stepwise(_Writer, _body)


def _content(parts: list[Part], model: str) -> str | list[Part]:
    """Return a single text as a plain string, which every compatible server takes, and anything else as parts.

    For some models, several texts are joined into one.
    """
    if OPENAI_CHAT.takes_texts_only_whole(model) and all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _said(spoken: Placed | Call, model: str) -> list[Part]:
    if isinstance(spoken, Call):
        text = spoken.placed.entry.text
    elif spoken.entry.type == "assistant.reasoning":
        return chunks_given_back(spoken.entry, model)
    else:
        text = spoken.entry.text or "\n".join(unseen_lines(spoken.entry))
    return [text_part(text)] if text.strip() else []


def _media(entry: Entry, part: Part) -> Part:
    return openai_media(part, OPENAI_CHAT) or text_part(unseen_line(entry, part))


def _user_parts(entry: Entry) -> list[Part]:
    text = said_to_model(entry)
    media = [_media(entry, part) for part in shown_parts(entry)]
    return [*([text_part(text)] if text.strip() else []), *media]


def decode(body: Any) -> list[Block]:
    """Decode a request body, or its list of messages, into blocks; turn ids are left open.

    The placeholder result of a call without one is left out: the call stays open.
    """
    messages = body.get("messages") if isinstance(body, dict) else body
    decoder = MessageDecoder()
    return [block for message in messages for block in decoder.decode(message)] if isinstance(messages, list) else []


class MessageDecoder:
    """Decodes messages one by one; it keeps their number, and the calls that results may answer.

    Args:
        ids: names calls without an id, and finds those that results answer.
    """

    def __init__(self, ids: CallIds | None = None) -> None:
        self._number = 0
        self._names: dict[str, str] = {}
        self._ids = ids or CallIds()

    def decode(self, message: Any, name: str = "") -> list[Block]:
        """Decode one message; any other value gives no block."""
        self._number += 1
        if not isinstance(message, dict):
            return []
        match message.get("role"):
            case "assistant":
                return self._assistant(message, name)
            case "tool" | "function":
                return self._result(message)
            case "system" | "developer":
                return [SystemMessage(text=text) for text in map(_text_of, parts_of(message.get("content"))) if text]
            case "user":
                parts = (*parts_of(message.get("content")), *pictures(message))
                read = [block for part in parts if (block := _user_block(part))]
                return [_with_meta(block, message, ("name",)) for block in read]
            case role:
                return [
                    CustomBlock(
                        type="chat.message", author=role if isinstance(role, str) and role else "user", text=text
                    )
                    for text in map(_text_of, parts_of(message.get("content")))
                    if text
                ]

    def _assistant(self, message: Message, name: str) -> list[Block]:
        id_ = text_of(message, "id") or name
        response = id_ or f"response_{self._number}"
        calls = id_ or f"call_{self._number}"
        blocks = thought_blocks(message, response)
        for part in (*parts_of(message.get("content")), *parts_of(message.get("refusal")), *_drawn(message)):
            if is_thought(part):
                blocks.append(chunk_block(part, message, response))
            elif text := _text_of(part):
                completion = AssistantCompletion(text=text, response_id=response)
                blocks.append(_with_meta(completion, {"citations": message.get("annotations")}, ("citations",)))
            else:
                blocks.append(CustomBlock(type="assistant.part", author="assistant", data=part, response_id=response))
        if isinstance(audio := message.get("audio"), dict) and audio:
            spoken = AssistantCompletion(text=text_of(audio, "transcript"), response_id=response)
            blocks.append(_with_meta(spoken, message, ("audio",)))
        listed = message.get("tool_calls")
        for index, call in enumerate(listed if isinstance(listed, list) else []):
            if isinstance(call, dict):
                blocks += [
                    *signature_blocks(call, message, response),
                    self._call(call, response, f"{calls}_{index}"),
                ]
        if isinstance(legacy := message.get("function_call"), dict):
            blocks.append(self._call({"function": legacy}, response, f"{calls}_0"))
        if made := [block for block in blocks if isinstance(block, ToolCall)]:
            self._ids.wait(made)
        return blocks

    def _call(self, sent_call: Part, response: str, call_id: str) -> ToolCall:
        """Decode a call. Arguments that are no JSON object are kept as raw text.

        LangChain's calls have name and ``args`` in themselves; logs of agents that are built on it hold them.
        """
        inner = sent_call.get("function") if isinstance(sent_call.get("function"), dict) else sent_call.get("custom")
        function = inner if isinstance(inner, dict) else sent_call
        own = text_of(sent_call, "id")
        call = ToolCall(
            call_id=own or call_id,
            name=text_of(function, "name") or "unknown",
            arguments=arguments_of(function.get("arguments", function.get("input", function.get("args", "")))),
            response_id=response,
        )
        call = self._ids.named(call, has_id=bool(own))
        self._names[call.call_id] = call.name
        return call

    def _result(self, message: Message) -> list[Block]:
        name = text_of(message, "name") or text_of(message, "tool_name")  # the latter is Ollama's
        call_id = self._ids.answered(text_of(message, "tool_call_id"), name) or f"call_{self._number}"
        content = message.get("content")
        is_value = isinstance(content, dict) and "type" not in content  # an output that nobody wrote as a text
        parts = parts_of(compact_json(content) if is_value else content)
        text = "\n".join(filter(None, map(_text_of, parts)))
        if text == INTERRUPTED:
            return []
        holds_more = any(not _text_of(part) for part in parts)
        known = name or self._names.get(call_id, "")
        if text == FAILED:
            return [ToolResult(call_id=call_id, name=known, is_error=True)]
        return [ToolResult(call_id=call_id, name=known, text=text, data=message["content"] if holds_more else None)]


def _with_meta(block: Block, message: Part, names: Iterable[str]) -> Block:
    """Return a block that keeps fields of its message which are not sent again."""
    kept = {name: value for name in names if (value := message.get(name))}
    return block.model_copy(update={"meta": {**block.meta, **kept}}) if kept else block


def _drawn(message: Message) -> list[Part]:
    """Return the pictures that a model drew: OpenRouter and LiteLLM put them beside the content, as parts of it."""
    images = message.get("images")
    return [picture for picture in images if isinstance(picture, dict)] if isinstance(images, list) else []


def parts_of(content: Any) -> list[Part]:
    """Return content as a list of parts; a string is one text part, an empty string none."""
    listed = content if isinstance(content, list) else [content]
    return [text_part(p) if isinstance(p, str) else p for p in listed if isinstance(p, str | dict) and p]


def _text_of(part: Part) -> str:
    return text_of(part, "refusal" if part.get("type") == "refusal" else "text")


def _user_block(part: Part) -> Block | None:
    chat_part = _of_chat(part)
    if chat_part.get("type") == "text":
        text = _text_of(chat_part)
        return UserPrompt(text=text) if text and text != OPENING_LINE else None
    return attachment_block(chat_part)


def _of_chat(part: Part) -> Part:
    """Return a user's part of the Responses API in the form of this one, which more wires can send.

    Programs that move between both APIs mix their parts. A part without a form here stays as it is: a picture that is
    given by an id, and a file by its address.
    """
    match part:
        case {"type": "input_text", "text": str(text)}:
            return text_part(text)
        case {"type": "input_image", "image_url": str(url)} if url:
            detail = {"detail": part["detail"]} if part.get("detail") in {"low", "high"} else {}
            return {"type": "image_url", "image_url": {"url": url, **detail}}
        case {"type": "input_file"} if not isinstance(part.get("file_url"), str):
            named = {
                key: value for key in ("file_id", "file_data", "filename") if isinstance(value := part.get(key), str)
            }
            return {"type": "file", "file": named} if named.keys() - {"filename"} else part
        case _:
            return part
