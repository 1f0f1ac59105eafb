"""Undo the escaping in the rows that PostgreSQL returns, so that `store.codec` reads them like those of any store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .escaping import unescaped

if TYPE_CHECKING:
    from ..codec import Row

_TYPE, _PATH, _TURN = 3, 8, 9
_ID, _TITLE = 1, 4


def event_row(row: Row) -> Row:
    """Return the row of an event (`statements.EVENT` first) as its event wrote it."""
    path, turn = row[_PATH], row[_TURN]
    if "\\" in row[_TYPE] or (path and "\\" in path) or (turn and "\\" in turn):
        columns = list(row)
        for place in (_TYPE, _PATH, _TURN):
            columns[place] = plain(columns[place])
        return tuple(columns)
    return row


def info_row(row: Row) -> Row:
    """Return the row of a conversation as `codec.decode_info` reads it."""
    columns = list(row)
    columns[_ID], columns[_TITLE] = unescaped(columns[_ID]), unescaped(columns[_TITLE])
    return tuple(columns)


def plain(text: str | None) -> str | None:
    """Return a stored text as it was, if there is one."""
    return None if text is None else unescaped(text)
