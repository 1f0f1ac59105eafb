"""A store in which something else happens between two steps of whoever reads it, at any one of its steps."""

from __future__ import annotations

from contextlib import aclosing
from inspect import isasyncgenfunction, iscoroutinefunction, signature
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from timeline.ports import EventStore

_ITERATORS = {"chained", "read", "read_written"}
"""Methods that return an iterator where they are no generators themselves."""


class Meanwhile:
    """A store in front of another one. Each call is a step, and so is each page of what is read.

    Args:
        store: answers.
        happens: is done before one of the steps.
        step: the number of that step, from 1 on.
        page: events of a page, so that a short log has several of them.
    """

    def __init__(
        self, store: EventStore, happens: Callable[[], Awaitable[object]], step: int, *, page: int = 10
    ) -> None:
        self._store, self._happens, self._step, self._page = store, happens, step, page
        self.has_happened = False

    @property
    def as_store(self) -> EventStore:
        """This store, for what takes one."""
        return cast("EventStore", self)

    async def _next(self) -> None:
        self._step -= 1
        if not self._step:
            await self._happens()
            self.has_happened = True

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if isasyncgenfunction(method) or name in _ITERATORS:
            return self._by_pages(method)
        return self._at_once(method) if iscoroutinefunction(method) else method

    def _at_once(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **options: Any) -> Any:
            await self._next()
            return await method(*args, **options)

        return call

    def _by_pages(self, method: Callable[..., AsyncIterator[Any]]) -> Callable[..., AsyncIterator[Any]]:
        size = self._page if "page" in signature(method).parameters else 0

        async def read(*args: Any, **options: Any) -> AsyncIterator[Any]:
            await self._next()
            if size:
                options["page"] = min(size, options.get("page", size))
            async with aclosing(method(*args, **options)) as items:  # type: ignore[type-var]  # a generator
                number = 0
                async for item in items:
                    yield item
                    number += 1
                    if size and number % options["page"] == 0:
                        await self._next()

        return read
