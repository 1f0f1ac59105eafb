"""A process that has as many files open as it may have."""

from __future__ import annotations

import os
import resource
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def no_more_files(but: int = 0) -> Iterator[None]:
    """Let this process open nothing more, but for a number of files; what is open stays so."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = [os.open(os.devnull, os.O_RDONLY) for _ in range(but)]  # the lowest numbers that are free
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(free, default=2) + 1, hard))
    for number in free:
        os.close(number)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
