"""What keeps tenants apart is examined as well: without it, everything else works as before."""

from __future__ import annotations

from typing import Final

import pytest

from tests.depth import DEPTH, Depth
from tests.postgres import PLACES, with_query
from tests.store.postgres.test_edited_rows import CATALOGUE, connected
from timeline import open_store
from timeline.ports import Finding
from timeline.store.testing import block_event

pytest.importorskip("asyncpg")

_OFF: Final = "its row level security is switched off"
_ANOTHER: Final = "its policy own_tenant is missing, or is another one"
BREAKS: Final = {
    "events": ("ALTER TABLE events DISABLE ROW LEVEL SECURITY", _OFF),
    "events_0": ("ALTER TABLE events_0 DISABLE ROW LEVEL SECURITY", _OFF),
    "facts": ("ALTER TABLE facts NO FORCE ROW LEVEL SECURITY", _OFF),
    "conversations": ("DROP POLICY own_tenant ON conversations", _ANOTHER),
    "events_1": ("DROP POLICY own_tenant ON events_1", _ANOTHER),
    "snapshots": ("ALTER POLICY own_tenant ON snapshots USING (true)", _ANOTHER),
    "bases": ("ALTER POLICY own_tenant ON bases TO CURRENT_USER", _ANOTHER),
    "erased": ("ALTER POLICY own_tenant ON erased WITH CHECK (true)", _ANOTHER),
}
"""By table, with what is found."""


# A server writes the conditions of its policies by itself, each version in its own way.
@pytest.mark.parametrize("postgres_url", PLACES[:2] if DEPTH is Depth.NIGHT else PLACES[:1], indirect=True)
async def test_a_table_that_keeps_tenants_apart_no_longer_is_found_and_mended(postgres_url: str) -> None:
    """Partitions as well: they are tables of their own. The table of searches binds its owner by no policy."""
    url = with_query(postgres_url, partitions="2")
    async with open_store(url) as store, connected(postgres_url) as connection:
        await store.append("c", [block_event("one")])
        catalogue = await connection.fetch(CATALOGUE)
        assert await store.examine() == []
        for table, (statement, problem) in BREAKS.items():
            await connection.execute(statement)
            text = f"the table {table} does not keep tenants apart: {problem}"
            assert await store.examine() == [Finding("policies", text, derivable=True)]
            assert len(await store.mend()) == 1
            assert await store.examine() == []
        assert await connection.fetch(CATALOGUE) == catalogue
