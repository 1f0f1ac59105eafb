# ruff: noqa: S608 - the texts are put together from constants, never from input
"""Remove history in PostgreSQL: what runs in the transaction of one step.

Beside `overwriting` and `erasing`, this is the only place that changes rows of the log. A removed event keeps its row,
with an empty payload and checksum, as in a file (`store.sqlite.removing`). The old version of such a row stays in the
table's file, unseen, until `store.postgres.rewriting_files` rewrites that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.events.chain import given, remains
from timeline.ports import KEPT_TYPES, Removal

from ..codec import decode_snapshot
from ..facts import proof_of_rows
from ..frequent_types import RARE_WHERE
from ..removal import DISOWNS_WHERE, HASH, OTHER_SCAVENGED, RemovalBounds, bounds
from .escaping import joined, unescaped
from .keeping import forks_of, hold, take_turn
from .search_index import DROP_WORDS
from .statements import HORIZON, OWN

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import asyncpg

    from .address import ServerAddress
    from .connections import Connection
    from .keeping import LockedRow

_KEPT: Final = sorted(KEPT_TYPES)
OWN_SNAPSHOT: Final = "SELECT body, checksum FROM snapshots WHERE conversation = $1"
NEWEST_UNDO: Final = (
    "SELECT coalesce(max(version), 0) FROM events"
    f" WHERE conversation = $1 AND type = 'compaction.reverted' AND {RARE_WHERE}"
)
_WHERE_TO_REMOVE = (
    "conversation = $1 AND version > $2 AND version <= $3 AND type <> ALL($4::text[])"
    f" AND version <> ALL($5::bigint[]) AND NOT ({DISOWNS_WHERE}) AND checksum <> ''"
)
TO_REMOVE: Final = (
    "SELECT version, position, octet_length(payload), type, path, path_rest, link, salt, checksum, c FROM events"
    f" WHERE {_WHERE_TO_REMOVE} ORDER BY version LIMIT $6"
)
WOULD_REMOVE: Final = (
    f"SELECT count(*), coalesce(sum(octet_length(payload)), 0)::bigint FROM events WHERE {_WHERE_TO_REMOVE}"
)
BLANK: Final = (
    "UPDATE events AS e SET payload = '', checksum = '', salt = b.salt, packed = b.packed, c = b.c, tokens = NULL,"
    f" turn_id = CASE WHEN {RARE_WHERE} THEN type END,"
    f" type = CASE WHEN {RARE_WHERE} THEN '{OTHER_SCAVENGED}' ELSE type END"
    " FROM unnest($2::bigint[], $3::bytea[], $4::bytea[], $5::bytea[]) AS b (version, salt, packed, c)"
    " WHERE e.conversation = $1 AND e.version = b.version"
)
"""A rare event gets another type, so that the indexes of rare events find none that is not there. Its link covers its
own type, which stays in the place of its turn; what vouches for its facts takes the place of a packed payload."""
FACTS_AT: Final = (
    "SELECT position, number, kind, failed, status, version, call, subject, tool, detail, path, source FROM facts"
    f" WHERE {OWN} AND position = ANY($1::bigint[]) ORDER BY position, number"
)
ADD_BASE: Final = (
    "INSERT INTO bases (conversation, version, body, checksum) VALUES ($1, $2, $3, $4)"
    " ON CONFLICT (conversation, version) DO NOTHING"
)
DROP_BASES: Final = "DELETE FROM bases WHERE conversation = $1 AND version >= $2 AND version < $3"
DROP_WAYPOINTS: Final = "DELETE FROM waypoints WHERE conversation = $1 AND version < $2"
RAISE_FIRST: Final = "UPDATE conversations SET first_version = greatest(first_version, $1) WHERE key = $2"
_HASHES = "regexp_matches({}, $1, 'g') AS m (found)"


def _names(where: str) -> str:
    """Write what the rows of events, snapshots and bases name for which a condition holds."""
    tables = (
        ("events", "n.payload", " AND n.type <> 'block.appended' AND n.checksum <> ''"),
        ("snapshots", "n.body", ""),
        ("bases", "n.body", ""),
    )
    return " UNION ALL ".join(
        f"SELECT m.found[1] FROM {table} AS n CROSS JOIN LATERAL {_HASHES.format(column)} WHERE {where}{condition}"
        for table, column, condition in tables
    )


UNNAMED: Final = (
    f"SELECT v.hash, octet_length(v.text), {HORIZON} FROM stored_values AS v"
    f" WHERE v.{OWN} AND ($2::text[] IS NULL OR v.hash = ANY($2::text[]))"
    f" AND NOT EXISTS (SELECT 1 FROM ({_names(f'n.{OWN} AND n.conversation <> ALL($3::bigint[])')})"
    " AS named (hash) WHERE named.hash = v.hash)"
)
"""Reads the whole log but its blocks; it gives the position up to which that was all, too."""
NAMED_WITHIN: Final = (
    f"SELECT DISTINCT named.hash FROM ({_names('n.conversation = ANY($2::bigint[])')}) AS named (hash)"
)
DROP_UNNAMED: Final = (
    f"DELETE FROM stored_values AS v WHERE v.{OWN} AND v.hash = ANY($2::text[])"
    " AND NOT EXISTS (SELECT 1 FROM (SELECT m.found[1] FROM events AS e CROSS JOIN LATERAL"
    f" {_HASHES.format('e.payload')} WHERE e.{OWN} AND e.position >= $3 AND e.type <> 'block.appended'"
    " AND e.checksum <> '') AS named (hash) WHERE named.hash = v.hash) RETURNING octet_length(v.text)"
)
"""A snapshot that came since names what the one before it named, or an event that came since."""
LOCK_VALUES: Final = "LOCK TABLE stored_values IN SHARE ROW EXCLUSIVE MODE"
"""An append that finds its text there already writes none, and locks no row of it: so none may be between looking for
the text and naming it while texts go. Every append that stores a text waits, of all tenants: the log is read before."""


async def remove(connection: Connection, conversation: str, after: int, most: int, address: ServerAddress) -> Removal:
    """Remove at most ``most`` events of a conversation behind a version, in the open transaction.

    Raises:
        ConversationNotFound: there is no such conversation.
        StoreCorrupt: its snapshot is damaged.
    """
    await take_turn(connection)
    return await remove_held(connection, await hold(connection, conversation), after, most, address.where)


async def remove_held(connection: Connection, log: LockedRow, after: int, most: int, where: str) -> Removal:
    """Remove events of a conversation whose row is held."""
    within, snapshot = await bounds_of(connection, log, where)
    span = (log.key, max(after, within.first - 1), within.last)
    rows = await connection.fetch(TO_REMOVE, *span, _KEPT, sorted(within.kept), most + 1)
    gone = rows[:most]
    if gone:
        await _keep_base(connection, log.key, within, snapshot)
        await _blank(connection, log.key, gone)
    return Removal(
        events=len(gone),
        size=sum(row[2] for row in gone),
        reached=gone[-1][0] if gone else max(after, within.last),
        last=within.last,
        first=within.first,
        fork=within.fork,
        done=len(rows) <= most,
    )


async def would_remove(connection: Connection, log: LockedRow, where: str) -> Removal:
    """Return what removing all of a conversation that may be removed comes to."""
    within, _ = await bounds_of(connection, log, where)
    span = (log.key, within.first - 1, within.last)
    events, size = await connection.fetchrow(WOULD_REMOVE, *span, _KEPT, sorted(within.kept)) or (0, 0)
    return Removal(events, size, within.last, within.last, within.first, within.fork)


async def bounds_of(connection: Connection, log: LockedRow, where: str) -> tuple[RemovalBounds, tuple[int, str, str]]:
    """Return what may be removed of a conversation, and the row of the snapshot behind which it lies."""
    body, stored = await connection.fetchrow(OWN_SNAPSHOT, log.key) or ("", "")
    snapshot = decode_snapshot(log.id, body, stored, where) if stored else None
    forks = await forks_of(connection, [log.key])
    widest = max(forks, key=lambda fork: fork.base, default=None)
    undo = await connection.fetchval(NEWEST_UNDO, log.key)
    within = bounds(snapshot, log.base, None if widest is None else (widest.id, widest.base), undo)
    return within, (0 if snapshot is None else snapshot.version, body, stored)


async def _keep_base(connection: Connection, key: int, within: RemovalBounds, snapshot: tuple[int, str, str]) -> None:
    """Keep the snapshot to fold the log from; drop earlier ones whose window is being removed."""
    await connection.execute(ADD_BASE, key, *snapshot)
    await connection.execute(DROP_BASES, key, within.first - 1, snapshot[0])
    await connection.execute(DROP_WAYPOINTS, key, snapshot[0])
    await connection.execute(RAISE_FIRST, within.last + 1, key)


async def _blank(connection: Connection, key: int, rows: Sequence[asyncpg.Record]) -> None:
    positions = [row[1] for row in rows]
    await connection.execute(DROP_WORDS, positions)
    facts = await facts_at(connection, positions)
    versions, salts, proofs, commitments = [], [], [], []
    for version, position, _, type_, path, rest, link, salt, checksum, c in rows:
        versions.append(version)
        commitments.append(given(salt, checksum, c))
        whole = None if path is None else joined(path, rest)
        salts.append(None if link is None else remains(link, unescaped(type_), whole))
        proofs.append(None if link is None else proof_of_rows(link, facts.get(position, ())))
    await connection.execute(BLANK, key, versions, salts, proofs, commitments)


async def facts_at(connection: Connection, positions: Sequence[int]) -> dict[int, list[tuple[object, ...]]]:
    """Return the facts of events as `proof_of_rows` takes them, by position."""
    found: dict[int, list[tuple[object, ...]]] = {}
    for position, *row in await connection.fetch(FACTS_AT, positions):
        found.setdefault(position, []).append(tuple(row))
    return found


class Unnamed(NamedTuple):
    """Texts that nothing named up to a position.

    Attributes:
        sizes: their bytes, by hash.
        since: the position.
    """

    sizes: dict[str, int]
    since: int

    def without(self, named: Collection[str]) -> Unnamed:
        """Return them without some that are named by now."""
        return self._replace(sizes={hash_: size for hash_, size in self.sizes.items() if hash_ not in named})


async def unnamed_values(
    connection: Connection, among: Collection[str] | None = None, but_by: Collection[int] = ()
) -> Unnamed:
    """Return the texts that no event and no snapshot names.

    Args:
        connection: has the turn, so that only appends come between this and `drop_unnamed`.
        among: hashes to look at; all unless given.
        but_by: keys of conversations whose own events and snapshots do not count.
    """
    if among is not None and not among:
        return Unnamed({}, 0)
    rows = await connection.fetch(UNNAMED, HASH, None if among is None else list(among), list(but_by))
    return Unnamed({hash_: size for hash_, size, _ in rows}, rows[0][2] if rows else 0)


async def named_within(connection: Connection, keys: Collection[int]) -> set[str]:
    """Return the hashes that the events and the snapshots of conversations name."""
    if not keys:
        return set()
    return {hash_ for (hash_,) in await connection.fetch(NAMED_WITHIN, HASH, list(keys))}


async def drop_unnamed(connection: Connection, *unnamed: Unnamed) -> list[int]:
    """Remove texts that nothing has named since either, in the open transaction; return the bytes of each.

    All its locks of conversations are taken, as an append takes them first.
    """
    found = [each for each in unnamed if each.sizes]
    if found:
        await connection.execute(LOCK_VALUES)
    return [
        size for each in found for (size,) in await connection.fetch(DROP_UNNAMED, HASH, list(each.sizes), each.since)
    ]
