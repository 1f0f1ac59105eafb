"""Read Gemini CLI chats: one JSON document a session, whose messages become blocks, model calls and results.

Versions from 0.40 on write the same messages as lines, see `gemini_lines`.

A message of the model contains its thoughts, its text, its calls and their results. Files are snapshots: the same
session is written again as it grows, so keys are derived from the messages' own ids. The client's messages to the user
alone (news of an update, warnings) were never in the model's context and are skipped.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import AssistantCompletion, CustomBlock, Reasoning, ToolCall, UserPrompt
from timeline.events import ModelCalled
from timeline.importers.builder import Origin, RecordingBuilder, client_message, parse_time
from timeline.importers.recording import Recording, Report, short_title
from timeline.usage import Usage
from timeline.wire.foreign import arguments_of, text_of
from timeline.wire.gemini import joined_text, media_block, parts_of, result_block
from timeline.wire.usage import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from timeline.blocks import Block
    from timeline.events import ParentLink
    from timeline.wire.media import Part

FORMAT: Final = "gemini-cli"
CONVERSATION: Final = frozenset({"user", "gemini", "error"})
BOOKKEEPING: Final = frozenset({"info", "warning"})
SETTING_UP: Final = re.compile(
    r"\s*(<session_context>|<state_snapshot>|This is the Gemini CLI\. We are setting up the context)"
)
"""The beginning of messages with which the client opens a session, or goes on behind a compression of its own.

