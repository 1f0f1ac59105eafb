"""An application's code in a task of its own: however it ends, it ends nothing else."""

from __future__ import annotations

import asyncio
from typing import NoReturn

import anyio
import pytest

from timeline.log.apart import Unanswered, run_apart


async def _cancels_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await anyio.lowlevel.checkpoint()


async def test_an_answer_comes_back() -> None:
    """Whatever it is, None included."""

    async def answer() -> int:
        return 7

    assert await run_apart(answer) == 7
    assert await run_apart(anyio.lowlevel.checkpoint) is None


async def test_code_that_cancels_itself_is_a_value_and_the_caller_goes_on() -> None:
    """Nobody else cancelled anything."""
    ended = await run_apart(_cancels_itself)
    assert isinstance(ended, Unanswered)
    assert isinstance(ended.error, asyncio.CancelledError)
    assert not ended.is_late


async def test_code_whose_time_is_over_is_late() -> None:
    """An error of its own that says the same is not."""

    async def raises() -> NoReturn:
        raise TimeoutError

    late, own = await run_apart(anyio.sleep_forever, 0.01), await run_apart(raises, 60)
    assert isinstance(late, Unanswered)
    assert isinstance(own, Unanswered)
    assert (late.is_late, own.is_late) == (True, False)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), BaseExceptionGroup("two", [ValueError(), SystemExit(3)])])
async def test_a_signal_ends_the_program_by_itself(error: BaseException) -> None:
    """In a group, it would pass an ``except SystemExit``."""

    async def raises() -> NoReturn:
        raise error

    with pytest.raises((KeyboardInterrupt, SystemExit)):
        await run_apart(raises)


async def test_a_cancellation_from_outside_ends_both() -> None:
    """It is the caller's."""
    ended: list[str] = []

    async def waits() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("code")

    with anyio.move_on_after(0.01) as scope:
        await run_apart(waits)
    assert scope.cancelled_caught
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(run_apart(waits), 0.01)
    assert ended == ["code", "code"]
