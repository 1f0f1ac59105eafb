"""What happens between two statements of one look-up: it is no damage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenes import prompt, small_policy
from timeline import Timeline
from timeline.errors import ConversationErased, HistoryUnavailable
from timeline.retention import scavenge
from timeline.store import open_store
from timeline.store.log_reader import LogReader
from timeline.store.sqlite import statements
from timeline.store.sqlite.log_rows import SQLiteConversationRows, SQLiteRows
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import block_event, events

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from timeline.events import Event
    from timeline.store.codec import Row


class Compacted(SQLiteConversationRows):
    """The rows of a store that is compacted and scavenged once, behind the first look at a conversation's window."""

    def __init__(self, store: SQLiteStore) -> None:
        super().__init__(store.database, statements.WHOLE)
        self._store, self._done = store, False

    async def info_and_snapshot(self, conversation: str) -> Row | None:
        """Read the rows, then move the window on and remove what lies before it."""
        found = await super().info_and_snapshot(conversation)
        if not self._done:
            self._done = True
            timeline = await Timeline.open(self._store, conversation)
            await timeline.compact()
            assert (await scavenge(self._store, [conversation])).events
        return found


class Overtaken(SQLiteConversationRows):
    """The rows of a store to which another writer appends before a conversation's row is read."""

    def __init__(self, store: SQLiteStore) -> None:
        super().__init__(store.database, statements.WHOLE)
        self._store = store

    async def info(self, conversation: str) -> Row | None:
        """Append, then read the conversation's row."""
        await self._store.append(conversation, [block_event("ar:turn_2.user.prompt")])
        return await super().info(conversation)


class OvertakenRows(SQLiteRows):
    """The same where the conversation's key is read."""

    def __init__(self, store: SQLiteStore) -> None:
        super().__init__(store.database)
        self._store = store
        self.whole = Overtaken(store)

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


async def test_a_window_that_was_scavenged_meanwhile_is_read_again(tmp_path: Path) -> None:
    """The one that took its place is whole."""
    async with open_store(tmp_path / "agent.db") as store:
        assert isinstance(store, SQLiteStore)
        timeline = await Timeline.open(store, "a", policy=small_policy(max_tokens=4_000, keep_recent_tokens=400))
        await timeline.append(*(prompt(text=f"Card {number}. " * 90) for number in range(9)))
        await timeline.set_retention("window")
        rows = SQLiteRows(store.database)
        rows.whole = Compacted(store)
        read = await LogReader(rows).load_window("a")
        assert read == await store.load_window("a")
        assert read.snapshot is not None


async def test_a_conversation_that_is_erased_while_it_is_read_says_so(tmp_path: Path) -> None:
    """Between two pages."""
    async with open_store(tmp_path / "agent.db") as store:
        await store.append("a", events(4))
        reading = store.read("a", page=2)
        await anext(reading)
        await store.erase("a", reason="asked for")
        with pytest.raises(ConversationErased, match="asked for"):
            [e async for e in reading]


async def test_a_version_that_goes_while_its_past_is_folded_says_so(tmp_path: Path) -> None:
    """Another process may scavenge or erase at that moment."""

    class ScavengedStore(SQLiteStore):
        async def read_versions(self, conversation: str, versions: Collection[int]) -> list[Event]:
            await timeline.compact()
            await scavenge(self, [conversation])
            return await super().read_versions(conversation, versions)

    async with await ScavengedStore.open(tmp_path / "agent.db") as store:
        timeline = await Timeline.open(store, "a", policy=small_policy(max_tokens=4_000, keep_recent_tokens=400))
        await timeline.append(*(prompt(text=f"Card {number}. " * 90) for number in range(9)))
        await timeline.set_retention("window")
        with pytest.raises(HistoryUnavailable, match="scavenge"):
            await timeline.at(4)
