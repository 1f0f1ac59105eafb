"""Anthropic's Messages API: encode a context as ``system``, ``tools`` and ``messages``, and decode messages.

The API demands that the first message is the user's, roles alternate, every `tool_use` is answered by a `tool_result`
at the head of the very next message, no text is blank, a final answer does not end in white space, and reasoning is
sent as it was signed or not at all. `markers` decides where cache markers go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from timeline.blocks import AssistantCompletion, CustomBlock, Reasoning, SystemMessage, ToolCall, ToolResult, UserPrompt
from timeline.content.native import COMPACTION, NATIVE, WEB_CITATIONS
from timeline.wire import Stepwise
from timeline.wire.foreign import as_object, from_object, text_of
from timeline.wire.groups import OPENING_LINE, Call, Response, fit, gather, said_to_model
from timeline.wire.markers import marked, marked_fixed_part, takes_marker
from timeline.wire.media import anthropic_media, attachment_block, shown_parts, text_part, unseen_line, unseen_lines
from timeline.wire.neutral import INTERRUPTED
from timeline.wire.programs import container_of, end_of, form_of, of_form, program_of, running
from timeline.wire.providers import ANTHROPIC, SIGNED_BY
from timeline.wire.server_tools import entries_of_server, id_of, is_call, is_result, part_of, sent_ids, waiting_calls
from timeline.wire.writing import PlacedWriter

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from pydantic import JsonValue

    from timeline.blocks import Block
    from timeline.wire.groups import Placed
    from timeline.wire.media import Part
    from timeline.wire.neutral import Entry, NeutralContext
    from timeline.wire.server_tools import Waiting

ENCODER: Final = 7
GIVEN: Final = frozenset({"system", "tools", "messages"})
NO_OUTPUT: Final = "[no output]"
"""Text of a failed call without output: the API refuses an error without content."""

_FILES: Final = frozenset({"image", "document"})
_OF_WEB: Final = "web_search_result_location"
_CITED: Final = ("url", "cited_text", "encrypted_index")
_COMPACTED: Final = ("content", "encrypted_content", "signature", "tool_changes")
"""The fields of a compaction that a request takes."""
_SIGNED_KEYS: Final = {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}
"""The keys of signed reasoning, by its type; the value of the last key may not be empty, save for models that sign
nothing."""


def encode(context: NeutralContext) -> dict[str, Any]:
    """Return the body of a request: ``system`` and ``tools`` only where given, cache markers at the cache points.

    While the server is to go on with a turn, the body has no tail, since a text would end the turn. Where a program
    waits, the body has the ``container``.
    """
    return _body(context, _Writer(context.model), gather(context.entries))


def _body(context: NeutralContext, writer: _Writer, items: Iterable[Placed | Response]) -> dict[str, Any]:
    for item in items:
        writer.add(item)
    chosen = marked(context, writer.takes_marker, writer.reached)
    for position in chosen.positions:
        writer.replace(position, {**writer.part(position), "cache_control": dict(chosen.marker)})
    system, tools = marked_fixed_part(context, chosen.fixed)
    programs = writer.programs()
    if not programs and not writer.waiting():
        for item in gather(context.ephemeral, first_number=len(context.entries)):
            writer.add(item)
    writer.end()
    container = container_of(context.entries, programs) if programs else ""
    body = {"system": system, "tools": tools, "messages": writer.messages, "container": container}
    return {key: value for key, value in body.items() if key == "messages" or (value and not _is_blank(value))}


def _is_blank(value: Any) -> bool:
    return isinstance(value, str) and not value.strip()


class _Writer(PlacedWriter):
    """Writes messages part by part; a written part never moves.

    Args:
        model: the model that the request is for.

    Attributes:
        answered_at: position at which the newest response begins.
    """

    call_ids = (ANTHROPIC.id_pattern, ANTHROPIC.id_length)
    answered_at = 0

    def branch(self) -> Self:
        """Return a writer that goes on from here; this one does not change."""
        twin = super().branch()
        twin.answered_at = self.answered_at
        return twin

    def takes_marker(self, position: int) -> bool:
        """Return whether the part at a position may carry a cache marker."""
        return takes_marker(self.part(position))

    def add(self, item: Placed | Response) -> None:
        """Write a response with its results, or an entry addressed to the model."""
        if isinstance(item, Response):
            self._add_response(item)
            return
        for part in _user_parts(item.entry):
            self._write("user", part, item.number)

    def end(self) -> None:
        """Write the opening line where nothing else was, and strip the white space from the end of a final answer.

        The API refuses a request without messages, and a final answer that ends in white space: the model would
        continue from there. Any other text keeps its white space, so this text gets it back once a part follows.
        """
        if not self.messages:
            self._write("user", text_part(OPENING_LINE), None)
        if self.messages[-1]["role"] != "assistant":
            return
        last = self.part(self.parts - 1)
        if last["type"] == "text":
            self.replace(self.parts - 1, {**last, "text": last["text"].rstrip()})

    def _add_response(self, response: Response) -> None:
        written = [(part, number) for number, part in self._said(response)]
        while written and written[-1][0]["type"] in ANTHROPIC.signed_reasoning:
            written.pop()  # a message may not end in reasoning
        if written:
            self._give_up(
                answered={id_of(part) for part, _ in written if is_result(part)},
                going_on={program_of(part) for part, _ in written},
            )
        self.answered_at = self.parts
        for part, number in written:
            self._write("assistant", part, number)
        self._add_results(response.calls, [part for part, _ in written if part["type"] == "tool_use"])

    def _add_results(self, calls: Sequence[Call], uses: Sequence[Part]) -> None:
        """Write the results of a response's calls, and behind them the files of failed ones: an error is text alone.

        In a turn that the server is to go on with, nothing may follow the results: there, a line stands for each file.
        """
        failed = [call.result for call in calls if call.result and call.result.entry.is_error]
        shown = [(placed, files) for placed in failed if (files := _files(placed.entry))]
        if shown and (self.programs() or self.waiting()):
            shown = []
        behind = {placed.number for placed, _ in shown}
        for call, use in zip(calls, uses, strict=True):
            result = call.result
            if result is None:
                self._write("user", {"type": "tool_result", "tool_use_id": use["id"], "content": INTERRUPTED}, None)
            else:
                part = _result_part(result.entry, use["id"], files_behind=result.number in behind)
                self._write("user", part, result.number)
        for (number, entry), files in shown:
            for part in (text_part(f"[shown by {entry.name or entry.call_id}, {entry.path}]"), *files):
                self._write("user", part, number)

    def _said(self, response: Response) -> Iterator[tuple[int, Part]]:
        own = entries_of_server(response.parts)
        programs = {*self.programs()}
        sent = sent_ids(own, programs | {id_of(call.part) for call in self.waiting()}) if own else set()
        for spoken in response.parts:
            if isinstance(spoken, Call):
                number, entry = spoken.placed
                if entry.text.strip():
                    yield number, text_part(entry.text)
                yield number, self._use(entry, programs)
            else:
                for part in self._assistant_parts(spoken.entry, sent):
                    programs |= {id_of(part)} if is_call(part) else set()
                    programs -= {id_of(part)} if is_result(part) else set()
                    yield spoken.number, part

    def _assistant_parts(self, entry: Entry, sent: set[str]) -> list[Part]:
        if (own := part_of(entry)) is not None and id_of(own) in sent:
            return [own]
        if (compacted := _compaction(entry)) is not None:
            return [compacted, *([text_part(entry.text)] if entry.text.strip() else [])]
        if entry.type == "assistant.reasoning":
            return [_signed_part(entry.data)] if sends_reasoning(entry, self._model) else []
        if entry.text.strip():
            return [{**text_part(entry.text), **(_cited(entry) if sent else {})}]
        return [*map(text_part, unseen_lines(entry))]

    def _use(self, entry: Entry, programs: Collection[str]) -> Part:
        return {
            "type": "tool_use",
            "id": self.ids.give(str(entry.call_id)),
            "name": fit(entry.name or "unknown", ANTHROPIC.name_pattern, ANTHROPIC.name_length),
            "input": as_object(entry.arguments),
            **of_form(entry, programs),
        }

    def _write(self, role: str, part: Part, number: int | None) -> None:
        if not self.messages and role == "assistant":
            self._write("user", text_part(OPENING_LINE), None)
        if role == "user" and part["type"] != "tool_result":
            self._give_up()
        self._put(role, part, number, joined=True)

    def programs(self) -> list[str]:
        """Return the ids of the programs that go on with the results of their calls."""
        return running(self.messages)

    def waiting(self) -> list[Waiting]:
        """Return the calls that the server is still to run."""
        since = self._find(self.answered_at) if self.answered_at < self.parts else (0, 0)
        return waiting_calls(self.messages, since)

    def _give_up(self, answered: Collection[str] | None = None, going_on: Collection[str] = ()) -> None:
        """Write words in place of the calls that the server was still to run, since it will not run them any more.

        A program whose calls are answered is further back, and gets a result that ends it.

        Args:
            answered: ids of the calls whose results are in the next response; None where the user goes on.
            going_on: ids of the programs with further calls in the next response.
        """
        programs = self.programs()
        for message, place, part in self.waiting():
            if id_of(part) in programs:
                continue
            if answered is None:
                self.change(message, place, text_part(INTERRUPTED))
            elif id_of(part) not in answered:
                self.change(message, place, text_part(f"[not shown here: {part['type']}, {part['name']}]"))
        for program in programs:
            if program not in {*(answered or ()), *going_on}:
                self._put("assistant", end_of(program), None, joined=True)


STEPWISE: Final = Stepwise(_Writer, _body)


def sends_reasoning(entry: Entry, model: str) -> bool:
    """Return whether reasoning is sent to a model: it is signed, and the provider takes it back at this place.

    Some servers that speak this form sign nothing, and want their thoughts back with an empty signature. Even sent
    reasoning is left out at the end of a response, since a message may not end in reasoning.
    """
    data = _signed_part(entry.data)
    if not _is_reasoning(data):
        return False
    is_signed = bool(data[_SIGNED_KEYS[str(data["type"])][-1]])
    return ANTHROPIC.takes_back(entry, model) if is_signed else ANTHROPIC.takes_unsigned(model)


def _cited(entry: Entry) -> Part:
    """Return the citations of a text. They point into search results, so the searches of its response must be sent."""
    citations = entry.data.get(WEB_CITATIONS) if isinstance(entry.data, dict) else None
    cited = _web_citations(citations)
    return {"citations": cited} if cited else {}


def _web_citations(cited: Any) -> list[JsonValue]:
    """Return the citations of a text that a request takes back; others name a document by its place in a request."""
    parts = [each for each in cited if isinstance(each, dict)] if isinstance(cited, list) else []
    return [
        {"type": _OF_WEB, "title": each.get("title"), **{key: each[key] for key in _CITED}}
        for each in parts
        if each.get("type") == _OF_WEB and all(isinstance(each.get(key), str) for key in _CITED)
    ]


def _compaction(entry: Entry) -> Part | None:
    """Return the compaction that the server made of the history before it, to be sent back verbatim.

    The server reads nothing before it. The result is None for any other entry, and for a compaction that failed, which
    replaces nothing.
    """
    data = entry.data if entry.type == NATIVE and isinstance(entry.data, dict) else {}
    if data.get("type") != COMPACTION or not text_of(data, "content"):
        return None
    return {"type": COMPACTION, **{key: data[key] for key in _COMPACTED if data.get(key) is not None}}


def _media_parts(entry: Entry, place: str) -> list[Part]:
    made = ((part, anthropic_media(part, ANTHROPIC, place)) for part in shown_parts(entry))
    return [encoded or text_part(unseen_line(entry, part)) for part, encoded in made]


def _user_parts(entry: Entry) -> list[Part]:
    text = said_to_model(entry)
    return [*([text_part(text)] if text.strip() else []), *_media_parts(entry, "user")]


def _signed_part(data: JsonValue) -> Part:
    """Return the part that a model signed, without the name of that model; an empty part if the data has none."""
    return {key: value for key, value in data.items() if key != SIGNED_BY} if isinstance(data, dict) else {}


def _is_reasoning(data: Part) -> bool:
    """Return whether a part is reasoning in the provider's form, which it takes back byte for byte only."""
    needed = _SIGNED_KEYS.get(str(data.get("type")))
    if needed is None or data.keys() != {"type", *needed}:
        return False
    return all(isinstance(data[key], str) for key in needed)


