"""OpenAI's Responses API: encode a context as ``instructions``, ``tools`` and ``input`` items, and decode items.

The API demands that a `function_call_output` names a call before it, that a reasoning item comes right before what it
led to, and that an item with an id has the reasoning item before it that it came with. Encrypted reasoning is sent as
it came, or not at all; without its encrypted content the server could only look it up, so it is left out. Caching is
automatic, so nothing is marked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from timeline.blocks import AssistantCompletion, CustomBlock, Reasoning, SystemMessage, ToolCall, ToolResult, UserPrompt
from timeline.content.native import (
    APPROVAL,
    CLIENT_CALLS,
    FOUND_TOOLS,
    FUNCTION_CALL,
    NAMESPACE,
    NATIVE,
    OPENAI_ITEMS,
    PHASE,
)
from timeline.frozen import compact_json
from timeline.wire import Stepwise
from timeline.wire.foreign import arguments_of, system_text, text_of
from timeline.wire.groups import OPENING_LINE, Call, Response, fit, gather, said_to_model
from timeline.wire.media import attachment_block, responses_media, shown_parts, unseen_line, unseen_lines
from timeline.wire.neutral import FAILED, INTERRUPTED
from timeline.wire.openai_chat import parts_of
from timeline.wire.providers import OPENAI_RESPONSES
from timeline.wire.read_only import plain
from timeline.wire.responses_approvals import ANSWER, answer_block, answer_item, request_block, request_item
from timeline.wire.responses_calls import (
    OUTPUT,
    call_block,
    call_item,
    caller_of,
    found_tools,
    is_of_client,
    is_placeholder,
    output_item,
    result_block,
)
from timeline.wire.responses_items import References, is_of_server, items_of_server, with_caller, with_reference
from timeline.wire.writing import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pydantic import JsonValue

    from timeline.blocks import Block
    from timeline.wire.groups import Placed
    from timeline.wire.media import Part
    from timeline.wire.neutral import Entry, NeutralContext
    from timeline.wire.writing import Mark

ENCODER: Final = 6
_THOUGHT: Final = "assistant.reasoning"
_IN_FORMS: Final = frozenset({NATIVE, "react.tool.call"})
"""Types of blocks whose data may be the form of an item with an id."""
GIVEN: Final = frozenset({"instructions", "tools", "input"})
_TEXTS: Final = frozenset({"text", "input_text", "output_text", "summary_text", "reasoning_text"})
_PHASES: Final = frozenset({"commentary", "final_answer"})
_LOCAL_SHELL: Final = "local_shell_call"
"""A call of a shell in the form of a model that is gone: it goes back as a function call."""
_RESULTS: Final = frozenset(
    {*(call + OUTPUT for call in (FUNCTION_CALL, _LOCAL_SHELL, *CLIENT_CALLS)), FOUND_TOOLS, ANSWER}
)
"""Items that answer the model."""


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
            writer.put(own)
    writer.add_tail(context)
    return writer.messages


class _Writer(Writer):
    """Writes items; a written item never moves.

    Args:
        model: the model that the request is for.

    Attributes:
        references: the written items that the next ones may name.
    """

    call_ids = (OPENAI_RESPONSES.id_pattern, OPENAI_RESPONSES.id_length)

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self.references = References()

    def branch(self) -> Self:
        """Return a writer that goes on from here, and leaves this one as it is."""
        twin = super().branch()
        twin.references = self.references.branch()
        return twin

    def cut(self, mark: Mark) -> Self:
        """Return a writer that wrote what this one had at a mark, and leave this one as it is."""
        twin = super().cut(mark)
        twin.references = References(twin.messages)
        return twin

    def put(self, items: list[Part]) -> None:
        """Write items as they are."""
        self.messages += items
        self.references.take(items)

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
            self.put([{"type": "message", "role": "user", "content": parts}])

    def open_if_empty(self) -> None:
        """Write the opening line where nothing was written yet: a request begins with the user's message."""
        if not self.messages:
            self.put([{"type": "message", "role": "user", "content": [_input_text(OPENING_LINE)]}])

    def _add_response(self, response: Response) -> None:
        written: list[Part] = []
        answers: list[Part] = []
        own = self._own_items(response)
        for part in response.parts:
            if not isinstance(part, Call):
                written += self._said(part, own, written)
                continue
            call = self._call(part, written, in_form=own is not None)
            written += [*_said_text(part.placed.entry.text), call]
            answers.append(_answer(call, part.result.entry if part.result else None))
        # The API refuses reasoning without the item that it led to, which may be one that is not sent.
        thought = [item["type"] in OPENAI_RESPONSES.signed_reasoning for item in written]
        written = [item for n, item in enumerate(written) if not thought[n] or thought[n + 1 : n + 2] == [False]]
        if written:
            self.open_if_empty()
            self.put([*written, *answers])

    def _own_items(self, response: Response) -> dict[int, Part] | None:
        """Return the items of a response that its server made, by the number of their entry.

        None where no item of it may go back that has an id: the model has none of them, or a thought is left out. By
        that id the API looks for the thought that led to it.
        """
        entries = [part.placed.entry if isinstance(part, Call) else part.entry for part in response.parts]
        if not any(entry.type in _IN_FORMS and entry.data is not None for entry in entries):
            return {}
        left_out = any(entry.type == _THOUGHT and not self._takes(entry) for entry in entries)
        if left_out or OPENAI_RESPONSES.takes_unsigned(self._model):
            return None
        return items_of_server(response.parts)

    def _said(self, part: Placed, own: dict[int, Part] | None, written: list[Part]) -> list[Part]:
        entry = part.entry
        if entry.type == _THOUGHT:
            return [entry.data] if isinstance(entry.data, dict) and self._takes(entry) else []
        item = own.get(part.number) if own else None
        if item is not None and (sent := with_reference(item, self.references, written)) is not None:
            return [sent, *_said_text("" if sent.get("output") == entry.text else entry.text)]
        return _said_text(entry.text or "\n".join(unseen_lines(entry)), self._phase(entry))

    def _takes(self, entry: Entry) -> bool:
        data = entry.data if isinstance(entry.data, dict) else {}
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

    def _call(self, call: Call, written: list[Part], *, in_form: bool) -> Part:
        """Return the item of a call.

        Args:
            call: the call.
            written: the items of its response in front of it.
            in_form: whether one with an id may go back in its own form.
        """
        entry = call.placed.entry
        if in_form and (request := request_item(entry)) is not None:
            return request
        call_id = self.ids.give(str(entry.call_id))
        own = call_item(entry, call_id, call.result.entry if call.result else None)
        if own is None or OPENAI_RESPONSES.takes_unsigned(self._model) or ("id" in own and not in_form):
            own = {**_function_call(entry, call_id), **self._of_function(entry)}
        return with_caller(own, self.references, written)

    def _of_function(self, entry: Entry) -> Part:
        """Return the namespace of a function, without which OpenAI refuses each later request, and its caller."""
        form = entry.data if isinstance(entry.data, dict) and entry.data.get("type") == FUNCTION_CALL else {}
        if not form or OPENAI_RESPONSES.takes_unsigned(self._model):
            return {}
        namespace = text_of(form, NAMESPACE)
        return {**({NAMESPACE: namespace} if namespace else {}), **plain(caller_of(form))}


