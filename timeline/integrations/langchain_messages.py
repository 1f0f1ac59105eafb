"""Convert LangChain's messages into blocks, and a context into messages.

A message is read by its attributes. The written messages have LangChain's standard content blocks, which the chat
models of all providers take. A message with the same content as one of the caller's is that very object
(`timeline.integrations.said`), so that its provider's own data stays with it; or a copy of it, where its calls are sent
under other ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

from timeline.blocks import AssistantCompletion, CustomBlock, Reasoning, SystemMessage, ToolCall, ToolResult, UserPrompt
from timeline.errors import InvalidBlock, needs
from timeline.integrations.said import Prompted, block_says, entry_says, originals, prompt_says, said_by, said_in
from timeline.wire.foreign import as_object, from_object, plain, text_of
from timeline.wire.groups import OPENING_LINE, Call, Ids, Response, fit, said_to_model
from timeline.wire.media import attachment_block, shown_parts, text_part, unseen_line, unseen_lines
from timeline.wire.neutral import INTERRUPTED
from timeline.wire.providers import OPENAI_CHAT

with needs("langchain"):
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, convert_to_messages
    from langchain_core.messages import ToolCall as ToolCallDict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_core.messages import AnyMessage, BaseMessage
    from pydantic import JsonValue

    from timeline.blocks import Block
    from timeline.integrations.said import Sayings
    from timeline.wire.media import Part
    from timeline.wire.neutral import Entry, NeutralContext

_TEXTS: Final = {"text": "text", "output_text": "text", "refusal": "refusal"}
"""Types of content blocks with a text, and the key of that text."""
_CALLS: Final = frozenset({"tool_use", "tool_call", "function_call", "invalid_tool_call"})
"""Types of content blocks that represent one of the message's calls."""
_FRAGMENTS: Final = frozenset({"input_json_delta", "tool_call_chunk"})
"""Types of content blocks that remain from a stream: the message's calls have the same content."""
_THOUGHTS: Final = {"thinking": "thinking", "reasoning": "reasoning", "redacted_thinking": "", "reasoning_content": ""}
"""Types of content blocks with reasoning, and the key of their text."""
_THINKING: Final = frozenset({"thinking", "redacted_thinking"})
"""Reasoning that is written back, too: a provider demands its signed reasoning in a tool loop."""
_WITH_IDS: Final = frozenset(
    {"content", "additional_kwargs", "tool_calls", "invalid_tool_calls", "tool_call_chunks", "tool_call_id"}
)
"""Fields of a message that name calls; Google's signatures are in one of them, by the ids of the calls."""
_IDS: Final = frozenset({"id", "call_id", "tool_call_id", "tool_use_id"})
_GIVEN_TO_TOOLS: Final = frozenset({"args", "arguments", "input"})
_MEDIA: Final = frozenset({"image", "image_url", "audio", "file", "video", "document"})
_SYSTEM: Final = frozenset({"system", "SystemMessageChunk"})
_PASSING: Final = frozenset({"human", "system", "chat"})
"""Kinds of messages that another middleware may add to one request."""
_SUMMARY: Final = "summarization"
"""The mark of LangChain's own summaries."""
_ID_LENGTH: Final = OPENAI_CHAT.id_length
"""The shortest that any provider allows, since the model of the next call may be another one's."""


class RequestParts(NamedTuple):
    """The messages of a request, divided by what the timeline does with them.

    Attributes:
        leading: the prefix of the request: the leading system messages, and an exchange (examples, say) that other
            middleware puts in front of the conversation.
        conversation: its messages, without the others.
        passing: messages that other middleware adds to this request only.
    """

    leading: list[AnyMessage]
    conversation: list[AnyMessage]
    passing: list[str]


def divide_request(messages: Sequence[Any], state: Sequence[AnyMessage]) -> RequestParts:
    """Divide the messages of a request.

    If another middleware cleared a message for this request, the agent's own message is used: the log's policy decides
    what to clear. A message that is not in the state, and is neither a response nor a result, is for this request only;
    so is an exchange in front of all that the state has, which may be another one with each request.

    Args:
        messages: the messages of the request, as other middleware left them.
        state: the agent's own messages.
    """
    own = {message.id: message for message in state if message.id}
    converted = [_uncleared(message, own) for message in convert_to_messages(messages)]
    leading = _beginning(converted, own)
    found = RequestParts(converted[:leading], [], [])
    for message in converted[leading:]:
        if own and message.id not in own and message.type in _PASSING:
            found.passing.append(str(message.text))
        else:
            found.conversation.append(message)
    return found


