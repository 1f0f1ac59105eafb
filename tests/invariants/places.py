"""Where searches keep their logs: in memory, unless they are played somewhere else."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from timeline.store import open_store
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from timeline.ports import EventStore

_URLS: Final[ContextVar[Iterator[str] | None]] = ContextVar("urls", default=None)
_OPENED: Final[ContextVar[list[EventStore]]] = ContextVar("opened")


@contextmanager
def elsewhere(urls: Iterator[str]) -> Iterator[None]:
    """Let each new store be that of the next URL, which names an empty place."""
    token = _URLS.set(urls)
    try:
        yield
    finally:
        _URLS.reset(token)


async def new_store() -> EventStore:
    """Return a new, empty store; one that is not in memory is closed at the end of `playing.run`."""
    urls = _URLS.get()
    if urls is None:
        return MemoryStore()
    store = await open_store(next(urls))
    _OPENED.get().append(store)
    return store


@asynccontextmanager
async def closing_stores() -> AsyncIterator[None]:
    """Close the stores that are opened meanwhile."""
    opened: list[EventStore] = []
    _OPENED.set(opened)
    try:
        yield
    finally:
        for store in opened:
            await store.aclose()
