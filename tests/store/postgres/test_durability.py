"""What ``durability`` is on a server: whether a commit waits for its disk."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import asyncpg
import pytest

from tests.postgres import PLACES, Postgres, direct_url, schema_of, without
from timeline import open_store
from timeline.store.testing import events
from timeline.store.testing.samples import versions

if TYPE_CHECKING:
    from tests.postgres_server import Server
    from timeline.store.durability import Durability

NOTES: Final = """
CREATE TABLE noted (setting text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO noted VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON conversations FOR EACH STATEMENT EXECUTE FUNCTION note()
"""


@pytest.mark.parametrize(("durability", "setting"), [("full", "on"), ("normal", "off")])
@pytest.mark.parametrize("postgres_url", [PLACES[0], PLACES[2]], indirect=True)
async def test_the_setting_is_in_force_in_every_write(postgres_url: str, durability: Durability, setting: str) -> None:
    """The server itself notes it, in the transactions that open conversations, append to them, and erase one."""
    own = {"search_path": schema_of(postgres_url)}
    async with open_store(postgres_url, durability=durability) as store:
        connection = await asyncpg.connect(without(direct_url(), "schema"), server_settings=own)
        await connection.execute(NOTES)
        await asyncio.gather(*(store.append(f"c{number}", events(1)) for number in range(3)))
        await store.append("c0", events(1))
        await store.append("alone", events(1))
        await store.erase("alone")
        noted = await connection.fetch("SELECT setting FROM noted")
        await connection.close()
    assert len(noted) >= 4
    assert {each for (each,) in noted} == {setting}


async def writes_late(server: Server) -> None:
    """Let a server keep what is committed without a wait to itself for a long time."""
    connection = await asyncpg.connect(server.url())
    await connection.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
    await connection.execute("SELECT pg_reload_conf()")
    await connection.close()


@pytest.mark.parametrize("own_postgres", [Postgres("oldest"), Postgres("newest")], ids=str, indirect=True)
async def test_a_new_store_is_on_the_disk_whatever_its_durability(own_postgres: Server) -> None:
    """A crash may take back appends, and not the tables that they are in."""
    await writes_late(own_postgres)
    async with open_store(own_postgres.url(), durability="normal") as store:
        await asyncio.to_thread(own_postgres.kill)
        await asyncio.to_thread(own_postgres.start)
        assert (await store.append("a", events(1))).version == 1


async def test_normal_may_lose_the_last_appends_in_a_crash_and_nothing_between(own_postgres: Server) -> None:
    """A tail may have seen what a crash takes back; what is left is whole, and the store goes on behind it."""
    await writes_late(own_postgres)
    async with open_store(own_postgres.url(), durability="normal") as store:
        for _ in range(50):
            await store.append("a", events(1))
        seen = [event.version async for event in store.read_all()]
        await asyncio.to_thread(own_postgres.kill)
        await asyncio.to_thread(own_postgres.start)
        left = await versions(store, "a") if [info async for info in store.conversations()] else []
        assert left == seen[: len(left)]
        assert len(left) < len(seen)
        assert (await store.append("a", events(1))).version == len(left) + 1
        assert await store.examine() == []