def _beginning(messages: Sequence[AnyMessage], own: dict[str, AnyMessage]) -> int:
    """Return the number of the message that the conversation begins with."""
    start = _behind_system(messages, 0)
    first = next((n for n in range(start, len(messages)) if messages[n].id in own), start)
    is_exchange = any(message.type not in _PASSING for message in messages[start:first])
    return _behind_system(messages, first) if is_exchange else start


def _behind_system(messages: Sequence[AnyMessage], start: int) -> int:
    return next((n for n in range(start, len(messages)) if messages[n].type not in _SYSTEM), len(messages))


def _uncleared(message: Any, own: dict[str, AnyMessage]) -> AnyMessage:
    found: AnyMessage = own.get(message.id, message) if "context_editing" in message.response_metadata else message
    return found


# Messages into blocks


def read_messages(messages: Sequence[BaseMessage], *, is_begun: bool) -> list[list[Block]]:
    """Read messages, each into its blocks; turn ids are left open.

    Results that only report a missing result are left out. So is another middleware's summary, if the log has the
    summarised messages.

    Args:
        messages: without leading system messages.
        is_begun: whether the log has events, so that a summary repeats them. In an empty log the summary is all that is
            known, and is kept.

    Raises:
        InvalidBlock: an element is not a message; the field names it.
    """
    return [_read(message, number, is_begun=is_begun) for number, message in enumerate(messages)]


def _read(message: BaseMessage, number: int, *, is_begun: bool) -> list[Block]:
    match getattr(message, "type", None):
        case "human" | "HumanMessageChunk":
            if is_summary(message):
                text = _joined(message.content)
                return [] if is_begun else [CustomBlock(type="framework.summary", author="user", text=text)]
            return [block for part in _parts(message.content) if (block := _asked(part)) is not None]
        case "ai" | "AIMessageChunk":
            return list(_answered(message))
        case "tool" | "ToolMessageChunk":
            return _result(message)
        case "system" | "SystemMessageChunk":
            return [SystemMessage(text=text)] if (text := _joined(message.content)) else []
        case str(kind):
            author = getattr(message, "role", None) or getattr(message, "name", None) or kind
            text = _joined(message.content)
            return [CustomBlock(type="chat.message", author=str(author), text=text)] if text else []
    raise InvalidBlock(f"messages[{number}]", f"must be a message of LangChain's, not of type {type(message).__name__}")


def is_summary(message: BaseMessage) -> bool:
    """Return whether a message is a summary of LangChain's own."""
    return message.additional_kwargs.get("lc_source") == _SUMMARY


def _parts(content: Any) -> list[Part]:
    """Return content as a list of blocks of plain values, without a stream's numbers."""
    listed = content if isinstance(content, list) else [content]
    parts = [{"type": "text", "text": part} if isinstance(part, str) else plain(part) for part in listed]
    return [{key: value for key, value in part.items() if key != "index"} for part in parts if isinstance(part, dict)]


def _text(part: Part) -> str:
    return text_of(part, _TEXTS.get(str(part.get("type")), ""))


def _joined(content: Any) -> str:
    return "\n".join(filter(None, map(_text, _parts(content))))


def _asked(part: Part) -> Block | None:
    if part.get("type") in _TEXTS:
        text = _text(part)
        return UserPrompt(text=text) if text and text != OPENING_LINE else None
    return attachment_block(_media(part))


def _answered(message: Any) -> Iterator[Block]:
    """Yield the blocks of a model's message: its content in order, each call in its place, or at the end."""
    response_id = message.id or f"lc_{uuid4()}"
    left = _calls(message, response_id)
    thought = message.additional_kwargs.get("reasoning_content")
    if isinstance(thought, str) and thought:
        yield Reasoning(text=thought, response_id=response_id)
    for part in _response_parts(message):
        kind = part.get("type")
        if kind in _CALLS:
            wanted = text_of(part, "call_id") or text_of(part, "id")
            if (call := next((call for call in left if call.call_id == wanted), None)) is not None:
                left.remove(call)
                yield call
        elif kind in _TEXTS:
            if text := _text(part):
                yield AssistantCompletion(text=text, response_id=response_id)
        elif kind in _THOUGHTS:
            yield Reasoning(text=_thought(part), data=part, response_id=response_id)
        elif kind in _MEDIA:
            yield attachment_block(_media(part), "assistant").model_copy(update={"response_id": response_id})
        elif kind not in _FRAGMENTS:
            yield CustomBlock(type="assistant.part", author="assistant", data=part, response_id=response_id)
    yield from _spoken(message, response_id)
    yield from left


