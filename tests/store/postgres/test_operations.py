"""The statements that docs/postgres has an administrator type, on the oldest and the newest server."""

from __future__ import annotations

import re

import asyncpg
import pytest

from tests.postgres import PLACES, schema_of, with_query, without
from tests.project.pages import code_blocks
from tests.project.sources import ROOT
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import events

PAGES = ("quickstart.md", "operations.md")
NOT_WITHIN_ANOTHER = re.compile(r"^CREATE DATABASE [^;]*;$| CONCURRENTLY\b", re.MULTILINE)
"""What no transaction takes that is rolled back at its end."""


@pytest.mark.parametrize("postgres_url", PLACES[:2], indirect=True)
async def test_the_statements_of_the_pages_for_administrators_run_on_a_store(postgres_url: str) -> None:
    """Each view, column and setting is one of that version; the roles of the pages are gone behind it."""
    async with await PostgresStore.open(postgres_url) as store:
        await store.append("a", events(1))
    text = "\n".join((ROOT / "docs" / "postgres" / page).read_text(encoding="utf-8") for page in PAGES)
    typed = "\n".join(block.text for block in code_blocks(text) if block.language == "sql")
    typed = re.sub(r"\btimeline\b", schema_of(postgres_url), NOT_WITHIN_ANOTHER.sub("", typed))
    connection = await asyncpg.connect(without(postgres_url, "schema"))
    try:
        typing = connection.transaction()
        await typing.start()
        await connection.execute(typed)
        may = "SELECT has_table_privilege('timeline_reader', $1, right_) FROM unnest($2::text[]) AS t (right_)"
        rights = await connection.fetch(may, f"{schema_of(postgres_url)}.events", ["SELECT", "INSERT"])
        await typing.rollback()
    finally:
        await connection.close()
    assert [right for (right,) in rights] == [True, False]


async def test_each_table_and_partition_has_a_primary_key(postgres_url: str) -> None:
    """Logical replication names by it the rows that it updates and deletes; a table without one takes neither."""
    keyless = (
        "SELECT c.relname FROM pg_class AS c WHERE c.relnamespace = $1::text::regnamespace AND c.relkind = 'r'"
        " AND NOT EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = c.oid AND i.indisprimary)"
    )
    async with await PostgresStore.open(with_query(postgres_url, partitions="2")):
        connection = await asyncpg.connect(without(postgres_url, "schema"))
        try:
            assert await connection.fetch(keyless, schema_of(postgres_url)) == []
        finally:
            await connection.close()
