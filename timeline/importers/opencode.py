"""Read sessions that opencode exported (`opencode export`): one JSON document with the session and all its messages.

A message is what it says of itself and its parts. The parts are those of the AI SDK's interface messages under other
names, and opencode makes these of them before it asks a model; so they are read as such. A session is a snapshot: it is
exported anew as it grows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.events import ModelCalled, ParentLink
from timeline.importers.builder import MILLISECONDS, Origin, RecordingBuilder, client_message, time_of_stamp
from timeline.importers.recording import ImportedCompaction, ImportedHide, Recording, Report, short_title
from timeline.usage import Usage
from timeline.wire import message_decoder
from timeline.wire.foreign import object_of, objects_of, text_of
from timeline.wire.usage import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from timeline.blocks import Block
    from timeline.importers.recording import RecordedEvent

FORMAT: Final = "opencode"
_BOOKKEEPING: Final = frozenset({"snapshot", "patch", "step-finish", "agent", "retry", "subtask"})
"""Parts that no request has: states of the working tree, figures, what the user's interface shows."""
_TEXTS: Final = frozenset({"text/plain", "application/x-directory"})
"""Kinds of files that are sent as texts of their own, beside the part."""
_ABORTED: Final = "MessageAbortedError"

Fields = dict[str, Any]


def is_opencode(value: Any) -> bool:
    """Return whether a JSON value is an exported session."""
    if not isinstance(value, dict) or not isinstance(value.get("info"), dict):
        return False
    return any(
        isinstance(object_of(m, "info").get("role"), str) and "parts" in m for m in objects_of(value, "messages")
    )


def read_opencode(document: Fields, name: str) -> list[Recording]:
    """Read a session; the list is empty if nothing was said in it.

    Args:
        document: the decoded JSON, one that `is_opencode` recognises.
        name: the file's name without its extension: the id if the session has none.
    """
    session, messages = document["info"], document["messages"]
    report = Report(format=FORMAT, lines=len(messages), records=len(messages))
    reader = _Reader(report, messages, first_time=_time(object_of(session, "time").get("created")))
    reverted = text_of(object_of(session, "revert"), "messageID")
    for number, message in enumerate(messages, start=1):
        own = text_of(object_of(message, "info"), "id")
        if reverted and own >= reverted:
            report.note("rolled_back", number, own)
        reader.read(message, number)
    events = reader.finish()
    parent = text_of(session, "parentID")
    title = short_title(text_of(session, "title") or reader.builder.first_prompt)
    link = ParentLink(conversation=parent) if parent else None
    return [Recording(text_of(session, "id") or name, events, report, title, link, is_snapshot=True)] if events else []


