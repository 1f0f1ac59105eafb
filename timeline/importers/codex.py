"""Read Codex rollouts: rows ``{timestamp, type, payload}``, bare items of earlier versions, and the first one's JSON.

The items of the Responses API are the conversation. `event_msg` rows repeat them for the client's screen; only they
have the usage of a call, and report that a turn was aborted. Rows have no ids, so a row's key is its line: a resumed
session grows at the end of its file. A fork copies the shared rows into a file of its own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import SystemMessage
from timeline.events import ModelCalled, ParentLink
from timeline.importers.builder import Origin, RecordingBuilder, parse_time
from timeline.importers.codex_forks import copied_until
from timeline.importers.lines import Record, read_records
from timeline.importers.recording import ImportedCompaction, Recording, Report, short_title
from timeline.importers.response_items import AGENT_MESSAGE, CALLS, NOTHING, SAID_BY_THE_MODEL, ItemReader
from timeline.usage import Usage
from timeline.wire.foreign import object_of, status_of, text_of
from timeline.wire.usage import count_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

FORMAT: Final = "codex"
OPENING: Final = '{"timestamp":"'
"""The beginning of a row in every version with an envelope; no value inside a row begins so."""

ROWS: Final = frozenset(
    {
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
    }
)
STATE: Final = frozenset(
    {"world_state", "token_usage_record", "security_risk_score", "retained_context", "realtime_item"}
)
"""Rows of the client's own state; the usage in one is in the next ``token_count``, too."""
ECHOES: Final = frozenset(
    {
        "user_message",
        "agent_message",
        "agent_reasoning",
        "agent_reasoning_raw_content",
        "context_compacted",
        "task_started",
        "turn_started",
        "task_complete",
        "turn_complete",
        "exec_command_end",
        "mcp_tool_call_end",
        "patch_apply_end",
        "web_search_end",
        "image_generation_end",
        "view_image_tool_call",
        "dynamic_tool_call_request",
        "dynamic_tool_call_response",
        "collab_agent_spawn_end",
        "collab_agent_interaction_end",
        "collab_waiting_end",
        "collab_close_end",
        "collab_resume_end",
        "sub_agent_activity",
        "entered_review_mode",
        "exited_review_mode",
        "undo_completed",
        "plan_update",
        "item_started",
        "item_completed",
        "thread_goal_updated",
        "thread_settings_applied",
        "thread_name_updated",
        "error",
        "warning",
    }
)
"""Events that repeat items, or are the client's own state."""
_COMMAND: Final = "CommandExecution"
_OF_USERS: Final = "user_shell"
"""Where a command comes from that the user typed: it answers no call."""
_TURN_ENDS: Final = frozenset({"turn_aborted", "task_complete", "turn_complete"})
_CLIENT: Final = re.compile(
    r"\s*(<(environment_context|user_instructions|INSTRUCTIONS|turn_aborted|user_shell_command|skill"
    r"|subagent_notification|permissions instructions|collaboration_mode|codex_internal_context|goal_context"
    r"|extension_context|recommended_plugins|hook_prompt)\b|# AGENTS\.md instructions"
    r"|Warning: (The maximum number of unified exec processes|apply_patch was requested via) )"
)
"""The beginnings of texts that the client writes in the user's role; newer versions say of each whose it is."""
UNREADABLE: Final = "The client's summary is encrypted by its provider and cannot be read here."
_OF_ITEMS: Final = ("input_", "output_", "refusal")
"""How the parts of an item's message are named; a reply of Anthropic's is a ``message``, too."""
_OLD_ITEMS: Final = SAID_BY_THE_MODEL | CALLS | NOTHING | {"function_call_output", "custom_tool_call_output"}


