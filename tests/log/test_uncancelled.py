"""Work that no cancellation divides: of a scope, or of the task itself."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from timeline.log.uncancelled import run_uncancelled


async def work(begun: asyncio.Event, done: list[str]) -> str:
    """Take some turns of the loop."""
    begun.set()
    for _ in range(5):
        await anyio.lowlevel.checkpoint()
    done.append("done")
    return "result"


async def test_shielded_work_gives_its_result_and_its_errors() -> None:
    """Where nobody is cancelled, shielding changes nothing."""

    async def failing() -> None:
        raise LookupError("nothing there")

    assert await run_uncancelled(work(asyncio.Event(), [])) == "result"
    with pytest.raises(LookupError, match="nothing there"):
        await run_uncancelled(failing())


async def test_a_cancelled_task_waits_for_its_shielded_work() -> None:
    """However often a task is cancelled, the work is done before the cancellation comes through."""
    begun, done = asyncio.Event(), list[str]()
    task = asyncio.create_task(run_uncancelled(work(begun, done)))
    await begun.wait()
    task.cancel()
    await anyio.lowlevel.checkpoint()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["done"]


async def test_a_timeout_around_shielded_work_is_still_a_timeout() -> None:
    """The cancellation of `asyncio.timeout` is raised where it came, so that it becomes a `TimeoutError`."""
    begun, done = asyncio.Event(), list[str]()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await run_uncancelled(work(begun, done))
    assert done == ["done"]


async def test_a_cancelled_scope_waits_for_its_shielded_work() -> None:
    """A scope's cancellation comes through at the next await, and the result is known by then."""
    results = []
    with anyio.CancelScope() as scope:
        scope.cancel()
        results.append(await run_uncancelled(work(asyncio.Event(), [])))
        await anyio.lowlevel.checkpoint()
        results.append("not reached")
    assert results == ["result"]


async def test_what_the_work_raised_is_the_cause_of_the_cancellation() -> None:
    """An error of the work is not lost with the cancellation that hides it."""
    begun = asyncio.Event()

    async def failing() -> None:
        begun.set()
        await anyio.lowlevel.checkpoint()
        raise LookupError("nothing there")

    task = asyncio.create_task(run_uncancelled(failing()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await task
    assert isinstance(cancelled.value.__cause__, LookupError)
