"""Remove history on one SQLite connection: the functions that the writer thread runs, transactions included.

Beside `rewriting` and `erasing`, this is the only place that changes rows of the log. A removed event keeps its row,
with an empty payload and checksum: the indexes that hold versions, ids and paths then keep them taken, and appends pay
nothing for it. `shrink` rewrites the file, since removed text would otherwise stay in free space, in the write-ahead
log, and in older parts of the search index.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.errors import ConversationNotFound, StoreLocked, VersionConflict
from timeline.events.chain import given, remains
from timeline.frozen import sha256_hex
from timeline.ports import KEPT_TYPES, Rehearsal, Removal

from ..codec import decode_snapshot
from ..removal import RemovalBounds, bounds, named_in
from ..settings import DUE, PROOF, RETENTION, TURN, in_the_way, lease
from . import query_statements, statements
from .facts import proof_of, reach
from .log_head import NOWHERE, SQLiteLog
from .search import drop_other_form, forget_text
from .transactions import set_pragma, transaction

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection
    from datetime import datetime

    from ..codec import Row, SnapshotDraft

_KEPT: Final = json.dumps(sorted(KEPT_TYPES))
_EVENTS_AT_ONCE: Final = 5_000
"""Events of a step of a rehearsal; nobody waits for its transactions."""


def remove(
    connection: sqlite3.Connection, conversation: str, *, after: int, most: int, where: str, before: int | None = None
) -> Removal:
    """Remove at most ``most`` events of a conversation behind a version; see `Scavenging.remove`.

    Args:
        connection: the one that writes.
        conversation: its id.
        after: the version.
        most: number of events.
        where: names the store in errors.
        before: bytes of the file before what goes was prepared; those of now unless given.

    Raises:
        ConversationNotFound: there is no such conversation.
        StoreCorrupt: its snapshot is damaged.
        sqlite3.Error: the database failed; nothing was removed.
    """
    # Zeros in place of what is deleted: a step that no `shrink` follows leaves as little behind as it can.
    with set_pragma(connection, "secure_delete", "ON"), transaction(connection):
        log = SQLiteLog(connection, conversation)
        if log.key == NOWHERE:
            raise ConversationNotFound(conversation)
        within, snapshot = _bounds(connection, log, conversation, where)
        span = (log.key, max(after, within.first - 1), within.last)
        rows = connection.execute(
            statements.TO_REMOVE, (*span, _KEPT, json.dumps(sorted(within.kept)), most + 1)
        ).fetchall()
        gone = rows[:most]
        if gone:
            (head,) = connection.execute(statements.HEAD_POSITION).fetchone()
            reach(connection, head)
            note_size(connection, before)
            _keep_base(connection, log.key, within, snapshot)
            _blank(connection, log.key, gone)
    return Removal(
        events=len(gone),
        size=sum(len(payload.encode()) for _, _, payload, *_ in gone),
        reached=gone[-1][1] if gone else max(after, within.last),
        last=within.last,
        first=within.first,
        fork=within.fork,
        done=len(rows) <= most,
    )


def _bounds(
    connection: sqlite3.Connection, log: SQLiteLog, conversation: str, where: str
) -> tuple[RemovalBounds, tuple[int, str, str]]:
    """Return what may be removed, and the row of the snapshot behind which it lies."""
    body, stored = connection.execute(statements.OWN_SNAPSHOT, (log.key,)).fetchone() or ("", "")
    snapshot = decode_snapshot(conversation, body, stored, where) if stored else None
    fork = connection.execute(statements.WIDEST_FORK, (log.key,)).fetchone()
    (undo,) = connection.execute(statements.NEWEST_UNDO, (log.key,)).fetchone()
    return bounds(snapshot, log.base, fork, undo), (0 if snapshot is None else snapshot.version, body, stored)


def _keep_base(connection: sqlite3.Connection, key: int, within: RemovalBounds, snapshot: tuple[int, str, str]) -> None:
    """Keep the snapshot to fold the log from; drop earlier ones whose window is being removed."""
    connection.execute(statements.ADD_BASE, (key, *snapshot))
    connection.execute(statements.DROP_BASES, (key, within.first - 1, snapshot[0]))
    connection.execute(statements.DROP_WAYPOINTS, (key, snapshot[0]))
    connection.execute(statements.RAISE_FIRST, (within.last + 1, key))


def _blank(connection: sqlite3.Connection, key: int, rows: list[Row]) -> None:
    # Words first: FTS5 finds the entries to remove by the text that they were made of.
    drop_other_form(connection)
    for position, _, payload, *_ in rows:
        forget_text(connection, key, position, payload)
    left = []
    for position, _, _, type_, path, link, salt, checksum, c in rows:
        proofs = (None, None) if link is None else (remains(link, type_, path), proof_of(connection, position, link))
        left.append((*proofs, given(salt, checksum, c), position))
    connection.executemany(statements.BLANK, left)


def note_size(connection: sqlite3.Connection, size: int | None = None) -> None:
    """Note, with the first removal since the last `shrink`, that one is due, and the size to compare with.

    Args:
        connection: the one that writes.
        size: bytes of the file before the removal; those of now unless given.
    """
    connection.execute(statements.SET_ONCE, (DUE, str(size_of(connection) if size is None else size)))


def replace_snapshot(
    connection: sqlite3.Connection, conversation: str, draft: SnapshotDraft | None, expected: int | None
) -> None:
    """Put a snapshot in the place of a conversation's own; without one, remove that.

    Raises:
        ConversationNotFound, VersionConflict: as for `Proofs.replace_snapshot`.
        sqlite3.Error: the database failed; the snapshot is as it was.
    """
    with transaction(connection):
        key = key_expected(connection, conversation, expected)
        if draft is None:
            connection.execute(statements.DROP_SNAPSHOT, (key,))
        else:
            row = (key, draft.version, draft.body, sha256_hex(draft.body))
            connection.execute(statements.REPLACE_SNAPSHOT, row)
        connection.execute(statements.UPDATE_WINDOW_START, (1 if draft is None else draft.window_start, key))


def key_expected(connection: sqlite3.Connection, conversation: str, expected: int | None) -> int:
    """Return the key of a conversation at the version that is expected, in the open transaction; None expects any."""
    row = connection.execute(statements.KEY_AND_VERSION, (conversation,)).fetchone()
    if row is None:
        raise ConversationNotFound(conversation)
    key, version = row
    if expected not in {None, version}:
        raise VersionConflict(conversation, expected, version)
    return int(key)


class NamedTexts(NamedTuple):
    """The texts that the events up to a position name."""

    until: int
    hashes: set[str]


def named_so_far(connection: sqlite3.Connection) -> NamedTexts:
    """Read what the log names now: it takes no lock, however long the log is."""
    (until,) = connection.execute(statements.HEAD_POSITION).fetchone()
    return NamedTexts(until, _named(connection, statements.NAMING_EVENTS, 0))


def remove_values(connection: sqlite3.Connection, known: NamedTexts) -> tuple[int, int]:
    """Remove the texts that nothing names; return their number and bytes.

    In the transaction only what came since is read of the log: an append writes a text together with the event that
    names it.

    Raises:
        sqlite3.Error: the database failed; nothing was removed.
    """
    with set_pragma(connection, "secure_delete", "ON"), transaction(connection):
        named = known.hashes | _named(connection, statements.NAMING_EVENTS, known.until)
        named |= _named(connection, statements.NAMING_SNAPSHOTS, NOWHERE, NOWHERE)
        sizes = connection.execute(statements.SIZES_OF_VALUES, ("",))
        gone = [(hash_, size) for hash_, size in sizes if hash_ not in named]
        if gone:
            note_size(connection)
        connection.executemany(statements.DROP_VALUE, [(hash_,) for hash_, _ in gone])
    return len(gone), sum(size for _, size in gone)


def _named(connection: sqlite3.Connection, statement: str, *parameters: int) -> set[str]:
    return set(named_in(text for (text,) in connection.execute(statement, parameters)))


def shrink(connection: sqlite3.Connection, where: str) -> tuple[int, int] | None:
    """Rewrite the file without free space, and empty the write-ahead log; return the size before and after.

    Raises:
        StoreLocked: another connection still reads from the write-ahead log.
        sqlite3.Error: the database failed; it is as it was.
    """
    due = connection.execute(statements.SETTING, (DUE,)).fetchone()
    if due is None:
        return None
    with transaction(connection):  # an erasure drops the index
        if connection.execute(query_statements.IS_INDEXED).fetchone()[0]:
            connection.execute(query_statements.MERGE_INDEX)
    # On disk: the copy that this makes is as large as what stays of the database.
    with set_pragma(connection, "temp_store", "FILE"):
        connection.execute("VACUUM")
    _empty_log(connection, where)
    connection.execute(statements.UNSET, (DUE,))
    _empty_log(connection, where)
    return int(due[0]), size_of(connection)


def _empty_log(connection: sqlite3.Connection, where: str) -> None:
    (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise StoreLocked(
            f"{where}: what was removed is still in the write-ahead log, which another connection reads. "
            "Scavenge again."
        )


def size_of(connection: sqlite3.Connection) -> int:
    """Return the bytes of the database file, once its write-ahead log is copied into it."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    return int(pages) * int(size)


