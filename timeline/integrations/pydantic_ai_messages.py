"""Convert Pydantic AI's messages into blocks, and a context into messages.

A request's parts are read one by one, a response as a whole. A written part or response with the same content as one of
the run's is that very object (`timeline.integrations.said`), or a copy of it where its calls are sent under other ids,
so that its signatures, cache points and other data of the provider stay with it. The framework's own parts of a request
(about instructions, tools, capabilities) are not part of the conversation; they are sent first.
"""

from __future__ import annotations

from base64 import b64decode
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from uuid import uuid4

from pydantic_core import to_jsonable_python

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
from timeline.errors import needs
from timeline.integrations.said import Prompted, block_says, entry_says, originals, prompt_says, said_by, said_in
from timeline.wire.foreign import arguments_of
from timeline.wire.groups import OPENING_LINE, Call, Ids, Response, fit, said_to_model
from timeline.wire.media import picture_source, shown_parts, unseen_line, unseen_lines
from timeline.wire.neutral import INTERRUPTED, Entry
from timeline.wire.providers import OPENAI_CHAT

with needs("pydantic-ai-slim", "pydantic-ai"):
    from pydantic import TypeAdapter
    from pydantic_ai.messages import (
        BinaryContent,
        DocumentUrl,
        ImageUrl,
        ModelRequest,
        ModelResponse,
        MultiModalContent,
        RetryPromptPart,
        SystemPromptPart,
        TextPart,
        ThinkingPart,
        ToolAvailabilityDeltaPart,
        ToolCallPart,
        ToolReturnPart,
        ToolSearchReturnPart,
        UserPromptPart,
    )

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic import JsonValue
    from pydantic_ai.messages import ModelMessage, ModelRequestPart, ModelResponsePart

    from timeline.blocks import Block
    from timeline.integrations.said import Sayings
    from timeline.wire.media import Part
    from timeline.wire.neutral import NeutralContext

Unit: TypeAlias = "ModelRequestPart | ModelResponse"
"""What is taken or left as one: a part of a request, or a response."""

_BOOKKEEPING: Final = frozenset(
    {
        "instruction-baseline",
        "instruction-delta",
        "tool-availability-delta",
        "capability-load-delta",
        "model-settings-delta",
    }
)
_FILE: Final = "pydantic_ai_file"
"""The type of a content part that holds one of the framework's files which no wire has a form for."""
_THOUGHT: Final = "pydantic_ai_thinking"
"""The type of a content part that holds a provider's reasoning as the framework has it."""
_REDACTED: Final = "redacted_thinking"
_FILES: Final[TypeAdapter[Any]] = TypeAdapter(MultiModalContent)


class Parted(NamedTuple):
    """A history, divided by what the timeline does with its parts.

    Attributes:
        system: the leading system prompts; the prefix of every request.
        bookkeeping: the framework's own parts, which are sent as they are.
        conversation: its messages, part by part.
        leading: what another capability puts in front of the conversation, for one request.
        passing: prompts that another capability adds elsewhere, for one request.
    """

    system: list[ModelRequestPart]
    bookkeeping: list[ModelRequestPart]
    conversation: list[Unit]
    leading: Sequence[Unit] = ()
    passing: Sequence[UserPromptPart] = ()


def parted_request(messages: Sequence[ModelMessage], history: Sequence[ModelMessage]) -> Parted:
    """Divide the messages of a request as `parted`, and what other capabilities add to this request alone.

    Args:
        messages: as the other capabilities left them.
        history: the run's, by whose very objects the others are known.
    """
    found = parted(messages)
    leading, conversation, passing = _without_additions(found.conversation, parted(history).conversation)
    return found._replace(leading=leading, conversation=conversation, passing=passing)


def _without_additions(
    units: Sequence[Unit], own: Sequence[Unit]
) -> tuple[list[Unit], list[Unit], list[UserPromptPart]]:
    """Take out what is between two neighbours of a history: where one is missing there, it may be that, rewritten.

    Of what follows its first unit prompts alone are taken out: a result may answer a call of the history.
    """
    places = {id(unit): place for place, unit in enumerate(own)}
    leading, kept, passing = list[Unit](), list[Unit](), list[UserPromptPart]()
    added, before = list[Unit](), -1
    for unit in [*units, None]:
        place = len(own) if unit is None else places.get(id(unit))
        if unit is not None and place is None:
            added.append(unit)
            continue
        prompts = [each for each in added if isinstance(each, UserPromptPart) and _words(each)]
        if place != before + 1:
            kept += added
        elif before < 0:
            leading += added
        elif len(prompts) == len(added):
            passing += prompts
        else:
            kept += added
        if unit is not None and place is not None:
            kept.append(unit)
            added, before = [], place
    return leading, kept, passing


