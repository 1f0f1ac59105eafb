"""LangChain's own tests, with our middleware added to every agent that they build."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest

from tests.depth import full_depth
from tests.integrations.frameworks.own_environment import environment
from tests.integrations.frameworks.theirs import besides, check, fetched, listed, run

HERE: Final = Path(__file__).parent / "langchain"


@full_depth
@pytest.mark.timeout(900)
def test_exactly_the_listed_tests_of_langchain_differ(tmp_path: Path) -> None:
    """What fails and is not listed is a defect of ours, or to be explained; what is listed and passes is taken off."""
    told = listed(HERE)
    source = fetched(HERE / "pins.txt", tmp_path)
    python = environment(tmp_path / "own", *told["needs"])
    folder = besides(HERE / "pins-besides.txt", tmp_path / "besides")
    check(run(source, HERE / "timeline_beside.py", told, python=python, folders=[folder]), told)


def test_the_suite_is_that_of_the_installed_version() -> None:
    """Another version of LangChain brings other tests: the hash is chosen anew with the pins."""
    assert f"langchain=={version('langchain')} " in (HERE / "pins.txt").read_text(encoding="utf-8")
