from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client

from tests.downgrade import before_digest_rows
from timeline import open_store
from timeline.cli.exits import Exit
from timeline.integrations.mcp.server import build_server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done

pytestmark = pytest.mark.usefixtures("simulated")


def test_a_missing_database_is_told_before_anything_is_served(run: Callable[..., Done], tmp_path: Path) -> None:
    """On standard error: standard output belongs to the protocol."""
    run("mcp", "--db", tmp_path / "none.db").fails(Exit.DATABASE, "there is no database")


def test_a_database_of_an_earlier_version_is_not_brought_up_to_date(run: Callable[..., Done], db: Path) -> None:
    """That would change it; the line says how a person does it."""
    before_digest_rows(db)
    before = db.read_bytes()
    run("mcp").fails(Exit.DATABASE, "only read", f"timeline ls --db {db}")
    assert db.read_bytes() == before


async def test_the_help_names_every_tool(run: Callable[..., Done]) -> None:
    """It named four of them long after there were six."""
    async with open_store("memory://") as store, Client(build_server(store)) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
    told = " ".join((await asyncio.to_thread(run, "mcp", "--help")).out.split())
    assert f"{', '.join(names[:-1])} and {names[-1]}." in told


def test_a_port_in_use_is_one_line(run: Callable[..., Done]) -> None:
    """It says what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        run("mcp", "--http", taken.getsockname()[1]).fails(Exit.USAGE, "Choose another port")


def test_a_token_that_can_be_guessed_is_refused(run: Callable[..., Done]) -> None:
    """Before anything is served."""
    run("mcp", "--http", "0", "--token", "secret").fails(Exit.USAGE, "16 printable ASCII characters")


def test_without_the_extra_the_command_names_it(db: Path) -> None:
    """In one line, in a process where it is not installed."""
    program = "import sys; sys.modules['mcp'] = None; from timeline.cli import main; sys.exit(main())"
    command: list[Any] = [sys.executable, "-c", program, "mcp", "--db", db]
    done = subprocess.run(command, input="", capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (Exit.USAGE, "")
    assert done.stderr == "timeline: mcp is not installed. Install it with: pip install 'timeline-engine[mcp]'\n"
