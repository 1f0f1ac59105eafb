"""Write and read the lines of an exported log.

A file is JSON Lines of three kinds, by the key ``timeline``. Each line is checked by itself, so that damage is reported
with its line:

=========  ============================================================================================================
log        opens a conversation: ``format`` (1), ``library``, ``conversation``, ``version`` (its last one here),
           ``base`` (the last one that a fork shares with its parent), ``parent``, ``title``; ``checksum`` of the line.
           ``first_version``, where history was scavenged: all events from this version on are there
value      a content-addressed text that events refer to: ``hash``, its sha256, and ``text``
event      ``conversation``, ``version``, ``id``, ``type``, ``schema_version``, ``at``, ``payload`` and ``checksum``,
           which is the store's own: sha256 of the seven joined by line feeds, the payload as compact JSON last.
           ``redacted``: something was taken out of the payload, and the checksum is of what is left
           ``salt``, ``c`` and ``link``, in hexadecimal, are those of the store's chain (`timeline.events.chain`);
           without a salt, the payload is not the one that was committed to. Events that no chain covers have none
=========  ============================================================================================================

Parents come before their forks, values before the events that name them, events by version.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from pydantic_core import from_json

from timeline.blocks import instant_text, parse_instant, stored_instant
from timeline.databases import read_file
from timeline.errors import ImportFailed, StoreCorrupt
from timeline.events import (
    BlockAppended,
    ContextRendered,
    ConversationOpened,
    EncodedEvent,
    Event,
    PolicyChanged,
    encoded_event,
)
from timeline.events.appended import read_as_written, write_appended
from timeline.events.chain import Seal, commitment
from timeline.events.encoding import checksum, decode_payload, encode_payload, is_written
from timeline.events.other_payloads import PolicyOverridden
from timeline.frozen import compact_json, sha256_hex
from timeline.importers.lines import BYTE_ORDER_MARK, read_records
from timeline.importers.recording import Report

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

    from timeline.events import Payload
    from timeline.importers.lines import Record
    from timeline.ports import ChainedEvent, ConversationInfo, WrittenEvent

_APPENDED: Final[str] = BlockAppended.model_fields["type"].default
KEY: Final = "timeline"
OPENING: Final = '{"timeline":"'
_EVENT: Final = f'{OPENING}event"'
"""The beginning of every line; no value inside a line begins so, unless a conversation is about such a file."""
FORMAT: Final = "timeline-log"
FORMAT_VERSION: Final = 1
_PAYLOAD: Final = ',"payload":'
"""What comes before an event's payload, the last field of its line. No text holds it: there the quotes are escaped."""
_HEAD: Final = 1 << 16
"""How many bytes of a file are searched to recognise it; its first line is much shorter, unless it is damaged."""


def log_line(info: ConversationInfo, version: int, title: str, library: str) -> str:
    """Return the line that opens a conversation."""
    fields: dict[str, Any] = {
        KEY: "log",
        "format": FORMAT_VERSION,
        "library": library,
        "conversation": info.id,
        "version": version,
        "base": info.base,
        "parent": None if info.parent is None else info.parent.model_dump(mode="json"),
        "title": title,
    }
    if info.first_version > 1:
        fields["first_version"] = info.first_version
    return compact_json({**fields, "checksum": sha256_hex(compact_json(fields))})


def value_line(hash_: str, text: str) -> str:
    """Return the line of a content-addressed text."""
    return compact_json({KEY: "value", "hash": hash_, "text": text})


def event_line(event: Event, erased: Payload | None, chained: ChainedEvent | None = None) -> str:
    """Return the line of an event, with its erased payload if something was redacted, and with what chains it."""
    at = instant_text(event.at)
    text = _payload_text(erased or event.payload, event.at, at)
    sum_ = event.checksum
    if erased is not None:
        sum_ = checksum(event.conversation, event.version, event.id, event.type, event.schema_version, at, text)
    fields: dict[str, Any] = {
        KEY: "event",
        "conversation": event.conversation,
        "version": event.version,
        "id": str(event.id),
        "type": event.type,
        "schema_version": event.schema_version,
        "at": at,
        "checksum": sum_,
    }
    if chained is not None and chained.c is not None and chained.link is not None:
        if erased is None and chained.salt is not None:
            fields["salt"] = chained.salt.hex()
        fields["c"], fields["link"] = chained.c.hex(), chained.link.hex()
    if erased is not None:
        fields["redacted"] = True
    return f"{compact_json(fields)[:-1]}{_PAYLOAD}{text}}}"


