"""Compare the row of each conversation with its events, and write it anew where it differs."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from timeline.frozen import canonical_json
from timeline.ports import Finding

from . import statements

if TYPE_CHECKING:
    import sqlite3

_COLUMNS: Final = "version, window_start, title, parent, created_at, updated_at, parent_key, base, first_version, head"
_NAMES: Final = _COLUMNS.split(", ")
_CUT: Final = "; its newest events may have been cut off: compare it with a head that was kept elsewhere"
_PAGE: Final = 100


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
    told = dict(zip(_NAMES, stored, strict=True))
    made = _made(connection, key, told)
    if made is None:
        return [Finding("conversations", f"{id_!r} has no events", derivable=False)]
    found = []
    different = [name for name in _NAMES if told[name] != made[name]]
    for name in different:
        missing = name == "version" and told[name] > made[name]
        more = "; newer ones are missing" if missing else _CUT if name == "head" else ""
        problem = f"{id_!r}: its {name} is {_short(told[name])}, and its events say {_short(made[name])}{more}"
        found.append(Finding("conversations", problem, derivable=not missing))
    if different and made["version"] >= told["version"]:
        connection.execute(
            f"UPDATE conversations SET {', '.join(f'{name} = ?' for name in different)} WHERE key = ?",  # noqa: S608
            (*(made[name] for name in different), key),
        )
    return found


def _made(connection: sqlite3.Connection, key: int, told: dict[str, Any]) -> dict[str, Any] | None:
    """Return the columns as the events say them; None without events."""
    first, last = connection.execute(
        "SELECT min(version), max(version) FROM events WHERE conversation = ?", (key,)
    ).fetchone()
    if first is None:
        return None
    (created_at, *_) = connection.execute(statements.PLACE_AT, (key, first)).fetchone()
    (updated_at, link) = connection.execute(statements.PLACE_AT, (key, last)).fetchone()
    made = told | {"version": last, "created_at": created_at, "updated_at": updated_at, "head": link}
    made |= {"base": first - 1, "parent_key": None, "window_start": 1}
    made |= _opened(connection, key, told, first - 1)
    snapshot = connection.execute(statements.OWN_SNAPSHOT, (key,)).fetchone()
    if snapshot is not None:
        made["window_start"] = _of_snapshot(snapshot[0], told["window_start"])
    made["first_version"] = _first_version(connection, key, made)
    return made


def _own_opening(connection: sqlite3.Connection, key: int) -> tuple[int, str] | None:
    """Return the event that opened a conversation; of a fork that keeps a copy of its past, the fork's own."""
    openings: list[tuple[int, str]] = connection.execute(statements.OWN_OPENINGS, (key,)).fetchall()
    for version, payload in openings[:-1]:
        with suppress(ValueError, TypeError, AttributeError):
            link = json.loads(payload).get("parent") or {}
            if link.get("relation") == "fork" and link.get("version") == version - 1:
                return version, payload
    return openings[-1] if openings else None


def _opened(connection: sqlite3.Connection, key: int, told: dict[str, Any], base: int) -> dict[str, Any]:
    """Return what the opening event says: the title, and the link to a parent, with whom a fork shares its past."""
    opened = _own_opening(connection, key)
    if opened is None:
        return {"title": "", "parent": None}
    try:
        payload = json.loads(opened[1])
        link = payload.get("parent")
        if opened[0] != base + 1 and (told["title"], told["parent"]) == ("", None):
            return {}  # it came later: an append that opens nothing
        parent = None
        made = {"title": payload.get("title", ""), "parent": None}
        if link is not None:
            parent = {"path": None, "relation": "subagent", "version": None, **link}
            made["parent"] = canonical_json(parent)
        if base and parent is not None:
            found = connection.execute(statements.CONVERSATION_KEY, (parent["conversation"],)).fetchone()
            made["parent_key"] = found[0] if found else None
    except (ValueError, TypeError, AttributeError, KeyError):
        return {name: told[name] for name in ("title", "parent", "parent_key")}  # reading the event reports the damage
    return made


def _of_snapshot(body: str, stored: int) -> int:
    try:
        return int(json.loads(body)["window_start"])
    except (ValueError, TypeError, KeyError):
        return stored


def _first_version(connection: sqlite3.Connection, key: int, made: dict[str, Any]) -> int:
    """Return the version behind what was scavenged: behind the newest base, or in what a fork shares."""
    newest = connection.execute(statements.OWN_NEWEST_BASE, (key,)).fetchone()
    if newest is not None:
        version, body = newest
        return min(_of_snapshot(body, made["first_version"]) - 1, int(version)) + 1
    if made["parent_key"] is None:
        return 1
    (scavenged,) = connection.execute(statements.NEWEST_SCAVENGED, (made["base"], made["parent_key"])).fetchone()
    return int(scavenged) + 1


def _short(value: object) -> str:
    return value.hex()[:16] + "…" if isinstance(value, bytes) else repr(value)
