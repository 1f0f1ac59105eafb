"""Keep snapshots of the past on one SQLite connection: the functions that the writer thread runs.

The log is folded from the nearest one, instead of from version 1. Each append that brings a snapshot leaves one. They
are made of the log alone, so that a damaged one is dropped, and a repair makes it anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.errors import StoreCorrupt
from timeline.ports import Finding

from ..codec import encode_snapshot
from ..waypoint_bodies import read_waypoint, waypoint_columns
from . import statements
from .removing import key_expected
from .transactions import transaction

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Sequence

    from timeline.ports import Snapshot

    from ..codec import SnapshotDraft


def write(connection: sqlite3.Connection, key: int, conversation: str, draft: SnapshotDraft) -> None:
    """Keep a snapshot, in the open transaction."""
    connection.execute(statements.ADD_WAYPOINT, (key, *waypoint_columns(conversation, draft)))


def replace(
    connection: sqlite3.Connection,
    conversation: str,
    drafts: Sequence[SnapshotDraft],
    gone: Collection[int],
    expected: int | None,
) -> None:
    """Keep snapshots in the places of others, and drop those of some versions.

    Raises:
        ConversationNotFound, VersionConflict: as for `Proofs.replace_waypoints`.
        sqlite3.Error: the database failed; all are as they were.
    """
    with transaction(connection):
        key = key_expected(connection, conversation, expected)
        connection.executemany(statements.DROP_WAYPOINT, [(key, version) for version in gone])
        for draft in drafts:
            write(connection, key, conversation, draft)


def rewrite(
    connection: sqlite3.Connection, key: int, conversation: str, change: Callable[[Snapshot], Snapshot], where: str
) -> int:
    """Change the snapshots of a conversation, in the open transaction; return how many are others now.

    A damaged one is dropped: it may quote what goes.
    """
    done = 0
    for (version,) in connection.execute(statements.WAYPOINT_VERSIONS, (key,)).fetchall():
        body, stored = connection.execute(statements.WAYPOINT, (key, version)).fetchone()
        try:
            old = read_waypoint(conversation, (version, body, stored), where)
        except StoreCorrupt:
            done += connection.execute(statements.DROP_WAYPOINT, (key, version)).rowcount
            continue
        if (new := change(old)) != old:
            write(connection, key, conversation, encode_snapshot(new))
            done += 1
    return done


def mend(connection: sqlite3.Connection) -> list[Finding]:
    """Drop those that are not as they were written; that one is the snapshot of its log, only a fold finds out."""
    found = []
    with transaction(connection):
        for key, id_, version in connection.execute(statements.ALL_WAYPOINTS).fetchall():
            body, stored = connection.execute(statements.WAYPOINT, (key, version)).fetchone()
            try:
                read_waypoint(id_ or "", (version, body, stored), "")
            except StoreCorrupt:
                connection.execute(statements.DROP_WAYPOINT, (key, version))
                problem = f"that of {id_!r} at version {version} is not as it was written"
                found.append(Finding("waypoints", problem, derivable=True))
    return found
