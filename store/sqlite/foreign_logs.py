"""Find a write-ahead log that is not its database's, before SQLite opens the two.

A copy that is put over a database while a log lies beside it is taken for the database of that log, and both are lost
with the first checkpoint (https://sqlite.org/howtocorrupt.html). Every page that a database grew by since its log was
begun is in that log; so pages that are neither in the file nor in the log show that the file is another one. One that
is as long as the right one is not found.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from ..failures import foreign_log, unwritable

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

_HEADER: Final = struct.Struct(">8xI4x8s8x")
"""Page size and salts (https://sqlite.org/fileformat2.html#the_write_ahead_log)."""
_FRAME: Final = struct.Struct(">II8s8x")
"""Page number, size of the database in pages where the frame ends a transaction, salts."""
_WORD: Final = struct.Struct(">I")
_SUMS: Final = struct.Struct(">II")
"""A checksum: two words, at the end of the header and of the head of each frame."""
_MOST: Final = 0xFFFF_FFFF
_LOCK_BYTE: Final = 1 << 30
"""The page that holds this byte is never written."""


def check_log(file: Path) -> None:
    """Check, in a turn, that the log beside a database may be its own.

    Raises:
        StoreCorrupt: it is not. Nothing was changed.
        StoreError: the system would not read it.
    """
    real = file.resolve()
    log = real.with_name(f"{real.name}-wal")
    try:
        foreign = _is_foreign(file, log)
    except (FileNotFoundError, PermissionError):
        return
    except OSError as error:
        raise unwritable(error, file) from error
    if foreign:
        raise foreign_log(file, log.name)


def _is_foreign(file: Path, log: Path) -> bool:
    if not log.stat().st_size:
        return False
    # SQLite locks the database and the log's index, never the log: closing it drops no lock.
    with log.open("rb") as opened:
        # The checksums only where the salts raise the suspicion: that takes seconds for a large log.
        return all(_lacks_pages(file, *_committed(opened, exactly=exactly)) for exactly in (False, True))


def _lacks_pages(file: Path, page_size: int, pages: int, logged: set[int]) -> bool:
    """Return whether pages of the database are neither in the file nor in the log."""
    if not page_size:
        return False
    there = file.stat().st_size // page_size if file.exists() else 0
    missing = (number for number in range(there + 1, pages + 1) if number not in logged)
    return bool(there) and any(number != _LOCK_BYTE // page_size + 1 for number in missing)


def _committed(log: BinaryIO, *, exactly: bool) -> tuple[int, int, set[int]]:
    """Return the page size, the pages of the database at the log's last commit, and the pages that the log holds.

    Not ``exactly``, frames count by their salts alone. Then those of a commit that failed count, too, of which the next
    commits overwrote a part: SQLite begins the next commit where the last good one ended, and keeps the salts.
    """
    log.seek(0)
    header = log.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return 0, 0, set()
    page_size, salts = _HEADER.unpack(header)
    checksum = _Checksum(header)
    committed = 0
    logged: set[int] = set()
    waiting: set[int] = set()
    while len(head := log.read(_FRAME.size)) == _FRAME.size:
        number, size, found = _FRAME.unpack(head)
        if found != salts or (exactly and not checksum.goes_on(head, log.read(page_size))):
            break
        waiting.add(number)
        if size:
            committed = size
            logged |= waiting
            waiting.clear()
        if not exactly:
            log.seek(page_size, 1)
    return page_size, committed, logged


class _Checksum:
    """The checksum of a log's frames, each of which goes on from that of the frame before it.

    Args:
        header: the log's.
    """

    def __init__(self, header: bytes) -> None:
        (magic,) = _WORD.unpack_from(header)
        self._order = ">" if magic & 1 else "<"
        self._sums: tuple[int, int] = _SUMS.unpack_from(header, _HEADER.size - _SUMS.size)

    def goes_on(self, head: bytes, page: bytes) -> bool:
        """Return whether a frame has the checksum that it must have behind those before it."""
        if len(page) % _SUMS.size:
            return False  # it broke off
        summed = head[: _SUMS.size] + page
        words = struct.unpack(f"{self._order}{len(summed) // _WORD.size}I", summed)
        first, second = self._sums
        for even, odd in zip(words[::2], words[1::2], strict=True):
            first = (first + even + second) & _MOST
            second = (second + odd + first) & _MOST
        self._sums = first, second
        return self._sums == _SUMS.unpack_from(head, _FRAME.size - _SUMS.size)
