"""Which items of the SDK's list the log has, by what they say and how often, without reading the log anew each time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from timeline.integrations.openai_agents.history import stored_items

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.integrations.openai_agents.history import Stored
    from timeline.ports import EventStore

_FURTHER: Final = 2
"""A list may lack items of the log, as a call whose output was popped: so many times as far back is looked at next."""


class Known:
    """The items of a conversation, as far as it was read: its end first, and further back while a list has more."""

    def __init__(self, store: EventStore, conversation: str) -> None:
        self._store = store
        self._conversation = conversation
        self._keys: Counter[str] = Counter()
        self._read = 0
        """Version up to which it was read; 0 before the first look."""
        self._is_whole = False

    async def missing(self, keys: Sequence[str]) -> list[int]:
        """Return the numbers of the keys that the conversation does not have, or not so often.

        Raises:
            StoreError: the store cannot be read.
        """
        if not self._read:
            self._count(await stored_items(self._store, self._conversation, newest=len(keys)))
        else:
            self._count(await stored_items(self._store, self._conversation, after=self._read))
        missing = self._missing(keys)
        newest = len(keys)
        while missing and not self._is_whole:
            newest *= _FURTHER
            items = await stored_items(self._store, self._conversation, newest=newest)
            self._is_whole = len(items) < newest
            self._keys.clear()
            self._count(items)
            missing = self._missing(keys)
        return missing

    def _count(self, items: Sequence[Stored]) -> None:
        self._keys.update(stored.key for stored in items)
        if items:
            self._read = max(self._read, *items[-1].versions)

    def _missing(self, keys: Sequence[str]) -> list[int]:
        left = self._keys.copy()
        missing = []
        for number, key in enumerate(keys):
            left[key] -= 1
            if left[key] < 0:
                missing.append(number)
        return missing
