"""Read the lines of an exported log: each is checked by itself, and a damaged one costs no other line.

Nearly every line is as the export wrote it, and is read from the file's bytes. One expression reads the fields before
the payload, and the hash proves the payload, from which a block is made only when it is asked for. Any other line is
parsed as JSON. `timeline.portable.lines` documents the lines.
"""

from __future__ import annotations

import re
from binascii import unhexlify
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from timeline.blocks import instant_text, parse_instant, stored_instant
from timeline.databases import read_file
from timeline.errors import ImportFailed, StoreCorrupt
from timeline.events import BlockAppended
from timeline.events.appended import APPENDED, Columns, written_columns
from timeline.events.chain import Seal, commitment
from timeline.events.encoded import EncodedEvent, encoded_event
from timeline.events.encoding import checksum, decode_payload
from timeline.frozen import compact_json, sha256_hex
from timeline.importers.lines import BYTE_ORDER_MARK, read_records
from timeline.importers.recording import Report
from timeline.log.collector import collector_at_rest
from timeline.portable.lines import FORMAT, FORMAT_VERSION, KEY, OPENING, payload_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from timeline.events import Payload
    from timeline.importers.lines import Record

_CLOSING: Final = ord("}")
_HEAD: Final = 1 << 16
"""How many bytes of a file are searched to recognise it; its first line is much shorter, unless it is damaged."""


_new: Final = tuple.__new__
"""Makes a named tuple in a third of the time that its constructor takes."""


class CopiedEvent(NamedTuple):
    """An event of a file, with its line checked.

    Attributes:
        version: its version.
        id: its id.
        type: its type.
        schema_version: that of its payload.
        at: its time, as it is written.
        text: its payload, as it is stored.
        checksum: its checksum.
        columns: the columns of its row that repeat a block's values, where its payload is not parsed; else None.
        read: its payload, where it was parsed.
        redacted: whether content was taken out.
        seal: its seal in the chain of the exported log; None where no chain covered it.
        link: its link in that chain, as for ``seal``.
    """

    version: int
    id: str
    type: str
    schema_version: int
    at: str
    text: str
    checksum: str
    columns: Columns | None
    read: Payload | None
    redacted: bool
    seal: Seal | None = None
    link: bytes | None = None

    @property
    def payload(self) -> Payload:
        """Its payload."""
        return self.read or decode_payload(self.type, self.schema_version, self.text)

    def event(self) -> EncodedEvent:
        """Return the event as it is appended, with the text of its payload."""
        return encoded_event(
            (self.id, self.at, self.type, self.schema_version),
            self.text,
            payload=self.read,
            columns=self.columns,
            proved=(self.version, self.checksum),
        )

    def under(self, conversation: str) -> CopiedEvent:
        """Return the event as it is in a conversation of another id, where no chain covers it yet."""
        parts = (conversation, self.version, self.id, self.type, self.schema_version, self.at, self.text)
        return self._replace(checksum=checksum(*parts), seal=None, link=None)


@dataclass(slots=True)
class LogCopy:
    """One conversation of a file.

    Attributes:
        conversation: its id.
        report: the findings; those of the file that concern no conversation are in the first one's report.
        version: the last version that the export wrote; 0 if the log line is lost.
        base: the last version that belongs to the parent; the events begin after it.
        first_version: all events from this version on were there when it was exported, 1 if none was scavenged.
        events: the sound events by version.
        values: the texts that events refer to, of the whole file.
        exported_as: the id that it had in the file, where it is imported under another one.
    """

    conversation: str
    report: Report
    version: int = 0
    base: int = 0
    first_version: int = 1
    events: dict[int, CopiedEvent] = field(default_factory=dict, repr=False)
    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    exported_as: str = ""

    def under(self, conversation: str) -> LogCopy:
        """Return this conversation under another id: the same events, which begin a chain of their own.

        For a second copy in one database, or for an id that has to go: import under another one, then erase the first.
        """
        events = {version: event.under(conversation) for version, event in self.events.items()}
        return replace(self, conversation=conversation, events=events, exported_as=self.conversation)


