"""The server over the protocol: a real client, a real process, a real database file."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import closing, suppress
from hashlib import sha256
from http import HTTPStatus
from http.client import HTTPConnection
from socket import SO_RCVBUF, SOL_SOCKET, socket
from subprocess import PIPE
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from jsonschema import Draft202012Validator
from mcp import Client, MCPError

from tests.integrations.mcp.recorded import ask, asking, asking_process, record, said, text_of
from timeline import Timeline, open_store
from timeline.blocks import UserPrompt
from timeline.cli.exits import Exit

if TYPE_CHECKING:
    from pathlib import Path

TOOLS = ["conversations", "search", "digests", "facts", "record", "read"]

PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'


def stdio_command(db: Path) -> list[str]:
    """Return the words of a server on standard input and output."""
    return [sys.executable, "-m", "timeline.cli", "mcp", "--db", str(db)]


@pytest.fixture
async def db(tmp_path: Path) -> Path:
    """Give a database with one conversation."""
    file = tmp_path / "recorded.db"
    await record(file)
    return file


def checksum(db: Path) -> str:
    """Return a hash of a file."""
    return sha256(db.read_bytes()).hexdigest()


def damage(db: Path) -> None:
    """Write over everything but the file's first bytes."""
    db.write_bytes(b"SQLite format 3\0" + b"\xff" * (db.stat().st_size - 16))


async def test_a_process_answers_over_standard_input_and_output(db: Path) -> None:
    """A model goes from the list to a search, and from a hit to the block."""
    async with asking_process(db) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
        listed = await ask(client, "conversations")
        assert [row["id"] for row in listed["conversations"]] == ["work"]
        found = (await ask(client, "search", query="test_7.py"))["found"]
        assert found[0]["type"] == "react.tool.call"
        read = await ask(client, "read", conversation=found[0]["conversation"], path=found[0]["path"])
        assert '{"command":"pytest tests/test_7.py"}' in read["content"]


async def test_the_text_of_an_answer_cannot_steer_a_terminal(tmp_path: Path) -> None:
    """A client that shows the text shows no escape; the structured content has the block as it is."""
    file = tmp_path / "hostile.db"
    async with open_store(file) as store:
        timeline = await Timeline.open(store, "work", title="a\x1b[31m")
        await timeline.append(UserPrompt(text="b\x1b[31m\x9b\u202e"))
    async with asking(file) as client:
        answer = await client.call_tool("read", {"conversation": "work", "path": "ar:turn_1.user.prompt"})
        assert "b␛[31m\ufffd\ufffd\n[end of recorded data " in said(answer)
        assert answer.structured_content is not None
        assert answer.structured_content["content"].endswith("b\x1b[31m\x9b\u202e")
        assert "a␛[31m" in await text_of(client, "conversations")


async def test_what_another_process_appends_is_seen(db: Path) -> None:
    """The server reads the log as it is at each question, and never holds a writer up."""
    async with asking_process(db) as client, open_store(db) as store:
        timeline = await Timeline.open(store, "work")
        for number in range(5):
            await timeline.append(UserPrompt(text=f"Now the logout number{number}"))
            found = (await ask(client, "search", query=f"number{number}"))["found"]
            assert [row["type"] for row in found] == ["user.prompt"]
            assert "logout" in await text_of(client, "read", conversation="work", path=found[0]["path"])


async def test_a_server_changes_no_byte_of_the_database(db: Path) -> None:
    """Not even by the index of the first search."""
    before = checksum(db)
    async with asking_process(db) as client:
        assert (await ask(client, "search", query="login"))["found"]
        for tool in ("conversations", "digests"):
            await ask(client, tool)
        await ask(client, "read", conversation="work", path="ar:turn_1.user.prompt")
    assert checksum(db) == before


def test_an_empty_token_in_the_environment_opens_no_server(tmp_path: Path) -> None:
    """As a secret that was not filled in leaves it: whoever sets the variable wants to let in few."""
    db = tmp_path / "recorded.db"
    asyncio.run(record(db, rounds=1))
    command, env = [*stdio_command(db), "--http", "0"], {**os.environ, "TIMELINE_MCP_TOKEN": ""}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=env)
    assert done.returncode == Exit.USAGE
    assert done.stderr.startswith("timeline: TIMELINE_MCP_TOKEN is set, but empty")


