"""What is appended between two statements of one look-up: it is no damage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.store import open_store
from timeline.store.log_reader import LogReader
from timeline.store.sqlite.log_rows import SQLiteRows
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import block_event

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.store.codec import Row


class OvertakenRows(SQLiteRows):
    """The rows of a store to which another writer appends before a conversation's row is read."""

    def __init__(self, store: SQLiteStore) -> None:
        super().__init__(store.database)
        self._store = store

    async def info(self, conversation: str) -> Row | None:
        """Append, then read the conversation's row."""
        await self._store.append(conversation, [block_event("ar:turn_2.user.prompt")])
        return await super().info(conversation)

    async def key(self, conversation: str) -> int | None:
        """Append, then read the conversation's key."""
        await self._store.append(conversation, [block_event("ar:turn_2.user.prompt")])
        return await super().key(conversation)


async def test_a_version_that_was_appended_meanwhile_is_not_missing(tmp_path: Path) -> None:
    """It was not there when it was looked for, and the next look-up finds it."""
    async with open_store(tmp_path / "agent.db") as store:
        assert isinstance(store, SQLiteStore)
        await store.append("a", [block_event()])
        assert [e.version for e in await LogReader(OvertakenRows(store)).read_versions("a", [1, 2])] == [1]
        assert [e.version for e in await store.read_versions("a", [1, 2])] == [1, 2]


async def test_a_path_that_was_given_meanwhile_does_not_accuse_the_index(tmp_path: Path) -> None:
    """Nothing had it when it was looked for, and the next look-up finds it."""
    async with open_store(tmp_path / "agent.db") as store:
        assert isinstance(store, SQLiteStore)
        await store.append("a", [block_event()])
        assert await LogReader(OvertakenRows(store)).find("a", "ar:turn_2.user.prompt") is None
        found = await store.find("a", "ar:turn_2.user.prompt")
        assert found is not None
        assert found.version == 2