def is_codex(value: Any) -> bool:
    """Return whether a JSON value is a row of a Codex rollout, of any version."""
    if not isinstance(value, dict):
        return False
    type_ = text_of(value, "type")
    if isinstance(value.get("payload"), dict):
        return type_ in ROWS and isinstance(value.get("timestamp"), str)
    if type_ == "message":
        parts = value.get("content")
        types = [text_of(part, "type") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        return isinstance(value.get("role"), str) and any(kind.startswith(_OF_ITEMS) for kind in types)
    return value.get("record_type") == "state" or type_ in _OLD_ITEMS or _is_old_header(value)


def is_codex_document(document: Any) -> bool:
    """Return whether a JSON document is a rollout of the first, TypeScript version: a header and its items."""
    if not isinstance(document, dict) or not isinstance(document.get("items"), list):
        return False
    return isinstance(session := document.get("session"), dict) and bool(text_of(session, "id"))


def read_codex(data: bytes, name: str) -> list[Recording]:
    """Read the bytes of a rollout; the list is empty if it contains no conversation.

    Args:
        data: the file.
        name: the file's name without its extension: the id if no header has one.
    """
    report = Report(format=FORMAT)
    return _Rollout(list(read_records(data, report, opening=OPENING)), report, name).recordings()


def read_codex_document(document: dict[str, Any], name: str) -> list[Recording]:
    """Read a document that `is_codex_document` recognises; see `read_codex`."""
    rows = [document["session"], *(item for item in document["items"] if isinstance(item, dict))]
    report = Report(format=FORMAT, lines=len(rows), records=len(rows))
    if len(rows) <= len(document["items"]):
        report.note("invalid", 1, f"{len(document['items']) + 1 - len(rows)} items that are not objects")
    return _Rollout([Record(n, row) for n, row in enumerate(rows, start=1)], report, name).recordings()


def _is_old_header(value: dict[str, Any]) -> bool:
    return (
        "type" not in value and "instructions" in value and bool(text_of(value, "id") and text_of(value, "timestamp"))
    )


class _Rollout:
    """One file, in the order of its rows."""

    def __init__(self, records: Sequence[Record], report: Report, name: str) -> None:
        self._records = records
        self._report = report
        header = next(filter(None, map(_header_of, records)), {})
        self._header = header
        self._id = text_of(header, "id") or name
        times = [at for record in records if (at := parse_time(record.value.get("timestamp"))) is not None]
        self._builder = RecordingBuilder(report, first_time=next(iter(times), None))
        self._items = ItemReader(self._builder, report, is_client=lambda text: bool(_CLIENT.match(text)))
        self._parent = _parent_of(header)
        self._copied = copied_until(self._id, records) if self._parent else 0
        self._costs = _Costs(self._builder, self._items, report, self._copied)
        self._title = ""
        self._known_header = False
        self._triggers = False
        """Whether the next item, an agent's message, begins a turn: its delivery was noted in the row before it."""

    def recordings(self) -> list[Recording]:
        """Read all rows into the single conversation of the file."""
        for record in self._records:
            self._read(record.value, record.line)
        self._costs.finish(
            counts_may_come=any(text_of(record.value, "type") == "event_msg" for record in self._records)
        )
        events = self._builder.finish()
        title = short_title(self._title or self._builder.first_prompt)
        return [Recording(self._id, events, self._report, title, self._parent)] if events else []

    def _read(self, row: dict[str, Any], line: int) -> None:
        type_, payload = text_of(row, "type"), row.get("payload")
        at = parse_time(row.get("timestamp"))
        origin = Origin(f"line-{line}", line, at)
        if _is_old_header(row) or (line == 1 and row is self._header):
            self._read_header(row, origin)
        elif isinstance(payload, dict):
            self._read_row(type_, payload, origin)
        elif row.get("record_type") == "state":
            self._report.counts["skipped"] += 1
        elif is_codex(row) and not isinstance(payload, dict):
            self._item(row, origin)
        else:
            self._report.note("invalid" if type_ in ROWS else "unknown_record", line, f"a row of type {type_}")

    def _read_row(self, type_: str, payload: dict[str, Any], origin: Origin) -> None:
        match type_:
            case "response_item":
                self._item(payload, origin)
            case "event_msg":
                self._read_event(payload, origin)
            case "turn_context":
                self._costs.model = text_of(payload, "model") or self._costs.model
                self._report.counts["skipped"] += 1
            case "compacted":
                self._read_compacted(payload, origin)
            case "session_meta":
                self._read_header(payload, origin)
            case "inter_agent_communication":
                self._item(_delivered(payload), origin)
            case "inter_agent_communication_metadata":
                self._triggers = payload.get("trigger_turn") is True
                self._report.counts["skipped"] += 1
            case _ if type_ in STATE:
                self._report.counts["skipped"] += 1
            case _:
                self._report.note("unknown_record", origin.line, f"a row of type {type_}")

    def _item(self, item: dict[str, Any], origin: Origin) -> None:
        if self._triggers and item.get("type") == AGENT_MESSAGE:
            item = {**item, "trigger_turn": True}
        self._triggers = False
        self._costs.see(origin.at)
        self._items.read(item, origin)
        self._costs.follow(origin)

    def _read_header(self, payload: dict[str, Any], origin: Origin) -> None:
        """Read the session's own header, whose instructions come first; a fork repeats its parent's header."""
        session = text_of(payload, "id")
        is_parents = origin.line <= self._copied or session == text_of(self._header, "forked_from_id")
        if session not in {self._id, ""} and not is_parents:
            self._report.note("second_conversation", origin.line, f"session {session}")
        if self._known_header or session != self._id:
            self._report.counts["skipped"] += 1
            return
        self._known_header = True
        base = payload.get("base_instructions")
        text = text_of(base) if isinstance(base, dict) else ""
        instructions = text_of(payload, "instructions")
        if text or (instructions and not self._repeats(instructions)):
            at = origin.at or parse_time(payload.get("timestamp"))
            self._builder.add(SystemMessage(text=text or instructions), Origin("instructions", origin.line, at))

    def _repeats(self, instructions: str) -> bool:
        """Return whether a message of the file repeats the instructions, as later versions do."""
        payloads = (r.value.get("payload") for r in self._records)
        messages = (p for p in payloads if isinstance(p, dict) and p.get("type") == "message")
        contents = (m["content"] for m in messages if isinstance(m.get("content"), list))
        return any(instructions in text_of(part) for parts in contents for part in parts if isinstance(part, dict))

    def _read_event(self, payload: dict[str, Any], origin: Origin) -> None:
        type_ = text_of(payload, "type")
        if type_ == "token_count":
            self._costs.read(payload.get("info"), origin)
            return
        self._costs.turn_is_over = self._costs.turn_is_over or type_ in _TURN_ENDS
        if type_ == "turn_aborted":
            self._items.end_response()
            self._report.note("aborted_turn", origin.line, text_of(payload, "reason"))
        elif type_ == "thread_rolled_back":
            remark = f"the client dropped the last {count_of(payload, 'num_turns')} turns; they are kept here"
            self._report.note("rolled_back", origin.line, remark)
        elif type_ in ECHOES:
            self._title = text_of(payload, "thread_name") or self._title
            self._note_exit(object_of(payload, "item"))
            self._report.counts["skipped"] += 1
        else:
            self._report.note("unknown_record", origin.line, f"an event of type {type_}")

    def _note_exit(self, item: dict[str, Any]) -> None:
        """Note how a command of the model ended: since its calls are scripts, their outputs do not say so."""
        status = status_of(item, "exit_code")
        is_models = item.get("type") == _COMMAND and item.get("source") != _OF_USERS
        if is_models and status is not None:
            self._items.note_exit(status)

    def _read_compacted(self, payload: dict[str, Any], origin: Origin) -> None:
        summary = text_of(payload, "message")
        if not summary.strip():
            self._report.note("invalid", origin.line, "a compaction whose summary is encrypted")
        self._costs.settle()
        self._items.end_response()
        compaction = ImportedCompaction(summary.strip() or UNREADABLE, pre_tokens=self._costs.context)
        self._builder.add_event(compaction, origin)


def _delivered(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the item of an agent's message that an older version wrote in a row of its own."""
    content = [{"type": "input_text", "text": text_of(payload, "content")}]
    if sealed := text_of(payload, "encrypted_content"):
        content.append({"type": "encrypted_content", "encrypted_content": sealed})
    return {**payload, "type": AGENT_MESSAGE, "content": content}


class _Costs:
    """The usage of model calls. A token count comes after the items of its response or, in older versions, before them.

    Older versions wrote a response and the results of its calls when all of it was complete, so that only a count marks
    the beginning of the next response.

    Args:
        builder: takes the calls.
        items: knows the responses.
        report: of the file.
        copied: line of the last row that is the parent's, see `copied_until`.
    """

    def __init__(self, builder: RecordingBuilder, items: ItemReader, report: Report, copied: int) -> None:
        self.model = ""
        self.context = 0
        self.turn_is_over = False
        self._builder = builder
        self._items = items
        self._report = report
        self._copied = copied
        self._total: dict[str, Any] = {}
        self._last: dict[str, Any] | None = None
        self._response = ""
        self._owing: Origin | None = None
        self._uncounted = 0
        """How many responses were over without a count."""
        self._early: tuple[Usage, Origin] | None = None
        self._before: datetime | None = None
        self._started: datetime | None = None
        self._at: datetime | None = None

    def see(self, at: datetime | None) -> None:
        """Note an item's time: the next response starts at the time of the last item before it."""
        self._before, self._at = self._at, at or self._at

    def follow(self, origin: Origin) -> None:
        """Note a response that the item at ``origin`` begins: it needs a token count."""
        if self._items.newest == self._response:
            if not self._items.is_open:
                self._pay_early()
            return
        self._settle_owing()
        self._response, self._started, self._owing = self._items.newest, self._before or self._at, origin
        self.turn_is_over = False
        if self._early is not None:
            (usage, _), self._early = self._early, None
            self._items.results_end_it = False
            self._pay(usage, origin)

    def read(self, info: Any, origin: Origin) -> None:
        """Read a count; a repeated count, with the limits of the account, is skipped."""
        newest = self._newest_in(info if isinstance(info, dict) else {})
        if newest is None:
            self._report.counts["skipped"] += 1
            return
        self.context = count_of(newest, "input_tokens") or self.context
        self._items.end_response()
        if self._owing is not None:
            self._pay(_usage(newest), origin)
        else:
            self._pay_early()
            self._early = (_usage(newest), origin)

    def _newest_in(self, info: dict[str, Any]) -> dict[str, Any] | None:
        """Return the figures of the newest call; None if they repeat those before, or there are none.

        Totals show a repeated count. Where only the last call is reported, equal figures without a
        response between them are one.
        """
        total, last = info.get("total_token_usage"), info.get("last_token_usage")
        newest = last if isinstance(last, dict) and any(last.values()) else None
        if isinstance(total, dict):
            if total == self._total:
                return None
            newest, self._total = newest or _difference(total, self._total), total
        elif newest == self._last and self._owing is None:
            return None
        self._last = newest
        return newest

    def settle(self) -> None:
        """Record the remaining counts without a response, and responses without a count."""
        self._pay_early()
        self._settle_owing()

    def finish(self, *, counts_may_come: bool) -> None:
        """End the file. A session may go on, and count its last response then: that one is not recorded yet.

        Args:
            counts_may_come: whether the file is of a version that counts.
        """
        self._pay_early()
        is_uncounted = bool(self._uncounted) and self._last is None
        if self._owing is not None and counts_may_come and not self.turn_is_over and not is_uncounted:
            self._report.note("missing_usage", self._owing.line, self._response)
        else:
            self._settle_owing()

    def _settle_owing(self) -> None:
        if self._owing is not None:
            self._uncounted += 1
            self._report.note("missing_usage", self._owing.line, self._response)
            self._pay(Usage(), self._owing)

    def _pay(self, usage: Usage, origin: Origin) -> None:
        self._owing = None
        self._record(self._response, usage, origin, self._started)

    def _pay_early(self) -> None:
        """Record a call whose answer is not an item of the conversation, such as a compaction's."""
        if self._early is not None:
            (usage, origin), self._early = self._early, None
            self._record(f"call-{origin.key}", usage, origin, origin.at)

    def _record(self, response: str, usage: Usage, origin: Origin, started: datetime | None) -> None:
        if origin.line <= self._copied:  # the parent's session has it
            usage = Usage()
        called = ModelCalled(model=self.model, response_id=response, usage=usage, started_at=started)
        self._builder.set_model_call(response, called, origin)


def _difference(total: dict[str, Any], before: dict[str, Any]) -> dict[str, int]:
    return {key: max(0, count_of(total, key) - count_of(before, key)) for key in total}


def _usage(recorded: Any) -> Usage:
    """Return a call's usage; recorded ``input_tokens`` include the tokens read from and written to the cache."""
    read, written = count_of(recorded, "cached_input_tokens"), count_of(recorded, "cache_write_input_tokens")
    return Usage(
        input_tokens=max(0, count_of(recorded, "input_tokens") - read - written),
        output_tokens=count_of(recorded, "output_tokens"),
        cache_read_tokens=read,
        cache_write_5m_tokens=written,
    )


def _header_of(record: Record) -> dict[str, Any] | None:
    """Return the header in a record, or None; the first header of a file is the session's own."""
    row = record.value
    if row.get("type") == "session_meta" and isinstance(payload := row.get("payload"), dict):
        return payload if text_of(payload, "id") else None
    return row if _is_old_header(row) or (record.line == 1 and "type" not in row and text_of(row, "id")) else None


def _parent_of(header: dict[str, Any]) -> ParentLink | None:
    """Return the parent of a session: the agent that spawned it, or the session that it was forked from."""
    source = header.get("source")
    spawned = source.get("subagent") if isinstance(source, dict) else None
    spawn = spawned.get("thread_spawn") if isinstance(spawned, dict) else None
    parent = text_of(spawn, "parent_thread_id") if isinstance(spawn, dict) else ""
    if parent := parent or text_of(header, "parent_thread_id"):
        return ParentLink(conversation=parent, relation="subagent")
    forked = text_of(header, "forked_from_id")
    return ParentLink(conversation=forked, relation="fork") if forked else None
