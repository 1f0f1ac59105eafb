"""The Claude Agent SDK's own tests, on our session store in place of the SDK's; and its public conformance suite."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

from tests.depth import full_depth
from tests.integrations.frameworks.theirs import fetched, run

HERE: Final = Path(__file__).parent / "claude_agent_sdk"
OURS: Final = Path(__file__).parents[3]


def listed() -> dict[str, Any]:
    """Return the list of what is run."""
    return tomllib.loads((HERE / "differences.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the unpacked distribution."""
    return fetched(HERE / "pins.txt", tmp_path_factory.mktemp("claude-agent-sdk"))


@full_depth
@pytest.mark.timeout(300)
def test_a_store_in_a_file_keeps_the_public_contract(source: Path) -> None:
    """All of it: none of the optional methods is left out."""
    path = os.pathsep.join(map(str, (source / "src", OURS)))
    command = [sys.executable, str(HERE / "conformance.py")]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["kept", "by", "15", "stores"]


@full_depth
@pytest.mark.timeout(900)
def test_no_test_of_the_sdk_differs(source: Path) -> None:
    """Under asyncio, the event loop of our stores; what fails is a defect of ours."""
    told = listed()
    files = [f"tests/{name}" for name in told["files"]]
    outcome = run(source, HERE / "timeline_in_place.py", [*files, "-k=not trio"], (), OURS)
    assert sorted(outcome.failed) == []
    assert (outcome.tests, outcome.on_ours) == (told["tests"], told["on_ours"])