def _files(entry: Entry) -> list[Part]:
    return [part for part in _media_parts(entry, "user") if part["type"] in _FILES]


def _result_part(entry: Entry, use_id: str, *, files_behind: bool) -> Part:
    media = _media_parts(entry, "result")
    if entry.is_error:  # "all content must be type text": the API refuses this request, and each later one
        said = [part for part in media if not (files_behind and part["type"] in _FILES)]
        media = [part if part["type"] == "text" else text_part(unseen_line(entry, part)) for part in said]
    part: Part = {"type": "tool_result", "tool_use_id": use_id}
    if media:
        part["content"] = [*([text_part(entry.text)] if entry.text.strip() else []), *media]
    elif entry.text.strip():
        part["content"] = entry.text
    elif entry.is_error:
        part["content"] = NO_OUTPUT
    return {**part, "is_error": True} if entry.is_error else part


def decode(body: Any) -> list[Block]:
    """Decode a request body, or its list of messages, into blocks; turn ids are left open.

    The placeholder result of a call without one is left out: the call stays open.
    """
    messages = body.get("messages") if isinstance(body, dict) else body
    system = body.get("system") if isinstance(body, dict) else None
    blocks: list[Block] = [SystemMessage(text=text)] if (text := joined_text(system)) else []
    decoder = MessageDecoder()
    for message in messages if isinstance(messages, list) else []:
        blocks += decoder.decode(message)
    return blocks


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
            response = text_of(message, "id") or name or f"response_{self._number}"
            read = [assistant_block(p, response, f"call_{self._number}_{i}") for i, p in enumerate(parts)]
        elif message.get("role") == "system":
            read = [SystemMessage(text=text) for text in map(text_of, parts) if text]
        else:
            read = [self._user_block(part) for part in parts]
        blocks: list[Block] = [block for block in read if block is not None]
        self._names |= {block.call_id: block.name for block in blocks if isinstance(block, ToolCall)}
        return blocks

    def _user_block(self, part: Part) -> Block | None:
        if part.get("type") == "tool_result":
            result = result_block(part)
            if result.text == INTERRUPTED:
                return None
            return result.model_copy(update={"name": self._names.get(result.call_id, "")})
        if part.get("type") == "text":
            text = text_of(part)
            return UserPrompt(text=text) if text and text != OPENING_LINE else None
        return attachment_block(part)


