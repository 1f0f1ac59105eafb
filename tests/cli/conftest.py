from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli import sessions
from timeline.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Done:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, read as JSON."""
        return json.loads(self.out)

    def fails(self, code: int, *words: str) -> None:
        """Assert that it failed as people expect: a code, one line on standard error, no traceback, no output."""
        assert self.code == code, self.err
        assert self.err.startswith("timeline: ")
        assert self.err.count("\n") == 1
        assert "Traceback" not in self.err
        assert not [word for word in words if word not in self.err], self.err


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Name a database that does not exist yet, as the environment does for every command of a test."""
    file = tmp_path / "db" / "timeline.db"
    file.parent.mkdir()
    monkeypatch.setenv("TIMELINE_DB", str(file))
    return file


@pytest.fixture
def run(db: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Give a function that runs a command and returns its exit code and what it printed."""
    assert not db.exists()

    def run_(*words: object) -> Done:
        code = main([str(word) for word in words])
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return run_


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Write a small session."""
    return sessions.write(tmp_path)


@pytest.fixture
def simulated(run: Callable[..., Done], recording: Path) -> dict[str, Any]:
    """Simulate the small session under a limit that makes it compact; return the report."""
    done = run("simulate", recording, "--policy", "cut_point", "--max-tokens", 1500, "--json")
    assert done.code == 0, done.err
    report: dict[str, Any] = done.json
    assert report["compactions"] >= 2
    return report


@pytest.fixture
def command() -> list[str]:
    """Give the words that run the command in a process of its own."""
    return [sys.executable, "-m", "timeline.cli"]