def _words(part: UserPromptPart) -> str:
    return "\n".join(block.text for block in _asked(part, is_begun=True) if isinstance(block, UserPrompt))


def said_for_once(history: Parted) -> list[str]:
    """Return the words of the prompts that are for one request."""
    return [_words(part) for part in history.passing]


def said_in_front(history: Parted) -> list[str]:
    """Return the words that one request has in front of its conversation."""
    return [block.text for own in read_units(history.leading, is_begun=True) for block in own if block.text]


def parted(messages: Sequence[ModelMessage]) -> Parted:
    """Divide a run's history into its prefix, the framework's own parts, and the conversation."""
    found = Parted([], [], [])
    last = len(messages) - 1
    for number, message in enumerate(messages):
        if isinstance(message, ModelResponse):
            found.conversation.append(message)
            continue
        for part in message.parts:
            if isinstance(part, SystemPromptPart) and part.scope == "request":
                if number == last:  # of this request alone
                    found.bookkeeping.append(part)
            elif isinstance(part, SystemPromptPart) and not found.conversation:
                found.system.append(part)
            elif part.part_kind in _BOOKKEEPING:
                found.bookkeeping.append(part)
            else:
                found.conversation.append(part)
    return found


def id_of(unit: Unit) -> str:
    """Return what distinguishes a part or a response from equal ones: the framework keeps it with a history."""
    own = unit.provider_response_id if isinstance(unit, ModelResponse) else None
    made = getattr(unit, "timestamp", None)
    return own or (made.isoformat() if isinstance(made, datetime) else "")


# Messages into blocks


def read_units(units: Sequence[Unit], *, is_begun: bool) -> list[list[Block]]:
    """Read parts and responses, each into its blocks; turn ids are left open.

    Results that only report a missing result are left out. So is a summary by the application, if the log has the
    summarised messages.

    Args:
        units: units from `parted`.
        is_begun: whether the log has events. In an empty log a summary is all that is known, and is kept.
    """
    return [
        list(_answered(unit)) if isinstance(unit, ModelResponse) else _asked(unit, is_begun=is_begun) for unit in units
    ]


def _asked(part: Any, *, is_begun: bool) -> list[Block]:
    match part.part_kind:
        case "user-prompt":
            content = [part.content] if isinstance(part.content, str) else part.content
            return [block for item in content for block in _prompted(item)]
        case "tool-return":
            return _result(part)
        case "retry-prompt" if part.tool_name is not None:
            return [
                ToolResult(call_id=part.tool_call_id, name=part.tool_name, text=part.model_response(), is_error=True)
            ]
        case "retry-prompt" | "retry-feedback":
            return [CustomBlock(type="framework.retry", author="user", text=part.model_response())]
        case "system-prompt":
            return [SystemMessage(text=part.content)] if part.content else []
        case "compaction":
            return [] if is_begun else [CustomBlock(type="framework.summary", author="user", text=part.content or "")]
        case kind:
            return [CustomBlock(type=f"framework.{kind}", author="user", text=_transcript(part), data=_plain(part))]


def _prompted(item: Any) -> list[Block]:
    text = item if isinstance(item, str) else getattr(item, "content", None)
    if isinstance(text, str):
        return [UserPrompt(text=text)] if text and text != OPENING_LINE else []
    return [] if item.kind == "cache-point" else [_attachment(item)]


def _attachment(file: Any, author: str = "user", response_id: str | None = None) -> Attachment:
    return Attachment(author=author, data=_media(file), mime=file.media_type, response_id=response_id)


def _result(part: Any) -> list[Block]:
    text = part.model_response_str(wrap_if_error=False)
    if part.outcome == "interrupted" or text == INTERRUPTED:
        return []
    return [
        ToolResult(
            call_id=part.tool_call_id,
            name=part.tool_name,
            text=text,
            data=[_media(file) for file in part.files] or None,
            is_error=part.outcome in {"failed", "retried"},
        )
    ]


def _answered(response: ModelResponse) -> Iterator[Block]:
    response_id = response.provider_response_id or f"pydantic_ai_{uuid4()}"
    for part in response.parts:
        match part.part_kind:
            case "text":
                if part.content:
                    yield AssistantCompletion(text=part.content, response_id=response_id)
            case "thinking":
                yield Reasoning(text=part.content, data=_reasoning(part), response_id=response_id)
            case "tool-call":
                yield ToolCall(
                    call_id=part.tool_call_id,
                    name=part.tool_name or "unknown",
                    arguments=arguments_of(part.args or {}),
                    response_id=response_id,
                )
            case "file":
                yield _attachment(part.content, "assistant", response_id)
            case _:
                yield CustomBlock(
                    type="assistant.part",
                    author="assistant",
                    text=_transcript(part),
                    data=_plain(part),
                    response_id=response_id,
                )


