"""The log of a conversation in a store, beside other writers and in a store that moves under it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.scenes import AT, log_of, opened, prompt
from timeline.errors import StoreLocked, StoreMoved, VersionConflict
from timeline.events import event_id, new_event
from timeline.events.other_payloads import HookFailed
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from timeline import Timeline
    from timeline.events import Event, NewEvent
    from timeline.ports import Appended


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


class Contested(MemoryStore):
    """A store in which another writer is faster, each time."""

    contested = False

    async def append(self, conversation: str, events: Sequence[NewEvent], **rest: Any) -> Appended:
        """Let the other writer append first."""
        if self.contested:
            await super().append(conversation, [new_event(event_id(AT), AT, HookFailed(hook="other", error=""))])
        return await super().append(conversation, events, **rest)


WRITES: dict[str, Callable[[Timeline], Awaitable[object]]] = {
    "append": lambda timeline: timeline.append(prompt(), now=AT),
    "decision": lambda timeline: timeline._log.commit([HookFailed(hook="own", error="")], at=AT),
}


@pytest.mark.parametrize("write", WRITES)
async def test_a_writer_that_others_are_before_each_time_gives_up_with_an_error(write: str) -> None:
    """Nothing of it is in the log, and the caller knows."""
    store = Contested()
    timeline = await opened(store)
    store.contested = True
    with pytest.raises(StoreLocked, match="Try again"):
        await WRITES[write](timeline)
    written = [event.payload for event in (await log_of(store))[1:]]
    assert {payload.hook if isinstance(payload, HookFailed) else payload.type for payload in written} == {"other"}