def read_copies(path: Path) -> list[LogCopy] | None:
    """Read an exported file: its conversations in order, or None if it is not an export.

    A damaged line is kept in the report, and costs no other line.

    Raises:
        ImportFailed: a later version of this library wrote the file, or nothing in it can be read.
    """
    try:
        if not _is_copy(read_file(path, _HEAD)):
            return None
        data = read_file(path)
    except OSError:
        return None  # `read_recording` tries the file next, and reports what is wrong with it
    return read_exported(data, str(path))


def read_exported(data: bytes, name: str) -> list[LogCopy]:
    """Read an exported log that is in memory, as `read_copies` reads a file.

    Args:
        data: its bytes.
        name: what errors call it.

    Raises:
        ImportFailed: a later version of this library wrote it, or nothing in it can be read.
    """
    with collector_at_rest():  # nearly all that is made stays
        copies = _File(name).read(data)
    if not any(copy.events for copy in copies):
        raise ImportFailed(name, "no event in it can be read: all lines are damaged. Export it again.")
    return copies


_TEXT: Final = rb'"([^"\\\x00-\x1f]*)"'
_ID: Final = b"-".join(b"[0-9a-f]{%d}" % digits for digits in (8, 4, 4, 4, 12))
_WHOLE: Final = re.compile(
    rb'(?s:\{"timeline":"event","conversation":%(text)b,"version":([1-9][0-9]{0,17})'
    rb',"id":"(%(id)b)","type":%(text)b,"schema_version":(0|[1-9][0-9]{0,17})'
    rb',"at":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)","checksum":"(.{64})"'
    rb'(?:(?:,"salt":"(.{32})")?,"c":"(.{66})","link":"(.{66})")?,"payload":)' % {b"text": _TEXT, b"id": _ID}
)
"""The fields of an event's line as they mostly are, up to the payload, which is the last one.

Hashes are matched by their length alone, in a third of the time: each is later compared with the computed one, or read
as hexadecimal.
"""


def _whole(raw: memoryview) -> tuple[str, CopiedEvent] | None:
    """Read a line in the form of `event_line`: the conversation and the event; None for any other line.

    The result is None for a line that would be refused, too: the careful way then says what is wrong with it.
    """
    found = _WHOLE.match(raw)
    if found is None or raw[-1] != _CLOSING:
        return None
    *own, sum_, salt, c, link = found.groups()
    head, payload = b"\n".join(own), bytes(raw[found.end() : -1])
    stored = sha256(b"%b\n%b" % (head, payload)).hexdigest()
    try:
        if stored.encode() != sum_:
            return None
        salt, c, link = salt and unhexlify(salt), c and unhexlify(c), link and unhexlify(link)
        if salt is not None and commitment(salt, stored) != c:
            return None
        conversation, version, id_, type_, form, at = str(head, "utf-8").split("\n")
        schema_version = int(form)
        content = _content(type_, schema_version, at, payload)
        if content is None:
            return None
        text, columns, read = content
        seal = None if c is None else _new(Seal, (salt, c))
        fields = (int(version), id_, type_, schema_version, at, text, stored, columns, read, False, seal, link)
        return conversation, _new(CopiedEvent, fields)
    except (ValueError, TypeError, StoreCorrupt):
        return None


def _content(
    type_: str, schema_version: int, at: str, payload: bytes
) -> tuple[str, Columns | None, Payload | None] | None:
    """Return a payload as text, and what is known about it; None where this version would write it otherwise."""
    if stored_instant(at) is None:
        return None
    if type_ == APPENDED and schema_version == BlockAppended.schema_version:
        columns = written_columns(payload, at.replace(".000000Z", "Z"))
        if columns is not None:
            return str(payload, "utf-8"), columns, None
    text = str(payload, "utf-8")
    read = decode_payload(type_, schema_version, text)
    return (text, None, read) if payload_text(read, parse_instant(at), at) == text else None


def _is_copy(head: bytes) -> bool:
    opening = OPENING.encode()
    return head.removeprefix(BYTE_ORDER_MARK).startswith(opening) or b"\n" + opening in head


