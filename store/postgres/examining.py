"""Look at a store on a server for `timeline doctor`: what it holds, what its room is used for, what is to be mended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from .migrations import MIGRATIONS
from .statements import HORIZON, OWN

if TYPE_CHECKING:
    from .database import Database

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
_OLDEST: Final = (
    "SELECT extract(epoch FROM clock_timestamp() - a.since)::bigint, a.what FROM ("
    " SELECT xact_start, format('process %s of database %s', pid, datname) FROM pg_stat_activity"
    " WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid() UNION ALL"
    " SELECT prepared, format('the prepared transaction %L of database %s', gid, database) FROM pg_prepared_xacts"
    ") AS a (since, what) WHERE a.since IS NOT NULL ORDER BY a.since LIMIT 1"
)
_SETTINGS: Final = (
    "SELECT current_setting('server_version'), current_setting('fsync'), current_setting('full_page_writes'),"
    " current_setting('idle_in_transaction_session_timeout')"
)


class Finding(NamedTuple):
    """Something about a database: what it is, in one word for programs, whether it is to be mended, and the cure."""

    code: str
    level: Literal["warning", "note"]
    text: str


class Examined(NamedTuple):
    """What was found: ``sizes`` are bytes by table, with its indexes and partitions, the largest first."""

    where: str
    server: str
    schema: int
    conversations: int
    events: int
    sizes: dict[str, int]
    findings: list[Finding]


async def examine(database: Database) -> Examined:
    """Examine an open store, whose schema is this version's; nothing is changed.

    Raises:
        StoreError: it cannot be read.
    """
    sizes = await database.rows(_SIZES, database.address.quoted_schema)
    ((conversations, events, hidden),) = await database.rows(_COUNTS)
    oldest = await database.rows(_OLDEST)
    ((version, fsync, full_pages, timeout),) = await database.rows(_SETTINGS)
    found = [*_waiting(hidden, oldest[0] if oldest else None, timeout), *_durability(fsync, full_pages)]
    by_table = {str(name): int(size) for name, size in sizes}
    server = f"PostgreSQL {version}"
    return Examined(database.where, server, len(MIGRATIONS), conversations, events, by_table, found)


def _waiting(hidden: int, oldest: tuple[int, str] | None, timeout: str) -> list[Finding]:
    found = []
    if oldest is not None and oldest[0] >= LONG:
        found.append(
            Finding(
                "transaction",
                "warning",
                f"{oldest[1]} writes in a transaction that began {oldest[0]:,} seconds ago, and readers of all"
                f" conversations wait for its end ({hidden:,} events of this store). End it, by pg_terminate_backend or"
                " ROLLBACK PREPARED",
            )
        )
    elif hidden:
        waits = "event waits" if hidden == 1 else "events wait"
        found.append(Finding("horizon", "note", f"{hidden:,} {waits} for older transactions to end"))
    if timeout == "0":
        found.append(
            Finding(
                "timeout",
                "note",
                "idle_in_transaction_session_timeout is 0: a program that forgets a transaction would hold up readers"
                " of all conversations. Set it to a minute or so, for all roles of the server",
            )
        )
    return found


def _durability(fsync: str, full_pages: str) -> list[Finding]:
    off = [name for name, value in (("fsync", fsync), ("full_page_writes", full_pages)) if value == "off"]
    if not off:
        return []
    how = " and ".join(f"{name} = off" for name in off)
    text = f"the server runs with {how}: a power loss may destroy what was stored"
    return [Finding("durability", "warning", text)]
