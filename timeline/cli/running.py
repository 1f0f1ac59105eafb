"""Run the coroutine of a command as the only task of an event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


def run(work: Coroutine[None, None, T]) -> T:
    """Run a command to its end, and return its result."""
    import asyncio  # noqa: PLC0415 - `timeline --help` stays quick

    return asyncio.run(work)
