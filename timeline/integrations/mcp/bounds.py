"""Standard input, line by line: a line is bounded before anything of it is read as JSON, and need not be waited for."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from threading import Thread
from typing import TYPE_CHECKING, Final, Self

from timeline.integrations.http_bounds import MOST_BYTES

if TYPE_CHECKING:
    from typing import BinaryIO

_PART: Final = 64 * 1024
_CUT: Final = "\0cut"
"""The end of a line that was cut: no JSON has a NUL."""


class BoundedLines:
    """Standard input, line by line; of a line that is too long only its ends, marked as cut, which name its request."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw

    def __aiter__(self) -> Self:
        """Iterate over the lines."""
        return self

    async def __anext__(self) -> str:
        """Return the next line, as soon as there is one.

        A daemon thread reads it: no other kind can be left to itself, where a server ends while its client is silent.
        """
        read: Future[str] = Future()
        read.set_running_or_notify_cancel()  # so that the thread may set it, even if nobody waits for it any more
        Thread(target=self._read_into, args=(read,), name="timeline-mcp-line", daemon=True).start()
        if line := await asyncio.wrap_future(read):
            return line
        raise StopAsyncIteration

    def _read_into(self, read: Future[str]) -> None:
        try:
            read.set_result(self.readline())
        except BaseException as error:  # noqa: BLE001 - it is raised where the line is waited for
            read.set_exception(error)

    def readline(self) -> str:
        """Return the next line; empty at the end of the input."""
        line = self._raw.readline(MOST_BYTES + 1)
        if len(line) <= MOST_BYTES:
            return line.decode("utf-8", errors="replace")
        while (part := self._raw.readline(_PART)) and not part.endswith(b"\n"):
            pass
        return line[:_PART].decode("utf-8", errors="replace") + _CUT + "\n"


def is_cut(line: str) -> bool:
    """Return whether a line is one that was too long."""
    return line.rstrip("\n").endswith(_CUT)
