"""The one thread that writes: it runs a queue of appends and functions on the store's only writing connection.

Appends that wait together are committed together (group commit): waiting for the disk is what takes time, and one wait
serves all. A group is complete when its turn at the file has come, not when it begins to wait for it: while another
process has the turn, all tasks of this one queue what they append. A function has its own transaction, or none.
Cancelling a caller while its job waits takes the job out; cancelling it while the job runs changes nothing: the job
ends its own transaction. No other code can leave a transaction open, because no other code has the connection.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

from timeline.errors import StoreClosed

from ..failures import Unseen, closed
from .appending import append_all
from .holding import log
from .packing import SLICE, pack_slice

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from timeline.ports import Appended

    from ..codec import Batch
    from .holding import BoundConnection

T = TypeVar("T")

CHECKPOINT_AFTER: Final = 4 * 1024 * 1024
"""Characters written, by estimate, after which the write-ahead log is copied into the database (1,000 pages)."""
_PER_COMMIT: Final = 32 * 1024
"""Characters that a commit writes besides its text: some eight pages of tables and indexes."""
MOST_TOGETHER: Final = 128
"""Most appends that are committed together: a few milliseconds' work, so that none waits long for the others."""
MOST_CHARACTERS: Final = 512 * 1024
"""Characters after which no more appends join a group commit."""


class _Job(NamedTuple):
    future: Future[Any]
    work: Callable[[sqlite3.Connection], Any]
    size: int


class _Append(NamedTuple):
    future: asyncio.Future[Appended]
    batch: Batch
    size: int


