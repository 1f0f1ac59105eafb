"""Write payloads as stored text and read them back; list the payload types; compute an event's checksum.

A payload of a later version (an unknown type, or a later schema version) is read as an `UnknownPayload` and written
back unchanged: reading a log never fails on it.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from timeline.blocks import invalid_block
from timeline.errors import StoreCorrupt, StoreTooNew
from timeline.events import (
    BlockAppended,
    BlockRedacted,
    BlocksHidden,
    BlocksPinned,
    BlocksRevealed,
    BlocksUnpinned,
    CompactionCompleted,
    CompactionReverted,
    ContextRendered,
    ConversationOpened,
    ModelCalled,
    PolicyChanged,
    UnknownPayload,
)
from timeline.events.appended import APPENDED, read_appended
from timeline.events.other_payloads import (
    CompactionBoundary,
    CompactionFailed,
    CompactionStarted,
    ContextOverflowed,
    FrameworkEntry,
    FrameworkRecord,
    HookFailed,
    PolicyOverridden,
    PrefixChanged,
    RetentionSet,
    StageApproved,
    StageEntered,
    StageRewound,
    ToolsChanged,
)
from timeline.frozen import compact_json, compact_json_of_long, is_flat, sha256_hex

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from timeline.events import Payload
    from timeline.events.chain import Written


PAYLOADS: Final[dict[str, type[Payload]]] = {
    cls.model_fields["type"].default: cls
    for cls in (
        ConversationOpened,
        BlockAppended,
        BlocksHidden,
        BlocksRevealed,
        BlocksPinned,
        BlocksUnpinned,
        BlockRedacted,
        CompactionStarted,
        CompactionCompleted,
        CompactionFailed,
        CompactionReverted,
        CompactionBoundary,
        HookFailed,
        PolicyChanged,
        PolicyOverridden,
        StageEntered,
        StageApproved,
        StageRewound,
        ModelCalled,
        ContextRendered,
        ContextOverflowed,
        RetentionSet,
        PrefixChanged,
        ToolsChanged,
        FrameworkEntry,
        FrameworkRecord,
    )
}
"""The payloads that this version knows, by type."""


_LATER: Final = frozenset({"extra_forbidden", "literal_error"})
"""What pydantic says of a field that is new to it, and of a new choice in one that it knows."""


_PART: Final = 200
"""Items of a list that are written at once: nobody else has the interpreter while thousands are."""
_LONG_TEXT: Final = 10_000
"""Characters of a text from which on it is worth a look whether there is a quicker way to write it."""


def encode_payload(payload: Payload) -> str:
    """Write a payload as the JSON text that is stored and hashed."""
    data = payload.dump()
    if type(payload) is BlocksHidden and any(len(shown.text) > _LONG_TEXT for shown in payload.blocks):
        return compact_json_of_long(data)
    # The long lists of a decision are fields of its own, or of its digest. Contexts and calls, the most, have no list.
    if is_flat(data) or not any(map(_is_long, (item for value in data.values() for item in _fields_of(value)))):
        return compact_json(data)
    return _object({name: _written(value) for name, value in data.items()})


def _fields_of(value: Any) -> Iterable[Any]:
    return value.values() if type(value) is dict else (value,)


def _is_long(value: Any) -> bool:
    return type(value) is list and len(value) > _PART


def _written(value: Any) -> str:
    """Write one field as JSON."""
    if type(value) is dict:
        return _object({name: _listed(item) for name, item in value.items()})
    return _listed(value)


def _object(texts: Mapping[str, str]) -> str:
    return "{" + ",".join([f"{compact_json(name)}:{text}" for name, text in texts.items()]) + "}"


def _listed(value: Any) -> str:
    if not _is_long(value):
        return compact_json(value)
    parts = [value[start : start + _PART] for start in range(0, len(value), _PART)]
    return "[" + ",".join([compact_json(part)[1:-1] for part in parts]) + "]"


def decode_payload(type_: str, schema_version: int, text: str) -> Payload:
    """Read a stored payload. An unknown type or a later schema version becomes an `UnknownPayload`.

    Raises:
        StoreTooNew: it has a field, or a choice in one, that only a later version knows. What it decides cannot be
            guessed without, so it is no `UnknownPayload`.
        StoreCorrupt: the text is no JSON object, or does not hold what its type and schema version promise.
    """
    if type_ == APPENDED and schema_version <= BlockAppended.schema_version:
        read = read_appended(text)
        if read is not None:
            return read
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreCorrupt(f"an event of type {type_!r} holds no JSON: {error}") from None
    if not isinstance(data, dict):
        raise StoreCorrupt(f"an event of type {type_!r} holds no JSON object")
    cls = PAYLOADS.get(type_)
    if cls is None or schema_version > cls.schema_version:
        return UnknownPayload(type=type_, data=data, stored_schema_version=schema_version)
    try:
        return cls.model_validate(data)
    except ValidationError as error:
        if later := _of_later_versions(error):
            raise StoreTooNew(f"an event of type {type_!r} has what this version does not know: {later}") from None
        raise StoreCorrupt(
            f"an event of type {type_!r} does not hold its fields: {invalid_block(error).problem}"
        ) from None


def _of_later_versions(error: ValidationError) -> str:
    """Name the fields that only a later version knows, or fills so; empty where anything else is wrong as well."""
    found = error.errors(include_url=False, include_context=False)
    if any(one["type"] not in _LATER for one in found):
        return ""
    return ", ".join(sorted({".".join(map(str, one["loc"])) for one in found}))


_WRITTEN: Final = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12} \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII
)


def is_written(id_: object, at: object) -> bool:
    """Return whether an event's id and time have the form in which they are written. The time may still be none."""
    return type(id_) is type(at) is str and _WRITTEN.fullmatch(f"{id_} {at}") is not None


_HASHED: Final = 1_000_000
"""Characters of a payload that are encoded at once for its checksum: more would be two copies of a large one."""


def checksum(  # noqa: PLR0917 - the order of the parts is the format
    conversation: str, version: int, id_: UUID | str, type_: str, schema_version: int, at: str, payload: str
) -> str:
    """Hash every field of an event except its store-wide position."""
    if len(payload) <= _HASHED:
        return sha256_hex(f"{conversation}\n{version}\n{id_}\n{type_}\n{schema_version}\n{at}\n{payload}")
    begin = f"{conversation}\n{version}\n{id_}\n{type_}\n{schema_version}\n{at}\n"
    hashed = hashlib.sha256(begin.encode())
    for start in range(0, len(payload), _HASHED):
        hashed.update(payload[start : start + _HASHED].encode())
    return hashed.hexdigest()


def checksums(conversations: Iterable[str], versions: Iterable[int], events: Iterable[Written]) -> list[str]:
    """Return the `checksum` of each event at its version of its conversation, in half of the calls.

    It is the inner loop of an append, so it writes the format itself; a test compares the two.
    """
    hashed = hashlib.sha256
    return [
        hashed(f"{conversation}\n{version}\n{id_}\n{type_}\n{form}\n{at}\n{payload}".encode()).hexdigest()
        if len(payload) <= _HASHED
        else checksum(conversation, version, id_, type_, form, at, payload)
        for conversation, version, (id_, type_, form, at, _, _, _, payload) in zip(
            conversations, versions, events, strict=True
        )
    ]
