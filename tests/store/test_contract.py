from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.depth import full_depth
from timeline.store import backup, restore
from timeline.store.memory import _GONE, MemoryStore
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import StoreContract

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from timeline.events import NewEvent
    from timeline.ports import Appended, EventStore


class TestMemoryStore(StoreContract):
    """The memory store keeps the contract."""

    async def make_store(self, folder: Path) -> EventStore:  # noqa: ARG002 - nothing is written
        """Make a store in memory."""
        return MemoryStore()

    async def open_again(self, folder: Path) -> EventStore | None:  # noqa: ARG002 - nothing is written
        """What is in memory is one store's alone."""
        return None

    async def restore(self, folder: Path, copy: Path) -> EventStore | None:  # noqa: ARG002 - nothing is written
        """Nothing of it is ever saved."""
        return None


class TestSQLiteStore(StoreContract):
    """The SQLite store keeps the contract."""

    async def make_store(self, folder: Path) -> EventStore:
        """Make a store in a file."""
        return await SQLiteStore.open(folder / "agent.db")

    async def open_again(self, folder: Path) -> EventStore | None:
        """Open the file once more."""
        return await SQLiteStore.open(folder / "agent.db")

    async def restore(self, folder: Path, copy: Path) -> EventStore | None:
        """Copy the file, and put the copy in the place of another store's."""
        await (await SQLiteStore.open(copy / "agent.db")).aclose()
        await backup(folder / "agent.db", folder / "saved.db")
        await restore(folder / "saved.db", copy / "agent.db", yes=True)
        return await SQLiteStore.open(copy / "agent.db")


class GappedStore(MemoryStore):
    """A store whose positions have gaps before each append, as those that are made of transaction ids have."""

    GAP: Final = 100

    async def append(self, conversation: str, events: Sequence[NewEvent], **options: Any) -> Appended:
        """Append behind a gap."""
        end = len(self._all)
        self._all += [_GONE] * (self.GAP if events else 0)
        appended = None
        try:
            appended = await super().append(conversation, events, **options)
        finally:
            if appended is None or appended.repeated:
                del self._all[end:]
        return appended


@full_depth
class TestGappedStore(TestMemoryStore):
    """No sentence of the contract assumes that positions follow one another without gaps."""

    async def make_store(self, folder: Path) -> EventStore:  # noqa: ARG002 - nothing is written
        """Make a store in memory whose positions have gaps."""
        return GappedStore()
