"""Optional dependencies: what is imported when it is first needed, and named with its cure where it is missing."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from timeline.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def needs(package: str, extra: str | None = None) -> Iterator[None]:
    """Import an optional package inside this, so that a missing one is told by the extra that brings it.

    Args:
        package: the distribution's name.
        extra: of timeline-engine; the package's own name unless given.

    Raises:
        MissingExtra: a module that is imported inside is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(package, extra or package) from error
