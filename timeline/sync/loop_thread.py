"""The event loop that serves a store without ``await``, in a thread of its own: `LoopThread` is the way into it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

from timeline.errors import StoreClosed

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from anyio.from_thread import BlockingPortal

T = TypeVar("T")


class LoopThread:
    """Runs functions in the loop behind ``portal``, for any other thread, until the store is closed."""

    def __init__(self, portal: BlockingPortal) -> None:
        self._behind = portal
        self._left = False

    def leave(self) -> None:
        """Note that the loop takes no more calls: from now on every call reports that the store is closed."""
        self._left = True

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Run a function in the loop, await what it returns if that can be awaited, and return it.

        An interrupt of the waiting thread cancels the function, as it would in a loop of that thread.

        Raises:
            StoreClosed: the loop ended, or the interpreter is ending, so that the loop's thread no longer runs.
        """
        if sys.is_finalizing():
            raise _closed()
        try:
            answer = self._behind.start_task_soon(function, *args)
        except RuntimeError:
            if self._left:
                raise _closed() from None
            raise
        try:
            return answer.result()
        finally:
            answer.cancel()  # nothing, unless this thread was interrupted: then nobody wants the answer any more
            del answer  # it holds its error, whose frames hold what was asked about

    def entering(self, manager: AbstractAsyncContextManager[T]) -> AbstractContextManager[T]:
        """Make a context manager that enters and leaves an asynchronous one in the loop.

        Raises:
            StoreClosed: the loop is about to end.
        """
        if self._left:
            raise _closed()
        return self._behind.wrap_async_context_manager(manager)


def _closed() -> StoreClosed:
    return StoreClosed("This store of timeline.sync is closed. Open it again with timeline.sync.open_store.")
