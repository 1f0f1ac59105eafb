from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.depth import FEWEST, VARIABLE, Depth, at_night, depth_in, full_depth, selects
from tests.project.changes import changed_files
from tests.project.sources import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def test_by_default_a_run_is_quick_and_in_ci_it_is_full() -> None:
    """What the variable names goes before both."""
    assert depth_in({}) is depth_in({"CI": "", VARIABLE: ""}) is Depth.QUICK
    assert depth_in({"CI": "true"}) is Depth.FULL
    assert depth_in({"CI": "true", VARIABLE: "night"}) is Depth.NIGHT
    assert depth_in({"CI": "true", VARIABLE: "quick"}) is Depth.QUICK


def test_a_depth_that_is_none_is_refused_with_those_that_are() -> None:
    """A slip of the keyboard runs no other tests than were meant."""
    with pytest.raises(ValueError, match="'deep'; it has to be one of quick, full, night"):
        depth_in({VARIABLE: "deep"})


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 15, 16, 100, 300])
def test_each_depth_plays_more_examples_than_the_one_before(count: int) -> None:
    """A tenth, an eighth, and twenty times as many; never only the smallest ones."""
    quick, full, night = (depth.examples(count) for depth in Depth)
    assert count / 10 <= quick <= full <= count < night == 20 * count
    assert min(FEWEST, count) <= quick <= max(FEWEST, count / 10 + 1)
    assert min(FEWEST, count) <= full <= max(FEWEST, count / 8 + 1)


def test_every_number_of_examples_goes_through_the_dial() -> None:
    """A search that set its own would be as long in each run."""
    files = [file for file in sorted((ROOT / "tests").rglob("*.py")) if file.name not in {"depth.py", "test_depth.py"}]
    fixed = [file.relative_to(ROOT).as_posix() for file in files if re.search(r"max_examples=[^e]", text_of(file))]
    assert fixed == []


def test_a_test_runs_from_its_depth_on(request: pytest.FixtureRequest) -> None:
    """One without a mark in each run; what is deeper than a run is not selected, so nothing is skipped."""
    item: pytest.Item = request.node
    assert [selects(depth, item) for depth in Depth] == [True, True, True]
    item.add_marker(full_depth)
    assert [selects(depth, item) for depth in Depth] == [False, True, True]


def test_what_changed_is_what_differs_from_where_the_branch_began(tmp_path: Path) -> None:
    """Committed on the branch, only edited, or new; not what the trunk changed meanwhile. Without git it is nothing."""

    def git(*words: str) -> None:
        identity = ("-c", "user.name=ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    def commit(name: str, text: str) -> None:
        (tmp_path / name).write_text(text, encoding="utf-8")
        git("add", name)
        git("commit", "--message", name)

    assert changed_files(tmp_path) == frozenset()
    git("init", "--initial-branch", "main")
    for name in ("same.md", "edited.md", "committed.md", "theirs.md"):
        commit(name, "old")
    assert changed_files(tmp_path) == frozenset()
    git("checkout", "-b", "branch")
    commit("committed.md", "new")
    git("checkout", "main")
    commit("theirs.md", "new")
    git("checkout", "branch")
    (tmp_path / "edited.md").write_text("new", encoding="utf-8")
    (tmp_path / "überneu.md").write_text("new", encoding="utf-8")
    assert changed_files(tmp_path) == {"committed.md", "edited.md", "überneu.md"}


@at_night  # it collects the modules with most SDKs, twice
def test_ci_selects_whatever_a_quick_run_selects_and_more() -> None:
    """Of the modules that select by depth; all others do not know of it."""
    marked = re.compile(r"\b(?:full_depth|DEPTH)\b")
    modules = [str(file) for file in sorted((ROOT / "tests").rglob("test_*.py")) if marked.search(text_of(file))]
    quick, full = (selected(depth, modules) for depth in (Depth.QUICK, Depth.FULL))
    assert quick < full
    assert {name.partition("::")[0] for name in full} == {os.path.relpath(module, ROOT) for module in modules}


def selected(depth: Depth, modules: list[str]) -> set[str]:
    """Return the names of the tests of some modules that a run of a depth selects."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-p", "no:cacheprovider", *modules]
    environment = os.environ | {VARIABLE: depth.label}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {line for line in done.stdout.splitlines() if "::" in line}


def text_of(file: Path) -> str:
    """Return the text of a file."""
    return file.read_text(encoding="utf-8")
