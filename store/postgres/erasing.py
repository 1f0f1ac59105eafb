# ruff: noqa: S608 - the texts are put together from constants, never from input
"""Erase conversations in PostgreSQL: what runs in the transaction of `Forgetting.erase`.

All rows of a conversation go but one, which keeps its id taken. A fork that is to keep what it shares gets it as rows
of its own: its whole log is written anew behind all other events, since positions rise with versions. It gets a chain
of its own, since links name their conversation.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import asyncpg

from timeline.errors import ConversationErased, ForksRemain, UnderLegalHold
from timeline.events.chain import SALT, START, commitment, link, random_salts
from timeline.events.encoding import checksum

from ..erasures import Erasing
from ..frequent_types import RARE_WHERE, RARE_WHERE_OF_E
from .catching_up import LOCK
from .escaping import escaped, key_of, unescaped
from .keeping import LockedRow, count, find_all, forks_of, hold, hold_all, take_turn
from .overwriting import DROP_COMPACTIONS_AT, DROP_ENTRIES
from .removing import Unnamed, drop_unnamed, named_within, unnamed_values
from .search_index import DROP_WORDS
from .statements import LINK_AT, NEWEST_SCAVENGED, ORDINALS, OWN, lineage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.ports import ForksOnErase

    from .connections import Connection

_PAGE: Final = 500
_LINEAGE_OF: Final = (
    f"{lineage('SELECT key, id, base, version, parent_key, parent FROM conversations WHERE key = $1')}"
    "SELECT key, base, last FROM lineage ORDER BY key DESC"
)
_NEWEST_RETENTION: Final = (
    f"SELECT payload FROM events WHERE conversation = $1 AND version <= $2 AND type = 'retention.set' AND {RARE_WHERE}"
    " ORDER BY version DESC LIMIT 1"
)
DROP_WORDS_WITHIN: Final = f"DELETE FROM search_index WHERE {OWN} AND conversation = $1"
_POSITIONS = "SELECT position FROM events WHERE conversation = $1"
_DROPS: Final = (
    ("", DROP_WORDS_WITHIN),
    ("", f"DELETE FROM digest_entries WHERE {OWN} AND position IN ({_POSITIONS})"),
    ("summaries", "DELETE FROM compactions WHERE conversation = $1"),
    ("facts", "DELETE FROM facts WHERE conversation = $1"),
    ("snapshots", "DELETE FROM snapshots WHERE conversation = $1"),
    ("snapshots", "DELETE FROM bases WHERE conversation = $1"),
    ("", "DELETE FROM waypoints WHERE conversation = $1"),
    ("payloads", "DELETE FROM events WHERE conversation = $1"),
    ("conversations", "DELETE FROM conversations WHERE key = $1"),
)
_ADD_ERASED: Final = (
    "INSERT INTO erased (id_key, id, at, reason) VALUES ($1, $2, $3, $4) ON CONFLICT (id_key, tenant) DO NOTHING"
)
_PULL_PROGRESS: Final = (
    "UPDATE {} SET position = least(position, coalesce((SELECT e.position FROM events AS e"
    f" WHERE e.{OWN} ORDER BY e.position DESC LIMIT 1), 0)) WHERE {OWN}"
)
"""How far the log is read does not lie behind its end, also where the newest events are erased."""
_BEGIN: Final = (
    "SELECT (pg_current_xact_id()::text::bigint + m.xid_offset) << 20, (SELECT max(e.position) FROM events AS e"
    " WHERE e.conversation = ANY($1::bigint[])) FROM store_meta AS m"
)
_COLUMNS = "event_id, type, schema_version, at, path, path_rest, turn_id, tokens, payload, checksum"
_ROWS: Final = (
    f"SELECT position, version, {_COLUMNS} FROM events"
    " WHERE conversation = $1 AND version > $2 AND version <= $3 ORDER BY version LIMIT $4"
)
_TAKE_OUT: Final = "DELETE FROM events WHERE conversation = $1 AND version = ANY($2::bigint[])"
_PUT: Final = (
    f"INSERT INTO events (conversation, version, position, {_COLUMNS}, salt, c, link) SELECT $1, * FROM"
    " unnest($2::bigint[], $3::bigint[], $4::uuid[], $5::text[], $6::bigint[], $7::text[], $8::text[], $9::text[],"
    " $10::text[], $11::bigint[], $12::text[], $13::text[], $14::bytea[], $15::bytea[], $16::bytea[])"
)
_MOVED = "unnest($2::bigint[], $3::bigint[]) AS m (old, new)"
_MOVE_FACTS: Final = (
    "INSERT INTO facts (position, number, conversation, kind, failed, status, version, call, subject, tool, detail,"
    " path, source) SELECT m.new, f.number, $1, f.kind, f.failed, f.status, f.version, f.call, f.subject, f.tool,"
    f" f.detail, f.path, f.source FROM {_MOVED} JOIN facts AS f ON f.position = m.old AND f.{OWN}"
)
_MOVE_COMPACTIONS: Final = (
    "INSERT INTO compactions (position, conversation, version, at, round, source, summary, first_version, last_version,"
    " before_tokens, after_tokens, errors, reverted_by) SELECT m.new, $1, c.version, c.at, c.round, c.source,"
    " c.summary, c.first_version, c.last_version, c.before_tokens, c.after_tokens, c.errors, NULL"
    f" FROM {_MOVED} JOIN compactions AS c ON c.position = m.old AND c.{OWN}"
)
_REVERT_ANEW: Final = (
    "UPDATE compactions AS c SET reverted_by = (SELECT min(e.version) FROM events AS e,"
    " json_array_elements_text(e.payload::json -> 'versions') AS undone WHERE e.conversation = $1"
    f" AND e.type = 'compaction.reverted' AND {RARE_WHERE_OF_E} AND e.version > c.version"
    " AND undone::bigint = c.version) WHERE c.conversation = $1"
)
"""An undo counts in the log that has it alone: a fork's, of what it shares, counts once that is its own."""
_MOVE_ENTRIES: Final = (
    "INSERT INTO digest_entries (position, list, number, subject_key, subject, tool_key, tool, path, times, tokens,"
    " exit_status, errors, message) SELECT m.new, d.list, d.number, d.subject_key, d.subject, d.tool_key, d.tool,"
    " d.path, d.times, d.tokens, d.exit_status, d.errors, d.message"
    " FROM unnest($1::bigint[], $2::bigint[]) AS m (old, new)"
    f" JOIN digest_entries AS d ON d.position = m.old AND d.position = ANY($1::bigint[]) AND d.{OWN}"
)
_DROP_FACTS_AT: Final = f"DELETE FROM facts WHERE {OWN} AND position = ANY($1::bigint[])"
_UNCHAIN: Final = (
    "UPDATE events SET salt = NULL, c = NULL, link = NULL, packed = NULL WHERE conversation = $1 AND version <= $2"
)
_TO_CHAIN: Final = (
    "SELECT version, event_id, type, schema_version, at, checksum FROM events"
    " WHERE conversation = $1 AND version > $2 ORDER BY version LIMIT $3"
)
_CHAIN: Final = (
    "UPDATE events AS e SET salt = b.salt, c = NULL, link = b.link"
    " FROM unnest($2::bigint[], $3::bytea[], $4::bytea[]) AS b (version, salt, link)"
    " WHERE e.conversation = $1 AND e.version = b.version"
)
_SET_HEAD: Final = "UPDATE conversations SET head = $2 WHERE key = $1"
_COPY_BASES: Final = (
    "INSERT INTO bases (conversation, version, body, checksum) SELECT $1, version, body, checksum FROM bases"
    " WHERE conversation = $2 AND version <= $3 ON CONFLICT (conversation, version) DO NOTHING"
)
_CUT_LOOSE: Final = (
    "UPDATE conversations SET parent_key = NULL, base = 0, head = $2, created_at ="
    " (SELECT e.at FROM events AS e WHERE e.conversation = conversations.key ORDER BY e.version LIMIT 1) WHERE key = $1"
)


