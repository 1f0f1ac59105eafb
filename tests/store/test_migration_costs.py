"""What each migration costs on the disk, and that a way back is a backup: the table of docs/files.md, measured anew."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final

import pytest

from tests.downgrade import before_facts, before_packing
from tests.project.pages import table_rows
from tests.project.sources import ROOT
from timeline import Timeline, open_store, policies
from timeline.errors import StoreTooNew
from timeline.store import backup, migrations, restore
from timeline.store.packing import unpacked

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAGE: Final = ROOT / "docs" / "files.md"
TOLERANCE: Final = 1.5
"""Percentage points: versions of SQLite fill pages a little differently."""


def _objects() -> list[set[str]]:
    """Return the tables and indexes that each migration adds to what was there before."""
    added: list[set[str]] = []
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.create_function("unpacked", 1, unpacked)
        for _, apply in migrations.MIGRATIONS:
            before = set().union(*added)
            apply(connection)
            added.append({name for (name,) in connection.execute("SELECT name FROM sqlite_schema")} - before)
    return added


async def _sample(file: Path) -> None:
    """Make a conversation of forty turns that was compacted, searched and asked for its facts."""
    async with open_store(file) as store:
        timeline = await Timeline.open(store, "cards", policy=policies.cut_point(max_tokens=4_000))
        for number in range(40):
            await timeline.append(
                {"type": "user.prompt", "text": f"Write card {number}. " + "Say what is on it, and why. " * 20},
                {"type": "react.tool.call", "call_id": f"c{number}", "name": "bash", "arguments": {"command": "ls"}},
                {"type": "react.tool.result", "call_id": f"c{number}", "text": "a line of its output\n" * 60},
                {"type": "assistant.completion", "text": f"Card {number} is done. " + "It says this. " * 20},
            )
            await timeline.render(system="You write cards.")
        assert [found async for found in store.search("card")]
        assert [fact async for fact in store.facts()]


def _shares(file: Path) -> list[float]:
    """Return the share of the file, in percent, of what each migration added."""
    with closing(sqlite3.connect(file)) as connection:
        bytes_of = dict(connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"))
    return [
        100 * sum(size for name, size in bytes_of.items() if name in added) / file.stat().st_size
        for added in _objects()
    ]


async def test_the_page_says_what_each_migration_adds(tmp_path: Path) -> None:
    """A line a migration, with its number, its name, and the share of a file that its tables and indexes take."""
    file = tmp_path / "agent.db"
    await _sample(file)
    section = PAGE.read_text(encoding="utf-8").partition("## What an upgrade costs")[2].partition("\n## ")[0]
    told = [[cell.strip() for cell in row.strip("|").split("|")] for row in table_rows(section)]
    shares = _shares(file)
    measured = [f"| {n} | {name} | {shares[n - 1]:.0f} % |" for n, (name, _) in enumerate(migrations.MIGRATIONS, 1)]
    assert [cells[:2] for cells in told] == [row.strip("| ").split(" | ")[:2] for row in measured], "\n".join(measured)
    assert [float(cells[2].removesuffix(" %")) for cells in told] == pytest.approx(shares, abs=TOLERANCE), measured


@pytest.mark.parametrize(("downgrade", "schema"), [(before_facts, 6), (before_packing, 7)])
async def test_the_way_back_from_an_upgrade_is_a_backup_made_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, downgrade: Callable[[Path], None], schema: int
) -> None:
    """The earlier release refuses what was brought up to date, and changes nothing; it reads the restored backup."""
    file, copy = tmp_path / "agent.db", tmp_path / "before.db"
    await _sample(file)
    downgrade(file)
    assert (await backup(file, copy)).holds.schema == schema
    async with open_store(file):
        pass
    upgraded = shutil.copyfile(file, tmp_path / "upgraded.db").read_bytes()
    monkeypatch.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[:schema])
    with pytest.raises(StoreTooNew, match=f"this version knows {schema}"):
        await open_store(file)
    assert file.read_bytes() == upgraded
    monkeypatch.undo()
    await restore(copy, file, yes=True)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT max(number) FROM migrations").fetchone() == (schema,)