def written_line(conversation: str, event: WrittenEvent) -> str:
    """Return the line of an event of which nothing is redacted, as `event_line` does, of the text as it is stored."""
    _, id_, type_, schema_version, at, sum_, salt, c, link, text, payload = event
    if payload is not None:
        text = encode_payload(payload)
    sealed = "" if salt is None else f',"salt":"{salt.hex()}"'
    chain = "" if c is None or link is None else f'{sealed},"c":"{c.hex()}","link":"{link.hex()}"'
    return (
        f'{_EVENT},"conversation":{_quoted(conversation)},"version":{event.version},"id":"{id_}","type":{_quoted(type_)}'
        f',"schema_version":{schema_version},"at":"{at}","checksum":"{sum_}"{chain}{_PAYLOAD}{text}}}'
    )


@lru_cache(maxsize=64)
def _quoted(text: str) -> str:
    return compact_json({KEY: text})[len(f'{{"{KEY}":') : -1]


def _payload_text(payload: Payload, at: datetime, written: str) -> str:
    time = written.replace(".000000Z", "Z")
    fast = write_appended(payload, at, time) if type(payload) is BlockAppended else None
    return encode_payload(payload) if fast is None else fast


def values_of(payload: Payload) -> set[str]:
    """Return the hashes of the values that an event refers to."""
    if type(payload) is BlockAppended:  # nearly all of them: to ask pydantic's classes takes long
        return set()
    match payload:
        case ContextRendered(policy=policy, system=system, tools=tools, ephemeral=ephemeral):
            return {hash_ for hash_ in (policy, system, tools, ephemeral) if hash_ is not None}
        case PolicyChanged(policy=policy) | PolicyOverridden(policy=policy):
            return {policy}
        case ConversationOpened(policy=str(policy)):
            return {policy}
    return set()


@dataclass(frozen=True, slots=True)
class CopiedEvent:
    """An event of a file, with its line checked and its payload read.

    Attributes:
        version: its version.
        id: its id.
        at: its time, as it is written.
        payload: its payload.
        text: its payload, as it is stored.
        checksum: its checksum.
        redacted: whether content was taken out.
        seal: that of the chain that it had; None where no chain covered it.
        link: as ``seal``.
    """

    version: int
    id: str
    at: str
    payload: Payload
    text: str
    checksum: str
    redacted: bool
    seal: Seal | None = None
    link: bytes | None = None

    def event(self) -> EncodedEvent:
        """Return the event as it is appended, with the text of its payload."""
        return encoded_event(UUID(self.id), parse_instant(self.at), self.payload, self.text)

    def under(self, conversation: str) -> CopiedEvent:
        """Return the event as it is in a conversation of another id, where no chain covers it yet."""
        event = self.event()
        parts = (conversation, self.version, event.id, event.type, event.schema_version, self.at, self.text)
        return replace(self, checksum=checksum(*parts), seal=None, link=None)


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
    copies = _File(str(path)).read(data)
    if not any(copy.events for copy in copies):
        raise ImportFailed(str(path), "no event in it can be read: all lines are damaged. Export it again.")
    return copies


class _Whole(dict[str, Any]):
    """The fields of an event's line before its payload, and the payload as it is written there: `text`."""

    text: str


def _whole(line: str) -> _Whole | None:
    """Read a line that is as `event_line` writes it; None for any other, which is read with care."""
    if not line.startswith(_EVENT):
        return None
    end = line.find(_PAYLOAD)
    if end < 0 or line[-1] != "}":
        return None
    found = _fields(line[:end])
    if found is None:
        return None
    found.text = line[end + len(_PAYLOAD) : -1]
    return found if type(found.get("checksum")) is str and _hashed(found, found.text) == found["checksum"] else None