def _response_parts(message: Any) -> list[Part]:
    """Return the parts of a response, and those that LangChain keeps beside its content.

    These are a refusal of Chat Completions, and all but the texts where a model has `output_version="v0"`.
    """
    beside = message.additional_kwargs
    before = [beside.get("reasoning"), *(beside.get("tool_outputs") or ())]
    refusal = {"type": "refusal", "refusal": beside.get("refusal") or ""}
    return [*_parts([part for part in before if isinstance(part, dict)]), *_parts(message.content), refusal]


def _spoken(message: Any, response_id: str) -> Iterator[Block]:
    """Yield what a model of Chat Completions said aloud, which has no content."""
    if isinstance(audio := plain(message.additional_kwargs.get("audio")), dict) and audio:
        text = text_of(audio, "transcript")
        yield AssistantCompletion(text=text, response_id=response_id, meta={"audio": audio})


def _calls(message: Any, response_id: str) -> list[ToolCall]:
    """Return a message's calls, the invalid ones too."""
    calls = [*message.tool_calls, *message.invalid_tool_calls]
    return [
        ToolCall(
            call_id=call.get("id") or f"{response_id}_{number}",
            name=call.get("name") or "unknown",
            arguments=from_object(plain(call.get("args") or {})),
            response_id=response_id,
        )
        for number, call in enumerate(calls)
    ]


def _thought(part: Part) -> str:
    thought = text_of(part, _THOUGHTS[str(part["type"])])
    summary = part.get("summary")
    if thought or not isinstance(summary, list):
        return thought
    return "\n".join(text_of(piece, "text") for piece in summary if isinstance(piece, dict))


def _result(message: Any) -> list[Block]:
    parts = _parts(message.content)
    media: list[JsonValue] = [_media(part) for part in parts if part.get("type") not in _TEXTS]
    text = _joined(message.content)
    if text == INTERRUPTED or not message.tool_call_id:
        return []
    return [
        ToolResult(
            call_id=message.tool_call_id,
            name=message.name or "",
            text=text,
            data=media or None,
            is_error=message.status == "error",
        )
    ]


def _media(part: Part) -> Part:
    """Return LangChain's picture or document in the form that every wire knows; any other part unchanged."""
    kind = {"image": "image", "file": "document"}.get(str(part.get("type")))
    mime, data = text_of(part, "mime_type"), text_of(part, "base64") or text_of(part, "data")
    if kind and mime and data and (kind == "image" or mime == "application/pdf"):
        return {"type": kind, "source": {"type": "base64", "media_type": mime, "data": data}}
    if kind and (url := text_of(part, "url")):
        return {"type": kind, "source": {"type": "url", "url": url}}
    return part


# A context into messages


