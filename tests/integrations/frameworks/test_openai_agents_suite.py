"""The OpenAI Agents SDK's own tests, on our session with its filter and hooks in place of the SDK's sessions."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest

from tests.depth import full_depth
from tests.integrations.frameworks.theirs import check, fetched, listed, run

HERE: Final = Path(__file__).parent / "openai_agents"


@full_depth
@pytest.mark.timeout(900)
def test_exactly_the_listed_tests_of_the_sdk_differ(tmp_path: Path) -> None:
    """What fails and is not listed is a defect of ours, or to be explained; what is listed and passes is taken off."""
    told = listed(HERE)
    check(run(fetched(HERE / "pins.txt", tmp_path), HERE / "timeline_in_place.py", told), told)


def test_the_suite_is_that_of_the_installed_version() -> None:
    """Another version of the SDK brings other tests: the hash is chosen anew with the pins."""
    assert f"openai-agents=={version('openai-agents')} " in (HERE / "pins.txt").read_text(encoding="utf-8")
