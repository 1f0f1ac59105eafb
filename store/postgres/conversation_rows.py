# ruff: noqa: S608 - the texts are put together from constants, never from input
"""Compare the row of each conversation with its events, see `store.conversation_rows`, and the ids of erased ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

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
from ..frequent_types import RARE_WHERE
from .escaping import escaped, key_of, unescaped
from .pages import Page, Wrong, wrong
from .removing import OWN_SNAPSHOT
from .statements import CONVERSATION_KEY, NEWEST_SCAVENGED, OWN

if TYPE_CHECKING:
    import asyncpg

    from .connections import Connection

_AT_ONCE: Final = 50
_ROWS: Final = (
    f"SELECT key, id, id_key, {', '.join(NAMES)} FROM conversations WHERE {OWN} AND key > $1 ORDER BY key LIMIT $2"
)
_ENDS: Final = "SELECT min(version), max(version) FROM events WHERE conversation = $1"
_THERE_SINCE: Final = "SELECT count(*) FROM events WHERE conversation = $1 AND version >= $2"
_PLACE_AT: Final = "SELECT at, link FROM events WHERE conversation = $1 AND version = $2"
_OWN_OPENINGS: Final = (
    f"SELECT version, payload FROM events WHERE conversation = $1 AND type = 'conversation.opened' AND {RARE_WHERE}"
    " ORDER BY version DESC"
)
_ERASED: Final = f"SELECT id_key, id FROM erased WHERE {OWN} ORDER BY id_key"
_NEWEST_BASE: Final = "SELECT version, body FROM bases WHERE conversation = $1 ORDER BY version DESC LIMIT 1"


async def page(connection: Connection, after: int) -> Page:
    """Compare a page of rows behind a key."""
    rows = await connection.fetch(_ROWS, after, _AT_ONCE)
    found: list[Wrong] = []
    for row in rows:
        found += await _compared(connection, row)
    return Page(found, rows[-1][0] if len(rows) == _AT_ONCE else None)


async def erased(connection: Connection, _: int) -> Page:
    """Find the ids of erased conversations that are not what they are looked up by: one of the two was edited."""
    rows = [(key, unescaped(id_)) for key, id_ in await connection.fetch(_ERASED)]
    problem = "an erased conversation is {!r}, and is looked up as {!r}: its id can be given again. It is in a backup"
    return Page([wrong("erased", problem.format(id_, key)) for key, id_ in rows if key != key_of(id_)])


async def _compared(connection: Connection, row: asyncpg.Record) -> list[Wrong]:
    key, stored_id, id_key, *columns = row
    id_ = unescaped(stored_id)
    stored_row: dict[str, Any] = dict(zip(NAMES, columns, strict=True))
    stored_row["title"] = unescaped(stored_row["title"])
    made = await _made(connection, key, stored_row)
    if isinstance(made, str):
        return [wrong("conversations", f"{id_!r} {made}")]
    found = []
    if id_key != key_of(id_):
        cure = ("UPDATE conversations SET id_key = $1 WHERE key = $2", (key_of(id_), key))
        found.append(wrong("conversations", f"{id_!r} is not found by its id", cure))
    different, findings = differences(id_, stored_row, made)
    cures: list[tuple[str, tuple[Any, ...]]] = []
    if made["version"] >= stored_row["version"]:
        stored = made | {"title": escaped(made["title"])}
        cures = [(f"UPDATE conversations SET {name} = $1 WHERE key = $2", (stored[name], key)) for name in different]
    cures += [cures[0]] * (len(findings) - len(cures)) if cures else []
    return [*found, *(Wrong(each, cures[n : n + 1]) for n, each in enumerate(findings))]


async def _made(connection: Connection, key: int, row: dict[str, Any]) -> dict[str, Any] | str:
    """Return the columns as the events say them; where they do not say it, why."""
    first, last = await connection.fetchrow(_ENDS, key) or (None, None)
    if first is None or last is None:
        return "has no events"
    openings = [(version, payload) for version, payload in await connection.fetch(_OWN_OPENINGS, key)]
    if lost := lost_beginning(openings, first):
        return lost
    since = checked_from(row["version"], first)
    there = int(await connection.fetchval(_THERE_SINCE, key, since) or 0)
    if lost := lost_between(row["version"], since, last, there):
        return lost
    created_at, _ = await connection.fetchrow(_PLACE_AT, key, first) or (None, None)
    updated_at, link = await connection.fetchrow(_PLACE_AT, key, last) or (None, None)
    made = row | {"version": last, "created_at": created_at, "updated_at": updated_at, "head": link}
    made |= {"base": first - 1, "parent_key": None, "window_start": 1}
    says, parent = opened(openings, row, first - 1)
    made |= says
    if parent is not None:
        made["parent_key"] = await connection.fetchval(CONVERSATION_KEY, key_of(parent))
    body = await connection.fetchval(OWN_SNAPSHOT, key)
    if body is not None:
        made["window_start"] = window_start_of(body, row["window_start"])
    made["first_version"] = await _first_version(connection, key, made)
    return made


async def _first_version(connection: Connection, key: int, made: dict[str, Any]) -> int:
    """Return the version behind what was scavenged: behind the newest base, or in what a fork shares."""
    newest = await connection.fetchrow(_NEWEST_BASE, key)
    if newest is not None:
        return first_behind((newest[0], newest[1]), made["first_version"])
    if made["parent_key"] is None:
        return 1
    return int(await connection.fetchval(NEWEST_SCAVENGED, made["parent_key"], made["base"])) + 1
