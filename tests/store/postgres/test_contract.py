from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import StoreContract

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.ports import EventStore


class TestPostgresStore(StoreContract):
    """The PostgreSQL store keeps the contract."""

    every = 11
    every_of_scavenging = 97  # a shrink alone has some hundred

    @pytest.fixture(autouse=True)
    def _schema(self, postgres_url: str) -> None:
        self._url = postgres_url

    async def make_store(self, folder: Path) -> EventStore:  # noqa: ARG002 - the schema is its place
        """Make a store in a schema of its own."""
        return await PostgresStore.open(self._url)

    async def open_again(self, folder: Path) -> EventStore | None:  # noqa: ARG002 - as above
        """Open the schema once more."""
        return await PostgresStore.open(self._url)

    async def restore(self, folder: Path, copy: Path) -> EventStore | None:  # noqa: ARG002 - `pg_dump` is the server's
        """Return nothing: a server's backups are made with its own tools."""
        return None