def _transcript(part: Any) -> str:
    """Return what was spoken in a part that is speech."""
    transcript = getattr(part, "transcript", None)
    return transcript if isinstance(transcript, str) else ""


def _plain(value: Any) -> JsonValue:
    jsonable: JsonValue = to_jsonable_python(value, bytes_mode="base64", serialize_unknown=True)
    return jsonable


def _reasoning(part: ThinkingPart) -> JsonValue:
    """Return reasoning as its provider gave it, where that is one whose form every wire knows."""
    is_anthropic = part.provider_name == "anthropic" and part.provider_details is None
    if is_anthropic and part.signature and part.id == _REDACTED:
        return {"type": _REDACTED, "data": part.signature}
    if is_anthropic and part.signature and part.id is None:
        return {"type": "thinking", "thinking": part.content, "signature": part.signature}
    return {"type": _THOUGHT, **_fields(part)}


def _fields(part: ThinkingPart) -> dict[str, Any]:
    fields = _plain(part)
    return {key: value for key, value in fields.items() if value is not None} if isinstance(fields, dict) else {}


def _media(file: Any) -> Part:
    """Put a file into the form that every wire knows, or keep it as the framework has it."""
    if isinstance(file, BinaryContent) and (file.is_image or file.media_type == "application/pdf"):
        kind = "image" if file.is_image else "document"
        return {"type": kind, "source": {"type": "base64", "media_type": file.media_type, "data": file.base64}}
    if isinstance(file, ImageUrl | DocumentUrl):
        kind = "image" if isinstance(file, ImageUrl) else "document"
        return {"type": kind, "source": {"type": "url", "url": file.url}}
    return {"type": _FILE, "file": _FILES.dump_python(file, mode="json")}


# A context into messages


def to_messages(context: NeutralContext, history: Parted, last: ModelRequest) -> list[ModelMessage]:
    """Write a context as messages, the system prompts of the history first, then what is in front for this request.

    Args:
        context: the context for the model.
        history: the run's history; parts that the context shows unaltered are in the result as they are.
        last: the current request; the last message of the result has its attributes.
    """
    writer = _Writer(context.model)
    for item in said_in(context):
        writer.add(item)
    if not writer.units or isinstance(writer.units[-1], ModelResponse):
        writer.write(UserPromptPart(OPENING_LINE), ())
    given = [*history.conversation, *history.passing]
    says = [block_says(blocks) for blocks in read_units(history.conversation, is_begun=True)]
    for_once = [Entry(path="", type="ephemeral", role="user", text=text) for text in said_for_once(history)]
    says += [(entry_says(entry),) for entry in for_once]
    places = originals(writer.sayings, says)
    found = zip(writer.units, places, writer.ids, strict=True)
    units = [made if place is None else _under_ids(given[place], ids) for made, place, ids in found]
    messages: list[ModelMessage] = []
    parts = [*history.system, *history.bookkeeping, *_found_out_of_sight(history.conversation, units)]
    for unit in [*history.leading, *units]:
        if isinstance(unit, ModelResponse):
            messages += [ModelRequest(parts), unit] if parts else [unit]
            parts = []
        else:
            parts.append(unit)
    return [*messages, replace(last, parts=parts)]


def _found_out_of_sight(history: Sequence[Unit], sent: Sequence[Unit]) -> list[ModelRequestPart]:
    """Say which tools were found by a search whose result is not sent any more.

    The framework offers the tools that it finds in what is sent, and searches among those that are not in the history.
    Without this part, a tool whose search was covered would be neither offered nor found again.
    """
    shown = {*_tools_found(sent)}
    names = [name for name in dict.fromkeys(_tools_found(history)) if name not in shown]
    return [ToolAvailabilityDeltaPart(tools_added=names)] if names else []


def _tools_found(units: Sequence[Unit]) -> Iterator[str]:
    for unit in units:
        if isinstance(unit, ToolSearchReturnPart):
            yield from (tool["name"] for tool in unit.discovered_tools)


