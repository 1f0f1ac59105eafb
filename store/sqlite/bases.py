"""Keep the snapshots from which scavenged logs are folded: check each, and make a lost one anew from its twin.

A snapshot that became a base also stays among the snapshots of the past, and is the conversation's own until the next
compaction. So there is a second copy of a base that is damaged or gone. Where there is none, the log is folded from the
oldest snapshot behind the scavenged events; the events between can then be read, but contexts of them not shown.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from timeline.errors import StoreCorrupt
from timeline.frozen import sha256_hex
from timeline.ports import Finding

from ..codec import encode_snapshot, has_hash
from ..conversation_rows import first_behind
from ..waypoint_bodies import read_waypoint
from . import statements
from .transactions import transaction

if TYPE_CHECKING:
    import sqlite3


def mend(connection: sqlite3.Connection) -> list[Finding]:
    """Put a twin in the place of each base that is damaged or gone; return what was found."""
    found: list[Finding] = []
    with transaction(connection):
        for row in connection.execute(statements.ALL_BASES).fetchall():
            found += _damage(connection, row)
        for key, id_ in connection.execute(statements.WITHOUT_BASE).fetchall():
            problem = f"{id_!r} lacks the snapshot from which its log is folded, as what lies before was scavenged"
            found += _made_anew(connection, key, id_, problem)
    return found


def _damage(connection: sqlite3.Connection, row: tuple[int, str, int, str, str]) -> list[Finding]:
    """Check that a base is as it was written."""
    key, id_, version, body, stored = row
    if not has_hash(body, stored):
        problem = f"that of {id_!r} does not match its checksum"
    elif json.loads(body)["version"] != version:
        problem = f"that of {id_!r} is not of version {version}"
    else:
        return []
    twin = _twins(connection, key, id_).get(version)
    if twin is None:
        return _made_anew(connection, key, id_, problem, damaged=version)
    connection.execute(statements.SET_BASE, (twin, sha256_hex(twin), key, version))
    return [Finding("bases", problem, derivable=True)]


def _made_anew(connection: sqlite3.Connection, key: int, id_: str, problem: str, damaged: int = 0) -> list[Finding]:
    """Keep the oldest snapshot behind what was removed as the base of a conversation, in the place of a damaged one."""
    removed_up_to, removed = connection.execute(statements.SCAVENGED_UP_TO, (key,)).fetchone()
    for version, body in sorted(_twins(connection, key, id_).items()):
        first = first_behind((version, body), removed_up_to)
        if first <= removed:
            continue
        connection.execute(statements.DROP_BASES, (key, damaged, damaged + 1))
        connection.execute(statements.ADD_BASE, (key, version, body, sha256_hex(body)))
        found = [Finding("bases", problem, derivable=True)]
        if first > removed_up_to:
            between = f"versions {removed_up_to} to {first - 1} of {id_!r} can be shown from a backup only"
            found.append(Finding("bases", between, derivable=False))
        return found
    return [Finding("bases", problem, derivable=False)]


def _twins(connection: sqlite3.Connection, key: int, id_: str) -> dict[int, str]:
    """Return the sound snapshots of a conversation as a base would be written, by version."""
    own = connection.execute(statements.SNAPSHOTS_OF, (key,)).fetchall()
    found = {version: body for version, body, stored in own if has_hash(body, stored)}
    for (version,) in connection.execute(statements.WAYPOINT_VERSIONS, (key,)).fetchall():
        with suppress(StoreCorrupt):
            row = connection.execute(statements.WAYPOINT, (key, version)).fetchone()
            found[version] = encode_snapshot(read_waypoint(id_, (version, *row), "")).body
    return found
