"""Write digests as rows, in the transaction of the append that completes or undoes a compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..column_numbers import within
from ..digests import Reversion, has_row
from . import statements
from .escaping import escaped, key_of

if TYPE_CHECKING:
    from ..digests import CompactionRow, DigestEntry
    from .connections import Connection

_POSITION: Final = "SELECT position FROM events WHERE conversation = $1 AND version = $2"


async def write(connection: Connection, key: int, row: CompactionRow | Reversion | None) -> None:
    """Write the rows that an event of a conversation (its key) adds, if any; the event itself is written before."""
    if isinstance(row, Reversion):
        await connection.execute(statements.REVERT, row.version, [within(v) for v in row.reverted], key)
    elif row is not None:
        position = await connection.fetchval(_POSITION, key, row.version)
        await connection.execute(statements.INSERT_COMPACTION, position, key, *compaction_columns(row))
        entries = [entry_columns(entry) for entry in row.entries if has_row(entry)]
        if entries:
            await connection.execute(statements.INSERT_ENTRIES, position, *map(list, zip(*entries, strict=True)))


def compaction_columns(row: CompactionRow) -> tuple[Any, ...]:
    """Return the columns of `statements.INSERT_COMPACTION` behind position and conversation."""
    *columns, _ = row
    return tuple(map(_held, columns))


def entry_columns(entry: DigestEntry) -> tuple[Any, ...]:
    """Return the columns of `statements.INSERT_ENTRIES` behind the position."""
    subject, tool = entry.subject, entry.tool
    keyed = (key_of(subject), escaped(subject), None if tool is None else key_of(tool))
    return (entry.list, entry.number, *keyed, *map(_held, entry[3:]))


def _held(value: object) -> object:
    """Return a value as PostgreSQL can hold it."""
    if isinstance(value, str):
        return escaped(value)
    return within(value) if isinstance(value, int) else value
