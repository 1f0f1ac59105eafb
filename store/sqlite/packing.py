"""Pack a conversation's old events, a slice at a time: the function that the writer thread runs behind an append.

An append packs nothing, since an agent waits for it. Behind one that compacts or hides, the writer packs what lies
before the window, and what is older than the newest events, between the other jobs of its queue. Packed events are read
seldom: an open timeline holds its window, of which the older part is mostly hidden.

A slice deletes its rows and inserts them again under the same positions. Updated in place, they would leave their pages
half empty; so SQLite fills pages and frees the others, which the next appends take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..packing import packed
from . import statements
from .slices import slice_of
from .transactions import transaction

if TYPE_CHECKING:
    import sqlite3


SLICE: Final = 256 * 1024
"""Characters of payloads after which a slice ends: some 10 ms of the writer's time."""
MOST_EVENTS: Final = 1_000
LEAST_EVENTS: Final = 64
"""Events that a packing waits for: each of its slices is a transaction."""
NEWEST: Final = 256
"""The newest events of a conversation, which are not packed as long as they are in its window."""
_AT_ONCE: Final = 50
"""Rows that are deleted before they are inserted again: enough to fill whole pages."""


def pack_slice(connection: sqlite3.Connection, conversation: str) -> bool:
    """Pack a slice of a conversation's old events, in one transaction; return whether more are left.

    Raises:
        sqlite3.Error: the database failed; nothing was packed.
    """
    with transaction(connection):
        return _pack_slice(connection, conversation)


def _pack_slice(connection: sqlite3.Connection, conversation: str) -> bool:
    log = connection.execute(statements.PACKED_UNTIL, (conversation,)).fetchone()
    if log is None:
        return False
    key, after, version, window_start = log
    last = max(window_start - 1, version - NEWEST)
    if last - after < LEAST_EVENTS:
        return False
    found = connection.execute(statements.TO_PACK, (key, after, last, MOST_EVENTS))
    rows, more = slice_of(found, text=-1, size=SLICE, most=MOST_EVENTS)
    smaller = [(*row[:-1], body) for row in rows if (body := packed(row[-1])) is not None]
    for start in range(0, len(smaller), _AT_ONCE):
        part = smaller[start : start + _AT_ONCE]
        connection.executemany(statements.TAKE_OUT, [row[:1] for row in part])
        connection.executemany(statements.PUT_BACK, part)
    connection.execute(statements.SET_PACKED, (rows[-1][2] if more else last, key))
    return more
