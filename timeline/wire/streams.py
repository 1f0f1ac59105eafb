"""Assemble the events of a model's stream into one response, also where the stream was cut.

Six dialects are read, each recognised by its first event: Anthropic's message events, OpenAI's chat chunks, OpenAI's
response events, Google's content chunks, Bedrock's Converse events and Ollama's pieces, plain or as their SDKs' stream
helpers yield them. What arrived before a cut is kept (`interrupted` in `timeline.wire.responses` documents how
much of it is sent).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Protocol

from timeline.content.native import APPROVAL, CLIENT_CALLS
from timeline.frozen import compact_json
from timeline.wire.chat_content import Chunks
from timeline.wire.chat_thoughts import DETAILS, ON_CALLS, THOUGHTS, Details
from timeline.wire.converse_stream import ConverseStream, is_converse_event
from timeline.wire.foreign import arguments_of, plain
from timeline.wire.gemini_stream import GeminiStream
from timeline.wire.ollama import OllamaStream, is_ollama
from timeline.wire.responses import cut_call, interrupted, read_response

if TYPE_CHECKING:
    from timeline.wire.media import Part
    from timeline.wire.responses import ModelResponse

_ANTHROPIC_STARTS = frozenset({"message_start", "content_block_start", "content_block_delta", "message_delta"})
_CALL_ITEMS = frozenset({"function_call", APPROVAL, *CLIENT_CALLS})
_OBJECTS = ("action", "actions", "operation")
"""The keys of a call's arguments that are no text."""
_TEXT_ITEMS = frozenset({"message", "reasoning"})
_GEMINI_FIELDS = ("candidates", "usage_metadata", "usageMetadata", "prompt_feedback", "promptFeedback")


class StreamReader:
    """Takes the events of one stream, in any dialect; unknown events are ignored."""

    def __init__(self) -> None:
        self._dialect: _Dialect | None = None

    @property
    def began(self) -> bool:
        """Whether an event of a model's response came."""
        return self._dialect is not None

    def take(self, event: Any) -> None:
        """Add the next event."""
        if self._dialect is None:
            self._dialect = _dialect_of(event)
        if self._dialect is not None:
            self._dialect.take(event)

    def response(self, *, unnamed: str) -> ModelResponse | None:
        """Return the content so far as one response, marked as interrupted unless its end arrived.

        Args:
            unnamed: the id for a response without one.

        Returns:
            The response, or None where no event of a known dialect came.
        """
        if self._dialect is None:
            return None
        reply, cut_calls = self._dialect.reply()
        response = read_response(reply, unnamed=unnamed)
        return response if self._dialect.complete else interrupted(response, cut_calls)


class _Dialect(Protocol):
    """The accumulated events of one provider."""

    complete: bool
    """Whether the final event of the response came."""

    def take(self, event: Any) -> None: ...

    def reply(self) -> tuple[dict[str, Any], list[Part]]:
        """Return the reply in the shape of an unstreamed one, and separately the incomplete calls."""
        ...


def _dialect_of(event: Any) -> _Dialect | None:
    type_ = _field(event, "type")
    if type_ in _ANTHROPIC_STARTS:
        return _Anthropic()
    if isinstance(type_, str) and type_.startswith("response."):
        return _Responses()
    if any(_field(event, name) is not None for name in _GEMINI_FIELDS):
        return GeminiStream()
    if is_converse_event(event):
        return ConverseStream()
    if is_ollama(plain(event)):
        return OllamaStream()
    has_choices = isinstance(_field(_chunk(event), "choices"), list)
    return _Chat() if type_ == "chunk" or has_choices else None


def _chunk(event: Any) -> Any:
    """Return the chunk in an event of Chat Completions: OpenAI's helper and Mistral's SDK put it into an object."""
    if _field(event, "type") == "chunk":
        return _field(event, "chunk")
    inner = _field(event, "data")
    return event if _field(inner, "choices") is None else inner


def _field(event: Any, name: str) -> Any:
    """Return a field of an SDK's object or a dict.

    Whole events are not dumped: a helper's events carry all the text so far.
    """
    if isinstance(event, dict):
        return event.get(name)
    return getattr(event, name, None) if hasattr(event, "model_dump") else None