def _function_call(entry: Entry, call_id: str) -> Part:
    arguments = entry.arguments if isinstance(entry.arguments, str) else compact_json(entry.arguments or {})
    name = fit(entry.name or "unknown", OPENAI_RESPONSES.name_pattern, OPENAI_RESPONSES.name_length)
    return {"type": FUNCTION_CALL, "call_id": call_id, "name": name, "arguments": arguments}


def _answer(call: Part, entry: Entry | None) -> Part:
    """Return the item that answers a call; one without a result gets a text that says so."""
    if call["type"] == APPROVAL:
        return answer_item(call, entry)
    return output_item(call, entry, _output(entry) if entry else INTERRUPTED)


STEPWISE: Final = Stepwise(_Writer, _body)


def _input_text(text: str) -> Part:
    return {"type": "input_text", "text": text}


def _said_text(text: str, phase: Part | None = None) -> list[Part]:
    return [{"type": "message", "role": "assistant", "content": text, **(phase or {})}] if text.strip() else []


def _media(entry: Entry) -> list[Part]:
    return [
        responses_media(part, OPENAI_RESPONSES) or _input_text(unseen_line(entry, part)) for part in shown_parts(entry)
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
    listed = body.get("input") if isinstance(body, dict) else body
    instructions = body.get("instructions") if isinstance(body, dict) else None
    blocks: list[Block] = []
    if isinstance(instructions, str) and instructions.strip():
        blocks.append(SystemMessage(text=instructions))
    items = [{"role": "user", "content": listed}] if isinstance(listed, str) else listed
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
        if kind in _RESULTS and not self._is_of_server(item, kind):
            self._response = ""
            return self._result(item)
        self._response = self._response or name or f"response_{self._number}"
        blocks = item_blocks(item, self._response, self._number)
        self._names |= {block.call_id: block.name for block in blocks if isinstance(block, ToolCall)}
        if kind in CLIENT_CALLS and not is_of_client(item):
            self._of_server.add(text_of(item, "call_id"))
        return blocks

    def _is_of_server(self, item: Part, kind: str) -> bool:
        return is_of_server(item) if kind == FOUND_TOOLS else text_of(item, "call_id") in self._of_server

    def _said_to_model(self, item: Part) -> list[Block]:
        if text_of(item, "role") in {"system", "developer"}:
            return [SystemMessage(text=text) for text in map(_text_of, parts_of(item.get("content"))) if text]
        read = (_user_block(part) for part in parts_of(item.get("content")))
        return [block for block in read if block is not None]

    def _result(self, item: Part) -> list[Block]:
        if is_placeholder(item):
            return []
        output = item.get("output")
        kind = _kind_of(item)
        if kind == ANSWER:
            answer = answer_block(item, self._names.get(text_of(item, "approval_request_id"), ""))
            return [answer] if answer is not None else []
        own_id = text_of(item, "id") if kind == _LOCAL_SHELL + OUTPUT else ""
        call_id = text_of(item, "call_id") or own_id or f"call_{self._number}"
        name = self._names.get(call_id, "")
        if kind == FOUND_TOOLS:
            return [found_tools(item, call_id, name or "tool_search")]
        if (own := result_block(item, call_id, name)) is not None:
            return [own]
        parts = parts_of(output)
        text = "\n".join(filter(None, map(_text_of, parts)))
        holds_more = any(not _text_of(part) for part in parts)
        if text == FAILED:
            return [ToolResult(call_id=call_id, name=name, is_error=True)]
        return [ToolResult(call_id=call_id, name=name, text=text, data=output if holds_more else None)]


def once_a_part(item: Part, response_id: str) -> Block | None:
    """Return what an item is read as that earlier releases kept as a part of a response; None for any other part.

    Args:
        item: the part.
        response_id: the response that it belongs to.
    """
    kind = _kind_of(item)
    if kind == ANSWER or kind == _LOCAL_SHELL + OUTPUT or (kind == FOUND_TOOLS and not is_of_server(item)):
        return next(iter(MessageDecoder().decode(item)), None)
    if kind in OPENAI_ITEMS or kind in {APPROVAL, _LOCAL_SHELL} or (is_of_client(item) and text_of(item, "call_id")):
        return item_blocks(item, response_id, 0)[0]
    return None


def item_blocks(item: Part, response_id: str, number: int) -> list[Block]:
    """Decode an item of the model's; an item without a block type of its own is kept whole.

    A shell's output is of the server's own shell here: another one answers the model.

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
            more = {**({NAMESPACE: namespace} if namespace else {}), **caller_of(item)}
            form: JsonValue = {"type": FUNCTION_CALL, **more} if more else None
            return [ToolCall(call_id=call_id, name=name, arguments=arguments, data=form, response_id=response_id)]
        case _ if is_of_client(item):
            return [call_block(item, call_id, response_id)]
        case "local_shell_call":
            arguments = arguments_of(item.get("action"))
            return [ToolCall(call_id=call_id, name="local_shell", arguments=arguments, response_id=response_id)]
        case "mcp_approval_request":
            return [request_block(item, call_id, response_id)]
        case kind if is_of_server(item) or kind == "shell_call_output":
            return [CustomBlock(type=NATIVE, author="assistant", data=item, response_id=response_id)]
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
