"""Compare the row of each conversation with its events, and write it anew where it differs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.ports import Finding

from ..conversation_rows import (
    NAMES,
    checked_from,
    differences,
    first_behind,
    lost_beginning,
    lost_between,
    opened,
    window_start_of,
)
from . import statements
from .chaining import chain_whole, is_behind_the_links

if TYPE_CHECKING:
    import sqlite3

_COLUMNS: Final = ", ".join(NAMES)
_PAGE: Final = 100
_THERE_SINCE: Final = "SELECT count(*) FROM events WHERE conversation = ? AND version >= ?"
_UNLINKED: Final = "its newest events have no link: a program of an earlier version that had the file open wrote them"


def mend(connection: sqlite3.Connection) -> list[Finding]:
    """Write the rows anew that do not say what their events say; return what was found."""
    found, reached = mend_some(connection, 0)
    while reached >= 0:
        more, reached = mend_some(connection, reached)
        found += more
    return found


def mend_some(connection: sqlite3.Connection, after: int) -> tuple[list[Finding], int]:
    """Mend a page of rows behind a key; return what was found, and the last key of it, -1 behind the last page."""
    found: list[Finding] = []
    page = connection.execute(
        "SELECT key, id FROM conversations WHERE key > ? ORDER BY key LIMIT ?", (after, _PAGE)
    ).fetchall()
    for key, id_ in page:
        found += _mended(connection, key, id_)
    return found, page[-1][0] if page else -1


def _mended(connection: sqlite3.Connection, key: int, id_: str) -> list[Finding]:
    """Write one row anew, if it does not say what its events say; return what was found."""
    stored = connection.execute(f"SELECT {_COLUMNS} FROM conversations WHERE key = ?", (key,)).fetchone()  # noqa: S608
    row = dict(zip(NAMES, stored, strict=True))
    made = _made(connection, key, row)
    if isinstance(made, str):
        return [Finding("conversations", f"{id_!r} {made}", derivable=False)]
    unlinked = is_behind_the_links(connection, key, made["version"])
    if unlinked:
        row["head"] = made["head"] = chain_whole(connection, key)
    different, found = differences(id_, row, made)
    if unlinked:
        found.append(Finding("conversations", f"{id_!r}: {_UNLINKED}", derivable=True))
    if different and made["version"] >= row["version"]:
        connection.execute(
            f"UPDATE conversations SET {', '.join(f'{name} = ?' for name in different)} WHERE key = ?",  # noqa: S608
            (*(made[name] for name in different), key),
        )
    return found


def _made(connection: sqlite3.Connection, key: int, row: dict[str, Any]) -> dict[str, Any] | str:
    """Return the columns as the events say them; where they do not say it, why."""
    first, last = connection.execute(
        "SELECT min(version), max(version) FROM events WHERE conversation = ?", (key,)
    ).fetchone()
    if first is None:
        return "has no events"
    openings = connection.execute(statements.OWN_OPENINGS, (key,)).fetchall()
    if lost := lost_beginning(openings, first):
        return lost
    since = checked_from(row["version"], first)
    (there,) = connection.execute(_THERE_SINCE, (key, since)).fetchone()
    if lost := lost_between(row["version"], since, last, there):
        return lost
    (created_at, *_) = connection.execute(statements.PLACE_AT, (key, first)).fetchone()
    (updated_at, link) = connection.execute(statements.PLACE_AT, (key, last)).fetchone()
    made = row | {"version": last, "created_at": created_at, "updated_at": updated_at, "head": link}
    made |= {"base": first - 1, "parent_key": None, "window_start": 1}
    made |= _opened(connection, openings, row, first - 1)
    snapshot = connection.execute(statements.OWN_SNAPSHOT, (key,)).fetchone()
    if snapshot is not None:
        made["window_start"] = window_start_of(snapshot[0], row["window_start"])
    made["first_version"] = _first_version(connection, key, made)
    return made


def _opened(
    connection: sqlite3.Connection, openings: list[tuple[int, str]], row: dict[str, Any], base: int
) -> dict[str, Any]:
    """Return what the opening event says: the title, and the link to a parent, with whom a fork shares its past."""
    made, parent = opened(openings, row, base)
    if parent is not None:
        found = connection.execute(statements.CONVERSATION_KEY, (parent,)).fetchone()
        made["parent_key"] = found[0] if found else None
    return made


def _first_version(connection: sqlite3.Connection, key: int, made: dict[str, Any]) -> int:
    """Return the version behind what was scavenged: behind the newest base, or in what a fork shares."""
    newest = connection.execute(statements.OWN_NEWEST_BASE, (key,)).fetchone()
    if newest is not None:
        return first_behind(newest, made["first_version"])
    if connection.execute(statements.LACKS_BASE, (key,)).fetchone() is not None:
        return int(made["first_version"])  # what says more is gone
    if made["parent_key"] is None:
        return 1
    (scavenged,) = connection.execute(statements.NEWEST_SCAVENGED, (made["base"], made["parent_key"])).fetchone()
    return int(scavenged) + 1