Newer versions record them as a user's.
"""


def is_gemini_cli(value: Any) -> bool:
    """Return whether a JSON value is a session of Gemini CLI."""
    if not isinstance(value, dict) or not isinstance(messages := value.get("messages"), list):
        return False
    if isinstance(value.get("sessionId"), str) and isinstance(value.get("projectHash"), str):
        return True
    return any(isinstance(m, dict) and m.get("type") == "gemini" for m in messages)


def read_gemini_cli(document: dict[str, Any], name: str) -> list[Recording]:
    """Read a session's document; the list is empty if it has no message.

    Args:
        document: the decoded JSON, one that `is_gemini_cli` recognises.
        name: the file's name without its extension: the id if the document has none.
    """
    messages = list(enumerate(document["messages"], start=1))
    report = Report(format=FORMAT, lines=len(messages), records=len(messages))
    found = recording_of(text_of(document, "sessionId") or name, messages, document, report)
    return [] if found is None else [replace(found, is_snapshot=True)]


def recording_of(
    id_: str,
    messages: Sequence[tuple[int, Any]],
    head: dict[str, Any],
    report: Report,
    parent: ParentLink | None = None,
) -> Recording | None:
    """Read messages into a recording; None if nothing was said in them.

    Args:
        id_: of the recording.
        messages: each with its number, or its line.
        head: the session's own fields.
        report: receives the findings.
        parent: the recording that it branches off from.
    """
    times = (parse_time(m.get("timestamp")) for _, m in messages if isinstance(m, dict))
    reader = _Reader(report, next(filter(None, times), None) or parse_time(head.get("startTime")))
    for number, message in messages:
        reader.read(message, number)
    events = reader.builder.finish()
    title = short_title(text_of(head, "summary") or reader.builder.first_prompt)
    return Recording(id_, events, report, title, parent) if events else None


class _Reader:
    """Reads messages in order; a user's message opens a turn."""

    def __init__(self, report: Report, first_time: datetime | None) -> None:
        self.builder = RecordingBuilder(report, first_time=first_time)
        self._report = report
        self._seen: dict[str, Any] = {}
        self._calls: set[str] = set()
        self._answered: set[str] = set()
        self._response: str | None = None
        self._before = first_time

    def read(self, message: Any, number: int) -> None:
        """Read one message; ``number`` counts from 1."""
        type_ = text_of(message, "type") if isinstance(message, dict) else ""
        if type_ in BOOKKEEPING:
            self._report.counts["skipped"] += 1
            return
        if type_ not in CONVERSATION:
            self._report.note("unknown_record", number, f"a message of type {type_ or None}")
            return
        id_ = text_of(message, "id") or f"message-{number}"
        if self._seen.get(id_) == message:
            self._report.note("duplicate_record", number, id_)
            return
        self._seen[id_] = message
        origin = Origin(id_, number, parse_time(message.get("timestamp")))
        parts = parts_of(message.get("content"))
        if type_ == "gemini":
            self._read_gemini(message, parts, origin)
        elif parts:
            self._response, self._before = None, origin.at or self._before
            self._read_user(type_, parts, origin)
        else:
            self._report.note("invalid", number, f"a {type_} message without content")

    def _read_user(self, type_: str, parts: list[Part], origin: Origin) -> None:
        if type_ == "error":
            self.builder.add(client_message(joined_text(parts), error=True), origin)
            return
        self.builder.add_said(self._said(parts, origin))

    def _said(self, parts: list[Part], origin: Origin) -> Iterator[tuple[Block, Origin]]:
        """Yield the blocks of a user message; the results in it are added in their place."""
        for index, part in enumerate(parts):
            place = Origin(f"{origin.key}.{index}", origin.line, origin.at)
            if isinstance(answer := part.get("functionResponse"), dict):
                self._add_result(text_of(answer, "id") or f"call-{place.key}", answer, [part], place)
            else:
                yield _user_block(part), place

    def _read_gemini(self, message: dict[str, Any], parts: list[Part], origin: Origin) -> None:
        thoughts, calls = self._objects(message, "thoughts", origin), self._objects(message, "toolCalls", origin)
        usage = _usage(message.get("tokens"))
        speaks = bool(thoughts or parts or usage != Usage())
        if not speaks and not calls:
            self._report.note("invalid", origin.line, "a gemini message that says nothing")
            return
        # A notice in mid-response splits it: its calls then come in a message of their own, without usage.
        response = origin.key if speaks else self._response or origin.key
        for index, thought in enumerate(thoughts):
            at = parse_time(thought.get("timestamp")) or origin.at
            place = Origin(f"{origin.key}.thought-{index}", origin.line, at)
            self.builder.add_to_response(response, _reasoning(thought, response), place)
        named = [(text_of(call, "id") or f"call-{origin.key}.{i}", call) for i, call in enumerate(calls)]
        self._calls.update(id_ for id_, _ in named)
        for index, part in enumerate(parts):
            self._add_part(response, part, Origin(f"{origin.key}.{index}", origin.line, origin.at))
        for id_, call in named:
            self.builder.add_to_response(
                response, _call(call, id_, response), Origin(f"{origin.key}.{id_}", origin.line, origin.at)
            )
        if speaks:
            called = ModelCalled(
                model=text_of(message, "model"), response_id=response, usage=usage, started_at=self._before or origin.at
            )
            self.builder.set_model_call(response, called, origin)
        self._response, self._before = response, origin.at or self._before
        for id_, call in named:
            at = parse_time(call.get("timestamp")) or origin.at
            place = Origin(f"{origin.key}.{id_}.result", origin.line, at)
            if answer := parts_of(call.get("result")):
                self._before = at or self._before
                self._add_result(id_, call, answer, place)

    def _add_part(self, response: str, part: Part, place: Origin) -> None:
        """Add a part of the model's content, unless it is a call: the message's list of calls has those in full."""
        if isinstance(called := part.get("functionCall"), dict):
            id_ = text_of(called, "id") or f"call-{place.key}"
            if id_ in self._calls:
                return
            self._calls.add(id_)
            block: Block = _call(called, id_, response)
        elif text := text_of(part):
            kind = Reasoning if part.get("thought") is True else AssistantCompletion
            block = kind(text=text, response_id=response)
        else:
            block = CustomBlock(type="assistant.part", author="assistant", data=part, response_id=response)
        self.builder.add_to_response(response, block, place)

    def _add_result(self, call_id: str, call: dict[str, Any], parts: list[Part], place: Origin) -> None:
        """Add a call's result; newer versions repeat it in the user message that sent it to the model."""
        if call_id in self._answered:
            self._report.counts["skipped"] += 1
            return
        self._answered.add(call_id)
        block = result_block(call_id, text_of(call, "name"), parts, status=text_of(call, "status"))
        self.builder.add_result(block, place)

    def _objects(self, message: dict[str, Any], key: str, origin: Origin) -> list[dict[str, Any]]:
        listed = message.get(key)
        values = listed if isinstance(listed, list) else [] if listed is None else [listed]
        found = [value for value in values if isinstance(value, dict)]
        if len(found) < len(values):
            self._report.note("invalid", origin.line, f"{key} that are not objects")
        return found


def _user_block(part: Part) -> Block:
    text = text_of(part)
    if not text:
        return media_block(part)
    return client_message(text) if SETTING_UP.match(text) else UserPrompt(text=text)


def _reasoning(thought: dict[str, Any], response: str) -> Reasoning:
    """Return a thought as one text: the client divides the model's text into a subject and the rest."""
    subject, rest = text_of(thought, "subject"), text_of(thought, "description")
    return Reasoning(text="\n".join(filter(None, (subject and f"**{subject}**", rest))), response_id=response)


def _call(recorded: dict[str, Any], call_id: str, response: str) -> ToolCall:
    arguments = recorded.get("args")
    return ToolCall(
        call_id=call_id,
        name=text_of(recorded, "name") or "unknown",
        arguments={} if arguments is None else arguments_of(arguments),
        response_id=response,
    )


def _usage(recorded: Any) -> Usage:
    """Return a message's usage; ``input`` includes tokens read from the cache, and thoughts are billed as output."""
    cached = count_of(recorded, "cached")
    return Usage(
        input_tokens=max(0, count_of(recorded, "input") - cached) + count_of(recorded, "tool"),
        output_tokens=count_of(recorded, "output") + count_of(recorded, "thoughts"),
        cache_read_tokens=cached,
    )
