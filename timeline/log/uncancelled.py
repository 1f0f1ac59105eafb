"""Run work to its end even if the caller is cancelled: `run_uncancelled`, and `until_the_end` for work after a body.

A shielded anyio scope holds back only the cancellations of anyio's scopes: `asyncio.timeout`, `asyncio.wait_for` and a
task's own ``cancel()`` reach into it (anyio's documentation, "Shielding"). They do not reach work in a task of its own.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from timeline.errors import TimelineError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

T = TypeVar("T")


async def run_uncancelled(work: Coroutine[Any, Any, T]) -> T:
    """Run work to its end and return its result, also if the calling task is cancelled meanwhile.

    The cancelled task waits for the work. A cancellation of the task itself is raised when the work is done; a
    cancellation by an anyio scope is raised at the next await.

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
    try:
        if cancelled is not None:
            raise cancelled from (None if task.cancelled() else task.exception())
        return task.result()
    finally:
        del task, cancelled  # they hold the error, whose frames hold the objects of the work


@asynccontextmanager
async def until_the_end(clean_up: Callable[[], Coroutine[Any, Any, object]]) -> AsyncIterator[None]:
    """Run the body, then clean up, however it ended. If the body raised an error, the caller sees that one."""
    try:
        yield
    except BaseException as error:
        try:
            await run_uncancelled(clean_up())
        except TimelineError as problem:
            error.add_note(f"The run was not cleaned up: {problem}")
        raise
    await run_uncancelled(clean_up())