async def erase(connection: Connection, conversation: str, forks: ForksOnErase, reason: str, at: str) -> Erasing:
    """Erase a conversation, in the open transaction; see `Forgetting.erase`.

    Raises:
        ConversationNotFound, ForksRemain, UnderLegalHold: as for `Forgetting.erase`.
    """
    await connection.execute(LOCK)  # a catch-up that read events before they go would write their rows behind that
    await take_turn(connection)
    try:
        looked_at, unnamed = await _named_by_it_alone(connection, conversation, forks)
        log = await hold(connection, conversation)
    except ConversationErased:  # once more: its bytes may still be in the files
        return Erasing([conversation], [], {})
    own = await forks_of(connection, [log.key])
    if own and forks == "refuse":
        raise ForksRemain(conversation, [fork.id for fork in own])
    family = [log] if forks == "copy" else await _family(connection, log)
    held = await hold_all(connection, [each.id for each in (*family, *own)])
    for each in family:
        await _check_hold(connection, each)
    copied = await _cut_all_loose(connection, [held[fork.id] for fork in own]) if forks == "copy" else []
    counts: Counter[str] = Counter()
    late = await named_within(connection, [each.key for each in family]) - looked_at
    for each in reversed(family):
        await _erase_one(connection, each, reason, at, counts)
    if unnamed.sizes:  # what a fork has as its own now, it names
        unnamed = unnamed.without(await named_within(connection, [held[id_].key for id_ in copied]))
    counts["values"] += len(await drop_unnamed(connection, unnamed, await unnamed_values(connection, late)))
    for progress in ("facts_progress", "search_progress"):
        await connection.execute(_PULL_PROGRESS.format(progress))
    return Erasing([each.id for each in family], copied, dict(counts))


