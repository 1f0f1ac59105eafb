"""Set-up that all tests share: how Hypothesis searches, and that nothing leaves this machine."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests import outside

if TYPE_CHECKING:
    from collections.abc import Iterator

# No deadline anywhere: a machine that does other work too is not a bug. In CI the same examples run every time, and
# none are kept; elsewhere each run looks at new ones.
settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("here"), derandomize=True, database=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")

# Where the environment forbids bytecode, each worker and each process that a test starts compiles every SDK anew, which
# is most of what collecting the tests costs. Python's own habit is kept for the tests: compile once, beside the source.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

outside.watch()


@pytest.fixture(autouse=True)
def nothing_leaves_the_machine() -> Iterator[None]:
    """A test that tries to reach another machine fails, also where a library swallows the refusal."""
    outside.ATTEMPTS.clear()
    yield
    assert not outside.ATTEMPTS