_HEX: Final = "[0-9a-f]"
_TEXT: Final = r'"([^"\\\x00-\x1f]*)"'
_NUMBER: Final = "(0|[1-9][0-9]{0,17})"
_FIELDS: Final = re.compile(
    f'{re.escape(_EVENT)},"conversation":{_TEXT},"version":{_NUMBER},"id":{_TEXT},"type":{_TEXT}'
    f',"schema_version":{_NUMBER},"at":{_TEXT},"checksum":"({_HEX}{{64}})"'
    f'(?:(?:,"salt":"({_HEX}{{32}})")?,"c":"({_HEX}{{66}})","link":"({_HEX}{{66}})")?'
)
"""The fields of an event's line as they mostly are. Others are parsed as JSON, which takes three times as long."""


def _fields(text: str) -> _Whole | None:
    """Read the fields before the payload; None where they are no JSON."""
    found = _FIELDS.fullmatch(text)
    if found is None:
        try:
            return _Whole(from_json(f"{text}}}"))
        except ValueError:
            return None
    conversation, version, id_, type_, schema_version, at, sum_, salt, c, link = found.groups()
    value = _Whole(conversation=conversation, version=int(version), id=id_, type=type_, at=at, checksum=sum_)
    value |= {KEY: "event", "schema_version": int(schema_version)}
    if link is not None:
        value |= {"c": c, "link": link}
    if salt is not None:
        value["salt"] = salt
    return value


def _hashed(value: dict[str, Any], text: str) -> str | None:
    """Return the checksum of a line's event; None where a field is missing."""
    try:
        told = (
            value["conversation"],
            value["version"],
            value["id"],
            value["type"],
            value["schema_version"],
            value["at"],
        )
    except KeyError:
        return None
    return checksum(*told, text)


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
        for record in read_records(data, self._report, opening=OPENING, at_once=_whole):
            self._read(record)
        copies = list(self._copies.values())
        if copies:  # findings that concern no conversation go to the first
            first = copies[0].report
            first.lines, first.records = self._report.lines, self._report.records
            first.counts.update(self._report.counts)
            first.findings[:0] = self._report.findings
        return copies

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
        told = dict(value)
        if sha256_hex(compact_json({k: v for k, v in told.items() if k != "checksum"})) != told["checksum"]:
            raise ValueError("it does not match its checksum")
        copy = self._copy(told["conversation"])
        copy.version, copy.base = int(told["version"]), int(told["base"])
        copy.first_version = int(told.get("first_version", 1))

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
    if isinstance(value, _Whole):
        text = value.text
    else:
        told = (
            value["conversation"],
            value["version"],
            value["id"],
            value["type"],
            value["schema_version"],
            value["at"],
        )
        text = compact_json(value["payload"])
        if checksum(*told, text) != value["checksum"]:
            raise ValueError("it does not match its checksum")
    id_, type_, schema_version, at = value["id"], value["type"], value["schema_version"], value["at"]
    payload: Payload | None = read_as_written(text) if _is_plain(id_, type_, schema_version, at) else None
    if payload is None or value["version"] < 1:
        payload = decode_payload(type_, schema_version, text)
        moment = parse_instant(at)
        written = instant_text(moment)
        if _payload_text(payload, moment, written) != text or written != at or value["version"] < 1:
            raise ValueError("this version of timeline would write it otherwise")
        id_ = str(UUID(id_))
    salt, c, link = (bytes.fromhex(value[name]) if name in value else None for name in ("salt", "c", "link"))
    if salt is not None and (c is None or commitment(salt, value["checksum"]) != c):
        raise ValueError("it does not match its commitment")
    seal = None if c is None else Seal(salt, c)
    own = (value["version"], id_, at, payload, text, value["checksum"])
    return CopiedEvent(*own, value.get("redacted") is True, seal, link)


def _is_plain(id_: Any, type_: Any, schema_version: Any, at: Any) -> bool:
    """Return whether an event is of a block, with an id and a time as they are written."""
    return (
        type_ == _APPENDED
        and schema_version == BlockAppended.schema_version
        and is_written(id_, at)
        and stored_instant(at) is not None
    )


def _problem(error: Exception) -> str:
    return f"it has no {error}" if isinstance(error, KeyError) else str(error).partition("\n")[0]
