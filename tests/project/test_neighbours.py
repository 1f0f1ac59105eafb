"""Another distribution may have a `store` and `summarizers` of its own: whichever comes or goes, both keep working."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.depth import at_night
from tests.project.environments import Environment, made_wheel, new_environment

if TYPE_CHECKING:
    from pathlib import Path

OURS = "timeline-engine"
THEIRS = "neighbour"

USING_OURS = """
import asyncio
import timeline
from timeline.blocks import UserPrompt
from timeline.store import SQLiteStore
from timeline.summarizers import ExtractiveSummarizer

assert timeline.summarizers.ExtractiveSummarizer is ExtractiveSummarizer


async def talk(url):
    async with timeline.open_store(url) as opened:
        conversation = await timeline.Timeline.open(opened, "c", summarizer=timeline.summarizers.ExtractiveSummarizer())
        await conversation.append(UserPrompt(text="Build a flashcard app"))
        assert "flashcard" in str((await conversation.render()).to_anthropic())
        return isinstance(opened, SQLiteStore)


print([asyncio.run(talk(url)) for url in ("memory://", "conversations.db")])
"""
USING_THEIRS = """
import store, summarizers
from store.shelves import SHELVES
print(store.OWNER, summarizers.OWNER, SHELVES)
"""
USING_BOTH = {"theirs first": USING_THEIRS + USING_OURS, "ours first": USING_OURS + USING_THEIRS}
NEITHER = """
from importlib.util import find_spec
print([name for name in ("store", "summarizers") if find_spec(name) is not None])
"""


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A wheel of somebody else's, with packages of the names that ours have in the checkout."""
    files = {
        "store/__init__.py": 'OWNER = "the neighbour"\n',
        "store/shelves.py": "SHELVES = 3\n",
        "store/codec.py": "raise ImportError('this is not the codec of timeline-engine')\n",
        "summarizers/__init__.py": 'OWNER = "the neighbour"\n',
        "summarizers/extractive.py": "raise ImportError('this is not the summarizer of timeline-engine')\n",
    }
    return made_wheel(tmp_path, THEIRS, files)


@pytest.fixture(params=["theirs before ours", pytest.param("ours before theirs", marks=at_night)])
def both(request: pytest.FixtureRequest, tmp_path: Path, wheel: Path, theirs: Path) -> Environment:
    """An environment with both, installed in either order."""
    environment = new_environment(tmp_path)
    for one in (wheel, theirs) if request.param.startswith("ours") else (theirs, wheel):
        environment.install(one)
    return environment


def assert_ours_works(environment: Environment) -> None:
    """A conversation is kept and rendered, also by the command line."""
    assert environment.run_program(USING_OURS) == "[False, True]\n"
    assert "flashcard" in environment.run_timeline("render", "c", "--wire", "anthropic", "--db", "conversations.db")


@pytest.mark.parametrize("order", USING_BOTH)
def test_one_program_uses_both(both: Environment, order: str) -> None:
    """Neither hides the other, whichever is installed or imported first."""
    printed = both.run_program(USING_BOTH[order]).splitlines()
    assert sorted(printed) == ["[False, True]", "the neighbour the neighbour 3"]


def test_ours_works_beside_a_distribution_with_packages_of_the_same_names(both: Environment) -> None:
    """Stores, summarizers and the command line are found inside `timeline`."""
    assert_ours_works(both)


def test_ours_works_once_the_other_is_uninstalled(both: Environment) -> None:
    """No file of ours belongs to the other distribution, so that none goes with it."""
    before = both.files(OURS)
    both.uninstall(THEIRS)
    assert both.files(OURS) == before
    assert both.run_program(NEITHER) == "[]\n"
    assert_ours_works(both)


def test_the_other_works_once_ours_is_uninstalled(both: Environment) -> None:
    """Nothing of theirs goes with ours, and nothing of ours is left."""
    before = both.files(THEIRS)
    both.uninstall(OURS)
    assert both.files(THEIRS) == before
    assert not (both.packages / "timeline").exists()
    assert both.run_program(USING_THEIRS) == "the neighbour the neighbour 3\n"
