"""A disk that fails: a VFS of SQLite's own kind, whose n-th call on a file fails as the file system would.

It is in front of the VFS of the platform, for the databases that are opened with it (``vfs=faulty`` in the URI).
"""

from __future__ import annotations

import ctypes
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

How: TypeAlias = Literal["error", "late", "full"]
"""How a call fails: without doing its work, after it, or for want of room."""

_METHODS: Final = (
    *("close", "read", "write", "truncate", "sync", "size", "lock", "unlock", "check_reserved", "control"),
    *("sector_size", "characteristics", "shm_map", "shm_lock", "shm_barrier", "shm_unmap", "fetch", "unfetch"),
)
"""The methods of an open file, in the order of ``sqlite3_io_methods``."""
_SIGNATURES: Final[dict[str, Any]] = {
    "write": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64),
    "sync": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int),
    "shm_map": ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p
    ),
}
_FAILS_WITH: Final = {
    "write": sqlite3.SQLITE_IOERR_WRITE,
    "sync": sqlite3.SQLITE_IOERR_FSYNC,
    "shm_map": sqlite3.SQLITE_IOERR_SHMMAP,
}
_Open = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_int)
)
"""The name is passed on as the pointer that it is: SQLite keeps it."""


class _IoMethods(ctypes.Structure):
    _fields_ = [("version", ctypes.c_int), *((name, ctypes.c_void_p) for name in _METHODS)]


class _File(ctypes.Structure):
    _fields_ = [("methods", ctypes.POINTER(_IoMethods))]


class _Vfs(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("longest_name", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("open", ctypes.c_void_p),
        ("others", ctypes.c_void_p * 15),
    ]


@dataclass
class Disk:
    """The disk: which call fails, and what was called.

    Attributes:
        calls: the calls on write-ahead logs and their indexes since `begin`, by name, in order.
        failed: the name of the call that failed.
    """

    calls: list[str] = field(default_factory=list)
    failed: str = ""
    _call: int = 0
    _how: How = "error"
    _counting: bool = False
    _kept: list[Any] = field(default_factory=list)

    def begin(self, call: int = 0, how: How = "error") -> None:
        """Count calls from now on, from 1, and let one of them fail; 0 for none.

        ``late`` is an error of a call that has done its work, ``full`` one of a write that found no room.
        """
        self._call, self._how, self._counting = call, how, True
        self.calls, self.failed = [], ""

    def end(self) -> None:
        """Let everything succeed again."""
        self._counting = False

    def meet(self, name: str, work: Callable[[], int]) -> int:
        """Do the work of a call, or let it fail; return SQLite's code."""
        if not self._counting:
            return work()
        self.calls.append(name)
        if len(self.calls) != self._call:
            return work()
        self.failed = name
        if self._how == "late":
            work()
        return sqlite3.SQLITE_FULL if name == "write" and self._how == "full" else int(_FAILS_WITH[name])


@cache
def install() -> Disk | None:
    """Register the disk as the VFS ``faulty``; None where Python's driver has a SQLite that `ctypes` does not reach."""
    library = _library()
    if library is None:
        return None
    platform = ctypes.cast(library.sqlite3_vfs_find(None), ctypes.POINTER(_Vfs)).contents
    disk = Disk()
    ours = _Vfs.from_buffer_copy(platform)
    ours.name = b"faulty"
    open_really = _Open(platform.open)

    def open_faulty(vfs: int, name: int | None, file: int, flags: int, out: Any) -> int:
        result = int(open_really(vfs, name, file, flags, out))
        if not result and name is not None:
            path = ctypes.string_at(name)
            if path.endswith(b"-wal"):
                _wrap(file, disk, ("write", "sync"))
            elif path.endswith(b".db"):
                _wrap(file, disk, ("shm_map",))
        return result

    opened = _Open(open_faulty)
    ours.open = ctypes.cast(opened, ctypes.c_void_p)
    disk._kept += [library, ours, opened]
    library.sqlite3_vfs_register(ctypes.byref(ours), 0)
    return disk if _is_in_use() else None


def _wrap(file: int, disk: Disk, names: tuple[str, ...]) -> None:
    """Give an open file methods of ours in front of its own."""
    opened = ctypes.cast(file, ctypes.POINTER(_File)).contents
    methods = _IoMethods.from_buffer_copy(opened.methods.contents)
    for name in names:
        really = _SIGNATURES[name](getattr(methods, name))

        def method(*arguments: Any, name: str = name, really: Any = really) -> int:
            return disk.meet(name, lambda: int(really(*arguments)))

        ours = _SIGNATURES[name](method)
        disk._kept.append(ours)
        setattr(methods, name, ctypes.cast(ours, ctypes.c_void_p))
    disk._kept.append(methods)
    opened.methods = ctypes.pointer(methods)


def _library() -> ctypes.CDLL | None:
    for name in ("libsqlite3.so.0", "libsqlite3.dylib", "libsqlite3.so"):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        library.sqlite3_vfs_find.restype = ctypes.c_void_p
        library.sqlite3_vfs_find.argtypes = [ctypes.c_char_p]
        return library
    return None


def _is_in_use() -> bool:
    """Return whether Python's driver sees what was registered: it may have another copy of the library."""
    try:
        with closing(sqlite3.connect("file::memory:?vfs=faulty", uri=True)):
            return True
    except sqlite3.OperationalError:
        return False
