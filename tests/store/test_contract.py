from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.store.memory import MemoryStore
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import StoreContract

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.ports import EventStore


class TestMemoryStore(StoreContract):
    """The memory store keeps the contract."""

    async def make_store(self, folder: Path) -> EventStore:  # noqa: ARG002 - nothing is written
        """Make a store in memory."""
        return MemoryStore()


class TestSQLiteStore(StoreContract):
    """The SQLite store keeps the contract."""

    async def make_store(self, folder: Path) -> EventStore:
        """Make a store in a file."""
        return await SQLiteStore.open(folder / "agent.db")
