from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

NOBODY = 65_534


@contextmanager
def _without_privileges(folder: Path) -> Iterator[None]:
    """Run as a user to whom permissions matter: root may write to a read-only file."""
    if os.geteuid() != 0:
        yield
        return
    for parent in (folder, *folder.parents):
        if parent == Path(tempfile.gettempdir()):
            break
        parent.chmod(parent.stat().st_mode | 0o055)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def unprivileged() -> Callable[[Path], AbstractContextManager[None]]:
    """Give a context in which file permissions count, even when the tests run as root."""
    return _without_privileges