def to_messages(context: NeutralContext, given: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Write a context as messages, without the system prompt.

    Args:
        context: the context for the model.
        given: the caller's messages; those that the context shows unaltered are in the result as they are.
    """
    writer = _Writer(context.model)
    for item in said_in(context):
        writer.add(item)
    if not writer.messages or writer.messages[-1].type == "ai":
        writer.write(HumanMessage(OPENING_LINE), ())
    known = [block_says(blocks) for blocks in read_messages(given, is_begun=True)]
    places = originals(writer.sayings, known)
    found = zip(writer.messages, places, writer.ids, strict=True)
    return [made if place is None else _under_ids(given[place], ids, made) for made, place, ids in found]


class _Writer:
    """Writes messages, and the sayings of each.

    Args:
        model: the model of the request.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self.messages: list[AnyMessage] = []
        self.sayings: list[Sayings] = []
        self.ids: list[dict[str, str]] = []
        """Of each, the ids of its calls by those that the log has, where these are others."""
        self._ids = Ids(OPENAI_CHAT.id_pattern, _ID_LENGTH)

    def write(self, message: AnyMessage, says: Sayings, ids: Sequence[tuple[Call, str]] = ()) -> None:
        """Add a message; ``says`` is ``()`` for one that cannot equal any of the caller's."""
        self.messages.append(message)
        self.sayings.append(says)
        own = {str(call.placed.entry.call_id): id_ for call, id_ in ids}
        self.ids.append({} if all(one == other for one, other in own.items()) else own)

    def add(self, item: Prompted | Response) -> None:
        """Write a response with its results, or a message to the model."""
        if isinstance(item, Response):
            self._add_response(item)
            return
        parts = [part for entry in item.entries for part in _user_parts(entry)]
        if parts:
            self.write(HumanMessage(_content(parts)), prompt_says(item))

    def _add_response(self, response: Response) -> None:
        parts = said_by(response, self._model)
        sent = [part.placed.entry if isinstance(part, Call) else part.entry for part in parts]
        calls = [
            (call, self._ids.give(str(call.placed.entry.call_id))) for call in response.calls
        ]  # in the order of the response, as all ids are given out
        ids = iter(calls)
        content: list[Part] = []
        tool_calls: list[ToolCallDict] = []
        for part, entry in zip(parts, sent, strict=True):
            if entry.text.strip() and entry.type != "assistant.reasoning":
                content.append(text_part(entry.text))
            elif not isinstance(part, Call):
                content += _assistant_parts(entry)
            if isinstance(part, Call):
                tool_calls.append(_call(entry, next(ids)[1]))
                content.append({"type": "tool_use", **_use(tool_calls[-1])})
        if all(part["type"] in _THINKING for part in content):
            return  # no model takes a message of nothing but reasoning
        if not self.messages:
            self.write(HumanMessage(OPENING_LINE), ())
        made = AIMessage(_response_content(content), tool_calls=tool_calls)
        self.write(made, tuple(map(entry_says, sent)), calls)
        for call, id_ in calls:
            self._add_result(call, id_)

    def _add_result(self, call: Call, id_: str) -> None:
        name = call.placed.entry.name or None
        if call.result is None:
            self.write(ToolMessage(INTERRUPTED, tool_call_id=id_, name=name), ())
            return
        entry = call.result.entry
        parts = [*([text_part(entry.text)] if entry.text.strip() else []), *_media_parts(entry)]
        status: Any = "error" if entry.is_error else "success"
        message = ToolMessage(_content(parts) if parts else "", tool_call_id=id_, name=name, status=status)
        self.write(message, (entry_says(entry),), [(call, id_)])


def _under_ids(message: AnyMessage, ids: dict[str, str], made: AnyMessage) -> AnyMessage:
    """Return one of the caller's messages with other ids of its calls: the very object where there are none.

    A message that does not name each of its calls by an id of its own is sent as it was ``made`` from the log.
    """
    if not ids:
        return message
    named = [call["id"] for call in [*getattr(message, "tool_calls", ()), *getattr(message, "invalid_tool_calls", ())]]
    if named and sorted(map(str, named)) != sorted(ids):
        return made
    return message.model_copy(
        update={name: _renamed_field(name, value, ids) for name, value in message if name in _WITH_IDS}
    )


def _renamed(value: Any, ids: dict[str, str]) -> Any:
    """Return a part of a message with other ids of calls; what a model gave its tools stays as it is."""
    if isinstance(value, list):
        return [_renamed(each, ids) for each in value]
    if not isinstance(value, dict):
        return value
    return {ids.get(name, name): _renamed_field(name, each, ids) for name, each in value.items()}


def _renamed_field(name: str, value: Any, ids: dict[str, str]) -> Any:
    if name in _GIVEN_TO_TOOLS:
        return value
    return ids.get(value, value) if name in _IDS and isinstance(value, str) else _renamed(value, ids)


def _content(parts: list[Part]) -> Any:
    """Write one text as a plain string, which every chat model takes, and anything else as blocks."""
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _response_content(content: list[Part]) -> Any:
    """Write a response's content; if it has reasoning, the calls keep their places in between."""
    if any(part["type"] in _THINKING for part in content):
        return content
    texts = [part for part in content if part["type"] != "tool_use"]
    return _content(texts) if texts else ""


def _user_parts(entry: Entry) -> list[Part]:
    text = said_to_model(entry)
    return [*([text_part(text)] if text.strip() else []), *_media_parts(entry)]


def _assistant_parts(entry: Entry) -> list[Part]:
    if entry.type == "assistant.reasoning":
        data = entry.data
        return [data] if isinstance(data, dict) and data.get("type") in _THINKING else []
    return [*map(text_part, unseen_lines(entry))]


def _media_parts(entry: Entry) -> list[Part]:
    """Return pictures and documents as LangChain's standard blocks; other parts were LangChain's own and stay as is."""
    return [
        text_part(unseen_line(entry, part)) if part["type"] == entry.type else _standard(part)
        for part in shown_parts(entry)
    ]


def _standard(part: Part) -> Part:
    kind = {"image": "image", "document": "file"}.get(part["type"])
    source = part.get("source")
    match source if kind else None:
        case {"type": "base64", "media_type": str(mime), "data": str(data)}:
            return {"type": kind, "base64": data, "mime_type": mime}
        case {"type": "url", "url": str(url)}:
            return {"type": kind, "url": url}
    return part


def _call(entry: Entry, id_: str) -> ToolCallDict:
    name = fit(entry.name or "unknown", OPENAI_CHAT.name_pattern, OPENAI_CHAT.name_length)
    return ToolCallDict(id=id_, name=name, args=as_object(entry.arguments), type="tool_call")


def _use(call: ToolCallDict) -> Part:
    return {"id": call["id"], "name": call["name"], "input": call["args"]}
