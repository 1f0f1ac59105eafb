from __future__ import annotations

import json
import shutil
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
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


@pytest.fixture(scope="session")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Simulate the small session under a limit that makes it compact; return the database and the report."""
    folder = tmp_path_factory.mktemp("simulated")
    file, said = folder / "timeline.db", StringIO()
    words = ("simulate", sessions.write(folder), "--policy", "cut_point", "--max-tokens", 1500, "--json", "--db", file)
    with redirect_stdout(said):
        assert main([str(word) for word in words]) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["session.jsonl", file.name]  # no log beside the database
    return file, said.getvalue()


@pytest.fixture
def simulated(run: Callable[..., Done], db: Path, simulation: tuple[Path, str]) -> dict[str, Any]:
    """Begin with the simulated session in the database; return the report."""
    del run  # it looks at a database that is not there yet
    file, said = simulation
    shutil.copyfile(file, db)
    report: dict[str, Any] = json.loads(said)
    assert report["compactions"] >= 2
    return report


@pytest.fixture
def command() -> list[str]:
    """Give the words that run the command in a process of its own."""
    return [sys.executable, "-m", "timeline.cli"]
