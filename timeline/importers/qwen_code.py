"""Read Qwen Code sessions: JSON Lines, a record each of what was said, in the form of Google's contents.

Each record names the one before it. A rewind goes on from an earlier record, so the conversation is the chain that ends
with the newest one; abandoned records are left out, and reported. The records of a kind of system are the client's own,
but for a compression, whose new history begins with the summary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import ToolResult, UserPrompt
from timeline.events import ModelCalled, ParentLink
from timeline.frozen import compact_json
from timeline.importers.builder import Origin, RecordingBuilder, client_message, parse_time
from timeline.importers.gemini_cli import SETTING_UP
from timeline.importers.lines import Record, read_records
from timeline.importers.recording import ImportedCompaction, Recording, Report, short_title
from timeline.wire import message_decoder
from timeline.wire.foreign import object_of, text_of
from timeline.wire.gemini import FAILED, joined_text, parts_of
from timeline.wire.usage import count_of, gemini_usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.blocks import Block

FORMAT: Final = "qwen-code"
OPENING: Final = '{"uuid":"'
"""The beginning of a record; no value inside one begins so."""
_TYPES: Final = frozenset({"user", "assistant", "tool_result", "system"})
_OF_USERS: Final = frozenset({"", "mid_turn_user_message", "realtime_message"})
"""Kinds of the user's records that a user wrote; all others (notifications, timers, goals) are the client's."""

Fields = dict[str, Any]


def is_qwen_code(value: Any) -> bool:
    """Return whether a JSON value is a record of a Qwen Code session. Claude Code's rows have the same ids."""
    if not isinstance(value, dict) or text_of(value, "type") not in _TYPES:
        return False
    if not all(isinstance(value.get(key), str) for key in ("uuid", "sessionId", "timestamp")):
        return False
    return isinstance(object_of(value, "message").get("parts"), list) or isinstance(value.get("systemPayload"), dict)


def read_qwen_code(data: bytes, name: str) -> list[Recording]:
    """Read the bytes of a session file; the list is empty if it has no message.

    Args:
        data: the file.
        name: the file's name without its extension: the id if no record has one.
    """
    report = Report(format=FORMAT)
    records = list(read_records(data, report, opening=OPENING))
    reader = _Reader(report)
    for record in _chain(records, report):
        reader.read(record)
    events = reader.builder.finish()
    first = records[0].value if records else {}
    title = short_title(reader.title or reader.builder.first_prompt)
    id_ = text_of(first, "sessionId") or name
    return [Recording(id_, events, report, title, _parent_of(records), is_snapshot=True)] if events else []


def _chain(records: list[Record], report: Report) -> list[Record]:
    """Return the records that lead to the newest one, in order; those that a rewind left are reported."""
    known = {text_of(record.value, "uuid") for record in records}
    chain: list[Record] = []
    wanted: str | None = None
    for record in reversed(records):
        own = text_of(record.value, "uuid")
        if chain and own != wanted:
            if own and wanted is not None:
                report.note("branch", record.line, f"{own} was left by a rewind")
            continue
        chain.append(record)
        parent = record.value.get("parentUuid")
        wanted = parent if isinstance(parent, str) else None
        if wanted is not None and wanted not in known:
            report.note("lost_parent", record.line, wanted)
            break
    return chain[::-1]


def _parent_of(records: list[Record]) -> ParentLink | None:
    """Return the session that this one was branched off from, or that began it."""
    for record in records:
        if source := text_of(object_of(record.value, "forkedFrom"), "sessionId"):
            return ParentLink(conversation=source, relation="fork")
        if began := text_of(object_of(record.value, "systemPayload"), "parentSessionId"):
            return ParentLink(conversation=began)
    return None


class _Reader:
    """Reads the records of a conversation in order; a user's message opens a turn."""

    def __init__(self, report: Report) -> None:
        self.builder = RecordingBuilder(report)
        self.title = ""
        self._report = report
        self._decoder = message_decoder("gemini")
        self._said: list[tuple[str, int]] = []
        """Each content that the model has seen or said, as JSON, and how many blocks it became."""

    def read(self, record: Record) -> None:
        """Read one record."""
        value = record.value
        origin = Origin(
            text_of(value, "uuid") or f"line-{record.line}", record.line, parse_time(value.get("timestamp"))
        )
        kind = text_of(value, "type")
        if kind == "system":
            self._read_system(value, origin)
        elif kind in _TYPES:
            self._read_message(value, kind, origin)
        else:
            self._report.note("unknown_record", record.line, f"a record of type {kind or None}")

    def _read_system(self, value: Fields, origin: Origin) -> None:
        payload = object_of(value, "systemPayload")
        if text_of(value, "subtype") == "chat_compression":
            self._read_compression(payload, origin)
            return
        self.title = text_of(payload, "customTitle") or self.title
        self._report.counts["skipped"] += 1

    def _read_compression(self, payload: Fields, origin: Origin) -> None:
        listed = payload.get("compressedHistory")
        history = [content for content in listed if isinstance(content, dict)] if isinstance(listed, list) else []
        contents, kept = self._without_tail(history)
        texts = (joined_text(parts_of(content.get("parts"))) for content in contents if content.get("role") != "model")
        summary = "\n\n".join(filter(None, texts))
        if not summary:
            self._report.note("invalid", origin.line, "a compression without a summary")
            return
        size = count_of(object_of(payload, "info"), "originalTokenCount")
        self.builder.add_event(ImportedCompaction(summary, "", size, kept), origin)

    def _without_tail(self, history: list[Fields]) -> tuple[list[Fields], int]:
        """Return a new history without what it keeps of the old one, and the number of blocks that this is."""
        kept = 0
        while history and self._said and _content(history[-1]) == self._said[-1][0]:
            kept += self._said[-1][1]
            history, self._said = history[:-1], self._said[:-1]
        return history, kept

    def _read_message(self, value: Fields, kind: str, origin: Origin) -> None:
        message = object_of(value, "message")
        blocks = [self._read_as(block, value) for block in self._decoder.decode(message, origin.key)]
        if not blocks:
            self._report.note("invalid", origin.line, f"a {kind} record that says nothing")
            return
        self._said.append((_content(message), len(blocks)))
        placed = list(_placed(blocks, origin))
        if kind == "assistant":
            self._read_response(value, placed, origin)
        else:
            self.builder.add_said(placed)

    def _read_as(self, block: Block, value: Fields) -> Block:
        """Return a block with what its record says of it: that a call failed, or that the client said it."""
        if isinstance(block, ToolResult):
            failed = text_of(object_of(value, "toolCallResult"), "status") in FAILED
            return block.model_copy(update={"is_error": True}) if failed else block
        is_clients = text_of(value, "subtype") not in _OF_USERS or SETTING_UP.match(block.text)
        return client_message(block.text) if isinstance(block, UserPrompt) and is_clients else block

    def _read_response(self, value: Fields, placed: list[tuple[Block, Origin]], origin: Origin) -> None:
        for block, place in placed:
            self.builder.add_to_response(origin.key, block.model_copy(update={"response_id": origin.key}), place)
        called = ModelCalled(
            model=text_of(value, "model"), response_id=origin.key, usage=gemini_usage(value.get("usageMetadata"))
        )
        self.builder.set_model_call(origin.key, called, origin)


def _placed(blocks: list[Block], origin: Origin) -> Iterator[tuple[Block, Origin]]:
    for index, block in enumerate(blocks):
        yield block, Origin(f"{origin.key}.{index}", origin.line, origin.at)


def _content(message: Fields) -> str:
    return compact_json([message.get("role"), message.get("parts")])
