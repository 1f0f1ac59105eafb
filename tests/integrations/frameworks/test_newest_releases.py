"""What the adapters use of their frameworks, looked at in the newest release before users have it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

import pytest

from tests.depth import Depth
from tests.integrations.frameworks.theirs import pip

HERE: Final = Path(__file__).parent
PACKAGES: Final = {
    "langchain": ("langchain", "langchain-core", "langgraph"),
    "openai_agents": ("openai-agents",),
    "pydantic_ai": ("pydantic-ai-slim", "pydantic-graph"),
}
"""The packages that the names of each framework are in."""

each_framework: Final = pytest.mark.parametrize("framework", PACKAGES)


def changed(framework: str, *folders: Path) -> dict[str, tuple[str, str]]:
    """Return the names that look otherwise than those that the adapter was written for, before and now.

    Args:
        framework: name of its folder here.
        folders: looked into first for packages.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    names = HERE / framework / "signatures.json"
    command: list[str | Path] = [sys.executable, HERE / "signatures.py", names]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    known: dict[str, str] = json.loads(names.read_text(encoding="utf-8"))
    return {name: (known[name], told) for name, told in json.loads(done.stdout).items() if known[name] != told}


@each_framework
def test_the_names_of_a_framework_look_as_its_adapter_knows_them(framework: str) -> None:
    """In the installed version; ``signatures.py`` prints them anew where another one is chosen."""
    assert changed(framework) == {}


@each_framework
@pytest.mark.from_depth(Depth.NIGHT)
def test_they_look_the_same_in_the_newest_release(framework: str, tmp_path: Path) -> None:
    """A change is news before the environment has it; one that was looked at is in ``newer.json`` until then."""
    pip("download", "--no-deps", "--only-binary=:all:", "--dest", tmp_path, *PACKAGES[framework])
    for wheel in tmp_path.glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(tmp_path / "newest")
    looked_at = HERE / framework / "newer.json"
    known = json.loads(looked_at.read_text(encoding="utf-8")) if looked_at.exists() else {}
    news = {name: told for name, told in changed(framework, tmp_path / "newest").items() if told[1] != known.get(name)}
    assert news == {}, sorted(wheel.name for wheel in tmp_path.glob("*.whl"))
