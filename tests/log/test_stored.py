"""The log of a conversation in a store, beside other writers and in a store that moves under it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.scenes import AT, opened, prompt
from timeline.errors import StoreMoved, VersionConflict
from timeline.events import event_id
from timeline.events.other_payloads import HookFailed
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline.events import Event


class Restored(MemoryStore):
    """A store that is restored from a copy, in which the newest version is another event."""

    restored = False

    async def read_versions(self, *args: Any) -> list[Event]:
        """Read as ever, and what another writer wrote in the copy."""
        events = await super().read_versions(*args)
        return [event.model_copy(update={"id": event_id(AT)}) for event in events] if self.restored else events


async def test_a_log_that_was_only_read_notices_that_its_store_was_restored() -> None:
    """It wrote nothing that could be missing; what it read last is another event now."""
    store = Restored()
    here, there = await opened(store), await opened(store)
    await there.append(prompt(), now=AT)
    await here.catch_up()
    await there.append(prompt(), now=AT)
    store.restored = True
    with pytest.raises(StoreMoved, match="has another event there now"):
        await here.append(prompt(), now=AT)


async def test_a_decision_about_a_version_is_refused_behind_another_writer() -> None:
    """It was taken without what came since; nothing is written."""
    store = MemoryStore()
    here, there = await opened(store), await opened(store)
    await there.append(prompt(), now=AT)
    for seen in (False, True):
        if seen:
            await here.catch_up()
        with pytest.raises(VersionConflict):
            await here._log.commit([HookFailed(hook="h", error="")], at=AT, expected=1)
    assert (await store.info("c")).version == 2