def _object(event: Any, name: str) -> dict[str, Any]:
    """Return an object inside an event as a dict of its own, an empty one where there is none."""
    value = plain(_field(event, name))
    return dict(value) if isinstance(value, dict) else {}


def _place(event: Any, name: str) -> int:
    """Return the number of the part or item that an event belongs to."""
    number = _field(event, name)
    return number if isinstance(number, int) else 0


class _Pieces:
    """Texts that arrive in pieces, by place."""

    def __init__(self) -> None:
        self._pieces: defaultdict[tuple[Any, ...], list[str]] = defaultdict(list)

    def add(self, piece: Any, *place: Any) -> None:
        if isinstance(piece, str):
            self._pieces[place].append(piece)

    def text(self, *place: Any) -> str:
        return "".join(self._pieces.get(place, ()))

    def places(self) -> list[tuple[Any, ...]]:
        """Return the places that have a piece, in the order of their first pieces."""
        return list(self._pieces)


class _Anthropic:
    """Events of the Messages API: parts are opened, grow and are closed, by index."""

    def __init__(self) -> None:
        self.complete = False
        self._message: dict[str, Any] = {}
        self._parts: dict[int, Part] = {}
        self._whole: set[int] = set()
        self._pieces = _Pieces()

    def take(self, event: Any) -> None:
        index = _place(event, "index")
        match _field(event, "type"):
            case "message_start":
                self._message = _object(event, "message")
            case "content_block_start":
                self._parts[index] = _object(event, "content_block")
            case "content_block_delta" if index in self._parts:
                self._grow(index, _field(event, "delta"))
            case "content_block_stop":
                self._whole.add(index)
            case "message_delta":
                self._update(_object(event, "delta"), _object(event, "usage"))
            case "message_stop":
                self.complete = True

    def _grow(self, index: int, delta: Any) -> None:
        match _field(delta, "type"):
            case "text_delta":
                self._pieces.add(_field(delta, "text"), index, "text")
            case "thinking_delta":
                self._pieces.add(_field(delta, "thinking"), index, "thinking")
            case "input_json_delta":
                self._pieces.add(_field(delta, "partial_json"), index, "input")
            case "citations_delta":
                cited = self._parts[index].get("citations")
                known = cited if isinstance(cited, list) else []
                self._parts[index]["citations"] = [*known, _object(delta, "citation")]
            case _:  # a signature, a provider's own compaction: each comes whole
                fields = plain(delta)
                self._parts[index] |= (
                    {k: v for k, v in fields.items() if k != "type"} if isinstance(fields, dict) else {}
                )

    def _update(self, delta: dict[str, Any], usage: dict[str, Any]) -> None:
        """Apply the latest delta: its figures are totals, and figures that it leaves out stay as they were."""
        self._message |= {k: v for k, v in delta.items() if v is not None}
        known = _object(self._message, "usage")
        self._message["usage"] = known | {k: v for k, v in usage.items() if v is not None}

    def reply(self) -> tuple[dict[str, Any], list[Part]]:
        content: list[Part] = []
        cut: list[Part] = []
        for index, opened in self._parts.items():
            part = dict(opened)
            for key in ("text", "thinking"):
                if grown := self._pieces.text(index, key):
                    part[key] = f"{part.get(key) or ''}{grown}"
            raw = self._pieces.text(index, "input")
            part |= {"input": arguments_of(raw)} if raw else {}
            whole = self.complete or index in self._whole or isinstance(arguments_of(raw), dict)
            if "input" not in part or whole:
                content.append(part)
            else:
                cut.append(cut_call(part.get("id"), part.get("name"), raw))
        return {"type": "message", "model": "", **self._message, "content": content}, cut


