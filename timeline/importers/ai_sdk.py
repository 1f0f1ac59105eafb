"""Read chats of the AI SDK: interface messages (``UIMessage[]``) or model messages (``ModelMessage[]``).

A chat is one JSON document, a bare list or an object with ``messages`` as `useChat` sends it, or JSON Lines with one
message a line. Files are snapshots: the same chat is written again as it grows, so the conversation's id and the keys
are derived from the messages' own ids, or from content if they have none. Parts that were still being streamed are left
to a later snapshot.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.blocks import ToolCall, ToolResult
from timeline.events import ModelCalled
from timeline.frozen import canonical_json, sha256_hex
from timeline.importers.builder import (
    UNKNOWN_TIME,
    Origin,
    RecordingBuilder,
    parse_time,
    time_of_any_stamp,
)
from timeline.importers.chat import form_of
from timeline.importers.lines import BYTE_ORDER_MARK, read_records
from timeline.importers.recording import Recording, Report, short_title
from timeline.wire import message_decoder
from timeline.wire.ai_sdk_earlier import later_message
from timeline.wire.ai_sdk_ui import UNFINISHED
from timeline.wire.foreign import text_of
from timeline.wire.usage import ai_sdk_usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.blocks import Block

OPENINGS: Final = ('{"role":', '{"id":')
"""How a message's line begins: model messages have no id as the SDK makes them. The first is taken if none is there."""
FORMS: Final = frozenset({"ai_sdk", "ai_sdk_ui"})
ROLES: Final = frozenset({"system", "user", "assistant", "tool"})


class _Message(NamedTuple):
    line: int
    value: dict[str, Any]


def is_ai_sdk(document: Any) -> bool:
    """Return whether a JSON document is a chat of the AI SDK, by fields that only its messages have."""
    messages = document.get("messages") if isinstance(document, dict) else document
    return isinstance(messages, list) and next(filter(None, map(form_of, messages)), None) in FORMS


def is_ai_sdk_message(value: dict[str, Any]) -> bool:
    """Return whether a line is a message of the AI SDK."""
    return form_of(value) in FORMS


def read_ai_sdk(document: Any, name: str) -> list[Recording]:
    """Read a chat's document; the list is empty if it has no message.

    Args:
        document: the decoded JSON, one that `is_ai_sdk` recognises.
        name: the file's name without its extension; the id begins with it if the document has none.
    """
    messages = document["messages"] if isinstance(document, dict) else document
    report = Report(lines=len(messages), records=len(messages))
    about = document if isinstance(document, dict) else {}
    return _read(list(enumerate(messages, start=1)), name, report, about)


def read_ai_sdk_lines(data: bytes, name: str) -> list[Recording]:
    """Read a chat of one message a line; the list is empty if it has no message."""
    report = Report()
    start = data.removeprefix(BYTE_ORDER_MARK).lstrip()
    opening = next((known for known in OPENINGS if start.startswith(known.encode())), OPENINGS[0])
    return _read(
        [(record.line, record.value) for record in read_records(data, report, opening=opening)], name, report, {}
    )


def _read(numbered: list[tuple[int, Any]], name: str, report: Report, about: dict[str, Any]) -> list[Recording]:
    messages = list(_messages(numbered, report))
    form = next((form for _, value in messages if (form := form_of(value)) in FORMS), "ai_sdk")
    report.format = str(form).replace("_", "-")
    reader = _Reader(str(form), report)
    at = UNKNOWN_TIME
    if form == "ai_sdk_ui":
        messages = [message._replace(value=later_message(message.value)) for message in messages]
    for message in messages:
        recorded_at = _time_of(message.value)
        if recorded_at is None:
            report.note("missing_time", message.line, "a second after the message before it")
        # Only earlier messages count, so that a message keeps its time as the chat grows.
        at = recorded_at or at + timedelta(seconds=1)
        reader.read(message, at)
    events = reader.builder.finish()
    if not events:
        return []
    id_ = text_of(about, "id") or text_of(about, "chatId") or f"{name}-{_key_of(messages[0].value)[:12]}"
    title = short_title(text_of(about, "title") or reader.builder.first_prompt)
    return [Recording(id_, events, report, title, is_snapshot=True)]