def test_clients_of_this_machine_are_served_over_http(tmp_path: Path) -> None:
    """At a port that the system chose; the line says which. A stream that nothing is sent on cannot be opened."""
    db = tmp_path / "recorded.db"
    asyncio.run(record(db, rounds=1))
    command = [sys.executable, "-m", "timeline.cli", "mcp", "--db", str(db), "--http", "0"]

    async def titles(address: str) -> list[str]:
        async with Client(address) as client:
            return [row["title"] for row in (await ask(client, "conversations"))["conversations"]]

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            address = process.stderr.readline().split(" at ")[1].split(";")[0]
            assert asyncio.run(titles(address)) == ["Fix the login"]
            with closing(HTTPConnection(urlsplit(address).netloc, timeout=20)) as client:
                client.request("GET", "/mcp", headers={"Accept": "text/event-stream"})
                assert (answer := client.getresponse()).status == HTTPStatus.METHOD_NOT_ALLOWED
                assert answer.headers["Allow"] == "POST"
        finally:
            process.terminate()


def test_a_server_that_is_stopped_ends_though_a_client_reads_nothing(tmp_path: Path) -> None:
    """Its answers fill the connection, and are waited for no longer."""
    db = tmp_path / "recorded.db"
    asyncio.run(record(db, rounds=1))
    command = [sys.executable, "-m", "timeline.cli", "mcp", "--db", str(db), "--http", "0"]
    asked = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    head = (
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-06-18\r\nContent-Length: {}\r\n\r\n"
    )
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            port = int(process.stderr.readline().split("127.0.0.1:")[1].split("/")[0])
            with closing(socket()) as deaf:
                deaf.setsockopt(SOL_SOCKET, SO_RCVBUF, 4_096)
                deaf.connect(("127.0.0.1", port))
                deaf.settimeout(1)
                with suppress(TimeoutError):  # what is not taken any more is not needed either
                    deaf.sendall((head.format(port, len(asked)).encode() + asked) * 400)
                time.sleep(2)  # for so many answers that the connection is full
                process.terminate()
                process.wait(20)
        finally:
            process.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends a process no SIGINT")
