"""`Connection`: a SQLite connection that a fork of the process leaves alone.

A fork inherits connections, but not the locks that SQLite holds for them, which belong to the process. Whatever the
fork does with one of them, closing it included, may damage the file
(https://sqlite.org/howtocorrupt.html#_carrying_an_open_database_connection_across_a_fork_). Nor may the fork open the
same file anew: SQLite finds the inherited connection in its own memory, takes the file for locked, and locks nothing,
so that another process may delete the write-ahead log under it.
"""

from __future__ import annotations

import os
import sqlite3
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from timeline.errors import ForkedProcess
from timeline.home import never_finalize

from ..packing import unpacked
from .identity import found_node

if TYPE_CHECKING:
    from pathlib import Path

    from .identity import Node


class Connection(sqlite3.Connection):
    """A connection to a file."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.node: Node | None = None
        with _OPENING:  # A fork waits here: it must know every open connection.
            super().__init__(*args, **kwargs)
            know_packed(self)
            self.text_factory: Any = bytes  # the name of a file need not be in UTF-8, nor the locale know that
            ((_, _, path),) = self.execute("PRAGMA database_list")
            self.text_factory = str
            self.node = found_node(os.fsdecode(path))
            _OPEN.add(self)

    def close(self) -> None:
        """Close it; a second call does nothing."""
        super().close()
        _OPEN.discard(self)


def know_packed(connection: sqlite3.Connection) -> None:
    """Give a connection the function that statements read packed payloads with."""
    connection.create_function("unpacked", 1, unpacked, deterministic=True)


def check_not_inherited(file: Path) -> None:
    """Check that no inherited connection has a file open.

    Raises:
        ForkedProcess: the process that this one was forked from had it open at that moment.
    """
    node = found_node(str(file))
    if node is not None and node in _INHERITED:
        raise ForkedProcess(f"{file}: the database", _INHERITED[node])


def is_open_here(file: Path) -> bool:
    """Return whether a connection of this process has a file open."""
    node = found_node(str(file))
    return node is not None and any(connection.node == node for connection in list(_OPEN))


def keep_from_forks(connection: object) -> None:
    """Keep an object that owns a `Connection` from being finalized in forks, where it would use the connection."""
    _OWNERS.add(connection)


_OPENING: Final = Lock()
_OPEN: Final[WeakSet[Connection]] = WeakSet()
_OWNERS: Final[WeakSet[object]] = WeakSet()
_INHERITED: Final[dict[Node, int]] = {}
"""The files whose connections a fork inherited, with the process that it was forked from."""


def _abandon() -> None:
    _OPENING.release()
    for owner in list(_OWNERS):
        never_finalize(owner)
    for connection in list(_OPEN):
        never_finalize(connection)
        if connection.node is not None:
            _INHERITED[connection.node] = os.getppid()
    _OPEN.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_OPENING.acquire, after_in_parent=_OPENING.release, after_in_child=_abandon)
