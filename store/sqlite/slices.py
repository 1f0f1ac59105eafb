"""Read a slice of what a statement finds: as much text as the writer may be busy with at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

    from ..codec import Row


def slice_of(found: sqlite3.Cursor, *, text: int, size: int, most: int) -> tuple[list[Row], bool]:
    """Return rows up to a size of text, or all, and whether the slice was cut: there may be more.

    Args:
        found: the rows, at most ``most``.
        text: the column that counts.
        size: characters after which the slice ends.
        most: rows after which it ends.
    """
    rows: list[Row] = []
    read = 0
    for row in found:
        rows.append(row)
        read += len(row[text])
        if read >= size:
            break
    found.close()
    return rows, read >= size or len(rows) == most
