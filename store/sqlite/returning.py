"""What comes back with an older copy of a store: conversations that were erased since, and redacted content."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from timeline.errors import StoreError

from ..failures import DRIVER_ERRORS
from . import statements
from .copying import PATIENCE
from .reading import connect_alone

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def returning(file: Path, versions: Mapping[str, int]) -> dict[str, str]:
    """Return the conversations of a copy of which a store has forgotten something since: ``erased`` or ``redacted``.

    Args:
        file: the store; of one that does not read nothing is known.
        versions: the conversations of the copy with their versions.
    """
    if not file.exists() or not file.stat().st_size:
        return {}
    found: dict[str, str] = {}
    try:
        with closing(connect_alone(file, PATIENCE)) as connection:
            # Stores of earlier versions keep no list of erased conversations.
            lists_erased = connection.execute(statements.HAS_ERASED).fetchone() is not None
            for id_, version in versions.items():
                if lists_erased and connection.execute(statements.ERASED, (id_,)).fetchone():
                    found[id_] = "erased"
                elif connection.execute(statements.REDACTED_BEHIND, (id_, version)).fetchone():
                    found[id_] = "redacted"
    except (*DRIVER_ERRORS, StoreError):
        return {}
    return found
