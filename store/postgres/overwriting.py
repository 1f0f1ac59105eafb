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
from ..rewriting import EventIdentity, Overwritten, overwritten, rewritten
from ..waypoint_bodies import read_waypoint, waypoint_columns
from . import digest_rows
from .appending import append_within
from .catching_up import LOCK
from .escaping import escaped, text_as_stored, unescaped
from .keeping import count, find_all, forks_of, hold_all, take_turn
from .removing import drop_unnamed, named_within, unnamed_values
from .search_index import Changed, index_again
from .statements import ADD_WAYPOINT, FORGET_FACTS, INSERT_VALUES, OWN, UNPROVE_FACTS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from timeline.events import Payload
    from timeline.ports import Rewriting, Snapshot

    from ..codec import Batch
    from .address import ServerAddress
    from .connections import Connection
    from .keeping import LockedRow

_AT_ONCE: Final = 100
"""Events that are overwritten together; a redaction of many places would wait for the server for each otherwise."""
_BYTES: Final = 1024 * 1024
"""Bytes of new payloads in one statement, or one that is longer: a message to the server has an end."""
TO_OVERWRITE: Final = (
    "SELECT position, event_id::text, type, schema_version, at, salt, checksum, c, payload, version FROM events"
    " WHERE conversation = $1 AND version = ANY($2::bigint[]) ORDER BY version"
)
OVERWRITE: Final = (
    "UPDATE events AS e SET payload = b.payload, packed = NULL, tokens = b.tokens, checksum = b.checksum, salt = NULL,"
    " c = b.c FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::bytea[])"
    " AS b (version, payload, tokens, checksum, c)"
    " WHERE e.conversation = $1 AND e.version = ANY($2::bigint[]) AND e.version = b.version"
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
    await connection.execute(LOCK)  # before the turn, as an erasure and a scavenge take both
    await take_turn(connection)
    ids = [part.conversation for part, _ in parts]
    keys = [log.key for log in (await find_all(connection, ids)).values()]
    unnamed = await unnamed_values(connection, dropped, but_by=keys)
    logs = await hold_all(connection, ids)
    for part, _ in parts:
        await _check(connection, logs[part.conversation], part, logs)
    for part, batch in parts:
        log = logs[part.conversation]
        versions = sorted(part.payloads)
        for start in range(0, len(versions), _AT_ONCE):
            page = {version: part.payloads[version] for version in versions[start : start + _AT_ONCE]}
            await _overwrite(connection, log, page)
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
    if unnamed.sizes:
        unnamed = unnamed.without(await named_within(connection, keys))
    done["values"] += len(await drop_unnamed(connection, unnamed))
    return dict(done)


async def _check(connection: Connection, log: LockedRow, part: Rewriting, logs: Mapping[str, LockedRow]) -> None:
    """Check that a conversation is where it is expected, and that every fork which shares a block is part of the call.

    A fork may be new.
    """
    first = min([*part.blocks, *part.payloads], default=LARGEST)
    late = [fork for fork in await forks_of(connection, [log.key]) if fork.base >= first and fork.id not in logs]
    if log.version != part.expected or late:
        raise VersionConflict(part.conversation, part.expected, log.version)


async def _overwrite(connection: Connection, log: LockedRow, payloads: Mapping[int, Payload]) -> None:
    """Replace the payloads of stored events, with the rows and words that were made of them."""
    rows = {row[9]: row for row in await connection.fetch(TO_OVERWRITE, log.key, [*payloads])}
    news: dict[int, Overwritten] = {}
    for version, payload in payloads.items():
        if version not in rows:
            raise StoreCorrupt(
                f"event {version} of conversation {log.id!r} is missing. Restore the database with the tools of its"
                " server."
            )
        _, id_, type_, schema, at, salt, was, c, *_ = rows[version]
        event = EventIdentity(log.id, version, id_, unescaped(type_), schema, at)
        news[version] = overwritten(event, payload, salt, was, c)
    for part in _parts(news):
        await connection.execute(OVERWRITE, log.key, [*part], *map(list, zip(*part.values(), strict=True)))
    await index_again(connection, log.key, [Changed(rows[v][0], rows[v][8], new.payload) for v, new in news.items()])
    for version, payload in payloads.items():
        if isinstance(payload, CompactionCompleted):
            position, at = rows[version][0], rows[version][4]
            reverted = await connection.fetchval(REVERTED_BY, position)
            await connection.execute(DROP_ENTRIES, [position])
            await connection.execute(DROP_COMPACTIONS_AT, [position])
            await digest_rows.write(connection, log.key, rows_of(version, at, payload))
            await connection.execute(SET_REVERTED, position, reverted)


def _parts(news: Mapping[int, Overwritten]) -> Iterator[dict[int, Overwritten]]:
    """Yield the new columns of events in parts, each for one statement."""
    part: dict[int, Overwritten] = {}
    size = 0
    for version, new in news.items():
        size += len(new.payload)
        if part and size > _BYTES:
            yield part
            part, size = {}, len(new.payload)
        part[version] = new
    if part:
        yield part


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