class _Writer:
    """Writes parts and responses, and for each what it says.

    Args:
        model: that the request is for.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self.units: list[Unit] = []
        self.sayings: list[Sayings] = []
        self.ids: list[Sequence[str]] = []
        """Of each, the ids of its calls, where they are not those that the log has."""
        self._ids = Ids(OPENAI_CHAT.id_pattern, OPENAI_CHAT.id_length)

    def write(self, unit: Unit, says: Sayings, ids: Sequence[str] = ()) -> None:
        """Add a part or a response; ``says`` is ``()`` for one that cannot equal any of the run's."""
        self.units.append(unit)
        self.sayings.append(says)
        self.ids.append(ids)

    def add(self, item: Prompted | Response) -> None:
        """Write a response with its results, or a message to the model."""
        if isinstance(item, Response):
            self._add_response(item)
            return
        content = [piece for entry in item.entries for piece in _user_content(entry)]
        if content:
            is_text = len(content) == 1 and isinstance(content[0], str)
            part = UserPromptPart(content[0] if is_text else content)
            self.write(part, prompt_says(item))

    def _add_response(self, response: Response) -> None:
        placed = said_by(response, self._model)
        sent = [part.placed.entry if isinstance(part, Call) else part.entry for part in placed]
        calls = [(call, self._ids.give(str(call.placed.entry.call_id))) for call in response.calls]
        ids = iter(calls)
        parts: list[ModelResponsePart] = []
        for part, entry in zip(placed, sent, strict=True):
            parts += _said(entry)
            if isinstance(part, Call):
                parts.append(_call(entry, next(ids)[1]))
        if all(part.part_kind == "thinking" for part in parts):
            return  # no model takes a message of nothing but reasoning
        if not self.units:
            self.write(UserPromptPart(OPENING_LINE), ())
        is_as_it_was = all(id_ == call.placed.entry.call_id for call, id_ in calls)
        provider = next((part.provider_name for part in parts if isinstance(part, ThinkingPart)), None)
        made = ModelResponse(parts, provider_name=provider)
        self.write(made, tuple(map(entry_says, sent)), () if is_as_it_was else [id_ for _, id_ in calls])
        for call, id_ in calls:
            self._add_result(call, id_, is_as_it_was=is_as_it_was)

    def _add_result(self, call: Call, id_: str, *, is_as_it_was: bool) -> None:
        name = call.placed.entry.name or "unknown"
        if call.result is None:
            self.write(ToolReturnPart(name, INTERRUPTED, id_, outcome="interrupted"), ())
            return
        entry = call.result.entry
        files = _files(entry)
        content: Any = [*([entry.text] if entry.text else []), *files] if files else entry.text
        part = ToolReturnPart(name, content, id_, outcome="failed" if entry.is_error else "success")
        self.write(part, (entry_says(entry),), () if is_as_it_was else [id_])


def _under_ids(unit: Unit, ids: Sequence[str]) -> Unit:
    """Return one of the run's parts or responses with other ids of its calls: the very object where there are none."""
    if not ids:
        return unit
    if isinstance(unit, ToolReturnPart | RetryPromptPart):
        return replace(unit, tool_call_id=ids[0])
    if not isinstance(unit, ModelResponse):
        return unit
    left = iter(ids)
    parts = [replace(part, tool_call_id=next(left)) if isinstance(part, ToolCallPart) else part for part in unit.parts]
    return replace(unit, parts=parts)


def _user_content(entry: Entry) -> list[Any]:
    text = said_to_model(entry)
    return [*([text] if text.strip() else []), *_files(entry)]


def _files(entry: Entry) -> list[Any]:
    """Return pictures and documents as the framework's files; any other part as a line of text."""
    return [_file(part) or unseen_line(entry, part) for part in shown_parts(entry)]


def _file(part: Part) -> Any:
    kind = part["type"]
    source = picture_source(part) if kind in {"image", "image_url"} else part.get("source")
    match source:
        case {"type": "base64", "media_type": str(mime), "data": str(data)}:
            return _binary(data, mime)
        case {"type": "url", "url": str(url)}:
            return DocumentUrl(url) if kind == "document" else ImageUrl(url)
    return _FILES.validate_python(part["file"]) if kind == _FILE else None


def _binary(data: str, mime: str) -> BinaryContent | None:
    try:
        return BinaryContent.narrow_type(BinaryContent(b64decode(data), media_type=mime))
    except ValueError:  # what was recorded is no base64
        return None


def _said(entry: Entry) -> list[ModelResponsePart]:
    if entry.type == "assistant.reasoning":
        return _thinking(entry)
    if entry.text.strip():
        return [TextPart(entry.text)]
    return [*map(TextPart, unseen_lines(entry))]


def _thinking(entry: Entry) -> list[ModelResponsePart]:
    match entry.data:
        case {"type": "thinking", "thinking": str(text), "signature": str(signature)}:
            return [ThinkingPart(text, signature=signature, provider_name="anthropic")]
        case {"type": "redacted_thinking", "data": str(signature)}:
            return [ThinkingPart("", id=_REDACTED, signature=signature, provider_name="anthropic")]
        case {"type": kind, "content": str(text), **fields} if kind == _THOUGHT:
            own: dict[str, Any] = {str(key): value for key, value in fields.items() if key != "part_kind"}
            return [ThinkingPart(text, **own)]
    return []


def _call(entry: Entry, id_: str) -> ToolCallPart:
    name = fit(entry.name or "unknown", OPENAI_CHAT.name_pattern, OPENAI_CHAT.name_length)
    arguments: Any = entry.arguments or {}
    return ToolCallPart(name, arguments, id_)
