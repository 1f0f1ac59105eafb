"""The Claude Agent SDK's own tests, on our session store in place of the SDK's; and its public conformance suite."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.depth import Depth, full_depth
from tests.integrations.frameworks.theirs import OURS, check, fetched, listed, newest, run
from tests.integrations.sixty_turns.scene import Played, play

HERE: Final = Path(__file__).parent / "claude_agent_sdk"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the unpacked distribution."""
    return fetched(HERE / "pins.txt", tmp_path_factory.mktemp("claude-agent-sdk"))


def kept_by(source: Path) -> int:
    """Run the SDK's public contract over our store; return how many stores it made."""
    path = os.pathsep.join(map(str, (source / "src", OURS)))
    command = [sys.executable, str(HERE / "conformance.py")]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[2])


@full_depth
@pytest.mark.timeout(300)
def test_a_store_in_a_file_keeps_the_public_contract(source: Path) -> None:
    """All of it, each clause on a store of its own: none of the optional methods is left out."""
    assert kept_by(source) == 15


@pytest.mark.from_depth(Depth.NIGHT)
def test_it_keeps_that_of_the_newest_release(tmp_path: Path) -> None:
    """A change is news before the range of the extra lets it in."""
    assert kept_by(newest("claude-agent-sdk", tmp_path)) >= 15


@full_depth
@pytest.mark.timeout(900)
def test_no_test_of_the_sdk_differs(source: Path) -> None:
    """Under asyncio, the event loop of our stores; what fails is a defect of ours."""
    told = listed(HERE)
    outcome = run(source, HERE / "timeline_in_place.py", told)
    check(outcome, told)
    assert (outcome.tests, outcome.on_ours) == (told["tests"], told["on_ours"])


@full_depth
@pytest.mark.timeout(300)
def test_turns_of_the_sdk_that_is_killed_before_its_store_has_the_prompt(source: Path, tmp_path: Path) -> None:
    """The SDK is the real one; its client, which decides inside a run, is played by `sixty_turns.client`.

    It goes back to the middle in a fork: the client finds no row in front of its newest boundary.
    """
    _play("of_late_scene", source, tmp_path, plot="short").check_of_a_fork()


@pytest.mark.from_depth(Depth.NIGHT)
@pytest.mark.timeout(600)
def test_sixty_turns_of_the_sdk(source: Path, tmp_path: Path) -> None:
    """The same at its whole length, with a store that is as quick as it is."""
    _play("of_scene", source, tmp_path, plot="sixty").check_of_a_fork()


def _play(scene: str, source: Path, folder: Path, *, plot: str) -> Played:
    agent = f"tests.integrations.sixty_turns.claude_agent_sdk:{scene}"
    return play(agent, folder, wire="anthropic", source=str(source / "src"), plot=plot)
