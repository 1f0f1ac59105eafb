"""What is said of calls and contexts while content is removed: as it was before, or as it is behind."""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from tests.meanwhile import Meanwhile
from tests.scenes import AT, opened, small_policy, turn
from timeline.answers.calls import context_of
from timeline.audit.verify import verify
from timeline.cli.rows import read_rows
from timeline.errors import CallNotFound, ContextUnavailable, HistoryUnavailable
from timeline.log.history import fold_history, fold_near, load_fold
from timeline.portable.stored import stored_conversation
from timeline.retention import scavenge
from timeline.store.memory import MemoryStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from timeline.ports import EventStore

POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=400)


async def said(store: EventStore) -> Timeline:
    """Return a conversation of three calls, with a compaction before the last one."""
    timeline = await opened(store, policy=POLICY, title="abc abc")
    for number in range(3):
        await timeline.append(*turn(1_500))
        context = await timeline.render()
        choice = {"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
        reply = {"id": f"m{number}", "choices": [choice]}
        await timeline.record(reply, request=context.request("openai_chat", model="m"))
    await timeline.set_retention("window")
    return timeline


async def call(store: EventStore) -> object:
    """Read the last call."""
    return (await (await Timeline.open(store, "c")).call(3)).dump()


async def all_calls(store: EventStore) -> list[dict[str, Any]]:
    """Read all calls in one pass."""
    return [each.dump() async for each in (await Timeline.open(store, "c")).calls()]


async def difference(store: EventStore) -> object:
    """Compare the contexts of two calls."""
    return await (await Timeline.open(store, "c")).diff("call:1", "call:3")


async def context(store: EventStore) -> object:
    """Build the context of a call again."""
    return (await context_of(store, "c", 2)).neutral


async def why(store: EventStore) -> object:
    """Ask why the first prompt is as it is."""
    return await (await Timeline.open(store, "c")).why("@2", call=2)


async def past(store: EventStore) -> object:
    """Go back to a version behind the compaction."""
    return (await (await Timeline.open(store, "c")).at(10)).window


async def recording(store: EventStore) -> object:
    """Read the log as a recording."""
    return (await stored_conversation(store, "c")).recording


READERS = (call, difference, context, why, past, recording)


@pytest.mark.parametrize("removed", ["redacted", "scavenged"])
@pytest.mark.parametrize("read", READERS)
async def test_what_is_read_while_content_goes_is_all_of_before_or_all_of_behind(
    read: Callable[[EventStore], Awaitable[object]], removed: str
) -> None:
    """Between any two steps of the reader; nothing is a mismatch because one step had what the next one lacked."""
    whole = MemoryStore()
    timeline = await said(whole)
    before = await read(whole)
    await removal_from(timeline, whole, removed)()
    behind = await outcome(read, whole)
    for step in count(1):
        store = MemoryStore()
        meanwhile = Meanwhile(store, removal_from(await said(store), store, removed), step, page=8)
        assert await outcome(read, meanwhile.as_store) in (before, behind), step
        if not meanwhile.has_happened:
            assert step > 5
            return


async def test_each_of_the_calls_that_are_read_while_content_goes_is_of_before_or_of_behind() -> None:
    """They come one after another: those before the redaction as they were, the others as they are."""
    whole = MemoryStore()
    timeline = await said(whole)
    before = await all_calls(whole)
    await removal_from(timeline, whole, "redacted")()
    behind = await all_calls(whole)
    assert {each["unproved"] for each in behind} == {"redacted"}
    for step in count(1):
        store = MemoryStore()
        meanwhile = Meanwhile(store, removal_from(await said(store), store, "redacted"), step, page=8)
        read = await all_calls(meanwhile.as_store)
        turning = next((place for place, each in enumerate(read) if each["unproved"]), len(read))
        assert read == before[:turning] + behind[turning:], step
        if not meanwhile.has_happened:
            return


async def test_a_fork_is_no_damage_while_its_parent_is_erased_and_it_keeps_a_copy() -> None:
    """Between any two steps of a verification: the past that it shared becomes its own, with links of its own."""
    for step in count(1):
        store = MemoryStore()
        fork = await (await said(store)).fork(conversation="fork")
        await fork.append(*turn())
        meanwhile = Meanwhile(store, partial(store.erase, "c", forks="copy"), step, page=8)
        report = await verify(meanwhile.as_store, "fork")
        assert report.ok, (step, report.problems)
        if not meanwhile.has_happened:
            assert step > 10
            return


READING = (load_fold, fold_near, fold_history, read_rows)


@pytest.mark.parametrize("read", READING)
async def test_an_undo_while_a_log_is_folded_does_not_end_that(
    read: Callable[[EventStore, str], Awaitable[object]],
) -> None:
    """Whoever folds knows the undos up to a version, and reads no further: a later one would need what is not kept."""
    for step in count(1):
        store = MemoryStore()
        timeline = await said(store)
        meanwhile = Meanwhile(store, timeline.undo_compaction, step, page=8)
        await read(meanwhile.as_store, "c")
        if not meanwhile.has_happened:
            return


def removal_from(timeline: Timeline, store: EventStore, removed: str) -> Callable[[], Awaitable[object]]:
    """Return what redacts the first prompt, or scavenges all that lies before the window."""
    if removed == "scavenged":
        return partial(scavenge, store)
    return partial(timeline.redact, "@2", "asked for", now=AT)


async def outcome(read: Callable[[EventStore], Awaitable[object]], store: EventStore) -> object:
    """Return what a reader returns, or the kind of error that it raises and its reason."""
    try:
        return await read(store)
    except (CallNotFound, ContextUnavailable, HistoryUnavailable) as gone:
        return type(gone), getattr(gone, "reason", None)
