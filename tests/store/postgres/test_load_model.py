"""What a model call costs a server, as docs/scale.md counts it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.load_model import load, measured
from tests.soak import steps_of
from timeline.store.postgres.store import PostgresStore

if TYPE_CHECKING:
    from tests.postgres_server import Server


async def test_every_byte_that_a_call_adds_is_counted(own_postgres: Server) -> None:
    """The log of the server holds what its tables and indexes do, and a payload is in a table."""
    url = own_postgres.url(schema="load_model")
    await (await PostgresStore.open(url)).aclose()
    by_call = await measured(url, "load_model", steps_of([])[:2])
    assert by_call["calls"] > 100
    assert by_call["events"] >= 3
    assert by_call["wal"] > by_call["indexes"]
    assert by_call["wal"] > by_call["tables"] / 2


def test_agents_at_work_multiply_what_a_call_adds() -> None:
    """A call every ten seconds."""
    by_call = {"events": 4.0, "tables": 6_000.0, "indexes": 1_000.0, "wal": 9_000.0}
    assert load(by_call, 1_000) == {
        "agents": 1_000,
        "events_per_second": 400,
        "stored_gb_per_day": 60.5,
        "wal_gb_per_day": 77.8,
    }
