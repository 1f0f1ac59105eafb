"""Read Claude Code sessions (JSON Lines, versions 2.0.64 to 2.1.42); each subagent is a recording of its own.

Rows are read in file order: `parentUuid` forks at every parallel call, so walking it loses a fifth of the results, and
clocks step back. A row that is repeated under its uuid (the client does so when a later version resumes a session) is
the same row. Where a user went back, `claude_paths` divides the rows into branches: each is a recording of its own, the
newest first. `claude_rows` decides what a row becomes.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from timeline.events import ParentLink
from timeline.importers.builder import parse_time
from timeline.importers.claude_branches import CONVERSATION, Branches
from timeline.importers.claude_paths import is_boundary, paths_of
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
    from timeline.importers.claude_paths import SessionPath
    from timeline.importers.lines import Record
    from timeline.importers.recording import RecordedEvent

FORMAT: Final = "claude-code"
OPENING: Final = '{"parentUuid":'
"""The beginning of a conversation's row in every known version; no value inside a row begins so."""

MOST_BRANCHES: Final = 50
"""How many branches are read, the newest first; the limit exists because each repeats the rows it shares."""

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
        is_side = row.get("isSidechain") is True
        if text_of(row, "type") in CONVERSATION and self._is_side is None:
            self._is_side = is_side
        if text_of(row, "type") not in {*CONVERSATION, ATTACHMENT} or is_side is (self._is_side is True):
            _read_row(self._reader, row, self._rows, time)

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
        self._paths = paths_of(records)
        self._in_view = {*self._paths[0].shared, *self._paths[0].own}
        self._main = SessionReader(report, self._first_time)
        self._branches: dict[SessionPath, SessionReader] = {self._paths[0]: self._main}
        self._agents: dict[str, SessionReader] = {}
        self._call_of_agent: dict[str, str] = {}

    def recordings(self) -> list[Recording]:
        """Read all rows; return the conversation of each branch, the newest first, then the subagents'."""
        for position, record in enumerate(self._records):
            self._read(position, record)
        self._note_other_conversations()
        for number, path in enumerate(self._paths[1:], start=1):
            self._read_older(path, is_left_out=number >= MOST_BRANCHES)
        found = [self._of_branch(path, reader) for path, reader in self._branches.items()]
        for agent, reader in self._agents.items():
            id_ = f"{self._id}.agent-{agent}"
            title = short_title(reader.first_prompt)
            found.append(Recording(id_, reader.finish(), reader.report, title, self._parent_of(agent)))
        return [recording for recording in found if recording.events]

    def _read(self, position: int, record: Record) -> None:
        row = record.value
        type_ = str(row.get("type"))
        if _is_read(row):
            reader = self._reader_of(row) if type_ in {*CONVERSATION, ATTACHMENT} else self._main
            if reader is not self._main or position in self._in_view:
                _read_row(reader, self._as_in(self._paths[0], position), record.line, _time(row))
            if type_ in CONVERSATION:
                self._note_agent(row)
        elif type_ == "progress" and (data := _agent_progress(row)):
            self._read_progress(data, row, record.line)
        elif type_ in BOOKKEEPING:
            self._report.counts["skipped"] += 1
        else:
            self._report.note("unknown_record", record.line, type_)

    def _read_older(self, path: SessionPath, *, is_left_out: bool) -> None:
        """Read a branch that was left, and say so in the report."""
        left_out = f"left out: more than {MOST_BRANCHES}"
        self._report.note("branch", path.line, left_out if is_left_out else path.id_in(self._id))
        if is_left_out:
            return
        reader = SessionReader(Report(format=self._report.format), self._first_time)
        for position in (*path.shared, *path.own):
            row = self._as_in(path, position)
            is_side = row.get("isSidechain") is True and text_of(row, "type") in {*CONVERSATION, ATTACHMENT}
            if _is_read(row) and not is_side:
                reader.report.records += 1
                _read_row(reader, row, self._records[position].line, _time(row))
        self._branches[path] = reader

    def _as_in(self, path: SessionPath, position: int) -> dict[str, Any]:
        """Return a row as a branch has it: what it shares is marked as what a fork copied, so that it costs once."""
        row = self._records[position].value
        return {**row, "forkedFrom": {"sessionId": self._id}} if path.shares(position) else row

    def _of_branch(self, path: SessionPath, reader: SessionReader) -> Recording:
        came_from = path.parent and ParentLink(conversation=path.parent.id_in(self._id), relation="fork")
        title = self._title(reader.first_prompt)
        return Recording(path.id_in(self._id), reader.finish(), reader.report, title, came_from or self._parent)

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

    def _parent_of(self, agent: str) -> ParentLink:
        """Return the link of a subagent to its call, in the oldest branch that has it."""
        call = self._call_of_agent.get(agent, "")
        for branch in sorted(self._branches, key=lambda branch: branch.line):
            if (path := self._branches[branch].path_of_call(call)) is not None:
                return ParentLink(conversation=branch.id_in(self._id), path=path, relation="subagent")
        return ParentLink(conversation=self._id, path=None, relation="subagent")

    def _title(self, first_prompt: str) -> str:
        """Return the newest title of a row in this file: a summary row may have another session's title."""
        rows = [record.value for record in self._records]
        uuids = {row["uuid"] for row in rows if is_claude_code(row)}
        named = {
            type_: [text_of(row, field) for row in rows if row.get("type") == type_ and self._is_own(row)]
            for type_, field in _TITLES.items()
        }
        summed = [text_of(r, "summary") for r in rows if r.get("type") == "summary" and text_of(r, "leafUuid") in uuids]
        newest = (title for titles in (*named.values(), summed) for title in reversed(titles) if title)
        return short_title(next(newest, first_prompt))

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


def _is_read(row: dict[str, Any]) -> bool:
    """Return whether a row may say something in a conversation."""
    return text_of(row, "type") in {*CONVERSATION, QUEUE, ATTACHMENT} or is_boundary(row)


def _read_row(reader: SessionReader, row: dict[str, Any], line: int, at: datetime | None) -> None:
    if text_of(row, "type") in CONVERSATION:
        reader.read(row, line, at)
    elif is_boundary(row):
        reader.read_boundary(row, line, at)
    elif row.get("type") == QUEUE:
        reader.read_queue(row, line, at)
    elif row.get("type") == ATTACHMENT:
        reader.read_attachment(row, line, at)


def _time(row: dict[str, Any]) -> datetime | None:
    return parse_time(row.get("timestamp"))


def _agent_progress(row: dict[str, Any]) -> dict[str, Any] | None:
    data = row.get("data")
    if not isinstance(data, dict) or data.get("type") != "agent_progress":
        return None
    return data if isinstance(data.get("agentId"), str) and isinstance(data.get("message"), dict) else None
