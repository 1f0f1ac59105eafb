"""What an acknowledged append survives."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from timeline.errors import StoreError

Durability: TypeAlias = Literal["full", "normal"]
"""``full`` survives a power loss. ``normal`` survives a killed process; a power loss may take the newest appends."""


def check_durability(durability: Durability, where: str) -> None:
    """Check what a caller asks for.

    Args:
        durability: what was given.
        where: names the store in the error.

    Raises:
        StoreError: there is no such durability.
    """
    if durability not in get_args(Durability):
        raise StoreError(f"{where}: durability must be 'full' or 'normal', not {durability!r}.")
