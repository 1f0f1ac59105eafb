"""The oldest releases that the project admits are enough: a resolver may choose them for another package's sake."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

from tests.depth import at_night
from tests.project.environments import built, new_environment
from tests.project.sources import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.project.environments import Environment

_OLDEST = re.compile(r"([a-z0-9-]+)>=([0-9.]+)")


def with_oldest(folder: Path) -> Environment:
    """Make an environment with the oldest releases that are admitted of what the library needs, and the library."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    oldest = [f"{name}=={release}" for name, release in map(_parts, wanted)]
    environment = new_environment(folder)
    environment.run(
        environment.python, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check",
        "--ignore-installed", *oldest, built("wheel", folder / "built"),
    )  # fmt: skip
    return environment


def _parts(requirement: str) -> tuple[str, str]:
    found = _OLDEST.fullmatch(requirement)
    assert found is not None, f"{requirement} admits everything older than itself"
    return found[1], found[2]


@at_night
def test_the_oldest_dependencies_compact_read_back_and_verify(tmp_path: Path) -> None:
    """The demonstration does all that most users call."""
    assert "verif" in with_oldest(tmp_path).run_timeline("demo").lower()
