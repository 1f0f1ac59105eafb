"""Wake the followers of a log when it is appended to, so that they need not poll for that.

Appends of this process wake them directly; without followers that costs one look at an empty table. A store may report
the appends of other processes (`WakingStore`). What nothing reports, a follower finds by looking at the log.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, Final

import anyio

from timeline.ports import WakingStore

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from timeline.events import NewEvent
    from timeline.ports import EventStore

_Key = tuple[int, str | None]


class Waiter:
    """A follower that waits for events of a conversation, or of a whole store.

    Attributes:
        types: the types of the events that wake it.
    """

    def __init__(self, store: EventStore, types: Collection[str]) -> None:
        self.types = types
        self._store = store  # keeps the store alive: the table's key is its id, which another store could get
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        """Wait for a wake-up, at most for so many seconds."""
        with anyio.move_on_after(seconds):
            await self._woken.wait()

    def wake(self) -> None:
        """End its sleep; may be called from any thread."""
        try:
            own = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            own = False
        if own:
            self._woken.set()
        else:
            with suppress(RuntimeError):  # its event loop is closed, so it does not sleep any more
                self._loop.call_soon_threadsafe(self._woken.set)


_ASLEEP: Final[dict[_Key, set[Waiter]]] = {}
_LOCK: Final = Lock()
"""Held around each change of the table, since threads with event loops of their own have followers in it, too."""


@contextmanager
def waiting(store: EventStore, conversation: str | None, types: Collection[str]) -> Iterator[Waiter]:
    """Enter a waiter into the table, for events of some types of one conversation, or of the whole store if None."""
    one, key = Waiter(store, types), (id(store), conversation)
    with _LOCK:
        _ASLEEP.setdefault(key, set()).add(one)
    _listen(store)
    try:
        yield one
    finally:
        with _LOCK:
            beside = _ASLEEP[key]
            beside.discard(one)
            if not beside:
                del _ASLEEP[key]


_LISTENING: Final[dict[int, asyncio.Task[None]]] = {}
"""For each store, by its id, the task that listens for other processes' appends, from the first follower on."""


def _listen(store: EventStore) -> None:
    if id(store) not in _LISTENING and isinstance(store, WakingStore):
        task = asyncio.get_running_loop().create_task(_heard(store, store))
        _LISTENING[id(store)] = task
        task.add_done_callback(lambda _: _LISTENING.pop(id(store), None))


async def _heard(store: EventStore, waking: WakingStore) -> None:
    async for wakeup in waking.wakeups():
        with _LOCK:
            asleep = [(key[1], one) for key, beside in _ASLEEP.items() if key[0] == id(store) for one in beside]
        for conversation, one in asleep:
            if wakeup.concerns(conversation, one.types):
                one.wake()


def notify(store: EventStore, conversation: str, events: Sequence[NewEvent]) -> None:
    """Wake the followers that wait for events of these types."""
    if not _ASLEEP:
        return
    happened = {event.type for event in events}
    for key in ((id(store), conversation), (id(store), None)):
        for one in tuple(_ASLEEP.get(key, ())):
            if not happened.isdisjoint(one.types):
                one.wake()