class _File:
    """The reading of one file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._report = Report(format=FORMAT)
        self._values: dict[str, str] = {}
        self._copies: dict[str, LogCopy] = {}

    def read(self, data: bytes) -> list[LogCopy]:
        """Read all lines."""
        for record in read_records(data, self._report, opening=OPENING, at_once=self._at_once):
            self._read(record)
        copies = list(self._copies.values())
        if copies:  # findings that concern no conversation go to the first
            first = copies[0].report
            first.lines, first.records = self._report.lines, self._report.records
            first.counts.update(self._report.counts)
            first.findings[:0] = self._report.findings
        return copies

    def _at_once(self, raw: memoryview) -> bool:
        """Take in a line in the form of an export; return whether it had that form, and a new event."""
        whole = _whole(raw)
        if whole is None or not whole[0]:
            return False
        conversation, found = whole
        copy = self._copies.get(conversation) or self._copy(conversation)
        if copy.events.setdefault(found.version, found) is not found:
            return False
        copy.report.records += 1
        return True

    def _read(self, record: Record) -> None:
        line, value = record
        kind = value.get(KEY)
        try:
            if kind == "event":
                self._read_event(value, line)
            elif kind == "value":
                self._read_value(value)
            elif kind == "log":
                self._read_log(value)
            else:
                self._report.note("quarantined", line, "no line of an exported log")
        except (ValueError, TypeError, KeyError, StoreCorrupt) as error:
            self._report.note("quarantined", line, f"{kind}: {_problem(error)}")

    def _read_log(self, value: dict[str, Any]) -> None:
        if value.get("format") != FORMAT_VERSION and isinstance(value.get("format"), int):
            raise ImportFailed(
                self._path,
                f"it is in format {value['format']}, and this version of timeline reads format {FORMAT_VERSION}. "
                "Import it with the version that wrote it, or a later one.",
            )
        fields = dict(value)
        if sha256_hex(compact_json({k: v for k, v in fields.items() if k != "checksum"})) != fields["checksum"]:
            raise ValueError("it does not match its checksum")
        copy = self._copy(fields["conversation"])
        copy.version, copy.base = int(fields["version"]), int(fields["base"])
        copy.first_version = int(fields.get("first_version", 1))

    def _read_value(self, value: dict[str, Any]) -> None:
        if sha256_hex(value["text"]) != value["hash"]:
            raise ValueError("it does not match its hash")
        self._values[value["hash"]] = value["text"]

    def _read_event(self, value: dict[str, Any], line: int) -> None:
        found = _event(value)
        copy = self._copy(value["conversation"])
        known = copy.events.setdefault(found.version, found)
        if known is found:
            copy.report.records += 1
        elif known.checksum == found.checksum:
            copy.report.note("duplicate_record", line, f"version {found.version}")
        else:
            raise ValueError(f"version {found.version} is there before, as another event")

    def _copy(self, conversation: Any) -> LogCopy:
        if not isinstance(conversation, str) or not conversation:
            raise ValueError("it names no conversation")
        if conversation not in self._copies:
            self._copies[conversation] = LogCopy(conversation, Report(format=FORMAT), values=self._values)
        return self._copies[conversation]


def _event(value: dict[str, Any]) -> CopiedEvent:
    """Read an event from its line.

    Raises:
        ValueError: it does not match its checksum, or this version would store it as another text.
        StoreCorrupt: a field that its type requires is missing or wrong.
    """
    id_, type_, schema_version, at = value["id"], value["type"], value["schema_version"], value["at"]
    text = compact_json(value["payload"])
    if checksum(value["conversation"], value["version"], id_, type_, schema_version, at, text) != value["checksum"]:
        raise ValueError("it does not match its checksum")
    payload = decode_payload(type_, schema_version, text)
    moment = parse_instant(at)
    written = instant_text(moment)
    if payload_text(payload, moment, written) != text or written != at or value["version"] < 1:
        raise ValueError("this version of timeline would write it differently")
    salt, c, link = (bytes.fromhex(value[name]) if name in value else None for name in ("salt", "c", "link"))
    if salt is not None and (c is None or commitment(salt, value["checksum"]) != c):
        raise ValueError("it does not match its commitment")
    seal = None if c is None else Seal(salt, c)
    own = (value["version"], str(UUID(id_)), type_, schema_version, at, text, value["checksum"])
    return CopiedEvent(*own, None, payload, value.get("redacted") is True, seal, link)


def _problem(error: Exception) -> str:
    return f"it has no {error}" if isinstance(error, KeyError) else str(error).partition("\n")[0]
