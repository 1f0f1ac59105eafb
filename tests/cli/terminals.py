"""Run commands one after another in a process of its own, on a real pseudo-terminal or into pipes."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.cells import cell_len

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

COLUMNS: Final = 80
_OURS: Final = re.compile(r"\x1b\[(?:0|1|2|3[0-7]|9[0-7])m")
"""The codes of our own colours and styles."""
_BETWEEN: Final = "=-=-=-=-="
_PROGRAM: Final = f"""
import json, sys
from timeline.cli import main
for words in json.loads(sys.argv[1]):
    code = main(words)
    for stream in (sys.stdout, sys.stderr):
        print("{_BETWEEN}", code, file=stream, flush=True)
"""


class Shown(NamedTuple):
    """What a command wrote: exit code and output, with our own colours taken out."""

    code: int
    text: str

    @property
    def too_wide(self) -> list[str]:
        """The lines that are wider than the terminal."""
        return [line for line in self.text.splitlines() if cell_len(line) > COLUMNS]


def on_terminal(commands: Sequence[Sequence[object]], db: Path, cwd: Path) -> list[Shown]:
    """Run commands with a terminal of 80 columns as their standard output."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    with subprocess.Popen(
        _line(commands), stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.DEVNULL, cwd=cwd, env=_of(db)
    ) as process:
        os.close(theirs)
        read = bytearray()
        try:
            while part := os.read(ours, 65536):
                read += part
        except OSError as error:
            if error.errno != errno.EIO:  # how Linux reports that the other end is closed
                raise
        assert process.wait() == 0
    os.close(ours)
    return _parted(_OURS.sub("", read.decode("utf-8").replace("\r\n", "\n")), len(commands))


def into_pipes(commands: Sequence[Sequence[object]], db: Path, cwd: Path) -> list[Shown]:
    """Run commands with pipes as their standard output and error; return both texts of each."""
    done = subprocess.run(_line(commands), capture_output=True, cwd=cwd, env=_of(db, TIMELINE_DEBUG="1"), check=True)
    parts = (_parted(stream.decode("utf-8"), len(commands)) for stream in (done.stdout, done.stderr))
    return [Shown(out.code, out.text + err.text) for out, err in zip(*parts, strict=True)]


def _line(commands: Sequence[Sequence[object]]) -> list[str]:
    return [sys.executable, "-c", _PROGRAM, json.dumps([[str(word) for word in words] for words in commands])]


def _of(db: Path, **more: str) -> dict[str, str]:
    left = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "COLUMNS", "LINES", "TIMELINE_DB"}}
    return {**left, "TERM": "xterm-256color", "TIMELINE_DB": str(db), "PYTHONIOENCODING": "utf-8", **more}


def _parted(text: str, commands: int) -> list[Shown]:
    *parts, rest = re.split(rf"{_BETWEEN} (\d+)\n", text)
    assert rest == ""
    shown = [Shown(int(code), part) for part, code in zip(parts[::2], parts[1::2], strict=True)]
    assert len(shown) == commands
    return shown
