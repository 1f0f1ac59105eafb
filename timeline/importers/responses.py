"""Read requests of OpenAI's Responses API: one document of items, as the API takes and `timeline export` writes them.

A request has no times, and its responses have no ids: keys and times are derived from the position, the conversation's
id from the content. Items that this library added for the API alone (the fixed opening line, the result of a call
without one) are left out.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import SystemMessage
from timeline.content.native import CLIENT_CALLS, FUNCTION_CALL, OPENAI_ITEMS
from timeline.events import ModelCalled
from timeline.importers.builder import UNKNOWN_TIME, Origin, RecordingBuilder
from timeline.importers.exchange import replied_items
from timeline.importers.recording import Recording, Report, short_title
from timeline.importers.response_items import CALLS, NOTHING, SAID_BY_THE_MODEL, ItemReader
from timeline.wire.foreign import text_of
from timeline.wire.groups import OPENING_LINE
from timeline.wire.openai_chat import parts_of
from timeline.wire.responses_approvals import ANSWER
from timeline.wire.responses_calls import is_placeholder
from timeline.wire.usage import responses_usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    Item = dict[str, Any]

FORMAT: Final = "openai-responses"
_OUTPUTS: Final = frozenset(f"{call}_output" for call in (FUNCTION_CALL, "local_shell_call", *CLIENT_CALLS))
_ITEMS: Final = SAID_BY_THE_MODEL | CALLS | NOTHING | _OUTPUTS | OPENAI_ITEMS | {ANSWER}
_PARTS: Final = frozenset({"input_text", "output_text", "input_image", "input_file"})
"""Part types that only these items have. A list of messages with plain texts is also valid Chat Completions."""


def is_responses(document: Any) -> bool:
    """Return whether a JSON document is a request with its ``input``, or a bare list of such items."""
    items = document.get("input") if isinstance(document, dict) else document
    if not isinstance(items, list) or not items or not all(isinstance(item, dict) for item in items):
        return False
    if not all(isinstance(item.get("type"), str) or isinstance(item.get("role"), str) for item in items):
        return False
    return isinstance(document, dict) or any(map(_shows_its_form, items))


def is_prompt_alone(document: Any) -> bool:
    """Return whether a JSON document is a request whose ``input`` is a text: the user's only message."""
    return isinstance(document, dict) and bool(text_of(document, "input").strip())


def is_item(value: Any) -> bool:
    """Return whether a value is an item, and no message of a chat: a reply of Anthropic's has a type, too."""
    if not isinstance(value, dict):
        return False
    kind = text_of(value, "type")
    return kind in _ITEMS or (kind == "message" and not value.keys() & {"model", "stop_reason"})


def _shows_its_form(item: Item) -> bool:
    parts = parts_of(item.get("content"))
    return text_of(item, "type") in _ITEMS or any(text_of(part, "type") in _PARTS for part in parts)


def read_responses(document: Any, name: str, file_hash: str) -> list[Recording]:
    """Read a document that `is_responses` recognises; the list is empty if it has no message.

    Args:
        document: the decoded JSON; or one that `is_prompt_alone` recognises.
        name: the file's name without its extension; the conversation's id begins with it.
        file_hash: the hash of the file; the id ends with it.
    """
    listed = document["input"] if isinstance(document, dict) else document
    items = [{"role": "user", "content": listed}] if isinstance(listed, str) else listed
    report = Report(format=FORMAT, lines=len(items), records=len(items))
    report.note("missing_time", 1, "times are derived from the position, a second an item")
    builder = RecordingBuilder(report)
    if text := _instructions(document):
        builder.add(SystemMessage(text=text), Origin("system", 0, UNKNOWN_TIME))
    reader = ItemReader(builder, report)
    for number, item in _said(items):
        reader.read(item, _origin(number))
    asked_after = reader.newest
    reader.end_response()
    for number, item in enumerate(replied_items(document, items, report), start=len(items) + 1):
        reader.read(item, _origin(number))
    if (reply := reader.newest) != asked_after:
        builder.set_model_call(reply, _called(document, reply), _origin(len(items) + 1))
    events = builder.finish()
    return [Recording(f"{name}-{file_hash[:12]}", events, report, short_title(builder.first_prompt))] if events else []


def _origin(number: int) -> Origin:
    return Origin(f"item-{number}", number, UNKNOWN_TIME + timedelta(seconds=number))


def _called(document: dict[str, Any], response: str) -> ModelCalled:
    usage, status = responses_usage(document.get("usage")), text_of(document, "status")
    model = text_of(document, "model")
    return ModelCalled(model=model, response_id=response, usage=usage, finish_reason=status or None)


def _instructions(document: Any) -> str:
    instructions = document.get("instructions") if isinstance(document, dict) else None
    return instructions if isinstance(instructions, str) and instructions.strip() else ""


def _said(items: list[Item]) -> Iterator[tuple[int, Item]]:
    """Yield the items with their numbers, except for those that this library added to satisfy the API."""
    for number, item in enumerate(items, start=1):
        opening = number == 1 and [part.get("text") for part in parts_of(item.get("content"))] == [OPENING_LINE]
        if not opening and not is_placeholder(item):
            yield number, item
