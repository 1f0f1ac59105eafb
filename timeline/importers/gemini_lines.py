"""Read Gemini CLI chats as JSON Lines, which Gemini CLI writes from version 0.40 on: changes of a session, in order.

The first line is the session's head. A line with an id is a message, written anew as a whole each time that it
changes. ``$set`` changes the head; ``$rewindTo`` takes back a message and all behind it, and what follows is another
branch. As in other formats each branch is a conversation of its own, the newest first; the oldest has the session's id,
every other one the id of the message where it branches off, so that a file that has grown adds to what was imported.
"""

from __future__ import annotations

from typing import Any, Final

from timeline.events import ParentLink
from timeline.importers.gemini_cli import BOOKKEEPING, CONVERSATION, FORMAT, recording_of
from timeline.importers.lines import Record, read_records
from timeline.importers.recording import Recording, Report
from timeline.wire.foreign import text_of

OPENING: Final = '{"$set":{'
"""The beginning of the line that follows each message; no value inside a line begins so."""
MOST_BRANCHES: Final = 50
"""How many branches are read, the newest first; the limit exists because each repeats the messages it shares."""


def is_gemini_line(value: Any) -> bool:
    """Return whether a JSON value is a line of a Gemini CLI session: its head, a message or a change."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("sessionId"), str) and isinstance(value.get("projectHash"), str):
        return True
    if isinstance(value.get("$rewindTo"), str) or (len(value) == 1 and isinstance(value.get("$set"), dict)):
        return True
    return _is_message(value) and value["type"] in CONVERSATION | BOOKKEEPING and "content" in value


def read_gemini_lines(data: bytes, name: str) -> list[Recording]:
    """Read the bytes of a session file, the newest branch first; the list is empty if it contains no conversation.

    Args:
        data: the file.
        name: the file's name without its extension: the id if no line has one.
    """
    report = Report(format=FORMAT)
    session = _Session(report)
    for record in read_records(data, report, opening=OPENING):
        session.read(record)
    return session.recordings(name)


def _is_message(value: dict[str, Any]) -> bool:
    return bool(text_of(value, "id") and text_of(value, "type") and isinstance(value.get("timestamp"), str))


class _Branch:
    """One way through the session: its messages by id, in order, with the line of each."""

    def __init__(self, begins: str, parent: _Branch | None, messages: dict[str, Record]) -> None:
        self.begins = begins
        self.parent = parent
        self.messages = messages
        self.owned = set[str]()
        """The messages that were written while this branch was the newest one."""

    def id_in(self, session: str) -> str:
        return f"{session}.branch-{self.begins}" if self.begins else session

    def owner_of(self, message: str) -> _Branch:
        """Return the branch that a message was written in: this one, or the nearest one that it comes from."""
        branch = self
        while message not in branch.owned and branch.parent is not None:
            branch = branch.parent
        return branch


class _Session:
    """Applies the lines of a file in order."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._head: dict[str, Any] = {}
        self._branches = [_Branch("", None, {})]
        self._kept: dict[str, Record] | None = None
        """The messages before a rewind, until the first message behind it begins a branch."""

    def read(self, record: Record) -> None:
        value = record.value
        if isinstance(target := value.get("$rewindTo"), str):
            self._rewind(target, record.line)
        elif isinstance(changes := value.get("$set"), dict):
            self._change(changes, record.line)
        elif _is_message(value):
            self._write(record)
        elif isinstance(value.get("sessionId"), str):
            self._change(value, record.line)
        else:
            self._report.note("unknown_record", record.line, ", ".join(map(str, value))[:100])

    def _change(self, changes: dict[str, Any], line: int) -> None:
        """Change the head. A list of messages takes the place of those before it, which stay in the log."""
        self._report.counts["skipped"] += 1
        self._head |= changes
        messages = changes.get("messages")
        if not isinstance(messages, list) or not messages:
            return
        if self._branches[-1].messages:
            remark = f"the client went on from {len(messages)} messages; those before them are kept here"
            self._report.note("rolled_back", line, remark)
        for message in messages:
            if isinstance(message, dict) and _is_message(message):
                self._write(Record(line, message))
            else:
                self._report.note("invalid", line, "a message that is none")

    def _write(self, record: Record) -> None:
        """Write a message: in its old place if it is known, or else behind the others."""
        id_ = text_of(record.value, "id")
        branch = self._branches[-1]
        if self._kept is not None and id_ not in self._kept:
            last = next(reversed(self._kept), "")
            branch = _Branch(id_, branch.owner_of(last), self._kept)
            self._branches.append(branch)
            self._report.note("branch", record.line, branch.id_in(self._session("")))
            self._kept = None
        messages = branch.messages if self._kept is None else self._kept
        first = messages.get(id_)
        messages[id_] = record if first is None else record._replace(line=first.line)
        if first is None:
            branch.owned.add(id_)

    def _rewind(self, target: str, line: int) -> None:
        """Go back to before a message; to before all of them, as the client does, if it is not there."""
        self._report.note("rolled_back", line, f"the client went back to before {target}; what it left is kept here")
        messages = self._branches[-1].messages if self._kept is None else self._kept
        ids = list(messages)
        kept = ids[: ids.index(target)] if target in messages else []
        self._kept = {id_: messages[id_] for id_ in kept}

    def _session(self, name: str) -> str:
        return text_of(self._head, "sessionId") or name

    def recordings(self, name: str) -> list[Recording]:
        """Return a recording of each branch, the newest first."""
        session, found = self._session(name), []
        for number, branch in enumerate(reversed(self._branches[-MOST_BRANCHES:])):
            link = None
            if branch.parent is not None:
                link = ParentLink(conversation=branch.parent.id_in(session), relation="fork")
            report = Report(format=FORMAT, records=len(branch.messages)) if number else self._report
            messages = [(record.line, record.value) for record in branch.messages.values()]
            recording = recording_of(branch.id_in(session), messages, self._head, report, link)
            found += [] if recording is None else [recording]
        return found
