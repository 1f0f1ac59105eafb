"""Stores keep conversations. `open_store` opens one; `timeline.store.testing` checks a store of your own.

Importing this package is cheap: the SQLite store and its libraries are imported when the first one is opened.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if __name__ == "store":  # a checkout's folder imported by its own name: both names must be one module (ADR 0027)
    sys.modules[__name__] = import_module("timeline.store")

from .copies import backup, restore
from .opening import Opening, open_store

if TYPE_CHECKING:
    from .memory import MemoryStore as MemoryStore
    from .search.ranking import Ranking as Ranking
    from .sqlite.backups import Backup as Backup
    from .sqlite.backups import Restored as Restored
    from .sqlite.store import SQLiteStore as SQLiteStore

__all__ = [
    "Backup",
    "MemoryStore",
    "Opening",
    "Ranking",
    "Restored",
    "SQLiteStore",
    "backup",
    "open_store",
    "restore",
]


if not TYPE_CHECKING:  # to a type checker every name would be there, and of any type

    def __getattr__(name: str) -> Any:
        if name == "SQLiteStore":
            from .sqlite.store import SQLiteStore  # noqa: PLC0415 - lazy on purpose, see above

            return SQLiteStore
        if name == "MemoryStore":
            from .memory import MemoryStore  # noqa: PLC0415 - lazy on purpose, see above

            return MemoryStore
        if name == "Ranking":
            from .search.ranking import Ranking  # noqa: PLC0415 - lazy on purpose, see above

            return Ranking
        if name in {"Backup", "Restored"}:
            return getattr(import_module("timeline.store.sqlite.backups"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
