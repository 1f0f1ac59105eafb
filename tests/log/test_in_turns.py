"""Long reads that leave the event loop to others."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING

import pytest

from timeline.log.in_turns import in_turns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


async def page(items: int) -> AsyncIterator[int]:
    """Yield items that are there at once, as those of a page that a store has read."""
    for item in range(items):
        yield item


def work(seconds: float) -> None:
    """Hold the loop."""
    end = monotonic() + seconds
    while monotonic() < end:
        pass


async def test_others_have_a_turn_between_pieces_of_long_work() -> None:
    """Without it they would wait for the whole page."""
    had: list[int] = []
    done: list[int] = []

    async def others() -> None:
        while True:
            had.append(len(done))
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    async for item in in_turns(page(5)):
        work(0.012)
        done.append(item)
    beside.cancel()
    assert done == [0, 1, 2, 3, 4]
    assert had[:5] == [1, 2, 3, 4, 5]


async def test_short_work_is_not_interrupted() -> None:
    """A turn of the loop for each item would cost more than the item."""
    had: list[int] = []

    async def others() -> None:
        had.append(1)

    beside = asyncio.create_task(others())
    read = [item async for item in in_turns(page(3))]
    assert (read, had) == ([0, 1, 2], [])
    await beside


async def test_a_reader_that_fails_fails_here() -> None:
    """What was read before is there, and the error is the store's own."""

    async def failing() -> AsyncIterator[int]:
        yield 1
        raise LookupError("gone")

    reader = in_turns(failing())
    assert await anext(reader) == 1
    with pytest.raises(LookupError, match="gone"):
        await anext(reader)
