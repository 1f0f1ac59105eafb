"""The end of a run: what is cleaned up when an agent's loop is left, also by an error or a cancellation (seed 004)."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from timeline.errors import TimelineError
from timeline.log.uncancelled import shielded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from timeline.projection.context import Taken


@asynccontextmanager
async def until_the_end(clean_up: Callable[[], Coroutine[None, None, list[Taken]]]) -> AsyncIterator[None]:
    """Run what is inside, then clean up, whatever ended it; what ended it is what the caller sees."""
    try:
        yield
    except BaseException as error:
        try:
            await shielded(clean_up())
        except TimelineError as problem:
            error.add_note(f"The run was not cleaned up: {problem}")
        raise
    await shielded(clean_up())
