"""The common base of the contract's parts: the hooks that make stores, and the fixture that closes one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from timeline.ports import EventStore


class ContractBase:
    """Makes the store under test.

    Attributes:
        every: cancel calls at one in so many of their suspensions: 1 is each of them; more suits a store that waits for
            a server hundreds of times in a call.
        every_of_scavenging: the same for a removal with its rewriting, for which such a store waits longest.
    """

    every: int = 1
    every_of_scavenging: int = 1

    async def make_store(self, folder: Path) -> EventStore:
        """Return a new, empty store; ``folder`` is an empty folder of its own."""
        raise NotImplementedError("a subclass of StoreContract says how to make its store")

    async def open_again(self, folder: Path) -> EventStore | None:
        """Return one more store on the database that `make_store` made in a folder.

        It is opened beside the first one, or after that one was closed. None if only one store can have a database
        open.
        """
        raise NotImplementedError("a subclass of StoreContract opens a second store, or returns None")

    async def restore(self, folder: Path, copy: Path) -> EventStore | None:
        """Back up the database in a folder while it is open, restore it into an empty folder, and return its store.

        None if there are no backups of such a store.
        """
        raise NotImplementedError("a subclass of StoreContract restores a backup, or returns None")

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[EventStore]:
        """Make the store and close it after the test."""
        store = await self.make_store(tmp_path)
        yield store
        await store.aclose()
