"""Waking those who follow a log: an append in this process tells them at once, without their asking.

It costs an append nothing as long as nobody waits: one look at an empty table. What other processes append tells nobody
here; a follower looks for that itself.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from timeline.events import NewEvent
    from timeline.ports import EventStore

_Key = tuple[int, str | None]


class Sleeper:
    """A follower that waits for news of a conversation, or of a whole store.

    Attributes:
        types: of the events that wake it.
    """

    def __init__(self, store: EventStore, types: Collection[str]) -> None:
        self.types = types
        self._store = store  # held, so that its id, by which it is found, is no other store's meanwhile
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        """Wait until somebody wakes it, or the time is over."""
        with anyio.move_on_after(seconds):
            await self._woken.wait()

    def wake(self) -> None:
        """End its sleep, from whatever thread."""
        try:
            own = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            own = False
        if own:
            self._woken.set()
        else:
            with suppress(RuntimeError):  # its loop is closed: nobody sleeps any more
                self._loop.call_soon_threadsafe(self._woken.set)


_ASLEEP: Final[dict[_Key, set[Sleeper]]] = {}
_LOCK: Final = Lock()
"""Around every change of the table: each thread may have a loop of its own, and followers in it."""


@contextmanager
def sleeper(store: EventStore, conversation: str | None, types: Collection[str]) -> Iterator[Sleeper]:
    """Wait for events of some types: of one conversation, or of all of the store where none is named."""
    one, key = Sleeper(store, types), (id(store), conversation)
    with _LOCK:
        _ASLEEP.setdefault(key, set()).add(one)
    try:
        yield one
    finally:
        with _LOCK:
            beside = _ASLEEP[key]
            beside.discard(one)
            if not beside:
                del _ASLEEP[key]


def announce(store: EventStore, conversation: str, events: Sequence[NewEvent]) -> None:
    """Wake the followers that wait for such events."""
    if not _ASLEEP:
        return
    happened = {event.type for event in events}
    for key in ((id(store), conversation), (id(store), None)):
        for one in tuple(_ASLEEP.get(key, ())):
            if not happened.isdisjoint(one.types):
                one.wake()
