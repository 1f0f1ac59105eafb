# ruff: noqa: S608 - the texts are put together from constants and checked names, never from input
"""Find out what removing would do, and leave the store as it is.

What would go is counted in a transaction that only reads. What would be left of the files is measured on temporary
tables of the same names, which the session finds before the real ones: the very functions that remove work on them.
That transaction has a number, and readers of all conversations wait for its end; so it is done for small stores alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.ports import KEPT_TYPES, Rehearsal

from ..removal import HASH
from .facts import reach
from .keeping import find_all
from .partitions import check_attached
from .removing import bounds_of, drop_unnamed, remove_held, unnamed_values, would_remove
from .statements import OWN
from .table_files import AT_ONCE, CONTENT, size_of, size_of_copies, tables

if TYPE_CHECKING:
    from collections.abc import Collection

    from timeline.ports import Removal

    from .address import ServerAddress
    from .connections import Connection

_ALL: Final = 2**31
_COPIES: Final = "SELECT relname FROM pg_class WHERE relnamespace = pg_my_temp_schema() AND relkind = 'r' ORDER BY 1"
_KEY: Final = (
    "SELECT k.relname FROM pg_index AS i JOIN pg_class AS k ON k.oid = i.indexrelid"
    " WHERE i.indisprimary AND i.indrelid = ('pg_temp.' || quote_ident($1))::regclass"
)
_FILLED_LAST: Final = (
    "SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid) FROM pg_index AS i"
    " JOIN pg_class AS k ON k.oid = i.indexrelid JOIN pg_am AS m ON m.oid = k.relam"
    " WHERE i.indrelid = ('pg_temp.' || quote_ident($1))::regclass AND m.amname = 'gin'"
)
"""The index of words. Row by row it takes more time than all else here, and only the end needs it."""
_HASHES = "regexp_matches({}, $1, 'g') AS m (found)"
_WOULD_BE_NAMED = (
    f"SELECT m.found[1] FROM events AS e LEFT JOIN gone AS g ON g.key = e.conversation AND e.version >= g.first"
    f" AND e.version <= g.last CROSS JOIN LATERAL {_HASHES.format('e.payload')} WHERE e.{OWN}"
    " AND e.type <> 'block.appended' AND e.checksum <> '' AND (g.key IS NULL OR e.type = ANY($2::text[])"
    " OR EXISTS (SELECT 1 FROM kept AS k WHERE k.key = e.conversation AND k.version = e.version))"
    f" UNION ALL SELECT m.found[1] FROM snapshots AS s CROSS JOIN LATERAL {_HASHES.format('s.body')} WHERE s.{OWN}"
    " UNION ALL SELECT m.found[1] FROM bases AS b LEFT JOIN gone AS g ON g.key = b.conversation"
    f" AND b.version >= g.first - 1 AND b.version < g.base CROSS JOIN LATERAL {_HASHES.format('b.body')}"
    f" WHERE b.{OWN} AND g.key IS NULL"
)
_WOULD_DROP: Final = (
    "WITH gone (key, first, last, base) AS (SELECT * FROM unnest($3::bigint[], $4::bigint[], $5::bigint[],"
    " $6::bigint[])), kept (key, version) AS (SELECT * FROM unnest($7::bigint[], $8::bigint[]))"
    " SELECT count(*), coalesce(sum(octet_length(v.text)), 0)::bigint FROM stored_values AS v"
    f" WHERE v.{OWN} AND NOT EXISTS (SELECT 1 FROM ({_WOULD_BE_NAMED}) AS named (hash) WHERE named.hash = v.hash)"
)


async def counted(connection: Connection, conversations: Collection[str], address: ServerAddress) -> Rehearsal:
    """Count what would go, in the open transaction, which sees one moment; nothing is locked or written.

    Raises:
        ConversationNotFound: one is not there.
        StoreCorrupt: a snapshot is damaged, or a partition of the events is not attached.
    """
    await check_attached(connection)
    logs = await find_all(connection, conversations)
    removals: dict[str, Removal] = {}
    gone: list[tuple[int, int, int, int]] = []
    kept: list[tuple[int, int]] = []
    for conversation, log in logs.items():
        removals[conversation] = await would_remove(connection, log, address.where)
        within, (base, _, _) = await bounds_of(connection, log, address.where)
        gone.append((log.key, within.first, within.last, base))
        kept += ((log.key, version) for version in within.kept)
    spans = [[each[place] for each in gone] for place in range(4)]
    stay = [[each[place] for each in kept] for place in range(2)]
    values = (0, 0)
    if conversations:
        row = await connection.fetchrow(_WOULD_DROP, HASH, sorted(KEPT_TYPES), *spans, *stay)
        values = (0, 0) if row is None else (row[0], row[1])
    before = await size_of(connection, address.schema)
    freed = sum(removal.size for removal in removals.values()) + values[1]
    return Rehearsal({id_: removals[id_] for id_ in conversations}, *values, before, max(0, before - freed))


async def is_small(connection: Connection, schema: str) -> bool:
    """Return whether a store is small enough to be copied, and can be rewritten; a standby's is neither."""
    if await connection.fetchval("SELECT pg_is_in_recovery()"):
        return False
    found = await tables(connection, schema)
    return all(table.size <= AT_ONCE and table.ours and table.key for table in found)


async def measured(connection: Connection, conversations: Collection[str], address: ServerAddress) -> int:
    """Return the bytes that would be left, in the open transaction, which the caller rolls back."""
    partitions = await connection.fetchval("SELECT partitions FROM store_meta")
    for table in CONTENT:
        real = f'{address.quoted_schema}."{table}"'
        spread = " PARTITION BY HASH (conversation)" if partitions and table == "events" else ""
        await connection.execute(f'CREATE TEMPORARY TABLE "{table}" (LIKE {real} INCLUDING ALL){spread}')
        for number in range(partitions if spread else 0):
            bounds = f"FOR VALUES WITH (MODULUS {partitions}, REMAINDER {number})"
            await connection.execute(f"CREATE TEMPORARY TABLE {table}_{number} PARTITION OF pg_temp.{table} {bounds}")
        await _drop_last(connection, table)
        await connection.execute(f'INSERT INTO pg_temp."{table}" SELECT * FROM {real} WHERE {OWN}')
    if conversations:
        await reach(connection)
        for log in (await find_all(connection, conversations)).values():
            await remove_held(connection, log, 0, _ALL, address.where)
        await drop_unnamed(connection, await unnamed_values(connection))
    left = []
    for (table,) in await connection.fetch(_COPIES):  # once more: a rewriting keeps what its own transaction overwrote
        left.append(f"{table}_left")
        like = f'{address.quoted_schema}."{table}"' if table in CONTENT else f'pg_temp."{table}"'
        await connection.execute(f'CREATE TEMPORARY TABLE "{left[-1]}" (LIKE {like} INCLUDING ALL)')
        last = await _drop_last(connection, left[-1])
        await connection.execute(f'INSERT INTO pg_temp."{left[-1]}" SELECT * FROM pg_temp."{table}"')
        key = await connection.fetchval(_KEY, left[-1])
        await connection.execute(f'CLUSTER pg_temp."{left[-1]}" USING "{key}"')
        for definition in last:
            await connection.execute(definition)
    return await size_of_copies(connection, left)


async def _drop_last(connection: Connection, table: str) -> list[str]:
    """Drop the indexes of a copy that are made when it is full; return the statements that make them."""
    found = await connection.fetch(_FILLED_LAST, table)
    for name, _ in found:
        await connection.execute(f"DROP INDEX {name}")
    return [definition for _, definition in found]
