"""A process that runs another release of this library: a copy of it in which a preset has other figures.

It speaks JSON, a line for a command and a line for its answer, see `tests.policy_player`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, Self

ROOT: Final = Path(__file__).resolve().parents[1]
_PLAYER: Final = Path(__file__).with_name("policy_player.py")
_BEFORE: Final = ("@preset(release=2)\ndef balanced(", '"compact_when_cold": 0.3, "target": 0.6')
_AFTER: Final = ("@preset(release=3)\ndef balanced(", '"compact_when_cold": 0.4, "target": 0.75')


def copy_release(folder: Path) -> None:
    """Copy the library into a folder, with a later release of `balanced`."""
    for package in ("timeline", "store", "summarizers"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / "timeline" / "policy" / "ours.py"
    text = file.read_text(encoding="utf-8")
    for before, after in zip(_BEFORE, _AFTER, strict=True):
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    file.write_text(text, encoding="utf-8")


class OtherRelease:
    """The process. Enter it to start it; leaving it ends it."""

    def __init__(self, folder: Path) -> None:
        copy_release(folder)
        self._folder = folder
        self._process: subprocess.Popen[str]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, str(_PLAYER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self._folder,
            env={**os.environ, "PYTHONPATH": str(self._folder)},
        )
        assert Path(self.do(do="where")["where"]).is_relative_to(self._folder)
        return self

    def __exit__(self, *error: object) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(30)

    def do(self, **command: Any) -> dict[str, Any]:
        """Send a command and return its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(command)}\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer
