"""A type checker sees the names that programs import, in a wheel and in an editable install."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.project.environments import Environment

PROGRAM = """
import timeline.store.codec
from timeline import open_store, store, summarizers
from timeline.store import SQLiteStore
from timeline.store.testing import StoreContract
from timeline.summarizers import ExtractiveSummarizer
"""
NO_SUCH_MODULE = "import timeline.store.no_such_module\n"


@pytest.fixture(params=["installed", "editable"])
def environment(request: pytest.FixtureRequest) -> Environment:
    """An environment with the library."""
    found: Environment = request.getfixturevalue(request.param)
    return found


def complaints(environment: Environment, program: str) -> list[str]:
    """Return what mypy finds wrong with the imports of a program; what is in the modules is not looked at."""
    options = ("--strict", "--follow-imports=skip", "--no-error-summary", "--cache-dir=", "--config-file=")
    checking = (sys.executable, "-m", "mypy", *options, "--python-executable", environment.python, "-c", program)
    done = subprocess.run(checking, cwd=environment.folder, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_every_name_is_found(environment: Environment) -> None:
    """Both packages are typed, and inside `timeline`."""
    assert complaints(environment, PROGRAM) == []


def test_a_module_that_is_not_there_is_missed(environment: Environment) -> None:
    """What is inside `timeline` is known, and not taken on trust."""
    [missing, *_] = complaints(environment, NO_SUCH_MODULE)
    assert "timeline.store.no_such_module" in missing
    assert "[import-not-found]" in missing
