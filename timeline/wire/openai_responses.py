"""OpenAI's Responses API: encode a context as ``instructions``, ``tools`` and ``input`` items, and decode items.

The API demands that a `function_call_output` names a call before it, and that a reasoning item comes right before the
message or call that it led to. Encrypted reasoning is sent as it came, or not at all; without its encrypted content
the server could only look it up, so it is left out. Caching is automatic, so nothing is marked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import AssistantCompletion, CustomBlock, Reasoning, SystemMessage, ToolCall, ToolResult, UserPrompt
from timeline.content.native import CLIENT_CALLS, FUNCTION_CALL, NAMESPACE, PHASE
from timeline.frozen import compact_json
from timeline.wire import Stepwise
from timeline.wire.foreign import arguments_of, system_text, text_of
from timeline.wire.groups import OPENING_LINE, Call, Response, fit, gather, said_to_model
from timeline.wire.media import attachment_block, responses_media, told_parts, unseen_line, unseen_lines
from timeline.wire.neutral import FAILED, INTERRUPTED
from timeline.wire.openai_chat import parts_of
from timeline.wire.providers import OPENAI_RESPONSES
from timeline.wire.read_only import plain
from timeline.wire.responses_calls import (
    OUTPUT,
    call_block,
    call_item,
    is_of_client,
    is_placeholder,
    output_item,
    result_block,
)
from timeline.wire.writing import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pydantic import JsonValue

    from timeline.blocks import Block
    from timeline.wire.groups import Placed
    from timeline.wire.media import Part
    from timeline.wire.neutral import Entry, NeutralContext

ENCODER: Final = 5
GIVEN: Final = frozenset({"instructions", "tools", "input"})
_TEXTS: Final = frozenset({"text", "input_text", "output_text", "summary_text", "reasoning_text"})
_PHASES: Final = frozenset({"commentary", "final_answer"})
_RESULTS: Final = frozenset(call + OUTPUT for call in ("function_call", *CLIENT_CALLS))


def encode(context: NeutralContext) -> dict[str, Any]:
    """Return the body of a request: ``instructions`` and ``tools`` only where given.

    It refers to nothing that the provider may have stored, so it works with ``store=False`` too.
    """
    return _body(context, _Writer(context.model), gather(context.entries))


def _body(context: NeutralContext, writer: _Writer, gathered: Iterable[Placed | Response]) -> dict[str, Any]:
    instructions = system_text(context.system)
    body: dict[str, Any] = {"instructions": instructions} if instructions else {}
    if context.tools:
        body["tools"] = plain(list(context.tools))
    for item in gathered:
        writer.add(item)
    writer.add_tail(context)
    writer.open_if_empty()
    return {**body, "input": writer.written()}


def items(
    context: NeutralContext, instead: Callable[[Placed | Response], list[Part] | None] = lambda _: None
) -> list[Part]:
    """Return the items of a context.

    Args:
        context: the context.
        instead: returns the items that a message or a response goes out as, where a caller has them; else None.
    """
    writer = _Writer(context.model)
    for item in gather(context.entries):
        own = instead(item)
        if own is None:
            writer.add(item)
        else:
            writer.messages += own
    writer.add_tail(context)
    return writer.messages


class _Writer(Writer):
    """Writes items; a written item never moves.

    Args:
        model: the model that the request is for.
    """

    call_ids = (OPENAI_RESPONSES.id_pattern, OPENAI_RESPONSES.id_length)

    def add_tail(self, context: NeutralContext) -> None:
        """Write a context's ephemeral tail."""
        for item in gather(context.ephemeral, first_number=len(context.entries)):
            self.add(item)

    def add(self, item: Placed | Response) -> None:
        """Write a response with its results, or an entry addressed to the model."""
        if isinstance(item, Response):
            self._add_response(item)
        elif parts := _user_parts(item.entry):
            if item.entry.continues and self.messages and self.messages[-1].get("role") == "user":
                parts = [*self.messages.pop()["content"], *parts]
            self.messages.append({"type": "message", "role": "user", "content": parts})

    def open_if_empty(self) -> None:
        """Write the opening line where nothing was written yet: a request begins with the user's message."""
        if not self.messages:
            self.messages.append({"type": "message", "role": "user", "content": [_input_text(OPENING_LINE)]})

    def _add_response(self, response: Response) -> None:
        said = [item for part in response.parts for item in self._said(part)]
        # The API refuses reasoning without the item that it led to. Items of the provider's own tools are not sent.
        thought = [item["type"] in OPENAI_RESPONSES.signed_reasoning for item in said]
        said = [item for n, item in enumerate(said) if not thought[n] or thought[n + 1 : n + 2] == [False]]
        if not said:
            return
        self.open_if_empty()
        self.messages += said
        calls = [item for item in said if "call_id" in item and item["type"] not in OPENAI_RESPONSES.signed_reasoning]
        for call, told in zip(response.calls, calls, strict=True):
            entry = call.result.entry if call.result else None
            self.messages.append(output_item(told, entry, _output(entry) if entry else INTERRUPTED))

    def _said(self, part: Placed | Call) -> list[Part]:
        if isinstance(part, Call):
            return [*_said_text(part.placed.entry.text), self._call(part)]
        entry = part.entry
        if entry.type == "assistant.reasoning":
            return [entry.data] if isinstance(entry.data, dict) and self._takes(entry, entry.data) else []
        return _said_text(entry.text or "\n".join(unseen_lines(entry)), self._phase(entry))

    def _takes(self, entry: Entry, data: Part) -> bool:
        if data.get("type") != "reasoning" or not isinstance(data.get("id"), str):
            return False
        if not isinstance(data.get("summary"), list):
            return False
        if isinstance(encrypted := data.get("encrypted_content"), str) and encrypted:
            return OPENAI_RESPONSES.takes_back(entry, self._model)
        return bool(data.get("content")) and OPENAI_RESPONSES.takes_unsigned(self._model)

    def _phase(self, entry: Entry) -> Part:
        """Return what OpenAI calls a message; other servers of this form may refuse a field that they do not know."""
        phase = text_of(entry.data, PHASE) if isinstance(entry.data, dict) else ""
        return {PHASE: phase} if phase in _PHASES and not OPENAI_RESPONSES.takes_unsigned(self._model) else {}

    def _call(self, call: Call) -> Part:
        entry = call.placed.entry
        call_id = self.ids.give(str(entry.call_id))
        own = call_item(entry, call_id, call.result.entry if call.result else None)
        if own is not None and not OPENAI_RESPONSES.takes_unsigned(self._model):
            return own
        arguments = entry.arguments if isinstance(entry.arguments, str) else compact_json(entry.arguments or {})
        name = fit(entry.name or "unknown", OPENAI_RESPONSES.name_pattern, OPENAI_RESPONSES.name_length)
        item = {"type": FUNCTION_CALL, "call_id": call_id, "name": name, "arguments": arguments}
        return {**item, **self._namespace(entry)}

    def _namespace(self, entry: Entry) -> Part:
        """Return the namespace of a function, without which OpenAI refuses each later request."""
        form = entry.data if isinstance(entry.data, dict) and entry.data.get("type") == FUNCTION_CALL else {}
        namespace = text_of(form, NAMESPACE)
        return {NAMESPACE: namespace} if namespace and not OPENAI_RESPONSES.takes_unsigned(self._model) else {}


