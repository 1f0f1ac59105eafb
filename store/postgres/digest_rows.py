"""Write digests as rows, in the transaction of the append that completes or undoes a compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..digests import FILE_LISTS, Reversion, within
from . import statements
from .escaping import escaped, key_of

if TYPE_CHECKING:
    from ..digests import CompactionRow, DigestEntry
    from .database import Connection


async def write(connection: Connection, key: int, position: int, row: CompactionRow | Reversion | None) -> None:
    """Write the rows that the event of a conversation (its key) at a position adds, if any."""
    if isinstance(row, Reversion):
        await connection.execute(statements.REVERT, row.version, list(row.reverted), key)
    elif row is not None:
        await connection.execute(statements.INSERT_COMPACTION, position, key, *compaction_columns(row))
        entries = [entry_columns(entry) for entry in row.entries if leads(entry)]
        if entries:
            await connection.execute(statements.INSERT_ENTRIES, position, *map(list, zip(*entries, strict=True)))


def leads(entry: DigestEntry) -> bool:
    """Return whether a filter asks for entries of this kind; the others are read from the event alone."""
    return entry.list in FILE_LISTS or entry.list == "commands" or entry.tool is not None or entry.errors > 0


def compaction_columns(row: CompactionRow) -> tuple[object, ...]:
    """Return the columns of a compaction's row behind position and conversation, as they are stored."""
    *columns, _ = row._replace(summary=escaped(row.summary))
    return tuple(map(_held, columns))


def entry_columns(entry: DigestEntry) -> tuple[object, ...]:
    """Return the columns of an entry's row behind its position, as they are stored."""
    tool = (None, None) if entry.tool is None else (key_of(entry.tool), escaped(entry.tool))
    return (
        entry.list,
        entry.number,
        key_of(entry.subject),
        escaped(entry.subject),
        *tool,
        None if entry.path is None else escaped(entry.path),
        *map(_held, (entry.times, entry.tokens, entry.exit_status, entry.errors)),
        escaped(entry.message),
    )


def _held(value: object) -> object:
    """Return a number that the database can hold."""
    return within(value) if isinstance(value, int) else value
