"""The OpenAI Agents SDK's own tests, on our session with its filter and hooks in place of the SDK's sessions."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest

from tests.depth import full_depth
from tests.integrations.frameworks.own_environment import TOOLS, environment, needed, pinned
from tests.integrations.frameworks.theirs import check, fetched, listed, run

HERE: Final = Path(__file__).parent / "openai_agents"


@full_depth
@pytest.mark.timeout(1_500)
def test_exactly_the_listed_tests_of_the_sdk_differ(tmp_path: Path) -> None:
    """What fails and is not listed is a defect of ours, or to be explained; what is listed and passes is taken off."""
    told = listed(HERE)
    source = fetched(HERE / "pins.txt", tmp_path)
    python = environment(tmp_path / "own", "openai-agents", *told["needs"])
    check(run(source, HERE / "timeline_in_place.py", told, python=python), told)


def test_the_suite_is_that_of_the_installed_version() -> None:
    """Another version of the SDK brings other tests: the hash is chosen anew with the pins."""
    assert f"openai-agents=={version('openai-agents')} " in (HERE / "pins.txt").read_text(encoding="utf-8")


def test_its_environment_has_what_it_needs_of_the_pinned_packages_and_nothing_else() -> None:
    """Neither another framework nor a developers' tool; each package with its version and hashes."""
    names = needed(["openai-agents", *TOOLS])
    assert {"openai", "griffelib", "pytest"} <= names
    assert not {"langchain", "pydantic-ai-slim", "hypothesis", "mypy"} & names
    assert pinned(names).count("==") >= len(names)
    assert "--hash=sha256:" in pinned(["openai-agents"])