class _Chat:
    """Chunks of Chat Completions: one choice's message in pieces, its calls by index."""

    def __init__(self) -> None:
        self.complete = False
        self._head: dict[str, Any] = {}
        self._finish: str | None = None
        self._calls: dict[Any, Part] = {}
        self._newest_at: dict[int, Any] = {}
        self._details: defaultdict[str, Details] = defaultdict(Details)
        self._signed: dict[str, Any] = {}
        self._content = Chunks()
        self._images: dict[Any, Part] = {}
        self._pieces = _Pieces()

    def take(self, event: Any) -> None:
        chunk = _chunk(event)
        groq = _field(chunk, "x_groq")
        usage = _object(chunk, "usage") or _object(groq, "usage")
        head = {"id": _field(chunk, "id"), "model": _field(chunk, "model"), "usage": usage}
        self._head |= {key: value for key, value in head.items() if value}
        choices = _field(chunk, "choices")
        for choice in choices if isinstance(choices, list) else ():
            self._head |= {"usage": usage} if (usage := _object(choice, "usage")) else {}  # Moonshot's
            if _field(choice, "index") in {0, None}:
                self._take_delta(_field(choice, "delta"))
                self._finish = _field(choice, "finish_reason") or self._finish
        self.complete = self._finish is not None

    def _take_delta(self, delta: Any) -> None:
        self._content.take(_field(delta, "content"))
        for key in ("refusal", *THOUGHTS):
            self._pieces.add(_field(delta, key), key)
        for key in DETAILS:
            given = plain(_field(delta, key))
            if isinstance(given, list):
                self._details[key].take(given)
            elif isinstance(given, dict):
                self._signed[key] = given
        self._take_images(plain(_field(delta, "images")))
        calls = _field(delta, "tool_calls")
        for call in calls if isinstance(calls, list) else ():
            function = _field(call, "function") or _field(call, "custom")
            place = self._place_of(_field(call, "index"), _field(call, "id"), function)
            self._take_call(place, _field(call, "id"), function)
            for key in ON_CALLS:
                if signed := _object(call, key):
                    self._calls[place][key] = signed
        if (legacy := _field(delta, "function_call")) is not None:
            self._take_call("function_call", None, legacy)

    def _take_images(self, images: Any) -> None:
        """Keep pictures that a model drew: each comes whole, and a server may repeat it."""
        for image in images if isinstance(images, list) else ():
            if isinstance(image, dict):
                self._images[image.get("index", len(self._images))] = image

    def _place_of(self, index: Any, id_: Any, function: Any) -> Any:
        """Return the place of the call that a piece belongs to.

        Some servers leave the index out: then a piece with an id begins a call, any other continues the newest one.
        Others give all calls of a response the same index: then a piece with a name of its own begins another call.
        """
        if not isinstance(index, int):
            return id_ if isinstance(id_, str) and id_ else next(reversed(self._calls), 0)
        place = self._newest_at.get(index, index)
        known = self._calls.get(place)
        if known is not None and _field(function, "name") and self._is_another(known, place, id_, function):
            place = self._newest_at[index] = (index, len(self._calls))
        return place

    def _is_another(self, known: Part, place: Any, id_: Any, function: Any) -> bool:
        """Return whether a piece with a name is not of the call that is known at its index."""
        if id_ and id_ == known["id"]:
            return False
        so_far = self._pieces.text("call", place)
        is_whole = isinstance(arguments_of(so_far), dict)
        if id_ and known["id"]:
            return is_whole or not so_far
        return is_whole and bool(_field(function, "arguments"))

    def _take_call(self, place: Any, id_: Any, function: Any) -> None:
        known = self._calls.setdefault(place, {})
        known["id"] = known.get("id") or id_
        known["name"] = known.get("name") or _field(function, "name")
        self._pieces.add(_field(function, "arguments") or _field(function, "input"), "call", place)

    def reply(self) -> tuple[dict[str, Any], list[Part]]:
        texts = {"content": self._content.content()}
        texts |= {key: self._pieces.text(key) for key in ("refusal", *THOUGHTS)}
        message: dict[str, Any] = {key: text for key, text in texts.items() if text}
        message |= {**self._signed, **{key: details.whole() for key, details in self._details.items()}}
        message |= {"images": [*self._images.values()]} if self._images else {}
        cut: list[Part] = []
        for number, (place, call) in enumerate(self._calls.items(), start=1):
            arguments = self._pieces.text("call", place)
            newest = number == len(self._calls)
            if newest and not self.complete and not isinstance(arguments_of(arguments), dict):
                cut.append(cut_call(call["id"], call["name"], arguments))
            elif place == "function_call":
                message["function_call"] = {"name": call["name"], "arguments": arguments}
            else:
                function = {"name": call["name"], "arguments": arguments}
                signed = {key: call[key] for key in ON_CALLS if key in call}
                written: Part = {"id": call["id"], "function": function, **signed}
                message.setdefault("tool_calls", []).append(written)
        return {**self._head, "choices": [{"message": message, "finish_reason": self._finish}]}, cut


