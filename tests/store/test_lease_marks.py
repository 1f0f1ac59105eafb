"""Marks beside a database: a lease counts as left behind where its holder is known to have ended, and only there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.store.sqlite.lease_marks import holder_died, mark

if TYPE_CHECKING:
    from pathlib import Path


def test_who_holds_a_mark_lives(tmp_path: Path) -> None:
    """Its end leaves nothing."""
    held = mark(tmp_path / "agent.db", "cards")
    held.name(3)
    assert not holder_died(tmp_path / "agent.db", "cards", 3)
    held.close()
    assert not holder_died(tmp_path / "agent.db", "cards", 3)
    assert not list(tmp_path.iterdir())


def test_a_mark_that_nobody_holds_speaks_of_its_own_lease_alone(tmp_path: Path) -> None:
    """A later lease may be that of a program without marks, or of another machine."""
    held = mark(tmp_path / "agent.db", "cards")
    held.name(3)
    [file] = tmp_path.iterdir()
    content = file.read_bytes()
    held.close()
    file.write_bytes(content)  # as a kill leaves it
    assert holder_died(tmp_path / "agent.db", "cards", 3)
    assert not holder_died(tmp_path / "agent.db", "cards", 4)
    assert not holder_died(tmp_path / "agent.db", "notes", 3)


def test_who_finds_a_mark_held_has_none_and_leaves_it_alone(tmp_path: Path) -> None:
    """A slow process still holds it although its lease expired."""
    held = mark(tmp_path / "agent.db", "cards")
    held.name(3)
    second = mark(tmp_path / "agent.db", "cards")
    second.name(9)
    second.close()
    assert next(tmp_path.iterdir()).read_bytes() == b"3"
    held.close()
