"""Look at a store on a server for `timeline doctor`: what it holds, what its room is used for, what is to be mended."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from ..doctor import DoctorFinding
from .horizon import Horizon
from .migrations import ENOUGH, MIGRATIONS
from .statements import HORIZON, OWN

if TYPE_CHECKING:
    from .database import Database
    from .horizon import Holder

LONG: Final = 300
"""Seconds for which a transaction may write without a word: readers of all conversations wait for its end."""
_SIZES: Final = (
    "SELECT coalesce(p.relname, c.relname), sum(pg_total_relation_size(c.oid))::bigint"
    " FROM pg_class AS c LEFT JOIN pg_inherits AS i ON i.inhrelid = c.oid"
    " LEFT JOIN pg_class AS p ON p.oid = i.inhparent"
    " WHERE c.relnamespace = $1::text::regnamespace AND c.relkind = 'r' GROUP BY 1 ORDER BY 2 DESC, 1"
)
_COUNTS: Final = (
    f"SELECT (SELECT count(*) FROM conversations WHERE {OWN}), (SELECT count(*) FROM events WHERE {OWN}),"  # noqa: S608 - constants
    f" (SELECT count(*) FROM events AS e WHERE {OWN} AND e.position >= {HORIZON})"
)
_SETTINGS: Final = (
    "SELECT current_setting('server_version'), current_setting('fsync'), current_setting('full_page_writes'),"
    " current_setting('idle_in_transaction_session_timeout'), current_setting('server_encoding')"
)
_STANDBYS: Final = (
    "SELECT current_setting('synchronous_standby_names'), current_setting('synchronous_commit'),"
    " (SELECT count(*) FROM pg_stat_replication WHERE sync_state IS NULL OR sync_state IN ('sync', 'quorum'))"
)
"""Who may not look at other sessions sees of a standby that it is there, and not what it is."""
_AWAITED: Final = re.compile(r"\s*(?:(?:FIRST|ANY)\s+)?(\d+)\s*\(", re.IGNORECASE)


class Examined(NamedTuple):
    """What was found: ``sizes`` are bytes by table, with its indexes and partitions, the largest first."""

    where: str
    server: str
    schema: int
    conversations: int
    events: int
    sizes: dict[str, int]
    findings: list[DoctorFinding]


async def examine(database: Database) -> Examined:
    """Examine an open store, whose schema is this version's; nothing is changed.

    Raises:
        StoreError: it cannot be read.
    """
    sizes = await database.rows(_SIZES, database.address.quoted_schema)
    ((conversations, events, hidden),) = await database.rows(_COUNTS)
    holder = await Horizon(database).holder()
    ((version, fsync, full_pages, timeout, encoding),) = await database.rows(_SETTINGS)
    ((names, commit, standbys),) = await database.rows(_STANDBYS)
    found = [*_waiting(hidden, holder, timeout), *_durability(fsync, full_pages), *_encoding(encoding)]
    found += _standbys(names, commit, standbys)
    by_table = {str(name): int(size) for name, size in sizes}
    server = f"PostgreSQL {version}"
    return Examined(database.where, server, len(MIGRATIONS), conversations, events, by_table, found)


def _waiting(hidden: int, holder: Holder | None, timeout: str) -> list[DoctorFinding]:
    found = []
    if holder is not None and (holder.seconds or 0) >= LONG:
        found.append(
            DoctorFinding("transaction", "warning", f"{holder}. It keeps {hidden:,} events of this store from them")
        )
    elif hidden:
        waits = "event waits" if hidden == 1 else "events wait"
        who = f": {holder}" if holder is not None else ""
        found.append(DoctorFinding("horizon", "note", f"{hidden:,} {waits} for older transactions to end{who}"))
    if timeout == "0":
        found.append(
            DoctorFinding(
                "timeout",
                "note",
                "idle_in_transaction_session_timeout is 0: a program that forgets a transaction would hold up readers"
                " of all conversations. Set it to a minute or so, for all roles of the server",
            )
        )
    return found


def _durability(fsync: str, full_pages: str) -> list[DoctorFinding]:
    off = [name for name, value in (("fsync", fsync), ("full_page_writes", full_pages)) if value == "off"]
    if not off:
        return []
    how = " and ".join(f"{name} = off" for name in off)
    text = f"the server runs with {how}: a power loss may destroy what was stored"
    return [DoctorFinding("durability", "warning", text)]


def _standbys(names: str, commit: str, connected: int) -> list[DoctorFinding]:
    """Return which synchronous standbys the commits wait for although they are not there."""
    several = _AWAITED.match(names)
    awaited = int(several[1]) if several else 1
    if not names.strip() or commit in {"off", "local"} or connected >= awaited:
        return []
    text = (
        f"appends wait for {awaited} of the synchronous standbys {names!r}; connected: {connected or 'none'}."
        " Start them, or take them out of synchronous_standby_names"
    )
    return [DoctorFinding("standby", "warning", text)]


def _encoding(encoding: str) -> list[DoctorFinding]:
    """Return what is to be said of a database that was made for a store by an earlier release, or by hand."""
    if encoding == ENOUGH:
        return []
    text = (
        f"the database has the encoding {encoding}: a text with other signs is refused. Make one by CREATE DATABASE"
        " name ENCODING 'UTF8' TEMPLATE template0, and bring the conversations over by `timeline copy`"
    )
    return [DoctorFinding("encoding", "warning", text)]