class _Responses:
    """Events of the Responses API: output items are added, grow and are done, by index; the last event has them all."""

    def __init__(self) -> None:
        self.complete = False
        self._head: dict[str, Any] = {}
        self._final: dict[str, Any] | None = None
        self._items: dict[int, Part] = {}
        self._done: set[int] = set()
        self._pieces = _Pieces()

    def take(self, event: Any) -> None:
        index = _place(event, "output_index")
        match _field(event, "type"):
            case "response.created" | "response.in_progress" | "response.queued":
                response = _field(event, "response")
                self._head = {key: _field(response, key) for key in ("id", "model")}
            case "response.output_item.added":
                self._items[index] = _object(event, "item")
            case "response.output_item.done":
                self._items[index] = _object(event, "item")
                self._done.add(index)
            case "response.output_text.delta" | "response.refusal.delta":
                self._pieces.add(_field(event, "delta"), index, "said", _field(event, "content_index"))
            case "response.reasoning_summary_text.delta":
                self._pieces.add(_field(event, "delta"), index, "thought", _field(event, "summary_index"))
            case "response.reasoning_text.delta":
                self._pieces.add(_field(event, "delta"), index, "thought", _field(event, "content_index"))
            case "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta":
                self._pieces.add(_field(event, "delta"), index, "arguments")
            case "response.shell_call_command.delta" | "response.apply_patch_call_operation_diff.delta":
                self._pieces.add(_field(event, "delta"), index, "inside", _field(event, "command_index"))
            case "response.completed" | "response.incomplete" | "response.failed" as type_:
                self._final = _object(event, "response")
                self.complete = type_ != "response.failed"

    def reply(self) -> tuple[dict[str, Any], list[Part]]:
        final = self._final or {}
        if self.complete and final.get("output"):
            return final, []
        items: list[Part] = []
        cut: list[Part] = []
        for index, item in self._items.items():
            raw = self._pieces.text(index, "arguments")
            type_ = item.get("type")
            if index not in self._done and type_ in _TEXT_ITEMS:
                items.append(self._grown(index, item))
            elif index in self._done or type_ not in _CALL_ITEMS:
                items.append(item)
            elif type_ == "function_call" and isinstance(arguments_of(raw), dict):
                items.append({**item, "arguments": raw})
            else:
                cut.append(self._cut(index, item, raw))
        return {**self._head, **final, "object": "response", "output": items}, cut

    def _cut(self, index: int, item: Part, raw: str) -> Part:
        """Return what came of a call that is not done; one without a name of its own is named by its type."""
        begun = [compact_json(item[key]) for key in _OBJECTS if item.get(key)]
        pieces = [self._pieces.text(*place) for place in self._pieces.places() if place[:2] == (index, "inside")]
        name = item.get("name") or str(item.get("type")).removesuffix("_call")
        return cut_call(item.get("call_id"), name, raw or "\n".join([*begun, *pieces]))

    def _grown(self, index: int, item: Part) -> Part:
        """Return an unfinished item with the texts that it has so far."""
        texts = [self._pieces.text(*place) for place in self._pieces.places() if place[0] == index]
        if item["type"] == "message":
            return {**item, "content": [{"type": "output_text", "text": text} for text in texts]}
        return {**item, "summary": [{"type": "summary_text", "text": text} for text in texts]}
