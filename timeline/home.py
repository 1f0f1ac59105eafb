"""Where an object belongs: the process and the event loop that it is used in, and no other."""

from __future__ import annotations

import asyncio
import os

from timeline.errors import ForkedProcess, StoreError, WrongEventLoop


class Home:
    """The process and the event loop that an object belongs to: those in which it is made.

    An object that is made without an event loop belongs to the one in which it is first used.

    Args:
        what: names the object in errors.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._process = os.getpid()
        self._loop = _running_loop()

    def __deepcopy__(self, memo: object) -> Home:
        """A copy of the object belongs where the object does: an event loop has no copy."""
        return self

    def check(self) -> None:
        """Check that the object is used where it belongs.

        Raises:
            ForkedProcess: this process is a fork of its own.
            WrongEventLoop: another event loop runs here than its own.
        """
        loop = _running_loop()
        if loop is not None and loop is self._loop:
            return  # a fork has another one, or none: the loop that forked does not run there
        self.check_process()
        if self._loop is None:
            self._loop = loop
        elif loop is not self._loop:
            raise WrongEventLoop(self._what)

    def check_alone(self) -> None:
        """Check the same of an object in which nothing waits: it moves on from an event loop that is closed.

        Raises:
            ForkedProcess: this process is a fork of its own.
            WrongEventLoop: another event loop has it, which may be running in another thread.
        """
        if self._loop is not None and self._loop.is_closed():
            self._loop = None
        self.check()

    def check_process(self) -> None:
        """Check that the object is used in its process, from whatever thread.

        Raises:
            ForkedProcess: this process is a fork of its own.
        """
        if self.forked:
            raise ForkedProcess(self._what, self._process)

    @property
    def forked(self) -> bool:
        """Whether this process is a fork of the object's own."""
        return os.getpid() != self._process


def check_asyncio(what: str) -> None:
    """Check that an event loop of asyncio runs here, before the first call waits for one.

    Args:
        what: what needs it.

    Raises:
        StoreError: none does, such as under trio.
    """
    if _running_loop() is None:
        raise StoreError(
            f"{what} needs a running event loop of asyncio, such as asyncio.run starts; uvloop's is one. Without one, "
            "and under another library such as trio, use timeline.sync, under trio in a thread (trio.to_thread)."
        )


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def never_finalize(kept: object) -> None:
    """Keep an object from ever being finalized in this process.

    In a fork, its clean-up would reach what belongs to the parent, such as a database's files. At the end of the
    interpreter it would wait for a thread that does not run any more. Nothing else keeps an object alive beyond that.
    """
    import ctypes  # noqa: PLC0415 - few processes need it, and it takes long to import

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
