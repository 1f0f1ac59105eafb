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

HERE: Final = Path(__file__).parent / "openai_agents"


def signatures(*folders: Path) -> dict[str, str]:
    """Return what the names look like that are used, in a process that looks into some folders first."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    command: list[str | Path] = [sys.executable, HERE / "signatures.py"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed: dict[str, str] = json.loads(done.stdout)
    return printed


def changed(found: dict[str, str]) -> dict[str, tuple[str | None, str]]:
    """Return the names that look otherwise than those that the adapter was written for, before and now."""
    known: dict[str, str] = json.loads((HERE / "signatures.json").read_text(encoding="utf-8"))
    return {name: (known.get(name), told) for name, told in found.items() if known.get(name) != told}


def test_the_names_of_the_openai_agents_sdk_look_as_the_adapter_knows_them() -> None:
    """In the installed version; ``signatures.py`` prints them anew where another one is chosen."""
    assert changed(signatures()) == {}


@pytest.mark.from_depth(Depth.NIGHT)
def test_they_look_the_same_in_the_newest_release(tmp_path: Path) -> None:
    """A change is news before the range of the extra lets it in."""
    pip("download", "--no-deps", "--only-binary=:all:", "--dest", tmp_path, "openai-agents")
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "newest")
    assert changed(signatures(tmp_path / "newest")) == {}, wheel.name
