"""The lines of a session as events: kept so that they are deep-equal when they are read, each once.

A line is a dict of the client's, of which only a few keys are looked at: ``uuid``, which most have, and the links
between lines. What the database has no form for (half a surrogate pair, which the client writes where it cut a text) is
kept as JSON text, in which it is escaped.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from timeline.events import NewEvent, derived_event_id, event_id
from timeline.events.other_payloads import FrameworkEntry
from timeline.frozen import canonical_json, sha256_hex

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from uuid import UUID

Row: TypeAlias = dict[str, Any]
"""A line of a session: the SDK's `SessionStoreEntry`."""

FRAMEWORK: Final = "claude-agent-sdk"
ENTRY: Final = "framework.entry"
RECORD: Final = "framework.record"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Time in the ids of lines: a repeated line has the same id, whatever its time stamp."""


def uuid_of(row: Row) -> str:
    """Return a line's own id; empty where it has none."""
    uuid = row.get("uuid")
    return uuid if isinstance(uuid, str) else ""


def row_id(conversation: str, uuid: str) -> UUID:
    """Return the id of the event that keeps a line."""
    return derived_event_id(_EPOCH, conversation, "row", uuid)


def events_of(conversation: str, rows: Sequence[Row], at: datetime) -> Iterator[NewEvent]:
    """Return the events that keep some lines."""
    for row in rows:
        uuid = uuid_of(row)
        id_ = row_id(conversation, uuid) if uuid else event_id(at)
        yield NewEvent(id=id_, at=at, payload=FrameworkEntry(framework=FRAMEWORK, key=uuid, data=_stored(row)))


def row_of(payload: object) -> Row | None:
    """Return the line that an event keeps; None for an event that keeps none of this framework's."""
    if not isinstance(payload, FrameworkEntry) or payload.framework != FRAMEWORK:
        return None
    data: Any = json.loads(payload.data) if isinstance(payload.data, str) else payload.data
    return dict(data)


def new_rows(given: Sequence[Row], known: set[str], unnamed: set[str]) -> list[Row]:
    """Return the lines of a batch that the log does not have.

    A line is known by its uuid. One without a uuid may be said again, and is then there twice; unless the batch itself
    is a repetition, which a uuid in it that the log has shows.

    Args:
        given: the batch.
        known: those of its uuids that the log has.
        unnamed: what `fingerprint` says of the lines without a uuid that the log has.
    """
    repeated = bool(known)
    seen = set(known)
    found: list[Row] = []
    for row in given:
        uuid = uuid_of(row)
        if uuid in seen or (not uuid and repeated and fingerprint(row) in unnamed):
            continue
        if uuid:
            seen.add(uuid)
        found.append(row)
    return found


def fingerprint(row: Row) -> str:
    """Return a hash that deep-equal lines share."""
    return sha256_hex(json.dumps(row, sort_keys=True))


def _stored(row: Row) -> Any:
    try:
        canonical_json(row).encode()
    except ValueError:  # a lone surrogate, or a number that JSON has no form for
        return json.dumps(row)
    return row
