"""Google's Gen AI API: encode a context as ``contents`` and ``config``, and decode contents into blocks.

The API demands that the first content is the user's, the calls of a content are answered in the very next one, all of
them and in their order, nothing is empty, and a signature goes back on the part that it came with. Nothing is marked
for the cache: a prefix is cached as an object of its own (`timeline.wire.gemini_cache`).

Parts are texts, thoughts, calls, inline data, answers of functions, and what the server's own tools did
(`timeline.wire.gemini_tools`). Their keys come in JSON's form
(``functionCall``) or in the Python SDK's (``function_call``); `camel` gives them one form. Pictures and PDF documents
take the form of Anthropic's parts, which the wires can send; any other part is kept unchanged under a type, and the
model sees a line for it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Final

from timeline.blocks import (
    AssistantCompletion,
    Attachment,
    CustomBlock,
    Reasoning,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserPrompt,
)
from timeline.content.native import JSON_TEXT, is_json_text, standard_base64
from timeline.frozen import compact_json
from timeline.wire import Stepwise
from timeline.wire.call_ids import CallIds
from timeline.wire.foreign import arguments_of, as_object, from_object, system_text, text_of
from timeline.wire.gemini_body import camel_key
from timeline.wire.gemini_tools import is_base64, parts_sent
from timeline.wire.groups import OPENING_LINE, Call, Response, fit, gather, said_to_model
from timeline.wire.media import gemini_media, shown_parts, unseen_line, unseen_lines
from timeline.wire.neutral import INTERRUPTED
from timeline.wire.providers import GEMINI
from timeline.wire.read_only import plain
from timeline.wire.writing import MessageWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pydantic import JsonValue

    from timeline.blocks import Block
    from timeline.wire.groups import Placed
    from timeline.wire.media import Part
    from timeline.wire.neutral import Entry, NeutralContext


ENCODER: Final = 6
GIVEN: Final = frozenset({"contents", "system_instruction", "systemInstruction", "tools"})
FAILED: Final = frozenset({"error", "cancelled"})
"""The client's status for a call whose result is an error."""
SHELL: Final = "run_shell_command"
EXIT_CODE: Final = re.compile(r"^Exit Code: (\d{1,9})\s*$", re.MULTILINE)
"""The shell tool's line with a command's exit status, behind its output."""

SIGNATURE: Final = "thoughtSignature"
_OPEN: Final = frozenset({"args", "response", "partMetadata"})
"""Keys whose values belong to the application and keep their own keys."""


