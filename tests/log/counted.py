"""A store that counts what is read of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from timeline.events import Event


class Counted(MemoryStore):
    """A store that counts the events that are read from it."""

    events = 0

    async def read(self, *args: Any, **options: Any) -> AsyncIterator[Event]:
        """Read as ever."""
        async for event in super().read(*args, **options):
            self.events += 1
            yield event

    async def read_versions(self, *args: Any) -> list[Event]:
        """Read as ever."""
        found = await super().read_versions(*args)
        self.events += len(found)
        return found
