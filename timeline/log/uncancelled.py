"""Work that no cancellation divides.

A shielded scope of anyio holds back the cancellations of anyio's scopes only: `asyncio.timeout`, `asyncio.wait_for` and
a task's own ``cancel()`` reach into it (anyio's documentation, "Shielding"). Work in a task of its own is out of their
reach too.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


async def shielded(work: Coroutine[Any, Any, T]) -> T:
    """Carry work out to its end, whoever is cancelled meanwhile, and return its result.

    A task that is cancelled goes on waiting for the work. A cancellation of the task itself is raised when the work is
    done; one of an anyio scope comes through at the next await.

    Raises:
        asyncio.CancelledError: the task was cancelled meanwhile; its cause is what the work raised, if it did.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                cancelled = error
    if cancelled is not None:
        raise cancelled from (None if task.cancelled() else task.exception())
    return task.result()
