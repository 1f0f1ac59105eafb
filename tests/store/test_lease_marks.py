"""Marks beside a database: a lease counts as left behind where its holder is known to have ended, and only there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import pytest

from tests.crowd import ROOT
from timeline.store.sqlite.lease_marks import holder_died, mark

if TYPE_CHECKING:
    from pathlib import Path

AT: Final = datetime(2026, 1, 1, tzinfo=UTC)


def test_who_holds_a_mark_lives(tmp_path: Path) -> None:
    """Its end leaves nothing."""
    held = mark(tmp_path / "agent.db", "cards")
    held.name(3, AT)
    assert not holder_died(tmp_path / "agent.db", "cards", 3, AT)
    held.close()
    assert not holder_died(tmp_path / "agent.db", "cards", 3, AT)
    assert not list(tmp_path.iterdir())


def test_a_mark_that_nobody_holds_speaks_of_its_own_lease_alone(tmp_path: Path) -> None:
    """A later lease may be that of a program without marks, or of another machine."""
    held = mark(tmp_path / "agent.db", "cards")
    held.name(3, AT)
    [file] = tmp_path.iterdir()
    content = file.read_bytes()
    held.close()
    file.write_bytes(content)  # as a kill leaves it
    assert holder_died(tmp_path / "agent.db", "cards", 3, AT)
    assert not holder_died(tmp_path / "agent.db", "cards", 4, AT)
    assert not holder_died(tmp_path / "agent.db", "cards", 3, AT + timedelta(days=1))  # of a restored backup
    assert not holder_died(tmp_path / "agent.db", "notes", 3, AT)


def test_a_mark_that_is_named_again_speaks_of_the_last_lease(tmp_path: Path) -> None:
    """Who asks for a lease names it first, and names another one where somebody else's append came before it."""
    held = mark(tmp_path / "agent.db", "cards")
    held.name(10, AT)
    held.name(9, AT)
    assert next(tmp_path.iterdir()).read_bytes() == b"9 2026-01-01T00:00:00.000000Z"
    held.close()


def test_who_finds_a_mark_held_has_none_and_leaves_it_alone(tmp_path: Path) -> None:
    """A slow process still holds it although its lease expired."""
    held = mark(tmp_path / "agent.db", "cards")
    held.name(3, AT)
    second = mark(tmp_path / "agent.db", "cards")
    second.name(9, AT)
    second.close()
    assert next(tmp_path.iterdir()).read_bytes() == b"3 2026-01-01T00:00:00.000000Z"
    held.close()


FORKED: Final = """
import os, sys, time
from pathlib import Path
from tests.store.test_lease_marks import AT
from timeline.store.sqlite.lease_marks import mark

held = mark(Path(sys.argv[1]), "cards")
held.name(3, AT)
if not os.fork():
    held.close()  # as the compaction does that the fork has in its memory
    print("forked", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no forks")
def test_a_mark_ends_with_its_process_and_not_with_a_fork_of_it(tmp_path: Path) -> None:
    """Workers of a pool may outlive the program that was killed, and one that ends takes nothing with it."""
    command = [sys.executable, "-c", FORKED, str(tmp_path / "agent.db")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True) as parent:
        assert parent.stdout is not None
        try:
            assert parent.stdout.readline() == "forked\n"
            assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"3 2026-01-01T00:00:00.000000Z"]
            assert not holder_died(tmp_path / "agent.db", "cards", 3, AT)
            parent.kill()
            parent.wait()
            assert holder_died(tmp_path / "agent.db", "cards", 3, AT)
        finally:
            os.killpg(parent.pid, signal.SIGKILL)
