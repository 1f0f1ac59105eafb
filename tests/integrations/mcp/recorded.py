"""A database with recorded conversations, and clients of a server over it."""

from __future__ import annotations

import json
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp import Client, StdioServerParameters, stdio_client

from tests.scenes import AT, after, small_policy, words
from timeline import Timeline, open_store
from timeline.blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt
from timeline.integrations.mcp.server import build_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anyio.abc import Process

LONG = "".join(f"line {number} of the report\n" for number in range(3_000))
"""About 20,000 tokens."""


async def record(db: Path, conversation: str = "work", *, rounds: int = 24, title: str = "Fix the login") -> None:
    """Record a conversation that is compacted several times under a limit of 1,500."""
    async with open_store(db) as store:
        timeline = await Timeline.open(store, conversation, policy=small_policy(max_tokens=1_500), title=title, now=AT)
        await timeline.append(UserPrompt(text="Make the login test pass"), now=AT)
        for number in range(rounds):
            ran, wrote = f"run_{number}", f"edit_{number}"
            await timeline.append(
                ToolCall(call_id=ran, name="bash", arguments={"command": f"pytest tests/test_{number}.py"}),
                ToolResult(call_id=ran, text=f"E  assert {number} == 0\n{words(60)}", is_error=True),
                ToolCall(call_id=wrote, name="edit", arguments={"file_path": f"src/part_{number}.py"}),
                ToolResult(call_id=wrote, text=f"edited {words(60)}"),
                AssistantCompletion(text=f"Part {number} is mended."),
                now=after(number),
            )
            await timeline.render(now=after(number))


@asynccontextmanager
async def asking(db: Path, **options: Any) -> AsyncIterator[Client]:
    """Give a client of a server in this process, over a database that is open for reading."""
    async with open_store(db, readonly=True) as store, Client(build_server(store, **options)) as client:
        yield client


@asynccontextmanager
async def asking_process(db: Path, *options: str) -> AsyncIterator[Client]:
    """Give a client of `timeline mcp` in a process of its own, on its standard input and output."""
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "timeline.cli", "mcp", "--db", str(db), *options], env=dict(os.environ)
    )
    async with Client(stdio_client(command)) as client:
        yield client


async def ask(client: Client, tool_name: str, /, **arguments: Any) -> dict[str, Any]:
    """Ask, and return the structured answer."""
    result = await client.call_tool(tool_name, arguments)
    assert not result.is_error, result.content
    told: dict[str, Any] = result.structured_content
    return told


async def text_of(client: Client, tool_name: str, /, **arguments: Any) -> str:
    """Ask, and return the text that a model reads."""
    return said(await client.call_tool(tool_name, arguments))


def said(result: Any) -> str:
    """Return the text of a result, which has no other content."""
    (part,) = result.content
    assert part.type == "text"
    return str(part.text)


class Wire:
    """The standard input and output of `timeline mcp` in a process of its own, line by line, without a client."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._sends = process.stdin
        self._lines = BufferedByteReceiveStream(process.stdout)

    async def send(self, line: str) -> None:
        """Send one line."""
        await self._sends.send(f"{line}\n".encode())

    async def send_parts(self, begin: str, part: str, times: int) -> None:
        """Send the beginning of a line, and a part of it again and again."""
        await self._sends.send(begin.encode())
        for _ in range(times):
            await self._sends.send(part.encode())

    def peak(self) -> int:
        """Return the most bytes of memory that the process ever had (Linux)."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        return 0

    async def ask(self, line: str) -> dict[str, Any]:
        """Send one line, and return the next answer: within ten seconds, or fail."""
        await self.send(line)
        with anyio.fail_after(10):
            answer: dict[str, Any] = json.loads(await self._lines.receive_until(b"\n", 10_000_000))
        return answer

    async def begin(self) -> None:
        """Shake hands."""
        told = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        with anyio.fail_after(60):
            await self.send(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": told}))
            await self._lines.receive_until(b"\n", 10_000_000)
        await self.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))


@asynccontextmanager
async def wire(db: Path) -> AsyncIterator[Wire]:
    """Give the wire of a server that was greeted; it ends by itself, and has written nothing to standard error."""
    command = [sys.executable, "-m", "timeline.cli", "mcp", "--db", str(db)]
    async with await anyio.open_process(command) as process:
        opened = Wire(process)
        await opened.begin()
        yield opened
        assert process.stdin is not None
        assert process.stderr is not None
        await process.stdin.aclose()
        assert [part async for part in process.stderr] == []
        assert await process.wait() == 0