def rehearse(copy: sqlite3.Connection, conversations: Collection[str], where: str) -> Rehearsal:
    """Remove everything that may be removed, on a copy of the database that is thrown away; return what it came to."""
    before = size_of(copy)
    if conversations:  # a run brings the facts of the whole store up to date first
        with transaction(copy):
            (last,) = copy.execute(statements.HEAD_POSITION).fetchone()
            reach(copy, last)
    removals = {conversation: _all(copy, conversation, where) for conversation in conversations}
    values, value_size = remove_values(copy, named_so_far(copy)) if conversations else (0, 0)
    shrink(copy, where)
    return Rehearsal(removals, values, value_size, before, size_of(copy))


def _all(copy: sqlite3.Connection, conversation: str, where: str) -> Removal:
    done = remove(copy, conversation, after=0, most=_EVENTS_AT_ONCE, where=where)
    events, size = done.events, done.size
    while not done.done:
        done = remove(copy, conversation, after=done.reached, most=_EVENTS_AT_ONCE, where=where)
        events, size = events + done.events, size + done.size
    return Removal(events, size, done.reached, done.last, done.first, done.fork)


def set_retention(connection: sqlite3.Connection, value: str) -> None:
    """Write the retention of the store, its proof, and its mark.

    Raises:
        sqlite3.Error: the database failed; the setting is as it was.
    """
    with transaction(connection):
        connection.execute(statements.SET, (RETENTION, value))
        connection.execute(statements.SET, (f"{RETENTION}{PROOF}", sha256_hex(value)))
        connection.execute(statements.SET_MARK.format(mark_of(value)))


def mark_of(value: str) -> int:
    """Return the number in the file's header that says what the retention was set to: rows may be deleted."""
    return int(sha256_hex(value)[:7], 16)


def take_lease(connection: sqlite3.Connection, runner: str, now: datetime, until: datetime) -> datetime | None:
    """Take, renew or give back the lease of scavenging; return the end of another runner's lease.

    Raises:
        sqlite3.Error: the database failed; the lease is as it was.
    """
    with transaction(connection):
        found = connection.execute(statements.SETTING, (TURN,)).fetchone()
        if (end := in_the_way(found and found[0], runner, now)) is not None:
            return end
        if until > now:
            connection.execute(statements.SET, (TURN, lease(runner, until)))
        else:
            connection.execute(statements.UNSET, (TURN,))
    return None
