"""Read Claude Code sessions (JSON Lines, versions 2.0.64 to 2.1.42); each subagent is a recording of its own.

Rows are read in file order: `parentUuid` forks at every parallel call, so walking it loses a fifth of the results, and
clocks step back. A row that is repeated under its uuid (the client does so when a later version resumes a session) is
the same row. `claude_rows` decides what a row becomes.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from timeline.events import ParentLink
from timeline.importers.builder import parse_time
from timeline.importers.claude_branches import CONVERSATION, Branches
from timeline.importers.claude_queue import QUEUE
from timeline.importers.claude_rows import SessionReader
from timeline.importers.lines import read_records
from timeline.importers.recording import Recording, Report, short_title
from timeline.wire.anthropic import parts_of
from timeline.wire.foreign import object_of, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from timeline.importers.claude_branches import Turned
    from timeline.importers.lines import Record
    from timeline.importers.recording import RecordedEvent

FORMAT: Final = "claude-code"
OPENING: Final = '{"parentUuid":'
"""The beginning of a conversation's row in every known version; no value inside a row begins so."""

_TITLES: Final = {"custom-title": "customTitle", "ai-title": "aiTitle"}
"""Rows with the session's title, and its field: the user's goes before the model's."""
BOOKKEEPING: Final = frozenset(
    {"progress", "file-history-snapshot", "summary", "system", "pr-link"}
    | {"mode", "permission-mode", "last-prompt", "agent-name", *_TITLES}
)
"""Rows that are the client's own state. A system row may still mark a compaction."""
ATTACHMENT: Final = "attachment"
"""The type of rows that put something beside the conversation: the client's own, but for prompts from its queue."""