STEPWISE: Final = Stepwise(_Writer, _body)


def _input_text(text: str) -> Part:
    return {"type": "input_text", "text": text}


def _said_text(text: str, phase: Part | None = None) -> list[Part]:
    return [{"type": "message", "role": "assistant", "content": text, **(phase or {})}] if text.strip() else []


def _media(entry: Entry) -> list[Part]:
    return [
        responses_media(part, OPENAI_RESPONSES) or _input_text(unseen_line(entry, part)) for part in told_parts(entry)
    ]


def _user_parts(entry: Entry) -> list[Part]:
    text = said_to_model(entry)
    return [*([_input_text(text)] if text.strip() else []), *_media(entry)]


def _output(entry: Entry) -> str | list[Part]:
    media = _media(entry)
    if not media:
        return FAILED if entry.is_error and not entry.text.strip() else entry.text
    return [*([_input_text(entry.text)] if entry.text.strip() else []), *media]


def decode(body: Any) -> list[Block]:
    """Decode a request body, or its list of items, into blocks; turn ids are left open.

    The placeholder result of a call without one is left out: the call stays open.
    """
    told = body.get("input") if isinstance(body, dict) else body
    instructions = body.get("instructions") if isinstance(body, dict) else None
    blocks: list[Block] = []
    if isinstance(instructions, str) and instructions.strip():
        blocks.append(SystemMessage(text=instructions))
    items = [{"role": "user", "content": told}] if isinstance(told, str) else told
    decoder = MessageDecoder()
    for item in items if isinstance(items, list) else []:
        blocks += decoder.decode(item)
    return blocks


