"""Run work to its end even if the caller is cancelled: `run_uncancelled`.

A shielded anyio scope holds back only the cancellations of anyio's scopes: `asyncio.timeout`, `asyncio.wait_for` and a
task's own ``cancel()`` reach into it (anyio's documentation, "Shielding"). They do not reach work in a task of its own.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


async def run_uncancelled(work: Coroutine[Any, Any, T]) -> T:
    """Run work to its end and return its result, also if the calling task is cancelled meanwhile.

    The cancelled task waits for the work. A cancellation of the task itself is raised when the work is done; that of an
    anyio scope is raised at the next await.

    Raises:
        asyncio.CancelledError: the task was cancelled meanwhile; its cause is the work's error, if it raised one.
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