class _Reader:
    """Reads messages in order; a user's message opens a turn."""

    def __init__(self, report: Report, messages: list[Any], first_time: datetime | None) -> None:
        self.builder = RecordingBuilder(report, first_time=first_time)
        self._report = report
        self._decoder = message_decoder("ai_sdk_ui")
        self._before: dict[str, int] = {}
        """How many blocks stand before each message."""
        self._blocks = 0
        self._asked: Fields = {}
        """The part that asked for the next summary: who did, and from which message on it keeps what was said."""
        self._cleared = _cleared(messages)

    def read(self, message: Any, number: int) -> None:
        """Read one message; ``number`` counts from 1."""
        info, parts = object_of(message, "info"), objects_of(message, "parts")
        if not info:
            self._report.note("invalid", number, "a message that says nothing of itself")
            return
        id_ = text_of(info, "id") or f"message-{number}"
        created = _time(object_of(info, "time").get("created"))
        self._before[id_] = self._blocks
        self._hide(created)
        asks = next((part for part in parts if text_of(part, "type") == "compaction"), None)
        if asks is not None:
            self._asked = asks
        elif info.get("role") == "user":
            self._read_user(parts, Origin(id_, number, created))
        elif info.get("summary") is True and not info.get("error"):
            self._read_summary(info, parts, Origin(id_, number, created))
        else:
            self._read_response(info, parts, Origin(id_, number, created))

    def finish(self) -> tuple[RecordedEvent, ...]:
        """Return the events, behind them the outputs that were cleared since."""
        self._hide(None)
        return self.builder.finish()

    def _read_user(self, parts: list[Fields], origin: Origin) -> None:
        blocks = []
        for index, part in enumerate(parts):
            place = Origin(text_of(part, "id") or f"{origin.key}.{index}", origin.line, origin.at)
            blocks += [(block, place) for block in self._user_blocks(part)]
        if not blocks:
            self._report.note("unknown_record", origin.line, "a user message that says nothing")
        self._blocks += len(blocks)
        self.builder.add_said(blocks)

    def _user_blocks(self, part: Fields) -> list[Block]:
        """Return the block of a part: what the client added to the message is the client's."""
        if part.get("ignored") is True or (part.get("type") == "file" and text_of(part, "mime") in _TEXTS):
            return []
        blocks = self._decoder.decode({"role": "user", "parts": [_ui_part(part)]})
        is_clients = part.get("synthetic") is True
        return [client_message(b.text) if is_clients and isinstance(b, UserPrompt) else b for b in blocks]

    def _read_summary(self, info: Fields, parts: list[Fields], origin: Origin) -> None:
        text = "\n".join(filter(None, (text_of(part) for part in parts if part.get("type") == "text")))
        kept = self._blocks - self._before.get(text_of(self._asked, "tail_start_id"), self._blocks)
        trigger = "auto" if self._asked.get("auto") is True else "manual"
        if text:
            size = _usage(object_of(info, "tokens"))
            before = size.input_tokens + size.cache_read_tokens
            self.builder.add_event(ImportedCompaction(text, trigger, before, kept), origin)
        else:
            self._report.note("invalid", origin.line, "a summary without a text")

    def _read_response(self, info: Fields, parts: list[Fields], origin: Origin) -> None:
        failed = text_of(object_of(info, "error"), "name")
        if failed:
            self._report.note("aborted_turn", origin.line, failed)
        says = [part for part in parts if text_of(part, "type") not in {*_BOOKKEEPING, "step-start", "reasoning"}]
        # What came before an error went into no request, unless the user broke it off.
        sent = parts if not failed or (failed == _ABORTED and says) else []
        shown = [_ui_part(part) for part in sent if text_of(part, "type") not in _BOOKKEEPING]
        blocks = self._decoder.decode({"id": origin.key, "role": "assistant", "parts": shown})
        if not blocks and not failed:
            self._report.note("unknown_record", origin.line, "an assistant message that says nothing")
        ended = {
            text_of(part, "callID"): _time(object_of(object_of(part, "state"), "time").get("end")) for part in parts
        }
        for block, key in _keyed(blocks, origin.key):
            place = Origin(key, origin.line, origin.at)
            if isinstance(block, ToolResult):
                self.builder.add_result(block, Origin(key, origin.line, ended.get(block.call_id) or origin.at))
            else:
                self.builder.add_to_response(block.response_id or origin.key, block, place)
        self._blocks += len(blocks)
        self._set_calls(info, parts, [b.response_id for b in blocks if b.response_id], origin)

    def _set_calls(self, info: Fields, parts: list[Fields], responses: list[str], origin: Origin) -> None:
        """Set the model call of each response: a step has its own figures, a message those of the newest."""
        answers = list(dict.fromkeys(responses)) or [origin.key]
        figures = [object_of(part, "tokens") for part in parts if part.get("type") == "step-finish"]
        if len(figures) != len(answers):
            figures = [*[{}] * (len(answers) - 1), object_of(info, "tokens")]
        error = object_of(info, "error")
        for response, tokens in zip(answers, figures, strict=True):
            called = ModelCalled(
                model=text_of(info, "modelID"),
                response_id=response,
                usage=_usage(tokens),
                finish_reason="error" if error else text_of(info, "finish") or None,
                started_at=origin.at,
                error=text_of(object_of(error, "data"), "message")[:200] if error else "",
            )
            self.builder.set_model_call(response, called, origin)

    def _hide(self, until: datetime | None) -> None:
        """Hide the outputs that opencode had stopped sending by then; None: all that it has."""
        for at in sorted(time for time in self._cleared if until is None or time < until):
            calls = self._cleared.pop(at)
            self.builder.add_event(ImportedHide(tuple(calls)), Origin(f"cleared-{calls[0]}", 0, at))


