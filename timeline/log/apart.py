"""Run an application's code in a task of its own, so that it ends nothing else, however it ends: `run_apart`.

Code that cancels its task, or awaits a cancelled task, would otherwise end its caller, too. An SDK's panic derives from
`BaseException`, and would pass every handler of errors (ADR 0028).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import anyio

from timeline.ports import SIGNALS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


class Unanswered(NamedTuple):
    """How code ended without an answer.

    Attributes:
        error: what it raised.
        is_late: whether its time was over; the error then says so.
    """

    error: BaseException
    is_late: bool = False


async def run_apart(work: Callable[[], Awaitable[T]], seconds: float = math.inf) -> T | Unanswered:
    """Run code in a task of its own; return its answer, or how it ended without one.

    A cancellation from outside ends both.

    Args:
        work: the code.
        seconds: the code is cancelled after this time.

    Raises:
        BaseException: one of `SIGNALS`, by itself and in no exception group.
    """
    ended: list[T | Unanswered] = []

    async def run() -> None:
        try:
            ended.append(await work())
        except BaseException as error:
            # Minus infinity: a scope around this task was cancelled, by the deadline or from outside. Anything else is
            # a cancellation by the code itself, which a task group would swallow silently.
            if isinstance(error, anyio.get_cancelled_exc_class()) and anyio.current_effective_deadline() == -math.inf:
                raise
            ended.append(Unanswered(error))

    with anyio.move_on_after(seconds):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
    # Take it out of the list: an error's frames hold the list, and the cycle would keep the code's objects alive.
    outcome = ended.pop() if ended else Unanswered(TimeoutError(), is_late=True)
    if isinstance(outcome, Unanswered) and (signal := _signal(outcome.error)) is not None:
        raise signal
    return outcome


def _signal(error: BaseException) -> BaseException | None:
    """Return the program-ending exception: the error itself, or the first in its group. None for a failure."""
    if isinstance(error, SIGNALS):
        return error
    if isinstance(error, BaseExceptionGroup):
        return next((found for inner in error.exceptions if (found := _signal(inner)) is not None), None)
    return None
