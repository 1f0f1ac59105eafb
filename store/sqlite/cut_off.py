"""Recognise a database file whose end is missing, by the length that its first page states.

SQLite refuses the whole of such a file. Made as long again with zeros, it opens wherever the pages of its schema are
there, and only what was on the missing pages does not read.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from .connection import is_open_here

_HEADER: Final = struct.Struct(">16sH6xII60xI4x")
"""Of https://sqlite.org/fileformat.html, 1.3: the magic, the page size, the change counter, the pages, and the counter
for which their number counts."""
_MAGIC: Final = b"SQLite format 3\x00"
_LARGEST: Final = 65_536
"""The page size that is written as 1."""


def length_before(file: Path) -> int | None:
    """Return how many bytes a database had whose file is shorter now; None for every other file.

    Beside a write-ahead log it is None, too: a copy of the log into the database that broke off leaves a short file,
    and the log has what is missing. Of a file that a connection of this process has open nothing is read: closing it
    would drop the locks that SQLite holds on it.
    """
    if is_open_here(file):
        return None
    try:
        log = Path(f"{file}-wal")
        if log.exists() and log.stat().st_size:
            return None
        size = file.stat().st_size
        with file.open("rb") as opened:
            head = opened.read(_HEADER.size)
    except OSError:
        return None
    if len(head) < _HEADER.size:
        return None
    magic, page, changes, pages, counted = _HEADER.unpack(head)
    whole = pages * (_LARGEST if page == 1 else page)
    return whole if magic == _MAGIC and changes == counted and size < whole else None
