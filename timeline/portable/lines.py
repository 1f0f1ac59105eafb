"""Write the lines of an exported log; `timeline.portable.reading` reads them.

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

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import instant_text
from timeline.events import (
    BlockAppended,
    ContextRendered,
    ConversationOpened,
    Event,
    PolicyChanged,
)
from timeline.events.appended import write_appended
from timeline.events.encoding import checksum, encode_payload
from timeline.events.other_payloads import PolicyOverridden
from timeline.frozen import compact_json, sha256_hex

if TYPE_CHECKING:
    from datetime import datetime

    from timeline.events import Payload
    from timeline.ports import ChainedEvent, ConversationInfo, WrittenEvent

KEY: Final = "timeline"
OPENING: Final = '{"timeline":"'
_EVENT: Final = f'{OPENING}event"'
"""The beginning of an event's line; no value inside a line begins so, unless a conversation is about such a file."""
FORMAT: Final = "timeline-log"
FORMAT_VERSION: Final = 1
_PAYLOAD: Final = ',"payload":'
"""The text before an event's payload, the last field of its line. No value holds it: quotes in values are escaped."""


def log_line(info: ConversationInfo, version: int, title: str, library: str, first_version: int = 1) -> str:
    """Return the line that opens a conversation; all events from ``first_version`` to ``version`` are there."""
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
    if first_version > 1:
        fields["first_version"] = first_version
    return compact_json({**fields, "checksum": sha256_hex(compact_json(fields))})


def value_line(hash_: str, text: str) -> str:
    """Return the line of a content-addressed text."""
    return compact_json({KEY: "value", "hash": hash_, "text": text})


def event_line(event: Event, erased: Payload | None, chained: ChainedEvent | None = None) -> str:
    """Return the line of an event, with its erased payload if something was redacted, and its place in the chain."""
    at = instant_text(event.at)
    text = payload_text(erased or event.payload, event.at, at)
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
    """Return the line of an event without redacted content, as `event_line` does, but from the stored text."""
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


def payload_text(payload: Payload, at: datetime, written: str) -> str:
    """Return the text as which a payload is stored, by the quick way where there is one.

    Args:
        payload: the payload.
        at: the time of its event.
        written: this time, as it is stored.
    """
    time = written.replace(".000000Z", "Z")
    fast = write_appended(payload, at, time) if type(payload) is BlockAppended else None
    return encode_payload(payload) if fast is None else fast


def values_of(payload: Payload) -> set[str]:
    """Return the hashes of the values that an event refers to."""
    if type(payload) is BlockAppended:  # nearly all are, and ``isinstance`` with pydantic's classes takes long
        return set()
    match payload:
        case ContextRendered(policy=policy, system=system, tools=tools, ephemeral=ephemeral):
            return {hash_ for hash_ in (policy, system, tools, ephemeral) if hash_ is not None}
        case PolicyChanged(policy=policy) | PolicyOverridden(policy=policy):
            return {policy}
        case ConversationOpened(policy=str(policy)):
            return {policy}
    return set()
