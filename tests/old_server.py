"""A server that says that it is of another version: a proxy in front of a real one, which rewrites what it reports."""

from __future__ import annotations

import asyncio
import struct
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_SOCKET = ".s.PGSQL.5432"


@asynccontextmanager
async def reporting(version: str, server: Path) -> AsyncIterator[Path]:
    """Listen for the server that listens in a folder, and give the folder in which to reach it this way.

    It is no test's own folder: with the name of its test in it, the path would be too long for a socket.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_unix_connection(str(server / _SOCKET))
        with suppress(OSError, asyncio.IncompleteReadError):
            await asyncio.gather(_passed(reader, to_server), _reported(from_server, writer, version))
        for each in (to_server, writer):
            each.close()

    with TemporaryDirectory(prefix="timeline-pg-") as folder:
        async with await asyncio.start_unix_server(serve, Path(folder) / _SOCKET):
            yield Path(folder)


async def _passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def _reported(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, version: str) -> None:
    """Pass the server's messages on, with another value of the parameter ``server_version``."""
    while True:
        kind, length = struct.unpack("!cI", await reader.readexactly(5))
        body = await reader.readexactly(length - 4)
        if kind == b"S" and body.startswith(b"server_version\0"):
            body = b"server_version\0" + version.encode() + b"\0"
        writer.write(kind + struct.pack("!I", len(body) + 4) + body)
        await writer.drain()