def camel(value: Any) -> Any:
    """Return a part, a content or a whole reply with its keys in JSON's form; an application's own keys are kept."""
    if isinstance(value, list):
        return [camel(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    named = ((camel_key(key), inner) for key, inner in value.items() if isinstance(key, str))
    return {key: inner if key in _OPEN else camel(inner) for key, inner in named}


def model_blocks(parts: list[Part], response_id: str, *, calls: str) -> list[Block]:
    """Decode the parts of a response, keys in JSON's form.

    A signature becomes a block of reasoning of its own right before its call or text, so that every rule for signed
    reasoning holds for it. A part that is only a thought, or an empty text with a signature, becomes that block itself.

    Args:
        parts: the parts, as `parts_of` returns them.
        response_id: the id of the response.
        calls: prefix of the ids for calls without one.
    """
    blocks: list[Block] = []
    for index, part in enumerate(parts):
        call, text, signature = part.get("functionCall"), text_of(part), text_of(part, SIGNATURE)
        if not isinstance(call, dict) and (part.get("thought") is True or (signature and part.get("text") == "")):
            blocks.append(Reasoning(text=text, data=part, response_id=response_id))
            continue
        if signature and (text or isinstance(call, dict)):
            blocks.append(Reasoning(data={SIGNATURE: signature}, response_id=response_id))
        if isinstance(call, dict):
            arguments = call.get("args")
            blocks.append(
                ToolCall(
                    call_id=text_of(call, "id") or f"{calls}_{index}",
                    name=text_of(call, "name") or "unknown",
                    arguments={} if arguments is None else from_object(arguments),
                    response_id=response_id,
                )
            )
        elif text:
            blocks.append(AssistantCompletion(text=text, response_id=response_id))
        else:
            blocks.append(CustomBlock(type="assistant.part", author="assistant", data=part, response_id=response_id))
    return blocks


def parts_of(content: Any) -> list[Part]:
    """Return content as a list of parts; a string is one text part, and empty parts are left out."""
    listed = content if isinstance(content, list) else [content]
    parts = [{"text": p} if isinstance(p, str) else p for p in listed if isinstance(p, str | dict)]
    return [part for part in parts if part and (part.get("text") != "" or SIGNATURE in part)]


def joined_text(parts: list[Part]) -> str:
    """Return the texts of the parts, one a line."""
    return "\n".join(filter(None, map(text_of, parts)))


def media_block(part: Part) -> Attachment:
    """Decode a part other than text: a picture, a document, a file given by its name only."""
    data = _inline_data(part)
    inner = next((value for value in part.values() if isinstance(value, dict)), {})
    title = text_of(inner, "displayName")
    mime = text_of(inner, "mimeType") or "application/octet-stream"
    return Attachment(data=data, mime=mime, meta={"file": title} if title else {})


def result_block(call_id: str, name: str, parts: list[Part], *, status: str = "") -> ToolResult:
    """Decode the result of a call from the parts that carried it to the model.

    Args:
        call_id: the call.
        name: the tool.
        parts: the parts of one message, which may hold the answers of parallel calls.
        status: the client's word for the outcome; an answer that is an error is recognised without it.
    """
    texts: list[str] = []
    media: list[JsonValue] = []
    objects = 0
    failed = status in FAILED
    for part in _own(parts, call_id):
        if isinstance(answer := part.get("functionResponse"), dict):
            response = answer.get("response")
            failed = failed or (isinstance(response, dict) and "error" in response and "output" not in response)
            texts.append(_answer_text(response))
            objects += isinstance(response, dict) and texts[-1] == compact_json(response)
            media += [_inline_data(inner) for inner in parts_of(answer.get("parts"))]
        elif text := text_of(part):
            texts.append(text)
        else:
            media.append(_inline_data(part))
    text = "\n".join(filter(None, texts))
    is_object = objects == 1 and texts == [text]
    data: JsonValue = dict(JSON_TEXT) if is_object else None
    if media:
        data = [dict(JSON_TEXT) if is_object else {"type": "text", "text": text}, *media]
    codes = EXIT_CODE.findall(text) if name == SHELL else []
    return ToolResult(
        call_id=call_id,
        name=name,
        text=text,
        data=data,
        is_error=failed,
        exit_status=int(codes[-1]) if codes else None,
    )


def _own(parts: list[Part], call_id: str) -> list[Part]:
    """Return the parts of one call: its own answer, and the parts up to the next call's answer."""
    own: list[Part] = []
    is_own = True
    for part in parts:
        if isinstance(answer := part.get("functionResponse"), dict):
            is_own = text_of(answer, "id") in {"", call_id}
        if is_own:
            own.append(part)
    return own or parts


def _answer_text(response: Any) -> str:
    """Return a function's answer as text: its output or its error, where it is that alone, or else the whole answer."""
    if isinstance(response, dict):
        fields = {key: value for key, value in response.items() if value is not None and value != ""} or response
        [value, *more] = [*fields.values()] or [None]
        if isinstance(value, str) and not more and fields.keys() <= {"output", "error"}:
            return value
    return "" if response is None else compact_json(response)


def _inline_data(part: Part) -> JsonValue:
    """Return a file in a form that more providers take: Google's SDK writes base64 for URLs, which others refuse."""
    inline = part.get("inlineData")
    if isinstance(inline, dict) and isinstance(inline.get("data"), str):
        inline = {**inline, "data": standard_base64(inline["data"])}
        part = {**part, "inlineData": inline}
    mime, data = (text_of(inline, key) for key in ("mimeType", "data")) if isinstance(inline, dict) else ("", "")
    kind = "document" if mime == "application/pdf" else "image" if mime.startswith("image/") else ""
    if kind and data:
        return {"type": kind, "source": {"type": "base64", "media_type": mime, "data": data}}
    return {**part, "type": text_of(part, "type") or next(iter(part))}


Content = dict[str, Any]


def encode(context: NeutralContext) -> dict[str, Any]:
    """Return the arguments of ``generate_content`` besides the model: ``contents``, and ``config`` where there is any.

    Bytes are base64 text, as the SDK takes them in plain values.
    """
    return _body(context, ContentWriter(context.model), gather(context.entries))


def _body(context: NeutralContext, writer: ContentWriter, items: Iterable[Placed | Response]) -> dict[str, Any]:
    for item in items:
        writer.add(item)
    for item in gather(context.ephemeral, first_number=len(context.entries)):
        writer.add(item)
    writer.open_if_empty()
    config = config_of(context)
    return {"contents": writer.written(), **({"config": plain(config)} if config else {})}


def config_of(context: NeutralContext) -> dict[str, Any]:
    """Return the context's part of a request's ``config``: system prompt and tools, where there are any."""
    config = {"system_instruction": system_text(context.system), "tools": list(context.tools)}
    return {key: value for key, value in config.items() if value}


class ContentWriter(MessageWriter):
    """Writes contents; a written content never moves, and only the model's newest one may grow.

    Args:
        model: the model that the request is for.
    """

    call_ids: ClassVar[tuple[re.Pattern[str], int]] = (GEMINI.id_pattern, GEMINI.id_length)

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self.place: dict[int, int] = {}
        """By entry number, the position of the last content that the entry is in; a branch knows its own entries."""

    def add(self, item: Placed | Response) -> None:
        """Write a response with its results, or an entry addressed to the model."""
        if isinstance(item, Response):
            self._add_response(item)
        elif parts := _user_parts(item.entry):
            self._write("user", [(item.number, part) for part in parts], joined=item.entry.continues)

    def open_if_empty(self) -> None:
        """Write the opening line where nothing was written yet: a request begins with the user's content."""
        if not self.messages:
            self._write("user", [(None, {"text": OPENING_LINE})])

    def _add_response(self, response: Response) -> None:
        written = list(self._said(response))
        if all(part.get("thought") or not part.get("text", "-").strip() for _, part in written):
            return  # nothing but thoughts
        self.open_if_empty()
        self._write("model", written, joined=True)
        calls = [part["function_call"] for _, part in written if "function_call" in part]
        answers: list[tuple[int | None, Part]] = []
        for call, sent_call in zip(response.calls, calls, strict=True):
            entry = call.result.entry if call.result else None
            answer = {"id": sent_call["id"], "name": sent_call["name"], **_answer(entry)}
            answers.append((call.result.number if call.result else None, {"function_response": answer}))
        if answers:
            self._write("user", answers)

    def _said(self, response: Response) -> Iterator[tuple[int, Part]]:
        """Iterate over a response's parts; a signature goes on the part behind it."""
        signature = ""
        own = parts_sent(response.parts)
        foreign = GEMINI.signature_for_unsigned(self._model)
        for spoken in response.parts:
            number, entry = spoken.placed if isinstance(spoken, Call) else spoken
            if entry.type == "assistant.reasoning" and not isinstance(spoken, Call):
                part = self._thought(entry)
                signature = part.pop("thought_signature", "") if "text" not in part else ""
                if part:
                    yield number, part
                continue
            is_signed = bool(signature) and not isinstance(spoken, Call)  # then a blank text is sent, too: as it came
            parts: list[Part] = [{"text": entry.text}] if entry.text.strip() or (entry.text and is_signed) else []
            if isinstance(spoken, Call):
                signature, foreign = signature or foreign, ""
                parts.append(self._call(entry))
            elif number in own:
                parts = [plain(own[number])]
            elif not parts:
                parts = [{"text": line} for line in unseen_lines(entry)]
            if parts and signature:
                parts[-1]["thought_signature"] = signature
            signature = ""  # a signature never goes to a later part
            for part in parts:
                yield number, part

    def _thought(self, entry: Entry) -> Part:
        """Return signed reasoning as it came: a part of its own, or only the signature of the part behind it."""
        data = entry.data
        if not isinstance(data, dict) or not GEMINI.takes_back(entry, self._model):
            return {}
        signature = text_of(data, SIGNATURE)
        if not signature or not is_base64(signature):
            return {}
        own: Part = {"text": data["text"]} if isinstance(data.get("text"), str) else {}
        thought = {"thought": True} if own and data.get("thought") is True else {}
        return {**own, **thought, "thought_signature": signature}

    def _call(self, entry: Entry) -> Part:
        name = fit(entry.name or "unknown", GEMINI.name_pattern, GEMINI.name_length)
        call = {"id": self.ids.give(str(entry.call_id)), "name": name, "args": as_object(entry.arguments)}
        return {"function_call": call}

    def _write(self, role: str, parts: Sequence[tuple[int | None, Part]], *, joined: bool = False) -> None:
        if not joined or not self.messages or self.messages[-1]["role"] != role:  # calls come behind a user's turn
            self.messages.append({"role": role, "parts": []})
        self.messages[-1]["parts"] += [part for _, part in parts]
        self.place |= {number: len(self.messages) - 1 for number, _ in parts if number is not None}


STEPWISE: Final = Stepwise(ContentWriter, _body)


def _media(entry: Entry) -> list[Part]:
    made = ((part, gemini_media(part, GEMINI)) for part in shown_parts(entry))
    return [encoded if encoded and _holds(encoded) else {"text": unseen_line(entry, part)} for part, encoded in made]


def _holds(part: Part) -> bool:
    return "inline_data" not in part or is_base64(part["inline_data"]["data"])


def _user_parts(entry: Entry) -> list[Part]:
    text = said_to_model(entry)
    return [*([{"text": text}] if text.strip() else []), *_media(entry)]


def _answer(entry: Entry | None) -> Part:
    """Return a call's answer: the object that it was, or its text as output or error, and pictures beside it."""
    if entry is None:
        return {"response": {"output": INTERRUPTED}}
    media = _media(entry)
    lines = [part["text"] for part in media if "text" in part]
    text = "\n".join([*([entry.text] if entry.text else []), *lines])
    shown = [part for part in media if "text" not in part]
    beside = {"parts": shown} if shown else {}
    if is_json_text(entry.data) and not lines and isinstance(value := arguments_of(entry.text), dict):
        return {"response": value, **beside}
    return {"response": {"error" if entry.is_error else "output": text}, **beside}


def decode(body: Any) -> list[Block]:
    """Decode the arguments of a request, or its contents, into blocks; turn ids are left open.

    The placeholder result of a call without one is left out: the call stays open.
    """
    contents = body.get("contents") if isinstance(body, dict) and "contents" in body else body
    blocks: list[Block] = [SystemMessage(text=text)] if (text := system_of(body)).strip() else []
    decoder = MessageDecoder()
    for content in contents if isinstance(contents, list) else [contents]:
        blocks += decoder.decode({"role": "user", "parts": [content]} if isinstance(content, str) else content)
    return blocks


def system_of(body: Any) -> str:
    """Return the system prompt of a request, from any of its places; an empty text where there is none."""
    if not isinstance(body, dict):
        return ""
    request = camel(body)
    config = request.get("config")
    system = config.get("systemInstruction") if isinstance(config, dict) else request.get("systemInstruction")
    parts = system.get("parts") if isinstance(system, dict) and "parts" in system else system
    return "\n\n".join(filter(None, map(text_of, parts_of(parts))))


class MessageDecoder:
    """Decodes contents one by one; it keeps their number, and the open calls that answers may belong to.

    Args:
        ids: names calls without an id, and finds those that answers belong to.
    """

    def __init__(self, ids: CallIds | None = None) -> None:
        self._number = 0
        self._names: dict[str, str] = {}
        self._ids = ids or CallIds()

    def decode(self, message: Any, name: str = "") -> list[Block]:
        """Decode one content; any other value gives no block. A content without a role is the user's."""
        self._number += 1
        if not isinstance(message, dict):
            return []
        parts = parts_of(camel(message.get("parts")))
        if message.get("role") == "model":
            return self._said(parts, text_of(message, "id") or name)
        if message.get("role") == "system":
            return [SystemMessage(text=text)] if (text := joined_text(parts)) else []
        read = (self._user_block(part) for part in parts)
        return [block for block in read if block is not None]

    def _said(self, parts: list[Part], id_: str) -> list[Block]:
        """Decode a response; calls without an id are named after it, so that no other message has a call so named."""
        calls = id_ or f"call_{self._number}"
        own = {text_of(part["functionCall"], "id") for part in parts if isinstance(part.get("functionCall"), dict)}
        read = model_blocks(parts, id_ or f"response_{self._number}", calls=calls)
        blocks = [self._ids.named(b, has_id=b.call_id in own) if isinstance(b, ToolCall) else b for b in read]
        made = [block for block in blocks if isinstance(block, ToolCall)]
        self._ids.wait(made)
        self._names |= {call.call_id: call.name for call in made}
        return blocks

    def _user_block(self, part: Part) -> Block | None:
        if isinstance(answer := part.get("functionResponse"), dict):
            answered = self._ids.answered(text_of(answer, "id"), text_of(answer, "name"))
            call_id = answered or f"call_{self._number}"
            result = result_block(call_id, text_of(answer, "name") or self._names.get(call_id, ""), [part])
            return None if result.text == INTERRUPTED else result
        if text := text_of(part):
            return UserPrompt(text=text) if text != OPENING_LINE else None
        if SIGNATURE in part or "functionCall" in part:
            return CustomBlock(type="user.part", author="user", data=part)
        return media_block(part)
