from __future__ import annotations

import json
import tempfile
from typing import TYPE_CHECKING

from tests.wire.test_request_bodies import sent
from timeline.cli.checking import INVARIANTS
from timeline.cli.demo.script import steps
from timeline.importers import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from tests.cli.conftest import Done


def test_the_demo_shows_two_compactions_and_the_proof_in_one_screen(run: Callable[..., Done]) -> None:
    """A newcomer sees the window before and after, the summary, a block read back, and every invariant."""
    done = run("demo")
    lines = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 100
    assert "\x1b" not in done.out
    assert [line.split(",")[0] for line in lines if line.startswith("Compaction")] == ["Compaction 1", "Compaction 2"]
    assert "cut between two turns" in done.out
    assert "whose prompt is carried" in done.out
    assert "A covered block, read back in full" in done.out
    assert "contexts rebuilt byte for byte" in done.out
    proof = next(number for number, line in enumerate(lines) if line.startswith("Verified"))
    assert lines[proof + 1].split(", ") == ["  checksum", *list(INVARIANTS)[1:]]


def test_the_demo_is_the_same_every_time(run: Callable[..., Done]) -> None:
    """Nothing in it depends on the clock or on chance."""
    assert run("demo").out == run("demo").out
    assert list(steps()) == list(steps())


def test_the_demo_shows_what_each_call_was_sent(run: Callable[..., Done], tmp_path: Path) -> None:
    """The provider's own SDK sends the bodies that the log proves, compactions between them."""
    file = tmp_path / "demo.db"
    assert run("demo", "--db", file).code == 0
    calls = run("calls", "demo", "--db", file, "--json").json
    assert len(calls) >= 20
    for call in calls:
        body = run("call", "demo", call["number"], "--body", "--db", file).json
        received = sent("anthropic", body)
        assert received == body
        assert json.dumps(received["messages"]) == json.dumps(body["messages"])


def test_the_demo_leaves_nothing_behind(
    run: Callable[..., Done], db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its temporary database is gone afterwards, and the one of the environment is not touched."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert run("demo").code == 0
    assert list(folder.iterdir()) == []
    assert not db.exists()


def test_the_demo_can_be_kept_and_what_it_says_to_type_works(run: Callable[..., Done], tmp_path: Path) -> None:
    """With `--db` the conversation stays, a second time beside the first; the commands it prints run."""
    file = tmp_path / "demo.db"
    for id_ in ("demo", "demo~2"):
        out = run("demo", "--db", file).out
        shown = next(line for line in out.splitlines() if line.startswith("  timeline show"))
        read = next(line for line in out.splitlines() if line.startswith("  $ timeline read"))
        assert run(*shown.partition("  also")[0].split()[1:]).code == 0
        whole = run(*read.split()[2:], "--db", file)
        assert "TypeError: '<=' not supported" in whole.out
        assert run("verify", id_, "--db", file).code == 0
    assert [row["id"] for row in run("ls", "--db", file, "--json").json] == ["demo", "demo~2"]


def test_the_demo_ends_with_every_format_that_can_be_tried(run: Callable[..., Done]) -> None:
    """Whoever has a recording of their own sees that it will be read, and by which commands."""
    end = " ".join(run("demo").out.partition("\nNext\n")[2].split())
    assert "timeline simulate FILE" in end
    assert "timeline lab FILE" in end
    assert [name for name in FORMATS if name.partition(" (")[0] not in end] == []
