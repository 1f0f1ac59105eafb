"""Cancel a call at its n-th suspension, exactly as a task that is cancelled at that moment."""

from __future__ import annotations

import asyncio
from types import coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator

T = TypeVar("T")


@coroutine
def cancelled_at(call: Coroutine[Any, Any, T], suspension: int) -> Generator[Any, Any, T]:
    """Await a call, and cancel the running task when the call is suspended for the n-th time.

    A call with fewer suspensions ends normally, and its result is returned.

    Raises:
        asyncio.CancelledError: the call was cancelled.
    """
    steps = call.__await__()
    failure: BaseException | None = None
    count = 0
    while True:
        try:
            waited_for = next(steps) if failure is None else steps.throw(failure)
        except StopIteration as end:
            result: T = end.value
            return result
        count += 1
        task = asyncio.current_task()
        if count == suspension and task is not None:
            task.cancel()
        try:
            failure = None
            yield waited_for
        except BaseException as error:  # noqa: BLE001 - whatever happens here happens to the call
            failure = error