class Writer:
    """Owns the writing connection and its thread. ``where`` names the store in errors."""

    def __init__(self, connect: Callable[[], BoundConnection], where: str) -> None:
        self._connect = connect
        self._where = where
        self._jobs: SimpleQueue[_Append | _Job | None] = SimpleQueue()
        self._held: list[_Job | None] = []
        """The job that was taken from the queue behind a group of appends; it runs next."""
        self._lock = Lock()
        self._stopping = False
        self._written = 0
        self.opened: Future[str] = Future()
        """The store's name, once the connection is open; holds the error if it could not be opened."""
        self.stopped: Future[None] = Future()
        """Done when the connection is closed and the thread ends."""
        for answer in (self.opened, self.stopped):
            answer.set_running_or_notify_cancel()  # A caller that is cancelled does not cancel the answer.
        # A daemon: a program that forgets to close its store must still exit. Acknowledged appends are on disk.
        self._thread = Thread(target=self._run, name=f"timeline-store-writer {where}", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[sqlite3.Connection], T], size: int = 0) -> Future[T]:
        """Queue a function; ``size`` is the number of characters that it will write.

        Raises:
            StoreClosed: `stop` was called.
        """
        future: Future[T] = Future()
        self._queue(_Job(future, work, size))
        return future

    def append(self, batch: Batch) -> asyncio.Future[Appended]:
        """Queue an append, from the event loop that waits for it; it may share its transaction with others.

        The future is done once the disk has the append. Cancelling it removes the append from the queue, if it still
        waits.

        Raises:
            StoreClosed: `stop` was called.
        """
        future: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()
        self._queue(_Append(future, batch, batch.size))
        return future

    def _queue(self, job: _Append | _Job) -> None:
        with self._lock:
            if self._stopping:
                raise closed(self._where)
            self._jobs.put(job)

    def stop(self) -> None:
        """Let the thread finish the queue, close the connection and end. Calling it again does nothing."""
        with self._lock:
            if not self._stopping:
                self._stopping = True
                self._jobs.put(None)

    def _run(self) -> None:
        try:
            held = self._connect()
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits for `opened`
            self.opened.set_exception(error)
            self.stopped.set_result(None)
            return
        self.opened.set_result(held.identity.store)
        while (job := self._next()) is not None:
            if isinstance(job, _Append):
                self._append(held, [job])
            elif job.future.set_running_or_notify_cancel():
                self._do(held, job)
            # A job holds its caller's events; an idle thread must not keep them alive.
            del job
            self._checkpoint_when_due(held)
        try:
            held.close()
        finally:
            self.stopped.set_result(None)

    def _next(self) -> _Append | _Job | None:
        return self._held.pop() if self._held else self._jobs.get()

    def _gather(self, group: list[_Append]) -> None:
        """Put the appends that wait in the queue behind those of a group, up to the limits; drop cancelled ones."""
        group[:] = [job for job in group if not job.future.cancelled()]
        size = sum(job.size for job in group)
        while len(group) < MOST_TOGETHER and size < MOST_CHARACTERS and not self._held:
            try:
                job = self._jobs.get_nowait()
            except Empty:
                return
            if not isinstance(job, _Append):
                self._held.append(job)
            elif not job.future.cancelled():
                group.append(job)
                size += job.size

    def _append(self, held: BoundConnection, group: list[_Append]) -> None:
        # Those that wait already fail with the first one if the turn does not come in time.
        self._gather(group)
        outcomes: Sequence[Appended | BaseException]
        try:
            outcomes = held.write(partial(self._append_gathered, group))
        except Unseen as error:  # It belongs to those that were written; the others know why they were not.
            written = cast("Sequence[Appended | Exception]", error.result)
            outcomes = [outcome if isinstance(outcome, Exception) else error for outcome in written]
        except BaseException as error:  # noqa: BLE001 - it belongs to all who wait for the transaction
            outcomes = [error] * len(group)
        else:
            self._written += sum(job.size for job in group) + _PER_COMMIT
        # Before the answer: what its caller does next comes behind.
        for job, outcome in zip(group, outcomes, strict=True):
            if job.batch.shortens and not isinstance(outcome, BaseException):
                self._pack(job.batch.conversation)
        _answer(group, outcomes)

    def _pack(self, conversation: str) -> None:
        """Queue the packing of a slice of a conversation's old events, and behind it the next one.

        Whatever keeps it from being done, the next packing goes on where it ended.
        """

        def go_on(slice_: Future[bool]) -> None:
            if (error := slice_.exception()) is not None:
                log.info("old events of %r are not packed: %s", conversation, error)
            elif slice_.result():
                self._pack(conversation)

        with suppress(StoreClosed):
            self.submit(partial(pack_slice, conversation=conversation), SLICE).add_done_callback(go_on)

    def _append_gathered(self, group: list[_Append], connection: sqlite3.Connection) -> Sequence[Appended | Exception]:
        """Append a group and, in the same transaction, what was queued while it waited for its turn."""
        self._gather(group)
        return append_all(connection, [job.batch for job in group])

    def _do(self, held: BoundConnection, job: _Job) -> None:
        try:
            result = held.write(job.work) if job.size else held.run(job.work)
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits for the job
            job.future.set_exception(error)
        else:
            job.future.set_result(result)
            self._written += job.size + _PER_COMMIT if job.size else 0

    def _checkpoint_when_due(self, held: BoundConnection) -> None:
        if self._written >= CHECKPOINT_AFTER:
            self._written = 0
            held.checkpoint()


def _answer(group: Sequence[_Append], outcomes: Sequence[Appended | BaseException]) -> None:
    """Answer appends with one call of each event loop: waking a loop costs as much as writing an event."""
    answers: defaultdict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Appended], Appended | BaseException]]]
    answers = defaultdict(list)
    for job, outcome in zip(group, outcomes, strict=True):
        answers[job.future.get_loop()].append((job.future, outcome))
    for loop, answered in answers.items():
        with suppress(RuntimeError):  # The loop is closed: no caller waits any more.
            loop.call_soon_threadsafe(_settle, answered)


def _settle(answered: Sequence[tuple[asyncio.Future[Appended], Appended | BaseException]]) -> None:
    for future, outcome in answered:
        # The caller was cancelled while the append ran. An interrupt may cancel it between any two steps of ours.
        with suppress(asyncio.InvalidStateError):
            if isinstance(outcome, BaseException):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
