"""The common base of the contract's parts: the hook that makes a store, and the fixture that closes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from timeline.ports import EventStore


class ContractBase:
    """Makes the store under test."""

    async def make_store(self, folder: Path) -> EventStore:
        """Return a new, empty store; ``folder`` is an empty folder of its own."""
        raise NotImplementedError("a subclass of StoreContract says how to make its store")

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[EventStore]:
        """Make the store and close it after the test."""
        store = await self.make_store(tmp_path)
        yield store
        await store.aclose()
