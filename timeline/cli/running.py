"""Running what a command does: each one is a coroutine, and the command line is its only task."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


def run(work: Coroutine[None, None, T]) -> T:
    """Run a command to its end and return what it answers."""
    import asyncio  # noqa: PLC0415 - `timeline --help` stays quick

    return asyncio.run(work)
