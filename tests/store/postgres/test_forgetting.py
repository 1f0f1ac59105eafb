"""Whatever is done to conversations on a server, no row, file or sample of its tables holds what was forgotten."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.forgetting import test_machine
from tests.forgetting.words import plain
from tests.invariants.playing import search
from tests.postgres import new_schema, schema_of, without
from timeline.store import open_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

asyncpg = pytest.importorskip("asyncpg")

_TABLES: Final = "SELECT tablename FROM pg_tables WHERE schemaname = $1"
_SAMPLES: Final = (
    "SELECT concat(most_common_vals, histogram_bounds, most_common_elems) FROM pg_stats WHERE schemaname = $1"
)
_FILES: Final = (
    "WITH ours AS (SELECT oid, reltoastrelid FROM pg_class WHERE relnamespace = $1::regnamespace),"
    " whole AS (SELECT oid FROM ours UNION SELECT reltoastrelid FROM ours)"
    " SELECT pg_read_binary_file(pg_relation_filepath(oid)) FROM"
    " (SELECT oid FROM whole UNION SELECT indexrelid FROM pg_index WHERE indrelid IN (SELECT oid FROM whole)) AS every"
    " WHERE pg_relation_filepath(oid) IS NOT NULL"
)
"""Of tables, their indexes, and what lies beside them because it is long."""


class ForgettingOnServer(test_machine.Forgetting):
    """The same in a schema of its own, over the connections of two stores."""

    def __init__(self) -> None:
        super().__init__()
        self.place = AsyncExitStack()
        self.url = ""

    async def open_stores(self) -> None:
        """Open the store twice."""
        self.url = self.url or await self.place.enter_async_context(new_schema())
        self.store, self.beside = [await open_store(self.url).__aenter__() for _ in range(2)]

    async def stored(self) -> str:
        """Return what all columns hold, what the server sampled of them, and the files; let it sample again."""
        schema = schema_of(self.url)
        connection = await asyncpg.connect(without(self.url, "schema"))
        try:
            said = [plain(value) async for value in _values(connection, schema)]
            tables = [f'"{schema}"."{table}"' for (table,) in await connection.fetch(_TABLES, schema)]
            await connection.execute(f"ANALYZE {', '.join(tables)}")
        finally:
            await connection.close()
        return "\n".join(said).casefold()

    async def leave(self) -> None:
        """Drop the schema."""
        await self.place.aclose()


async def _values(connection: Any, schema: str) -> AsyncIterator[object]:
    for (table,) in await connection.fetch(_TABLES, schema):
        for row in await connection.fetch(f'SELECT * FROM "{schema}"."{table}"'):  # noqa: S608 - a name of the schema
            for value in row:
                yield value
    await connection.execute("CHECKPOINT")
    for statement in (_SAMPLES, _FILES):
        for (value,) in await connection.fetch(statement, schema):
            yield value


TestForgettingOnServer = ForgettingOnServer.TestCase
TestForgettingOnServer.settings = search(3, steps=15)
