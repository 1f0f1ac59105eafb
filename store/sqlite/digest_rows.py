"""Write digests as rows, in the transaction of the append that completes or undoes a compaction."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..column_numbers import within
from ..digests import Reversion, has_row
from . import query_statements

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from ..digests import CompactionRow


def write(connection: sqlite3.Connection, key: int, row: CompactionRow | Reversion | None) -> None:
    """Write the rows that an event of a conversation (its key) adds, if any; the event itself is written before."""
    if isinstance(row, Reversion):
        connection.execute(query_statements.REVERT, (row.version, json.dumps(row.reverted), key))
    elif row is not None:
        _write_compaction(connection, key, row)


def _write_compaction(connection: sqlite3.Connection, key: int, row: CompactionRow) -> None:
    (position,) = connection.execute(query_statements.POSITION, (key, row.version)).fetchone()
    *columns, entries = (position, key, *row)
    connection.execute(query_statements.INSERT_COMPACTION, held(columns))
    led = (held((position, *entry)) for entry in entries if has_row(entry))
    connection.executemany(query_statements.INSERT_ENTRY, led)


def held(columns: Iterable[object]) -> list[object]:
    """Return columns with numbers that SQLite can hold."""
    return [within(value) if isinstance(value, int) else value for value in columns]
