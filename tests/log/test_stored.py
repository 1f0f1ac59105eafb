"""The log of a conversation in a store, beside other writers and in a store that moves under it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.scenes import AT, log_of, opened, prompt, small_policy, turn
from timeline import Timeline
from timeline.errors import StoreLocked, StoreMoved, VersionConflict
from timeline.events import event_id, new_event
from timeline.events.other_payloads import HookFailed
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from timeline.events import Event, NewEvent
    from timeline.ports import Appended


class Restored(MemoryStore):
    """A store that is restored from a copy, in which the newest versions are other events."""

    lost = 0
    """The first version that the copy lacks; 0 before the store is restored."""

    async def read_versions(self, *args: Any) -> list[Event]:
        """Read as ever, and what another writer wrote in the copy."""
        events = await super().read_versions(*args)
        return [
            event.model_copy(update={"id": event_id(AT)}) if 0 < self.lost <= event.version else event
            for event in events
        ]


async def test_a_log_that_was_only_read_notices_that_its_store_was_restored() -> None:
    """It wrote nothing that could be missing; what it read last is another event now."""
    store = Restored()
    here, there = await opened(store), await opened(store)
    await there.append(prompt(), now=AT)
    await here.catch_up()
    await there.append(prompt(), now=AT)
    store.lost = here.version
    with pytest.raises(StoreMoved, match="has another event there now"):
        await here.append(prompt(), now=AT)


@pytest.mark.parametrize("whose", ["own", "another"])
@pytest.mark.parametrize("undo", ["turn", "compaction"])
async def test_an_undo_that_a_restored_store_lacks_is_noticed_by_the_next_append(undo: str, whose: str) -> None:
    """Another writer went on in the copy; this handle would go on showing what nobody else is shown."""
    store = Restored()
    here = await opened(store, policy=small_policy(max_tokens=4_000))
    await here.append(*(block for _ in range(6) for block in turn(500)), now=AT)
    await here.compact(now=AT)
    undoing = here if whose == "own" else await opened(store)
    await (undoing.go_back(now=AT) if undo == "turn" else undoing.undo_compaction(now=AT))
    await here.catch_up()
    last, there = here.version, await opened(store)
    await there.append(prompt(), now=AT)
    store.lost = last
    with pytest.raises(StoreMoved, match="has another event there now"):
        await here.append(prompt(), now=AT)


async def test_a_log_that_names_no_policy_is_left_to_writers_that_are_before_each_time() -> None:
    """Its first append names one before, and gives up as well."""
    store = Contested()
    await opened(store, policy=None, source="pi")
    timeline = await Timeline.open(store, "c")
    store.contested = True
    with pytest.raises(StoreLocked, match="Try again"):
        await timeline.append(prompt(), now=AT)


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
    tries = 0

    async def append(self, conversation: str, events: Sequence[NewEvent], **rest: Any) -> Appended:
        """Let the other writer append first."""
        if self.contested:
            self.tries += 1
            assert self.tries < 1_000, "it never gives up"
            await super().append(conversation, [new_event(event_id(AT), AT, HookFailed(hook="other", error=""))])
        return await super().append(conversation, events, **rest)


WRITES: dict[str, Callable[[Timeline], Awaitable[object]]] = {
    "append": lambda timeline: timeline.append(prompt(), now=AT),
    "decision": lambda timeline: timeline._log.commit([HookFailed(hook="own", error="")], at=AT),
    "undo": lambda timeline: timeline.go_back(now=AT),
}


@pytest.mark.parametrize("write", WRITES)
async def test_a_writer_that_others_are_before_each_time_gives_up_with_an_error(write: str) -> None:
    """Nothing of it is in the log, and the caller knows."""
    store = Contested()
    timeline = await opened(store)
    await timeline.append(prompt(), now=AT)
    store.contested = True
    with pytest.raises(StoreLocked, match="Try again"):
        await WRITES[write](timeline)
    written = [event.payload for event in (await log_of(store))[2:]]
    assert {payload.hook if isinstance(payload, HookFailed) else payload.type for payload in written} == {"other"}