async def _named_by_it_alone(
    connection: Connection, conversation: str, forks: ForksOnErase
) -> tuple[set[str], Unnamed]:
    """Return the texts that a conversation and its family name, and those of them that nothing else does.

    No row is locked yet: what the family goes on to name is looked at once more.
    """
    log = (await find_all(connection, [conversation]))[conversation]
    keys = [each.key for each in ([log] if forks == "copy" else await _family(connection, log))]
    named = await named_within(connection, keys)
    return named, await unnamed_values(connection, named, but_by=keys)


async def _family(connection: Connection, log: LockedRow) -> list[LockedRow]:
    """Return a conversation and all forks of it and of its forks, parents first."""
    found, newest = [log], [log]
    while newest:
        newest = await forks_of(connection, [each.key for each in newest])
        found += newest
    return found


async def _check_hold(connection: Connection, log: LockedRow) -> None:
    """Check that no legal hold is on a conversation, by its newest setting, a fork's shared past included."""
    for key, _, last in await connection.fetch(_LINEAGE_OF, log.key):
        newest = await connection.fetchval(_NEWEST_RETENTION, key, last)
        if newest is not None:
            if json.loads(newest).get("legal_hold"):
                raise UnderLegalHold(log.id)
            return


async def _erase_one(connection: Connection, log: LockedRow, reason: str, at: str, counts: Counter[str]) -> None:
    for place, statement in _DROPS:
        gone = count(await connection.execute(statement, log.key))
        if place:
            counts[place] += gone
    await connection.execute(_ADD_ERASED, key_of(log.id), escaped(log.id), at, escaped(reason))


async def _cut_all_loose(connection: Connection, forks: Sequence[LockedRow]) -> list[str]:
    """Write the logs of forks anew, each with what it shares as its own; return their ids."""
    began, newest = await connection.fetchrow(_BEGIN, [fork.key for fork in forks]) or (0, 0)
    if began <= (newest or 0):
        # This transaction got its number before it waited for an append that has a higher one.
        raise asyncpg.SerializationError("positions must rise with versions")
    ordinal = 0
    for fork in forks:
        ordinal = await _cut_loose(connection, fork, began, ordinal)
        for each in (await _family(connection, fork))[1:]:
            await _chain_anew(connection, await hold(connection, each.id))
    return [fork.id for fork in forks]


