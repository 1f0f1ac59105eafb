"""OpenAI's Responses API: encode a context as ``instructions``, ``tools`` and ``input`` items.

The API demands that a `function_call_output` names a call before it, that a reasoning item comes right before what it
led to, and that an item with an id has the reasoning item before it that it came with. Encrypted reasoning is sent as
it came, or not at all; without its encrypted content the server could only look it up, so it is left out. Caching is
automatic, so nothing is marked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from timeline.content.native import APPROVAL, FUNCTION_CALL, NAMESPACE, NATIVE, PHASE
from timeline.frozen import compact_json
from timeline.wire import Stepwise
from timeline.wire.foreign import system_text, text_of
from timeline.wire.groups import OPENING_LINE, Call, Response, fit, gather, said_to_model
from timeline.wire.media import responses_media, shown_parts, unseen_line, unseen_lines
from timeline.wire.neutral import FAILED, INTERRUPTED
from timeline.wire.providers import OPENAI_RESPONSES
from timeline.wire.read_only import plain
from timeline.wire.responses_approvals import answer_item, request_item
from timeline.wire.responses_calls import call_item, caller_of, output_item
from timeline.wire.responses_decoding import MessageDecoder, decode
from timeline.wire.responses_items import ItemReferences, items_of_server, with_caller, with_reference
from timeline.wire.writing import MessageWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from timeline.wire.groups import Placed
    from timeline.wire.media import Part
    from timeline.wire.neutral import Entry, NeutralContext
    from timeline.wire.writing import WriterMark

__all__ = ["ENCODER", "GIVEN", "STEPWISE", "MessageDecoder", "decode", "encode", "items"]

ENCODER: Final = 8
_THOUGHT: Final = "assistant.reasoning"
WITH_FORMS: Final = frozenset({NATIVE, "react.tool.call"})
"""Types of blocks whose data may be the form of an item with an id."""
GIVEN: Final = frozenset({"instructions", "tools", "input"})
_PHASES: Final = frozenset({"commentary", "final_answer"})


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


class _Writer(MessageWriter):
    """Writes items; a written item never moves.

    Args:
        model: the model that the request is for.

    Attributes:
        references: the written items that the next ones may name.
    """

    call_ids = (OPENAI_RESPONSES.id_pattern, OPENAI_RESPONSES.id_length)

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self.references = ItemReferences()

    def branch(self) -> Self:
        """Return a writer that goes on from here, and leaves this one as it is."""
        twin = super().branch()
        twin.references = self.references.branch()
        return twin

    def cut(self, mark: WriterMark) -> Self:
        """Return a writer that wrote what this one had at a mark, and leave this one as it is."""
        twin = super().cut(mark)
        twin.references = ItemReferences(twin.messages)
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
        # The API refuses reasoning without the item that it led to, and that item may not be sent.
        thought = [item["type"] in OPENAI_RESPONSES.signed_reasoning for item in written]
        written = [item for n, item in enumerate(written) if not thought[n] or thought[n + 1 : n + 2] == [False]]
        if written:
            self.open_if_empty()
            self.put([*written, *answers])

    def _own_items(self, response: Response) -> dict[int, Part] | None:
        """Return the items of a response that its server made, by the number of their entry.

        The result is None where no item with an id may go back: the model does not know the ids, or a thought is left
        out, for which the API would look by such an id.
        """
        entries = [part.placed.entry if isinstance(part, Call) else part.entry for part in response.parts]
        if not any(entry.type in WITH_FORMS and entry.data is not None for entry in entries):
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
        """Return OpenAI's phase of a message; other servers of this form may refuse a field that they do not know."""
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
