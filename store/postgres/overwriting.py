# ruff: noqa: S608 - the texts are put together from constants, never from input
"""Overwrite stored payloads in PostgreSQL: what runs in the transaction of `Forgetting.rewrite`.

A row keeps its position, its version, id, path and time. What was made of its payload follows in the same transaction.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

from timeline.errors import StoreCorrupt, VersionConflict
from timeline.events import CompactionCompleted

from ..codec import encode_snapshot
from ..column_numbers import LARGEST
from ..digests import rows_of
from ..rewriting import EventIdentity, overwritten, rewritten
from ..waypoint_bodies import read_waypoint, waypoint_columns
from . import digest_rows
from .appending import append_within
from .escaping import escaped, text_as_stored, unescaped
from .keeping import count, forks_of, hold_all, take_turn
from .removing import DROP_WORDS, drop_unnamed
from .search_index import index_again
from .statements import ADD_WAYPOINT, FORGET_FACTS, INSERT_VALUES, OWN, UNPROVE_FACTS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from timeline.events import Payload
    from timeline.ports import Rewriting, Snapshot

    from ..codec import Batch
    from .address import ServerAddress
    from .connections import Connection
    from .keeping import LockedRow

TO_OVERWRITE: Final = (
    "SELECT position, event_id::text, type, schema_version, at, salt, checksum, c, payload FROM events"
    " WHERE conversation = $1 AND version = $2"
)
OVERWRITE: Final = (
    "UPDATE events SET payload = $3, packed = NULL, tokens = $4, checksum = $5, salt = NULL, c = $6"
    " WHERE conversation = $1 AND version = $2"
)
"""Its link stays, and its commitment is kept from now on: it vouches for what was there, which nobody can guess without
the salt."""
REVERTED_BY: Final = f"SELECT reverted_by FROM compactions WHERE position = $1 AND {OWN}"
SET_REVERTED: Final = f"UPDATE compactions SET reverted_by = $2 WHERE position = $1 AND {OWN}"
DROP_ENTRIES: Final = f"DELETE FROM digest_entries WHERE position = ANY($1::bigint[]) AND {OWN}"
DROP_COMPACTIONS_AT: Final = f"DELETE FROM compactions WHERE position = ANY($1::bigint[]) AND {OWN}"
_SNAPSHOTS: Final = {
    table: (
        f"SELECT version, body, checksum FROM {table} WHERE conversation = $1",
        f"UPDATE {table} SET body = $1, checksum = $2 WHERE conversation = $3 AND version = $4",
    )
    for table in ("snapshots", "bases")
}
WAYPOINTS_OF: Final = "SELECT version, body, checksum FROM waypoints WHERE conversation = $1 ORDER BY version"
DROP_WAYPOINT: Final = "DELETE FROM waypoints WHERE conversation = $1 AND version = $2"
_SET_TITLE: Final = "UPDATE conversations SET title = $1 WHERE key = $2"


async def rewrite(
    connection: Connection,
    parts: Sequence[tuple[Rewriting, Batch]],
    values: Mapping[str, str],
    dropped: Collection[str],
    address: ServerAddress,
) -> dict[str, int]:
    """Overwrite what parts name, append their events, and return what was done; see `Forgetting.rewrite`.

    Raises:
        ConversationNotFound, VersionConflict: as for `Forgetting.rewrite`.
        StoreCorrupt: a snapshot is damaged.
    """
    done: Counter[str] = Counter()
    behind = 0
    await take_turn(connection)
    logs = await hold_all(connection, [part.conversation for part, _ in parts])
    for part, _ in parts:
        await _check(connection, logs[part.conversation], part, logs)
    for part, batch in parts:
        log = logs[part.conversation]
        for version, payload in part.payloads.items():
            await overwrite(connection, log, version, payload)
        gone = [*part.blocks]
        await connection.execute(UNPROVE_FACTS, log.key, gone)
        done["facts"] += count(await connection.execute(FORGET_FACTS, log.key, gone))
        done["snapshots"] += await _rewrite_snapshots(connection, log, part, address.where)
        await _rewrite_waypoints(connection, log, part.snapshot, address.where)
        if part.title is not None:
            done["titles"] += count(await connection.execute(_SET_TITLE, escaped(part.title), log.key))
        appended = await append_within(connection, batch, behind)
        behind = max(behind, appended.position + 1)
    if values:
        await connection.execute(INSERT_VALUES, list(values), [text_as_stored(text) for text in values.values()])
    done["values"] += len(await drop_unnamed(connection, dropped))
    return dict(done)


async def _check(connection: Connection, log: LockedRow, part: Rewriting, logs: Mapping[str, LockedRow]) -> None:
    """Check that a conversation is where it is expected, and that every fork which shares a block is part of the call.

    A fork may be new.
    """
    first = min([*part.blocks, *part.payloads], default=LARGEST)
    late = [fork for fork in await forks_of(connection, [log.key]) if fork.base >= first and fork.id not in logs]
    if log.version != part.expected or late:
        raise VersionConflict(part.conversation, part.expected, log.version)


async def overwrite(connection: Connection, log: LockedRow, version: int, payload: Payload) -> None:
    """Replace the payload of a stored event, with the rows and words that were made of it."""
    row = await connection.fetchrow(TO_OVERWRITE, log.key, version)
    if row is None:
        raise StoreCorrupt(
            f"event {version} of conversation {log.id!r} is missing. Restore the database with the tools of its server."
        )
    position, id_, type_, schema, at, salt, was, c, old = row
    new = overwritten(EventIdentity(log.id, version, id_, unescaped(type_), schema, at), payload, salt, was, c)
    await connection.execute(OVERWRITE, log.key, version, *new)
    dropped = count(await connection.execute(DROP_WORDS, [position]))
    await index_again(connection, log.key, position, old, new.payload, dropped=dropped)
    if isinstance(payload, CompactionCompleted):
        reverted = await connection.fetchval(REVERTED_BY, position)
        await connection.execute(DROP_ENTRIES, [position])
        await connection.execute(DROP_COMPACTIONS_AT, [position])
        await digest_rows.write(connection, log.key, rows_of(version, at, payload))
        await connection.execute(SET_REVERTED, position, reverted)


async def _rewrite_snapshots(connection: Connection, log: LockedRow, part: Rewriting, where: str) -> int:
    read = partial(rewritten, log.id, part.snapshot, where)
    done = 0
    for select, update in _SNAPSHOTS.values():
        for version, body, stored in await connection.fetch(select, log.key):
            if (new := read(body, stored)) is not None:
                done += count(await connection.execute(update, *new, log.key, version))
    return done


async def _rewrite_waypoints(
    connection: Connection, log: LockedRow, change: Callable[[Snapshot], Snapshot], where: str
) -> None:
    """Change the snapshots of the past; a damaged one is dropped: it may quote what goes."""
    for row in await connection.fetch(WAYPOINTS_OF, log.key):
        try:
            old = read_waypoint(log.id, tuple(row), where)
        except StoreCorrupt:
            await connection.execute(DROP_WAYPOINT, log.key, row[0])
            continue
        if (new := change(old)) != old:
            await connection.execute(ADD_WAYPOINT, log.key, *waypoint_columns(log.id, encode_snapshot(new)))
