"""The library as it is installed, built once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.project.environments import Environment, built, new_environment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library's wheel, built from the checkout."""
    return built("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """A fresh environment with the wheel."""
    environment = new_environment(tmp_path_factory.mktemp("installed"))
    environment.install(wheel)
    return environment


@pytest.fixture(scope="session")
def editable(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """A fresh environment with an editable install of the checkout."""
    folder = tmp_path_factory.mktemp("editable")
    environment = new_environment(folder)
    environment.install(built("editable", folder / "built"))
    return environment
