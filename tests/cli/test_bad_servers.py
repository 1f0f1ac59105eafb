"""A server that does not do what a command needs: one line that says why and what to do, and no password."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import asyncpg
import pytest

from tests.old_server import reporting
from tests.postgres import with_query
from timeline import open_store
from timeline.cli.exits import Exit
from timeline.store.testing import events

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Done
    from tests.postgres_server import Server

PASSWORD: Final = "open-sesame"  # noqa: S105 - a wrong one
ROLES: Final = """
CREATE ROLE passworded;
CREATE ROLE locked LOGIN PASSWORD 'right' IN ROLE passworded;
CREATE ROLE stranger LOGIN;
CREATE ROLE looker LOGIN;
GRANT USAGE ON SCHEMA timeline TO looker;
CREATE ROLE reader LOGIN;
GRANT USAGE ON SCHEMA timeline TO reader;
GRANT SELECT ON ALL TABLES IN SCHEMA timeline TO reader;
CREATE ROLE writer LOGIN;
GRANT USAGE ON SCHEMA timeline TO writer;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA timeline TO writer;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA timeline TO writer;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA timeline TO writer;
"""
READS: Final = (("ls",), ("render", "a"), ("search", "hello"))
WRITES: Final = (("hide", "a@1"), ("erase", "a", "--yes"), ("redact", "a", "@1", "--yes"))
LACKS: Final = "the role lacks a right"


@pytest.fixture
async def server(own_postgres: Server) -> str:
    """Make a store with a conversation, and roles; return the URL of its owner."""
    url = own_postgres.url(user=f"postgres:{PASSWORD}")
    async with open_store(url) as store:
        await store.append("a", events(3))
    connection = await asyncpg.connect(url)
    await connection.execute(ROLES)
    await connection.close()
    return url


async def test_each_command_says_in_one_line_what_is_wrong_with_a_server(
    run: Callable[..., Done], server: str, own_postgres: Server
) -> None:
    """A wrong password, roles without rights, a session that only reads, an old server, a new schema, one away."""

    async def fails(url: str, words: tuple[str, ...], *said: str) -> None:
        done = await asyncio.to_thread(run, *words, "--db", url)
        done.fails(Exit.DATABASE, *said)
        assert PASSWORD not in done.out + done.err

    def as_role(role: str) -> str:
        return server.replace("postgres:", f"{role}:", 1)

    for words in (*READS, *WRITES, ("migrate",)):
        await fails(as_role("locked"), words, "refused the role or its password")
        await fails(as_role("stranger"), words, LACKS, "USAGE on the schema")
        await fails(as_role("looker"), words, LACKS, "SELECT")
    for words in READS:
        assert (await asyncio.to_thread(run, *words, "--db", as_role("reader"))).code == 0
    for words in WRITES:
        await fails(as_role("reader"), words, LACKS, "INSERT, UPDATE and DELETE")
        reads = with_query(server, default_transaction_read_only="on")
        await fails(reads, words, "may only read", "Nothing was", "turn default_transaction_read_only off")
    await fails(with_query(as_role("stranger"), schema="another"), ("undo", "a"), "may not be changed", "migrate --db")
    async with reporting("9.6.24", own_postgres.folder) as folder:
        await fails(with_query(server, host=str(folder)), ("ls",), "is PostgreSQL 9.6", "needs 15 or later")
    connection = await asyncpg.connect(server)
    await connection.execute("INSERT INTO timeline.migrations (number, name) VALUES (99, 'later')")
    await connection.close()
    await fails(server, ("ls",), "later version of timeline-engine", "Upgrade")
    await asyncio.to_thread(own_postgres.stop)
    await fails(server, ("ls",), "the server cannot be reached", "try again")


async def test_a_redaction_by_a_role_that_owns_no_table_says_what_the_owner_has_to_run(
    run: Callable[..., Done], server: str
) -> None:
    """And nothing that only a file has: to run it again helps nobody before that."""
    url = server.replace("postgres:", "writer:", 1)
    done = await asyncio.to_thread(run, "redact", "a", "@1", "--reason", "leaked", "--yes", "--db", url)
    assert done.code == Exit.NOT_SO  # the bytes are still there
    assert "Have the owner run VACUUM (FULL)" in done.out
    assert "the file's free pages" not in done.out
