"""Amazon Bedrock's Converse API: encode a context as ``system``, ``messages`` and ``toolConfig``, and decode messages.

The API demands that the first message is the user's, roles alternate, every `toolUse` is answered by a `toolResult` in
the very next message, no text of a message is blank, tools are declared where a message calls one, and a document comes
with a text. A cache point is a block of its own: behind a block of the same message, but not behind a thought, nor
behind a document that is no PDF. Models differ, and the API refuses what a model does not know: cache points and a
result's status go to Claude and Nova alone, a signed thought to Claude.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import AssistantCompletion, CustomBlock, Reasoning, SystemMessage, ToolCall, UserPrompt
from timeline.wire import Stepwise
from timeline.wire.converse_content import (
    attachment,
    is_content_block,
    named_documents,
    result_block,
    result_content,
    said_by_user,
    shown_blocks,
)
from timeline.wire.foreign import as_object, from_object, object_of, objects_of, plain, text_of
from timeline.wire.groups import OPENING_LINE, Call, Response, fit, gather, said_to_model
from timeline.wire.markers import marked, own_markers
from timeline.wire.media import unseen_lines
from timeline.wire.neutral import INTERRUPTED
from timeline.wire.providers import BEDROCK, LONG_ON_BEDROCK, MARKED_ON_BEDROCK
from timeline.wire.writing import PlacedWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from timeline.blocks import Block
    from timeline.wire.groups import Placed
    from timeline.wire.markers import Marked, Marker
    from timeline.wire.media import Part
    from timeline.wire.neutral import Entry, NeutralContext

ENCODER: Final = 2
GIVEN: Final = frozenset({"system", "messages"})
_NOT_OFFERED: Final = "An earlier tool of this conversation. It cannot be called any more."
"""The description of a tool that was called, where a request offers none: the API wants a declaration all the same."""
_REDACTED: Final = "redactedContent"


def encode(context: NeutralContext) -> dict[str, Any]:
    """Return what a context gives to a request: ``system`` and ``toolConfig`` only where there is any.

    Bytes are base64 text, as in the request's body: see `timeline.wire.converse_body` for the SDK's arguments.
    """
    return _body(context, _Writer(context.model), gather(context.entries))


def _body(context: NeutralContext, writer: _Writer, items: Iterable[Placed | Response]) -> dict[str, Any]:
    for item in items:
        writer.add(item)
    chosen = _marked(context, writer)
    for item in gather(context.ephemeral, first_number=len(context.entries)):
        writer.add(item)
    writer.end()
    writer.mark(chosen.positions, _cache_point(chosen.marker, context.model))
    system = system_blocks(context.system)
    tools = list(context.tools) or _called(writer.messages)
    if chosen.fixed is not None and (system or _marks_tools(context)):
        (system or tools).append(_cache_point(chosen.fixed, context.model))
    config = {"toolConfig": {"tools": tools}} if tools else {}
    return {**({"system": system} if system else {}), "messages": writer.messages, **config}


def _marked(context: NeutralContext, writer: _Writer) -> Marked:
    """Choose what to mark; nothing for a model that takes no cache point.

    Where an address hides the model's name, cache points of the caller's own show that the model takes them.
    """
    own = own_markers([*context.tools, *(context.system if isinstance(context.system, list) else [])])
    takes = bool(own) if _is_hidden(context.model) else MARKED_ON_BEDROCK.search(context.model) is not None
    chosen = marked(context, writer.takes_marker, writer.reached)
    return chosen if takes else chosen._replace(positions=[], fixed=None)


def _is_hidden(model: str) -> bool:
    """Return whether an id says nothing of its model: the address of an account's own profile, or no id at all.

    Addresses of models, and of the profiles of a region, end in a model's id, which has its maker in front of a dot.
    """
    return not model or (model.startswith("arn:") and "." not in model.rpartition("/")[2])


def _marks_tools(context: NeutralContext) -> bool:
    return bool(context.tools) and BEDROCK.is_own(context.model)


def _cache_point(marker: Marker, model: str) -> Part:
    is_long = marker.get("ttl") is not None and LONG_ON_BEDROCK.search(model) is not None
    return {"cachePoint": {"type": "default", **({"ttl": marker["ttl"]} if is_long else {})}}


def system_blocks(system: Any) -> list[Any]:
    """Return a system prompt in the API's form: a text, or parts, of Anthropic's form too."""
    parts = system if isinstance(system, list) else [system]
    blocks: list[Any] = []
    for part in parts:
        text = part if isinstance(part, str) else text_of(part) if isinstance(part, dict) else ""
        if text.strip():
            blocks.append({"text": text})
        elif isinstance(part, dict) and is_content_block(part) and "text" not in part:
            blocks.append(plain(part))
        if isinstance(part, dict) and isinstance(own := part.get("cache_control"), dict):
            kept = {"ttl": own["ttl"]} if "ttl" in own else {}
            blocks.append({"cachePoint": {"type": "default", **kept}})
    return blocks


def _called(messages: Iterable[Part]) -> list[Any]:
    """Declare the tools that messages call, in the order of their first calls."""
    uses = (object_of(part, "toolUse") for message in messages for part in message["content"])
    names = dict.fromkeys(use["name"] for use in uses if use)
    schema = {"json": {"type": "object"}}
    return [{"toolSpec": {"name": n, "description": _NOT_OFFERED, "inputSchema": schema}} for n in names]


class _Writer(PlacedWriter):
    """Writes messages block by block; a written block never moves.

    Args:
        model: the model that the request is for.
    """

    call_ids = (BEDROCK.id_pattern, BEDROCK.id_length)

    def takes_marker(self, position: int) -> bool:
        """Return whether a cache point may follow the block at a position."""
        message, place = self._find(position)
        content = self.messages[message]["content"][: place + 1]
        return "reasoningContent" not in content[-1] and not any(map(_is_unmarkable_document, content))

    def mark(self, positions: Sequence[int], cache_point: Part) -> None:
        """Put cache points behind the blocks at some rising positions; this moves all later positions."""
        for position in reversed(positions):
            message, place = self._find(position)
            content = self.messages[message]["content"]
            self.messages[message] = {
                **self.messages[message],
                "content": [*content[: place + 1], cache_point, *content[place + 1 :]],
            }

    def add(self, item: Placed | Response) -> None:
        """Write a response with its results, or an entry addressed to the model."""
        if isinstance(item, Response):
            self._add_response(item)
            return
        for block in _user_blocks(item.entry):
            self._write("user", block, item.number)

    def end(self) -> None:
        """Write the opening line where nothing else was, and strip the white space from the end of a final answer."""
        if not self.messages:
            self._write("user", {"text": OPENING_LINE}, None)
        last = self.part(self.parts - 1)
        if self.messages[-1]["role"] == "assistant" and "text" in last:
            self.replace(self.parts - 1, {**last, "text": last["text"].rstrip()})

    def _add_response(self, response: Response) -> None:
        written = list(self._said(response))
        while written and "reasoningContent" in written[-1][1]:
            written.pop()  # a message may not end in a thought
        for number, block in written:
            self._write("assistant", block, number)
        uses = [block["toolUse"]["toolUseId"] for _, block in written if "toolUse" in block]
        for call, use_id in zip(response.calls, uses, strict=True):
            entry = call.result.entry if call.result else None
            self._write("user", self._result(entry, use_id), call.result.number if call.result else None)

    def _said(self, response: Response) -> Iterator[tuple[int, Part]]:
        for spoken in response.parts:
            is_call = isinstance(spoken, Call)
            number, entry = spoken.placed if isinstance(spoken, Call) else spoken
            if entry.type == "assistant.reasoning" and not is_call:
                if (thought := _thought(entry, self._model)) is not None:
                    yield number, {"reasoningContent": thought}
                continue
            texts = [entry.text] if entry.text.strip() else [] if is_call else unseen_lines(entry)
            for text in texts:
                yield number, {"text": text}
            if is_call:
                yield number, {"toolUse": self._use(entry)}

    def _use(self, entry: Entry) -> Part:
        return {
            "toolUseId": self.ids.give(str(entry.call_id)),
            "name": fit(entry.name or "unknown", BEDROCK.name_pattern, BEDROCK.name_length),
            "input": as_object(entry.arguments),
        }

    def _result(self, entry: Entry | None, use_id: str) -> Part:
        content = [{"text": INTERRUPTED}] if entry is None else result_content(entry)
        takes_status = _is_hidden(self._model) or MARKED_ON_BEDROCK.search(self._model) is not None
        status = {"status": "error"} if entry is not None and entry.is_error and takes_status else {}
        return {"toolResult": {"toolUseId": use_id, "content": content, **status}}

    def _write(self, role: str, block: Part, number: int | None) -> None:
        if not self.messages and role == "assistant":
            self._put("user", {"text": OPENING_LINE}, None, joined=True)
        self._put(role, block, number, joined=True)


STEPWISE: Final = Stepwise(_Writer, _body)


def _is_unmarkable_document(block: Part) -> bool:
    return "document" in block and block["document"].get("format") != "pdf"


def _user_blocks(entry: Entry) -> list[Part]:
    text, shown = said_to_model(entry), shown_blocks(entry, "user")
    said = text if text.strip() else named_documents(shown)
    return [*([{"text": said}] if said else []), *shown]


def _thought(entry: Entry, model: str) -> Part | None:
    """Return a thought as its model takes it back; None where it does not.

    Signed thoughts are Anthropic's, and are valid on its own servers, too. Claude refuses a thought without a
    signature; other models refuse the signature, and most of them refuse every thought.
    """
    data: Part = entry.data if isinstance(entry.data, dict) else {}
    text, signature = text_of(data, "thinking"), text_of(data, "signature")
    is_claude = _is_hidden(model) or BEDROCK.is_own(model)
    if data.get("type") == "thinking" and not signature:
        return {"reasoningText": {"text": text}} if text and BEDROCK.takes_unsigned(model) else None
    if not is_claude or not BEDROCK.takes_back(entry, model):
        return None
    if data.get("type") == "thinking":
        return {"reasoningText": {"text": text, "signature": signature}}
    redacted = text_of(data, _REDACTED)
    return {_REDACTED: redacted} if data.get("type") == _REDACTED and redacted else None


def decode(body: Any) -> list[Block]:
    """Decode the arguments of a request, or its list of messages, into blocks; turn ids are left open.

    The placeholder result of a call without one is left out: the call stays open.
    """
    request = plain(body)
    messages = request.get("messages") if isinstance(request, dict) else request
    blocks: list[Block] = [SystemMessage(text=text)] if (text := system_of(request)) else []
    decoder = MessageDecoder()
    for message in messages if isinstance(messages, list) else []:
        blocks += decoder.decode(message)
    return blocks


def system_of(request: Any) -> str:
    """Return the system prompt of a request; an empty text where there is none."""
    return "\n".join(filter(None, map(text_of, objects_of(request, "system"))))


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
        parts = parts_of(message.get("content"))
        if message.get("role") == "assistant":
            blocks = assistant_blocks(parts, name or f"response_{self._number}", calls=f"call_{self._number}")
            self._names |= {block.call_id: block.name for block in blocks if isinstance(block, ToolCall)}
            return blocks
        if message.get("role") == "system":
            return [SystemMessage(text=text) for text in map(text_of, parts) if text]
        return [block for block in map(self._user_block, parts) if block is not None]

    def _user_block(self, part: Part) -> Block | None:
        if isinstance(answer := part.get("toolResult"), dict):
            result = result_block(answer, self._names.get(text_of(answer, "toolUseId"), ""))
            return None if result.text == INTERRUPTED else result
        if "text" in part or "guardContent" in part:
            text = said_by_user(part)
            return UserPrompt(text=text) if text else None
        return attachment(part)


def parts_of(content: Any) -> list[Part]:
    """Return content as a list of blocks without cache points; a string is one text."""
    listed = content if isinstance(content, list) else [content]
    parts = [{"text": part} if isinstance(part, str) else part for part in listed if isinstance(part, str | dict)]
    return [part for part in parts if part and "cachePoint" not in part]


def assistant_blocks(parts: Iterable[Part], response_id: str, *, calls: str) -> list[Block]:
    """Decode the content blocks of a response.

    Args:
        parts: the blocks.
        response_id: the id of the response.
        calls: prefix of the ids for calls without one.
    """
    return [
        block
        for index, part in enumerate(parts)
        if (block := _assistant_block(part, response_id, f"{calls}_{index}")) is not None
    ]


def _assistant_block(part: Part, response_id: str, call_id: str) -> Block | None:
    if isinstance(use := part.get("toolUse"), dict) and "type" not in use:
        return ToolCall(
            call_id=text_of(use, "toolUseId") or call_id,
            name=text_of(use, "name") or "unknown",
            arguments=from_object(use.get("input", {})),
            response_id=response_id,
        )
    if isinstance(thought := part.get("reasoningContent"), dict):
        return _reasoning(thought, response_id)
    if isinstance(cited := part.get("citationsContent"), dict):
        text = "".join(map(text_of, objects_of(cited, "content")))
        meta = {"citations": found} if (found := cited.get("citations")) else {}
        return AssistantCompletion(text=text, response_id=response_id, meta=meta) if text else None
    if "text" in part:
        text = text_of(part)
        return AssistantCompletion(text=text, response_id=response_id) if text else None
    kind = next(iter(part))
    data = part if "type" in part else {**part, "type": kind}
    return CustomBlock(type="assistant.part", author="assistant", data=data, response_id=response_id)


def _reasoning(thought: Part, response_id: str) -> Reasoning:
    """Decode a thought; a readable one gets the form of Anthropic's API, which takes the same signature."""
    if redacted := text_of(thought, _REDACTED):
        return Reasoning(data={"type": _REDACTED, _REDACTED: redacted}, response_id=response_id)
    said = object_of(thought, "reasoningText")
    text = text_of(said)
    data: Part = {"type": "thinking", "thinking": text, "signature": text_of(said, "signature")}
    return Reasoning(text=text, data=data, response_id=response_id)
