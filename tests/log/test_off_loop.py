"""Long pure work in a thread of the event loop's."""

from __future__ import annotations

import time
from threading import Lock

import anyio

from timeline.log.off_loop import WORTH_A_THREAD, off_loop


async def test_an_event_loop_has_one_thread_for_long_work_at_a_time() -> None:
    """With several, the loop would wait for each one's turn at the interpreter."""
    running, most, lock = 0, 0, Lock()

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1

    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(off_loop, WORTH_A_THREAD, work)
    assert most == 1
