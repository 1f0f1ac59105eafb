from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import asyncpg
import pytest

from tests.depth import full_depth
from tests.postgres import Postgres, direct_url, with_query, without
from tests.store.postgres.test_contract import TestPostgresStore as _OnPostgres

if TYPE_CHECKING:
    from tests.postgres_server import Server

ROLE = "timeline_member"
MAKE_ROLE = f"""
SELECT pg_advisory_lock(7);
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{ROLE}') THEN
        CREATE ROLE {ROLE} LOGIN;
        EXECUTE format('GRANT CREATE ON DATABASE %I TO {ROLE}', current_database());
    END IF;
END $$;
SELECT pg_advisory_unlock(7);
"""  # noqa: S608 - a constant name


class _Elsewhere(_OnPostgres):
    in_part: ClassVar[bool] = True


@full_depth
class TestNewest(_Elsewhere):
    """The contract on the newest version that the machine has."""

    postgres: ClassVar[Postgres] = Postgres("newest")


@full_depth
class TestPooled(_Elsewhere):
    """The contract behind pgbouncer, which gives each transaction another connection."""

    postgres: ClassVar[Postgres] = Postgres(pooled=True)


@full_depth
class TestPartitioned(_Elsewhere):
    """The contract where the events are spread over partitions."""

    @pytest.fixture(autouse=True)
    def _schema(self, postgres_url: str) -> None:
        self._url = with_query(postgres_url, partitions="4")


@full_depth
class TestTenant(_Elsewhere):
    """The contract for a tenant's role, which sees by the policies alone."""

    @pytest.fixture(autouse=True)
    async def _schema(self, postgres_url: str) -> None:
        connection = await asyncpg.connect(without(direct_url(), "schema"))
        try:
            await connection.execute(MAKE_ROLE)
        finally:
            await connection.close()
        self._url = self.like(postgres_url)

    async def prepare(self, other: Server) -> None:
        """Make the role there, too."""
        connection = await asyncpg.connect(other.url())
        await connection.execute(MAKE_ROLE)
        await connection.close()

    def like(self, url: str) -> str:
        """Return the URL for the tenant's role."""
        return with_query(f"postgresql://{ROLE}@{url.partition('@')[2]}", tenant="7")
