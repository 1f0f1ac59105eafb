from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.postgres import chosen, restored, schema_of
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import StoreContract

if TYPE_CHECKING:
    from pathlib import Path

    from tests.postgres_server import Server
    from timeline.ports import EventStore


class TestPostgresStore(StoreContract):
    """The PostgreSQL store keeps the contract."""

    every = 11
    every_of_scavenging = 97  # a shrink alone has some hundred

    @pytest.fixture(autouse=True)
    def _schema(self, postgres_url: str) -> None:
        self._url = postgres_url

    @pytest.fixture(autouse=True)
    def _elsewhere(self, request: pytest.FixtureRequest) -> None:
        self._request = request

    async def make_store(self, folder: Path) -> EventStore:  # noqa: ARG002 - the schema is its place
        """Make a store in a schema of its own."""
        return await PostgresStore.open(self._url)

    async def open_again(self, folder: Path) -> EventStore | None:  # noqa: ARG002 - as above
        """Open the schema once more."""
        return await PostgresStore.open(self._url)

    async def restore(self, folder: Path, copy: Path) -> EventStore | None:  # noqa: ARG002 - a server is the place
        """Dump the schema with the server's own tools, and restore it into another cluster."""
        other: Server = self._request.getfixturevalue("own_postgres")
        await self.prepare(other)
        there = await restored(schema_of(self._url), chosen(self._request), other)
        return await PostgresStore.open(self.like(there))

    async def prepare(self, other: Server) -> None:
        """Make what a dump of one schema does not hold: by default, there is nothing."""

    def like(self, url: str) -> str:
        """Return the URL of a restored schema, for the role and with the settings of the test."""
        return url
