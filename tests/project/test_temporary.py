from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

import pytest

from tests import temporary
from tests.project.sources import ROOT

SHOWN = "import tempfile; from tests import temporary; temporary.keep_within_reach(); print(tempfile.gettempdir())"


def used(folder: Path) -> Path:
    """Return where tests put their temporary files whose environment names a folder."""
    words = [sys.executable, "-c", SHOWN]
    environment = {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return Path(done.stdout.rstrip("\n"))


def test_these_tests_use_a_folder_that_serves() -> None:
    """A server can listen in it, and the account of the tests can reach it."""
    assert temporary.serves(Path(gettempdir()))


def test_a_folder_that_serves_is_used_as_it_was_named() -> None:
    """Also with a blank and a letter beyond ASCII in its name."""
    with TemporaryDirectory(prefix="für ") as short:
        Path(short).chmod(0o755)
        assert used(Path(short)) == Path(short)


def test_a_folder_too_long_for_a_socket_is_not_used(tmp_path: Path) -> None:
    """No server could listen in it, and every test of PostgreSQL would fail."""
    long = tmp_path / ("x" * 90)
    long.mkdir()
    assert temporary.serves(used(long))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs a server and tests as another user")
def test_a_folder_closed_to_others_is_not_used_by_root() -> None:
    """Neither the server nor a test without privileges could enter it."""
    with TemporaryDirectory() as closed:
        assert temporary.serves(used(Path(closed)))
