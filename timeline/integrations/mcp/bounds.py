"""Bounds of a line of standard input, before anything of it is read as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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
