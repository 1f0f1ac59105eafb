"""Stores: where conversations are kept. `open_store` is the way in; `store.testing` checks a store of your own.

Importing this package is cheap: the SQLite store and its libraries are imported when one is opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .opening import Opening, open_store

if TYPE_CHECKING:
    from .memory import MemoryStore as MemoryStore
    from .sqlite.store import SQLiteStore as SQLiteStore

__all__ = ["MemoryStore", "Opening", "SQLiteStore", "open_store"]


def __getattr__(name: str) -> Any:
    if name == "SQLiteStore":
        from .sqlite.store import SQLiteStore  # noqa: PLC0415 - lazy on purpose, see above

        return SQLiteStore
    if name == "MemoryStore":
        from .memory import MemoryStore  # noqa: PLC0415 - lazy on purpose, see above

        return MemoryStore
    raise AttributeError(f"module 'store' has no attribute {name!r}")
