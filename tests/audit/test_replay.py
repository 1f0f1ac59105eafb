"""Recorded contexts: found by name, and built again as they were sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.scenes import AT, Scribe, answer, exchange, log_of, opened, prompt, small_policy, turn, words
from timeline.audit.replay import find_context, rebuild_contexts, recorded_contexts
from timeline.errors import ContextNotFound, ContextUnavailable, ConversationNotFound
from timeline.events import ContextRendered, NewEvent, event_id
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from timeline.events import Event
    from timeline.projection.context import RenderedContext

POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=400)


class Watched(MemoryStore):
    """A store that remembers from where on its logs are read."""

    def __init__(self) -> None:
        super().__init__()
        self.read_after: list[int] = []

    def read(self, conversation: str, **how: Any) -> AsyncIterator[Event]:
        """Read, and remember where the reading began."""
        if how.get("types") is None:
            self.read_after.append(how.get("after", 0))
        return super().read(conversation, **how)


async def lively(store: MemoryStore) -> list[RenderedContext]:
    """Write a conversation with compactions and previews; return its contexts as they were sent."""
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    sent: list[RenderedContext] = []
    for number, blocks in enumerate([turn(1_500), exchange("a", 1_500), exchange("b", 1_200), turn(900), turn(80)]):
        await timeline.append(prompt(20), *blocks)
        sent.append(await timeline.render(system=f"S{number // 3}", tools=[{"name": "run"}], ephemeral=[words(number)]))
    return sent


async def test_recorded_contexts_are_numbered_from_one() -> None:
    """Oldest first, each with the version of its event and of the log that it was projected from."""
    store = MemoryStore()
    sent = await lively(store)
    recorded = await recorded_contexts(store, "c")
    assert [context.number for context in recorded] == [1, 2, 3, 4, 5]
    assert [context.rendered.version for context in recorded] == [context.version for context in sent]
    events = {event.version: event for event in await log_of(store)}
    assert all(events[context.version].payload == context.rendered for context in recorded)


async def test_a_context_is_built_again_as_it_was_sent() -> None:
    """Bytes, window, states, reasons and figures are those of the render itself."""
    store = MemoryStore()
    sent = await lively(store)
    rebuilt = await rebuild_contexts(store, "c", await recorded_contexts(store, "c"))
    for was, now in zip(sent, rebuilt, strict=True):
        assert now.neutral.canonical() == was.neutral.canonical()
        assert now.blocks == was.blocks
        assert now.account == was.account
        assert (now.policy, now.overflow, now.to_anthropic()) == (was.policy, was.overflow, was.to_anthropic())


async def test_what_lies_behind_the_snapshot_is_built_without_the_history() -> None:
    """Comparing the newest contexts costs the window, however long the conversation is."""
    store = Watched()
    await lively(store)
    recorded = await recorded_contexts(store, "c")
    snapshot = (await store.load_window("c")).snapshot
    assert snapshot is not None
    behind = [context for context in recorded if context.rendered.version >= snapshot.version]
    assert 0 < len(behind) < len(recorded)
    store.read_after.clear()
    await rebuild_contexts(store, "c", behind)
    assert store.read_after == [snapshot.version]


@pytest.mark.parametrize(("name", "number"), [("#1", 1), ("#5", 5), ("last", 5), ("last~0", 5), ("last~4", 1)])
async def test_a_context_is_found_by_its_number_from_either_end(name: str, number: int) -> None:
    """``#3`` counts from the first one, ``last~1`` from the newest."""
    store = MemoryStore()
    await lively(store)
    assert find_context(await recorded_contexts(store, "c"), name).number == number


async def test_a_context_is_found_by_the_version_of_its_event() -> None:
    """As `show --all` and `diff --list` print it."""
    store = MemoryStore()
    await lively(store)
    recorded = await recorded_contexts(store, "c")
    assert [find_context(recorded, str(context.version)) for context in recorded] == recorded


@pytest.mark.parametrize("name", ["#0", "#6", "last~5", "2", "", "newest", "#", "last~", "-1"])
async def test_an_unknown_context_is_a_typed_error_that_names_the_newest(name: str) -> None:
    """The cure is in the message, the numbers and versions are its attribute."""
    store = MemoryStore()
    await lively(store)
    recorded = await recorded_contexts(store, "c")
    with pytest.raises(ContextNotFound, match=f"#5 .version {recorded[-1].version}.") as caught:
        find_context(recorded, name)
    assert caught.value.recorded == [(context.number, context.version) for context in recorded]


async def test_without_a_recorded_context_the_error_says_so() -> None:
    """There is nothing to compare yet."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn())
    with pytest.raises(ContextNotFound, match="There is none yet"):
        await timeline.diff()
    with pytest.raises(ConversationNotFound):
        await recorded_contexts(store, "other")


async def test_the_last_two_contexts_are_compared_unless_others_are_named() -> None:
    """`Timeline.diff` takes numbers, names and versions."""
    store = MemoryStore()
    sent = await lively(store)
    timeline = await opened(store)
    found = await timeline.diff()
    assert [found.before.fingerprint, found.after.fingerprint] == [context.fingerprint for context in sent[-2:]]
    first = (await recorded_contexts(store, "c"))[0].version
    assert (await timeline.diff(first, "#3", wires=())).after.fingerprint == sent[2].fingerprint
    same = await timeline.diff("last", "last")
    assert (same.entered, same.left, same.changed) == ((), (), ())


async def test_a_context_without_its_prompt_cannot_be_built_again() -> None:
    """It was recorded with hashes only, and says so."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn())
    await timeline.render(system="S", record="hash")
    with pytest.raises(ContextUnavailable, match="only hashes") as caught:
        await timeline.diff("last", "last")
    assert caught.value.reason == "unrecorded_prefix"


async def test_a_context_that_is_not_what_was_recorded_is_an_error() -> None:
    """Nothing is compared that was never sent."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(*turn())
    await timeline.render()
    event: Event = (await log_of(store))[-1]
    assert isinstance(event.payload, ContextRendered)
    forged = event.payload.model_copy(update={"fingerprint": "0" * 64})
    await store.append("c", [NewEvent(id=event_id(AT), at=AT, payload=forged)])
    with pytest.raises(ContextUnavailable, match="timeline verify"):
        await timeline.diff()


async def test_a_context_of_another_projection_cannot_be_built_again() -> None:
    """A later version of the library recorded it."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(prompt(), answer())
    await timeline.render()
    payload = (await log_of(store))[-1].payload
    newer = payload.model_copy(update={"projection": 99})
    await store.append("c", [NewEvent(id=event_id(AT), at=AT, payload=newer)])
    with pytest.raises(ContextUnavailable, match="another version"):
        await timeline.diff()


async def test_contexts_on_both_sides_of_an_undo_are_built_again() -> None:
    """Before it the compaction was in force, behind it it never was; the difference names what was taken back."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    await timeline.append(*turn(1_200), *turn(300))
    await timeline.compact()
    await timeline.render(system="S")
    summary = next(item.version for item in timeline.window.items if item.is_summary)
    await timeline.undo_compaction()
    await timeline.render(system="S")
    found = await timeline.diff("#1", "#2")
    assert {(p.cause.kind, p.cause.version) for p in found.prefixes} == {("undo", summary)}
    assert [row.type for row in found.left] == ["conv.range.summary"]
    assert (await timeline.diff("#2", "#1")).prefixes[0].cause.kind == "compaction"