def _cleared(messages: list[Any]) -> dict[datetime, list[str]]:
    """Return the calls whose outputs opencode cleared, by the time at which it did."""
    found: defaultdict[datetime, list[str]] = defaultdict(list)
    for part in (part for message in messages for part in objects_of(message, "parts")):
        at = _time(object_of(object_of(part, "state"), "time").get("compacted"))
        if at is not None and text_of(part, "callID"):
            found[at].append(text_of(part, "callID"))
    return found


def _keyed(blocks: list[Block], message: str) -> Iterator[tuple[Block, str]]:
    """Yield each block with a key that stays when the message grows: a call's id, else its place in its kind."""
    counts: Counter[str] = Counter()
    for block in blocks:
        kind = f"{block.response_id or message}.{block.type}"
        key = f"{kind}-{counts[kind]}"
        counts[kind] += 1
        if isinstance(block, ToolCall | ToolResult):
            key = f"{message}.{block.call_id}{'.result' if isinstance(block, ToolResult) else ''}"
        yield block, key


def _ui_part(part: Fields) -> Fields:
    """Return a part as the AI SDK's interface has it."""
    match part.get("type"):
        case "file":
            named = {"filename": part["filename"]} if text_of(part, "filename") else {}
            return {"type": "file", "url": text_of(part, "url"), "mediaType": text_of(part, "mime"), **named}
        case "reasoning" | "text":
            signed = {"providerMetadata": part["metadata"]} if isinstance(part.get("metadata"), dict) else {}
            return {"type": part["type"], "text": text_of(part), **signed}
        case "tool":
            return _ui_tool(part)
        case _:
            return part


def _ui_tool(part: Fields) -> Fields:
    state = object_of(part, "state")
    signed = {"callProviderMetadata": part["metadata"]} if isinstance(part.get("metadata"), dict) else {}
    described = {
        "type": f"tool-{text_of(part, 'tool') or 'unknown'}",
        "toolCallId": text_of(part, "callID"),
        "input": state.get("input"),
        **signed,
    }
    interrupted = object_of(state, "metadata")
    match state.get("status"):
        case "completed":
            return {**described, "state": "output-available", "output": _output(state)}
        case "error" if interrupted.get("interrupted") is True and isinstance(interrupted.get("output"), str):
            return {**described, "state": "output-available", "output": interrupted["output"]}
        case "error":
            return {**described, "state": "output-error", "errorText": text_of(state, "error")}
        case _:
            return {**described, "state": "input-available"}


def _output(state: Fields) -> Any:
    """Return an output as it is sent: a text, and the pictures and documents that came with it."""
    text, files = text_of(state, "output"), objects_of(state, "attachments")
    media = [
        {"type": "media", "mediaType": text_of(file, "mime"), "data": text_of(file, "url").partition(",")[2]}
        for file in files
        if text_of(file, "url").startswith("data:")
    ]
    return {"type": "content", "value": [{"type": "text", "text": text}, *media]} if media else text


def _usage(tokens: Fields) -> Usage:
    """Return a response's usage: thoughts are billed as output, and are beside it in newer versions alone."""
    cache = object_of(tokens, "cache")
    sent, read, written = count_of(tokens, "input"), count_of(cache, "read"), count_of(cache, "write")
    both = count_of(tokens, "output") + count_of(tokens, "reasoning")
    in_total = count_of(tokens, "total") - sent - read - written
    return Usage(
        input_tokens=sent,
        output_tokens=in_total if 0 < in_total < both else both,
        cache_read_tokens=read,
        cache_write_5m_tokens=written,
    )


def _time(milliseconds: Any) -> datetime | None:
    return time_of_stamp(milliseconds, per_second=MILLISECONDS)