async def _cut_loose(connection: Connection, fork: LockedRow, began: int, ordinal: int) -> int:
    """Write the log of a fork anew; return the ordinal of the next event of the transaction."""
    # What was scavenged has lost its payload, which a link needs: the chain begins behind that.
    gone = await connection.fetchval(NEWEST_SCAVENGED, fork.key, fork.version)
    head = START
    for key, base, last in reversed(await connection.fetch(_LINEAGE_OF, fork.key)):
        if key != fork.key:
            await connection.execute(_COPY_BASES, fork.key, key, last)
        after = base
        while rows := await connection.fetch(_ROWS, key, after, last, _PAGE):
            if ordinal + len(rows) >= 1 << ORDINALS:
                raise OverflowError("more events than positions of one transaction")
            head = await _move(connection, fork, key, rows, began + ordinal, gone, head)
            ordinal += len(rows)
            after = rows[-1][1]
    await connection.execute(_REVERT_ANEW, fork.key)
    await connection.execute(_CUT_LOOSE, fork.key, head)
    return ordinal


async def _chain_anew(connection: Connection, fork: LockedRow) -> None:
    """Chain a fork behind a parent whose links are others now; its events stay as they are."""
    gone = max(fork.base, await connection.fetchval(NEWEST_SCAVENGED, fork.key, fork.version))
    await connection.execute(_UNCHAIN, fork.key, gone)
    head = START
    if gone == fork.base:
        head = await connection.fetchval(LINK_AT, fork.key, fork.base) or START
    after = gone
    while rows := await connection.fetch(_TO_CHAIN, fork.key, after, _PAGE):
        salts = random_salts(len(rows))
        sealed: list[tuple[int, bytes, bytes]] = []
        for number, (version, id_, type_, schema, at, hashed) in enumerate(rows):
            salt = salts[number * SALT : (number + 1) * SALT]
            head = link(head, fork.id, version, id_, unescaped(type_), schema, at, commitment(salt, hashed))
            sealed.append((version, salt, head))
        await connection.execute(_CHAIN, fork.key, *[[row[place] for row in sealed] for place in range(3)])
        after = rows[-1][0]
    await connection.execute(_SET_HEAD, fork.key, head)


async def _move(  # noqa: PLR0917 - events, and where they go
    connection: Connection,
    fork: LockedRow,
    key: int,
    rows: Sequence[asyncpg.Record],
    position: int,
    gone: int,
    head: bytes,
) -> bytes:
    """Insert events again behind all others as the fork's own, with the rows that were made of them."""
    old = [row[0] for row in rows]
    new = list(range(position, position + len(rows)))
    moved: list[list[Any]] = []
    salts = random_salts(len(rows))
    for number, row in enumerate(rows):
        _, version, id_, type_, schema, at, *others, payload, was = row
        hashed = was and checksum(fork.id, version, str(id_), unescaped(type_), schema, at, payload)
        seal: list[bytes | None] = [None, None]
        if version > gone:
            salt = salts[number * SALT : (number + 1) * SALT]
            head = link(head, fork.id, version, id_, unescaped(type_), schema, at, commitment(salt, hashed))
            seal = [salt, head]
        moved.append([version, new[number], id_, type_, schema, at, *others, payload, hashed, seal[0], None, seal[1]])
    if key == fork.key:  # before their twins: version, id and path are unique
        await connection.execute(_TAKE_OUT, key, [row[1] for row in rows])
    await connection.execute(_PUT, fork.key, *[[row[place] for row in moved] for place in range(len(moved[0]))])
    await connection.execute(_MOVE_FACTS, fork.key, old, new)
    await connection.execute(_MOVE_COMPACTIONS, fork.key, old, new)
    await connection.execute(_MOVE_ENTRIES, old, new)
    if key == fork.key:
        for statement in (DROP_ENTRIES, DROP_COMPACTIONS_AT, _DROP_FACTS_AT, DROP_WORDS):
            await connection.execute(statement, old)
    return head