def parts_of(content: Any) -> list[Part]:
    """Return content as a list of parts; a string is one text part."""
    listed = content if isinstance(content, list) else [content]
    return [text_part(p) if isinstance(p, str) else p for p in listed if isinstance(p, str | dict)]


def joined_text(content: Any) -> str:
    """Return the texts of a content string or list of parts, one a line."""
    return "\n".join(text for p in parts_of(content) if p.get("type") == "text" and (text := text_of(p)))


def assistant_block(part: Part, response_id: str, call_id: str, container: str = "", model: str = "") -> Block | None:
    """Decode one content part of a response.

    Args:
        part: the part.
        response_id: the response that it belongs to.
        call_id: the id for a call without one.
        container: id of the container that the response reported.
        model: the model that answered, where the response names it.
    """
    match part.get("type"):
        case "text":
            text, cited = text_of(part), part.get("citations")
            meta = {"citations": cited} if cited else {}
            data: JsonValue = {WEB_CITATIONS: of_web} if (of_web := _web_citations(cited)) else None
            return AssistantCompletion(text=text, data=data, response_id=response_id, meta=meta) if text else None
        case "thinking":
            return Reasoning(text=text_of(part, "thinking"), data=_with_signer(part, model), response_id=response_id)
        case "redacted_thinking":
            return Reasoning(data=_with_signer(part, model), response_id=response_id)
        case "compaction":
            return CustomBlock(type=NATIVE, author="assistant", data=part, response_id=response_id)
        case "tool_use":
            return ToolCall(
                call_id=text_of(part, "id") or call_id,
                name=text_of(part, "name") or "unknown",
                arguments=from_object(part.get("input", {})),
                data=form_of(part, container),
                response_id=response_id,
            )
        case _:
            return CustomBlock(type="assistant.part", author="assistant", data=part, response_id=response_id)


def _with_signer(part: Part, model: str) -> Part:
    """Return signed reasoning with the name of its model, if another maker's model answered in this form."""
    return {**part, SIGNED_BY: model} if model and not ANTHROPIC.is_own(model) else part


def result_block(part: Part) -> ToolResult:
    """Decode a tool result; its content parts are kept where they hold more than text."""
    content = part.get("content")
    holds_more = isinstance(content, list) and any(p.get("type") != "text" for p in parts_of(content))
    return ToolResult(
        call_id=text_of(part, "tool_use_id") or "unknown",
        text=joined_text(content),
        data=content if holds_more else None,
        is_error=part.get("is_error") is True,
    )