class MessageDecoder:
    """Decodes items one by one; it keeps their number, and the names of the calls.

    Consecutive items of the model's are one response, up to the next item addressed to it: the wire has no id for a
    response.
    """

    def __init__(self) -> None:
        self._number = 0
        self._response = ""
        self._names: dict[str, str] = {}
        self._of_server: set[str] = set()

    def decode(self, item: Any, name: str = "") -> list[Block]:
        """Decode one item; any other value gives no block. The first item of a response names it."""
        self._number += 1
        if not isinstance(item, dict):
            return []
        kind = _kind_of(item)
        if kind == "message" and item.get("role") != "assistant":
            self._response = ""
            return self._said_to_model(item)
        if kind in _RESULTS and text_of(item, "call_id") not in self._of_server:
            self._response = ""
            return self._result(item)
        self._response = self._response or name or f"response_{self._number}"
        blocks = item_blocks(item, self._response, self._number)
        self._names |= {block.call_id: block.name for block in blocks if isinstance(block, ToolCall)}
        if kind in CLIENT_CALLS and not is_of_client(item):
            self._of_server.add(text_of(item, "call_id"))
        return blocks

    def _said_to_model(self, item: Part) -> list[Block]:
        if text_of(item, "role") in {"system", "developer"}:
            return [SystemMessage(text=text) for text in map(_text_of, parts_of(item.get("content"))) if text]
        read = (_user_block(part) for part in parts_of(item.get("content")))
        return [block for block in read if block is not None]

    def _result(self, item: Part) -> list[Block]:
        if is_placeholder(item):
            return []
        output = item.get("output")
        call_id = text_of(item, "call_id") or f"call_{self._number}"
        name = self._names.get(call_id, "")
        if (own := result_block(item, call_id, name)) is not None:
            return [own]
        parts = parts_of(output)
        text = "\n".join(filter(None, map(_text_of, parts)))
        holds_more = any(not _text_of(part) for part in parts)
        if text == FAILED:
            return [ToolResult(call_id=call_id, name=name, is_error=True)]
        return [ToolResult(call_id=call_id, name=name, text=text, data=output if holds_more else None)]


def item_blocks(item: Part, response_id: str, number: int) -> list[Block]:
    """Decode an item of the model's; an item without a block type of its own is kept whole.

    Args:
        item: the item.
        response_id: the response that it belongs to.
        number: the item's number, for the id of a call without one.
    """
    call_id = text_of(item, "call_id") or f"{response_id}_{number}"
    match _kind_of(item):
        case "message":
            phase = {PHASE: item[PHASE]} if text_of(item, PHASE) else None
            read = (_message_part(part, response_id, phase) for part in parts_of(item.get("content")))
            return [block for block in read if block is not None]
        case "reasoning":
            thoughts = [*parts_of(item.get("summary")), *parts_of(item.get("content"))]
            text = "\n\n".join(text for text in map(_text_of, thoughts) if text)
            return [Reasoning(text=text, data=item, response_id=response_id)]
        case "function_call":
            name, arguments = text_of(item, "name") or "unknown", arguments_of(item.get("arguments", ""))
            namespace = text_of(item, NAMESPACE)
            form: JsonValue = {"type": FUNCTION_CALL, NAMESPACE: namespace} if namespace else None
            return [ToolCall(call_id=call_id, name=name, arguments=arguments, data=form, response_id=response_id)]
        case _ if is_of_client(item):
            return [call_block(item, call_id, response_id)]
        case _:
            return [CustomBlock(type="assistant.part", author="assistant", data=item, response_id=response_id)]


def _kind_of(item: Part) -> str:
    """Return an item's type; a message need not name its own."""
    return text_of(item, "type") or ("message" if "role" in item and not item.get("type") else "")


def _message_part(part: Part, response_id: str, phase: Part | None) -> Block | None:
    text = _text_of(part) or text_of(part, "refusal")
    cited = part.get("annotations")
    meta = {"citations": cited} if cited else {}
    return AssistantCompletion(text=text, data=phase, response_id=response_id, meta=meta) if text else None


def _text_of(part: Part) -> str:
    return text_of(part) if text_of(part, "type") in _TEXTS else ""


def _user_block(part: Part) -> Block | None:
    if text_of(part, "type") in _TEXTS:
        text = _text_of(part)
        return UserPrompt(text=text) if text and text != OPENING_LINE else None
    return attachment_block(part)