def _messages(numbered: list[tuple[int, Any]], report: Report) -> Iterator[_Message]:
    """Yield the messages; of several with one id the last replaces the first, in the place of the first."""
    last: dict[str, Any] = {text_of(m, "id"): m for _, m in numbered if isinstance(m, dict)}
    seen: set[str] = set()
    for line, value in numbered:
        if not isinstance(value, dict) or text_of(value, "role") not in ROLES:
            report.note("unknown_record", line, "no message of a known role")
            continue
        if id_ := text_of(value, "id"):
            if id_ in seen:
                report.note("duplicate_record", line, id_)
                continue
            seen.add(id_)
            if text_of(last[id_], "role") in ROLES:
                yield _Message(line, last[id_])
                continue
        yield _Message(line, value)


def _key_of(message: dict[str, Any]) -> str:
    return text_of(message, "id") or sha256_hex(canonical_json(message))


def _time_of(message: dict[str, Any]) -> datetime | None:
    """Return when a message was made; applications write the time into its metadata, as text or as a number."""
    metadata = message.get("metadata")
    written = metadata.get("createdAt") if isinstance(metadata, dict) else None
    written = message.get("createdAt") if written is None else written
    return parse_time(written) or time_of_any_stamp(written)


class _Reader:
    """Reads messages in order; a user's message opens a turn."""

    def __init__(self, form: str, report: Report) -> None:
        self.builder = RecordingBuilder(report)
        self._report = report
        self._decoder = message_decoder(form)
        self._number = 0

    def read(self, message: _Message, at: datetime) -> None:
        """Read one message."""
        line, value = message
        self._number += 1
        own = text_of(value, "id")
        name = own or f"message-{self._number}-{_key_of(value)[:12]}"
        blocks = self._decoder.decode({**value, "id": name})
        unfinished = sum(isinstance(p, dict) and text_of(p, "state") in UNFINISHED for p in _parts(value))
        if unfinished:
            self._report.note("torn", line, f"{unfinished} parts were still streamed; a later snapshot has them")
        elif not blocks:
            self._report.note("unknown_record", line, f"a {value['role']} message that says nothing")
        message_blocks = []
        for block, place in self._placed(blocks, name, line, at):
            if isinstance(block, ToolResult):
                self.builder.add_result(block, place)
            elif block.response_id is not None:
                self.builder.add_to_response(block.response_id, block, place)
            else:
                message_blocks.append((block, place))
        self.builder.add_said(message_blocks)
        if not unfinished:  # figures are those of the whole message
            self._add_usage(value, blocks, line, at)

    def _placed(self, blocks: list[Block], name: str, line: int, at: datetime) -> Iterator[tuple[Block, Origin]]:
        """Yield each block with a key that stays when the message grows: a call's id, else its place in its kind."""
        counts: Counter[str] = Counter()
        for block in blocks:
            kind = f"{block.response_id or name}.{block.type}"
            key = f"{kind}-{counts[kind]}"
            counts[kind] += 1
            if isinstance(block, ToolCall | ToolResult):
                key = f"{name}.{block.call_id}{'.result' if isinstance(block, ToolResult) else ''}"
            yield block, Origin(key, line, at)

    def _add_usage(self, message: dict[str, Any], blocks: list[Block], line: int, at: datetime) -> None:
        """Add the usage of a message that was one response; a sum over several responses belongs to none of them."""
        metadata = message.get("metadata")
        usage = metadata.get("usage", metadata.get("totalUsage")) if isinstance(metadata, dict) else None
        responses = {block.response_id for block in blocks} - {None}
        if not isinstance(metadata, dict) or not isinstance(usage, dict) or not responses:
            return
        if len(responses) > 1:
            self._report.note("missing_usage", line, f"figures of {len(responses)} responses together")
            return
        response = str(responses.pop())
        called = ModelCalled(
            model=text_of(metadata, "model"),
            response_id=response,
            usage=ai_sdk_usage(usage),
            finish_reason=text_of(metadata, "finishReason") or None,
        )
        self.builder.set_model_call(response, called, Origin(response, line, at))


def _parts(message: dict[str, Any]) -> list[Any]:
    parts = message.get("parts")
    return parts if isinstance(parts, list) else []
