# ruff: noqa: S608 - the texts are put together from constants, never from input
"""Check what has a checksum of its own, or a hash for a name: snapshots, bases, snapshots of the past, texts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from timeline.errors import StoreCorrupt
from timeline.frozen import sha256_hex
from timeline.ports import Finding

from ..frequent_types import RARE_WHERE
from ..removal import values_named
from ..waypoint_bodies import read_waypoint
from .escaping import ESCAPED, text_as_given, unescaped
from .overwriting import DROP_WAYPOINT
from .pages import Page, Wrong, wrong
from .statements import OWN

if TYPE_CHECKING:
    from .connections import Connection

_AT_ONCE: Final = 200
_BODIES: Final = (
    "SELECT t.conversation, c.id, t.version, t.body, t.checksum FROM {} AS t"
    f" LEFT JOIN conversations AS c ON c.key = t.conversation WHERE t.{OWN}"
)
_OTHER_HASHES: Final = (
    f"SELECT hash, CASE WHEN starts_with(text, $1) THEN text END FROM stored_values"
    f" WHERE {OWN} AND hash <> encode(sha256(convert_to(text, 'UTF8')), 'hex')"
)
"""The texts of other hashes than their names; those that are stored escaped come along, for a closer look."""
_REDACTED: Final = f"SELECT EXISTS (SELECT 1 FROM events WHERE {OWN} AND type = 'block.redacted' AND {RARE_WHERE})"
_NAMING: Final = (
    "SELECT c.id, e.version, e.payload, e.position FROM events AS e JOIN conversations AS c ON c.key = e.conversation"
    f" WHERE e.{OWN} AND e.position > $1 AND e.checksum <> '' AND e.type IN ('conversation.opened', 'policy.changed',"
    " 'policy.overridden', 'context.rendered') ORDER BY e.position LIMIT $2"
)
_HELD: Final = f"SELECT hash FROM stored_values WHERE hash = ANY($1::text[]) AND {OWN}"
_OF_NO_CONVERSATION: Final = (
    f"SELECT count(*) FROM {{0}} AS t WHERE t.{OWN}"
    " AND NOT EXISTS (SELECT 1 FROM conversations AS c WHERE c.key = t.conversation)"
)


async def snapshots(connection: Connection, _: int) -> Page:
    """Check that each snapshot is as it was written; that it is the one of its log, only a fold finds out."""
    found = []
    for table, derivable in (("snapshots", True), ("bases", False)):
        for _key, id_, version, body, stored in await connection.fetch(_BODIES.format(table)):
            name = repr(None if id_ is None else unescaped(id_))
            problem = _problem(version, body, stored)
            if problem:
                found.append(Wrong(Finding(table, f"that of {name} {problem}", derivable)))
    return Page(found)


def _problem(version: int, body: str, stored: str) -> str:
    if sha256_hex(body) != stored:
        return "does not match its checksum"
    return "" if json.loads(body)["version"] == version else f"is not of version {version}"


async def waypoints(connection: Connection, after: int) -> Page:
    """Find those that are not as they were written; that one is the snapshot of its log, only a fold finds out."""
    keys = [key for (key,) in await connection.fetch(_NEXT_KEYS, after, _AT_ONCE)]
    found = []
    for key, id_, version, body, stored in await connection.fetch(_OF_KEYS, keys):
        name = None if id_ is None else unescaped(id_)
        try:
            read_waypoint(name or "", (version, body, stored), "")
        except StoreCorrupt:
            problem = f"that of {name!r} at version {version} is not as it was written"
            found.append(wrong("waypoints", problem, (DROP_WAYPOINT, (key, version))))
    return Page(found, keys[-1] if len(keys) == _AT_ONCE else None)


_NEXT_KEYS: Final = f"SELECT DISTINCT conversation FROM waypoints WHERE {OWN} AND conversation > $1 ORDER BY 1 LIMIT $2"
_OF_KEYS: Final = f"{_BODIES.format('waypoints')} AND t.conversation = ANY($1::bigint[])"


async def values(connection: Connection, after: int) -> Page:
    """Check the content-addressed texts: each has its hash, and each that a context or an opening names is there."""
    found: list[Wrong] = []
    if not after:
        for hash_, escaped in await connection.fetch(_OTHER_HASHES, ESCAPED):
            if escaped is None or sha256_hex(text_as_given(escaped)) != hash_:
                found.append(wrong("values", f"the text {hash_} does not match its hash"))
        if await connection.fetchval(_REDACTED):
            return Page(found)  # a redaction takes texts away, too
    rows = await connection.fetch(_NAMING, after, _AT_ONCE)
    named: dict[str, tuple[str, int]] = {}
    for id_, version, payload, _ in rows:
        for hash_ in sorted(values_named(payload)):
            named.setdefault(hash_, (unescaped(id_), version))
    held = {hash_ for (hash_,) in await connection.fetch(_HELD, list(named))}
    for hash_, (id_, version) in named.items():
        if hash_ not in held:
            found.append(
                wrong("values", f"version {version} of {id_!r} names the text {hash_}, which is not in the store")
            )
    return Page(found, rows[-1][3] if len(rows) == _AT_ONCE else None)


async def orphans(connection: Connection, _: int) -> Page:
    """Find rows of conversations that are not there."""
    found = []
    for table in ("events", "snapshots", "bases", "compactions", "facts"):
        number = await connection.fetchval(_OF_NO_CONVERSATION.format(table))
        if number:
            found.append(wrong("references", f"{number} rows of {table} are of a conversation that is not there"))
    return Page(found)