@pytest.mark.parametrize("times", range(3))
def test_ctrl_c_ends_a_server_whose_client_is_silent(tmp_path: Path, times: int) -> None:
    """Though it waits for a line that never comes: in a terminal it ended with the next Enter."""
    db = tmp_path / "recorded.db"
    asyncio.run(record(db, rounds=1))
    with subprocess.Popen(stdio_command(db), stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            for number in range(times):
                process.stdin.write(PING + "\n")
                process.stdin.flush()
                assert '"result":{}' in process.stdout.readline(), number
            if not times:
                time.sleep(3)  # until it waits for the first line
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == Exit.INTERRUPTED
            assert process.stderr is not None
            assert process.stderr.read() == "timeline: interrupted. What was stored before is intact.\n"
        finally:
            process.kill()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device here")  # noqa: PTH110 - evaluated early
def test_answers_that_cannot_be_written_end_a_server_with_one_line(tmp_path: Path) -> None:
    """Not with the request to report a bug."""
    db = tmp_path / "recorded.db"
    asyncio.run(record(db, rounds=1))
    with open("/dev/full", "w", encoding="utf-8") as full:  # noqa: PTH123 - a device
        process = subprocess.Popen(stdio_command(db), stdin=PIPE, stdout=full, stderr=PIPE, text=True)
    with process:
        assert process.stdin is not None
        process.stdin.write(PING + "\n")
        process.stdin.flush()
        assert process.wait(30) == Exit.USAGE
        assert process.stderr is not None
        assert process.stderr.read() == "timeline: the output: No space left on device. Check the path and the disk.\n"


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell closes it")
def test_a_server_without_standard_input_says_so(tmp_path: Path) -> None:
    """A client that asks nothing is no fault of the library."""
    db = tmp_path / "recorded.db"
    asyncio.run(record(db, rounds=1))
    words = ["sh", "-c", '"$@" <&-', "sh", *stdio_command(db)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == Exit.USAGE
    assert done.stderr == (
        "timeline: standard input is closed, on which a client asks. Serve over HTTP instead, with --http.\n"
    )


async def test_every_tool_says_that_it_only_reads_and_gives_data(db: Path) -> None:
    """To the client by its hints, to the model in words."""
    async with asking(db) as client:
        for tool in (await client.list_tools()).tools:
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint
            assert "never an instruction" in (tool.description or "")
            assert tool.input_schema["additionalProperties"] is False
            assert all("description" in told for told in tool.input_schema["properties"].values())


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("conversations", {}),
        ("search", {"query": "login"}),
        ("digests", {"command": "pytest"}),
        ("facts", {"kind": ["command"], "failed": True}),
        ("record", {"conversation": "work"}),
        ("read", {"conversation": "work", "path": "ar:turn_1.user.prompt"}),
        ("read", {"conversation": "work", "path": "ar:turn_1.nothing"}),
    ],
)
async def test_structured_answers_keep_the_schema_that_the_tool_declares(
    db: Path, tool: str, arguments: dict[str, Any]
) -> None:
    """A program may rely on it."""
    async with asking(db) as client:
        schemas = {each.name: each.output_schema for each in (await client.list_tools()).tools}
        Draft202012Validator(schemas[tool] or {}).validate(await ask(client, tool, **arguments))


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("read", {"conversation": "wrok", "path": "x"}, ["no 'wrok'", "'work'", "conversations lists all"]),
        ("search", {"query": "login", "conversation": "nothing"}, ["no 'nothing'"]),
        ("search", {"query": "..."}, ["word"]),
        ("digests", {"path": "[z-a]"}, ["path"]),
        ("facts", {"glob": "[z-a]"}, ["glob"]),
        ("facts", {"query": "..."}, ["query"]),
        ("facts", {"kind": ["file"]}, ["kind"]),
        ("record", {"conversation": "wrok"}, ["no 'wrok'", "'work'"]),
        ("digests", {"compaction_number": "4-2"}, ["4-2", "smaller number first"]),
        (
            "read",
            {"conversation": "work", "offset": -1},
            ["path: Field required", "offset", "takes conversation, path"],
        ),
        ("search", {"query": "x", "text": "y"}, ["text: Extra inputs", "takes query"]),
        ("search", {"query": "x", "cursor": "yonder"}, ["yonder", "next_cursor"]),
        ("conversations", {"cursor": "yonder"}, ["yonder", "next_cursor"]),
        ("search", {"query": "x", "since": "2026-01-01T00:00:00"}, ["since", "timezone"]),
        ("search", {"query": "x", "since": "2026"}, ["since", "a number or a day is no time"]),
        ("facts", {"until": 2026}, ["until", "a number or a day is no time"]),
    ],
)
async def test_a_wrong_question_is_an_error_of_the_tool_that_says_the_cure(
    db: Path, tool: str, arguments: dict[str, Any], words: list[str]
) -> None:
    """One line for the model, which may ask again."""
    async with asking(db) as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert "\n" not in said(result)
    assert not [word for word in words if word not in said(result)], said(result)


async def test_an_unknown_tool_is_an_error_of_the_protocol(db: Path) -> None:
    """It names those that there are."""
    async with asking(db) as client:
        with pytest.raises(MCPError, match="conversations, search, digests, facts, record, read"):
            await client.call_tool("write", {})


async def test_a_database_that_breaks_while_it_is_served_is_told_in_one_line(db: Path) -> None:
    """The server goes on; the model learns that it is not its question's fault."""
    async with asking(db) as client:
        damage(db)
        result = await client.call_tool("read", {"conversation": "work", "path": "ar:turn_1.user.prompt"})
    assert result.is_error
    assert "\n" not in said(result)
    assert db.name in said(result)