def is_claude_code(value: Any) -> bool:
    """Return whether a JSON value is a row of a Claude Code session."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("sessionId"), str)
        and isinstance(value.get("uuid"), str)
        and isinstance(value.get("type"), str)
    )


def read_claude_code(data: bytes, name: str) -> list[Recording]:
    """Read the bytes of a session file; the list is empty if it contains no conversation.

    Args:
        data: the file.
        name: the file's name without its extension: the id if no row has one.
    """
    report = Report(format=FORMAT)
    return recordings_of(list(read_records(data, report, opening=OPENING)), report, name)


def recordings_of(records: Sequence[Record], report: Report, name: str) -> list[Recording]:
    """Read rows that were decoded before; see `read_claude_code`."""
    return _Session(records, report, name).recordings()


class SessionFollower:
    """Reads one conversation's rows while the client writes them, for a log that grows with the session.

    Feed it every row from the first one on, and take the events as often as there are some. Their keys are those of
    `read_claude_code`. A subagent's rows inside the session's own file, as old versions of the client wrote them, are
    left out; in a file of their own they are the conversation.
    """

    def __init__(self) -> None:
        self._reader = SessionReader(Report(format=FORMAT), None)
        self._rows = 0
        self._is_side: bool | None = None
        self._branches = Branches()
        self._stood_for = ""

    @property
    def title(self) -> str:
        """The first prompt, as a title; empty before there is one."""
        return short_title(self._reader.first_prompt)

    def path_of_call(self, call_id: str) -> str | None:
        """Return the path that a call has in the log."""
        return self._reader.path_of_call(call_id)

    def read(self, row: dict[str, Any], at: datetime) -> None:
        """Read a row; ``at`` is the time of one that has none."""
        self._rows += 1
        self._branches.add(row)
        time = parse_time(row.get("timestamp")) or at
        if row.get("type") in CONVERSATION:
            is_side = row.get("isSidechain") is True
            self._is_side = is_side if self._is_side is None else self._is_side
            if is_side is self._is_side:
                self._reader.read(row, self._rows, time)
        elif _is_boundary(row):
            self._reader.read_boundary(row, self._rows, time)
        elif row.get("type") == QUEUE:
            self._reader.read_queue(row, self._rows, time)
        elif row.get("type") == ATTACHMENT and (row.get("isSidechain") is True) is (self._is_side is True):
            self._reader.read_attachment(row, self._rows, time)

    @property
    def newest(self) -> str:
        """The uuid of the newest row of the conversation; empty where there is none."""
        return self._branches.newest

    def turned_by(self, row: dict[str, Any]) -> Turned:
        """Return the rows that a row leaves behind, or takes up again, before it is read; none for most.

        A prompt names the row that it goes on from. Where that is an earlier one, the session was resumed there: what
        came behind it is in the client's context no more.
        """
        return self._branches.turned_by(row)

    def pass_by(self, row: dict[str, Any], through: str | None) -> None:
        """Note a row that others go on from, without reading what it says.

        Args:
            row: stands in for rows of the session, see `Branches.add_stand_in`.
            through: uuid of the newest of them; empty for the beginning, None where it is not known.
        """
        self._branches.add_stand_in(row, through)
        self._reader.read_stand_in(text_of(row, "uuid"), self._stood_for)
        self._stood_for = "" if through is None else through

    def take(self) -> list[RecordedEvent]:
        """Return the events of what was read since the last call.

        The call of the model behind a response is among them once the response is known to be over: by its
        ``stop_reason``, which old versions of the client left out, or by what follows it.
        """
        return self._reader.take()


class _Session:
    """One file: its rows divided into the main conversation and those of the subagents."""

    def __init__(self, records: Sequence[Record], report: Report, name: str) -> None:
        self._records = records
        self._report = report
        rows = [r.value for r in records if is_claude_code(r.value)]
        self._id = next((r["sessionId"] for r in rows if r["sessionId"]), name)
        self._parents = {r["uuid"]: str(r.get("parentUuid")) for r in rows if r.get("isSidechain") is True}
        self._first_time = next(filter(None, (parse_time(r.get("timestamp")) for r in rows)), None)
        forks = (text_of(object_of(row, "forkedFrom"), "sessionId") for row in rows)
        source = next(filter(None, forks), "")
        self._parent = ParentLink(conversation=source, relation="fork") if source else None
        self._main = SessionReader(report, self._first_time)
        self._branches = Branches()
        self._agents: dict[str, SessionReader] = {}
        self._call_of_agent: dict[str, str] = {}

    def recordings(self) -> list[Recording]:
        """Read all rows; return the main conversation, if there is one, then the subagents'."""
        for record in self._records:
            self._read(record)
        self._note_other_conversations()
        events = self._main.finish()
        found = [Recording(self._id, events, self._report, self._title(), self._parent)] if events else []
        for agent, reader in self._agents.items():
            if events := reader.finish():
                parent = ParentLink(conversation=self._id, path=self._path_of_agent(agent), relation="subagent")
                id_ = f"{self._id}.agent-{agent}"
                found.append(Recording(id_, events, reader.report, short_title(reader.first_prompt), parent))
        return found

    def _read(self, record: Record) -> None:
        row = record.value
        type_ = str(row.get("type"))
        if row.get("isSidechain") is not True:
            self._note_branch(row, record.line)
        if type_ in CONVERSATION:
            self._reader_of(row).read(row, record.line, parse_time(row.get("timestamp")))
            self._note_agent(row)
        elif _is_boundary(row):
            self._main.read_boundary(row, record.line, parse_time(row.get("timestamp")))
        elif type_ == QUEUE:
            self._main.read_queue(row, record.line, parse_time(row.get("timestamp")))
        elif type_ == ATTACHMENT:
            self._reader_of(row).read_attachment(row, record.line, parse_time(row.get("timestamp")))
        elif type_ == "progress" and (data := _agent_progress(row)):
            self._read_progress(data, row, record.line)
        elif type_ in BOOKKEEPING:
            self._report.counts["skipped"] += 1
        else:
            self._report.note("unknown_record", record.line, type_)

    def _note_branch(self, row: dict[str, Any], line: int) -> None:
        """Report a prompt that goes on from an earlier row: what it leaves behind stays in view here."""
        if left := self._branches.turned_by(row).left:
            self._report.note(
                "branch", line, f"goes on from an earlier row; rows that left the client's context: {len(left)}"
            )
        self._branches.add(row)

    def _reader_of(self, row: dict[str, Any]) -> SessionReader:
        if row.get("isSidechain") is not True:
            return self._main
        agent = str(row.get("agentId") or self._root(str(row.get("uuid"))))
        if isinstance(call := row.get("parentToolUseID"), str):
            self._call_of_agent.setdefault(agent, call)
        reader = self._agent(agent)
        reader.report.records += 1
        return reader

    def _agent(self, agent: str) -> SessionReader:
        if agent not in self._agents:
            self._agents[agent] = SessionReader(Report(format=self._report.format), self._first_time)
        return self._agents[agent]

    def _root(self, uuid: str) -> str:
        """Return the first row of a side chain; the walked path is shortened, so that the next walk is quick."""
        walked: set[str] = set()
        while uuid not in walked and self._parents.get(uuid) in self._parents:
            walked.add(uuid)
            uuid = self._parents[uuid]
        self._parents.update(dict.fromkeys(walked, uuid))
        return uuid

    def _read_progress(self, data: dict[str, Any], row: dict[str, Any], line: int) -> None:
        """Read a subagent's step: `normalizedMessages` has texts without a progress row of their own."""
        agent = data["agentId"]
        if isinstance(call := row.get("parentToolUseID"), str):
            self._call_of_agent.setdefault(agent, call)
        normalized = data.get("normalizedMessages")
        reader = self._agent(agent)
        reader.report.records += 1
        for message in (*(normalized if isinstance(normalized, list) else ()), data["message"]):
            if isinstance(message, dict) and str(message.get("type")) in CONVERSATION and not reader.knows(message):
                reader.read(message, line, parse_time(message.get("timestamp") or row.get("timestamp")))

    def _note_agent(self, row: dict[str, Any]) -> None:
        twin = row.get("toolUseResult")
        agent = twin.get("agentId") if isinstance(twin, dict) else None
        message = row.get("message")
        if not isinstance(agent, str) or not isinstance(message, dict):
            return
        for part in parts_of(message.get("content")):
            if call := text_of(part, "tool_use_id"):
                self._call_of_agent.setdefault(agent, call)

    def _path_of_agent(self, agent: str) -> str | None:
        return self._main.path_of_call(self._call_of_agent.get(agent, ""))

    def _title(self) -> str:
        """Return the newest title of a row in this file: a summary row may have another session's title."""
        rows = [record.value for record in self._records]
        uuids = {row["uuid"] for row in rows if is_claude_code(row)}
        named = {
            type_: [text_of(row, field) for row in rows if row.get("type") == type_ and self._is_own(row)]
            for type_, field in _TITLES.items()
        }
        summed = [text_of(r, "summary") for r in rows if r.get("type") == "summary" and text_of(r, "leafUuid") in uuids]
        newest = (title for titles in (*named.values(), summed) for title in reversed(titles) if title)
        return short_title(next(newest, self._main.first_prompt))

    def _is_own(self, row: dict[str, Any]) -> bool:
        return bool(row.get("sessionId", self._id) == self._id)

    def _note_other_conversations(self) -> None:
        rows = Counter[str]()
        first: dict[str, int] = {}
        for record in self._records:
            if is_claude_code(record.value) and record.value["sessionId"] != self._id:
                rows[record.value["sessionId"]] += 1
                first.setdefault(record.value["sessionId"], record.line)
        for session, count in rows.items():
            self._report.note("second_conversation", first[session], f"{count} rows of session {session}")


def _is_boundary(row: dict[str, Any]) -> bool:
    return row.get("type") == "system" and str(row.get("subtype")).endswith("compact_boundary")


def _agent_progress(row: dict[str, Any]) -> dict[str, Any] | None:
    data = row.get("data")
    if not isinstance(data, dict) or data.get("type") != "agent_progress":
        return None
    return data if isinstance(data.get("agentId"), str) and isinstance(data.get("message"), dict) else None
