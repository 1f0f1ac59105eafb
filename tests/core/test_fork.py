"""Forks: conversations that go on from another one at a version (design, section 4, fork)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.scenes import (
    AT,
    Scribe,
    after,
    call,
    exchange,
    log_of,
    opened,
    paths,
    payloads_of,
    prompt,
    result,
    small_policy,
    turn,
)
from timeline import Timeline, open_store
from timeline.errors import BlockNotFound, HistoryUnavailable, InvalidArgument, VersionConflict
from timeline.events import ModelCalled, event_id
from timeline.events.other_payloads import CompactionStarted
from timeline.store.memory import MemoryStore
from timeline.usage import Usage

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.ports import EventStore

POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=400, hiding=None)


async def begun(store: EventStore) -> Timeline:
    """Return a conversation of three turns."""
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    await timeline.append(*turn(1_500), *turn(1_500), *turn(400, asked=300))
    return timeline


async def test_a_fork_shares_what_was_said_up_to_its_version(tmp_path: Path) -> None:
    """The same blocks at the same versions and paths, in a conversation of its own."""
    async with open_store(str(tmp_path / "a.db")) as store:
        timeline = await begun(store)
        branch = await timeline.fork(at=5, title="Another way", now=AT)
        assert branch.id == "c.fork-5"
        assert paths(branch.window.items) == paths(timeline.window.items)[:4]
        assert branch.version == 6
        info = await store.info("c.fork-5")
        assert (info.title, info.base) == ("Another way", 5)
        assert info.parent is not None
        assert (info.parent.conversation, info.parent.version, info.parent.relation) == ("c", 5, "fork")
        assert [event.version for event in await log_of(store, "c.fork-5")] == [1, 2, 3, 4, 5, 6]
        assert (await branch.verify()).ok


async def test_without_a_version_a_fork_begins_at_the_end() -> None:
    """What other writers appended included."""
    store = MemoryStore()
    timeline = await begun(store)
    other = await Timeline.open(store, "c")
    await other.append(prompt())
    branch = await timeline.fork(now=AT)
    assert branch.id == "c.fork-8"
    assert len(branch.window.items) == 7


async def test_an_empty_id_is_refused_as_for_any_conversation() -> None:
    """The fork got an id of its own making."""
    timeline = await begun(MemoryStore())
    with pytest.raises(InvalidArgument, match="needs an id"):
        await timeline.fork(conversation="")


async def test_neither_sees_what_happens_in_the_other() -> None:
    """Appends, decisions and compactions are each conversation's own."""
    store = MemoryStore()
    timeline = await begun(store)
    branch = await timeline.fork(at=5, now=AT)
    await timeline.append(prompt(text="here"))
    await timeline.compact(now=AT)
    await branch.append(prompt(text="there"))
    await branch.hide("ar:turn_1.assistant.completion", now=AT)
    assert [item.block.text for item in branch.window.items][-1] == "there"
    assert branch.window.summary is None
    assert all(item.replacement is None for item in timeline.window.items)
    with pytest.raises(BlockNotFound):
        await branch.read("ar:turn_4.user.prompt")
    for each in (timeline, branch):
        assert (await each.verify()).ok


async def test_a_fork_is_opened_again_from_its_own_snapshot(tmp_path: Path) -> None:
    """The window is the same, whatever became of its parent."""
    async with open_store(str(tmp_path / "a.db")) as store:
        timeline = await begun(store)
        await timeline.render(now=AT)
        branch = await timeline.fork(now=AT)
        await branch.append(*turn(20))
        await timeline.undo_compaction(now=AT)
    async with open_store(str(tmp_path / "a.db")) as store:
        again = await opened(store, branch.id, policy=POLICY)
        assert again.window == branch.window
        assert (await again.read("ar:turn_1.user.prompt")).text == "abc " * 5
        assert (await again.verify()).ok


async def test_paths_and_turns_go_on_where_the_parent_was() -> None:
    """No path of the shared past is given out again."""
    timeline = await begun(MemoryStore())
    branch = await timeline.fork(at=3, now=AT)
    [asked] = await branch.append(prompt())
    assert (asked.turn_id, asked.path) == ("turn_2", "ar:turn_2.user.prompt")
    assert (await timeline.read(asked.path)).path == asked.path


async def test_a_call_that_was_open_can_be_answered_in_both() -> None:
    """Each conversation has a result of its own."""
    timeline = await opened(MemoryStore(), policy=POLICY)
    await timeline.append(prompt(), call("a"))
    branch = await timeline.fork(now=AT)
    for each, size in ((timeline, 3), (branch, 7)):
        await each.append(result("a", size))
        assert each.window.items[-1].answers == 3
        assert (await each.read("tc:turn_1.a.result")).text == "abc " * size


async def test_a_fork_takes_the_cache_and_the_hold_of_its_past_along() -> None:
    """Its prefix is what the provider has cached, and what was taken back stays so."""
    timeline = await begun(MemoryStore())
    await timeline.compact(now=AT)
    await timeline.undo_compaction(now=AT)
    called = ModelCalled(usage=Usage(cache_write_1h_tokens=1))
    await timeline.decide([called], at=after(5), ids=[event_id(AT)])
    branch = await timeline.fork(now=AT)
    assert branch.window.touch == timeline.window.touch
    assert branch.window.hold == timeline.window.hold is not None
    assert [t.kind for t in (await branch.render(now=AT)).decisions] == ["held"]


async def test_a_fork_does_not_wait_for_what_its_parent_compacts() -> None:
    """The lease is the parent's; not even looking back brings it up again."""
    store = MemoryStore()
    timeline = await begun(store)
    await timeline.decide([CompactionStarted(expires_at=after(100))], at=AT, ids=[event_id(AT)])
    branch = await timeline.fork(now=AT)
    assert branch.window.lease is None
    await branch.compact(wait=False, now=AT)
    await branch.undo_compaction(now=AT)
    assert branch.window.lease is None
    assert timeline.window.lease is not None


async def test_a_fork_takes_back_what_its_parent_compacted() -> None:
    """For itself alone."""
    store = MemoryStore()
    timeline = await begun(store)
    await timeline.compact(now=AT)
    branch = await timeline.fork(now=AT)
    await branch.undo_compaction(now=AT)
    assert branch.window.summary is None
    assert len(branch.window.items) == 6
    assert timeline.window.summary is not None
    for each in (timeline, branch):
        assert (await each.verify()).ok


async def test_a_fork_before_an_undo_keeps_the_summary() -> None:
    """What its parent takes back later is not the fork's decision."""
    store = MemoryStore()
    timeline = await begun(store)
    await timeline.compact(now=AT)
    standing = timeline.version
    await timeline.undo_compaction(now=AT)
    branch = await timeline.fork(at=standing, now=AT)
    assert branch.window.summary is not None
    again = await opened(store, branch.id, policy=POLICY)
    assert again.window == branch.window
    assert (await branch.verify()).ok


async def test_a_fork_can_be_forked() -> None:
    """And reads through both."""
    timeline = await begun(MemoryStore())
    branch = await timeline.fork(at=3, now=AT)
    await branch.append(*exchange("a"))
    twig = await branch.fork(at=5, now=AT)
    assert twig.id == "c.fork-3.fork-5"
    await twig.append(prompt())
    assert paths(twig.window.items)[:2] == paths(timeline.window.items)[:2]
    assert (await twig.at(2)).window.items == (await timeline.at(2)).window.items
    assert (await twig.verify()).ok


async def test_two_forks_of_one_version_get_ids_of_their_own() -> None:
    """The second one is numbered."""
    timeline = await begun(MemoryStore())
    first, second = await timeline.fork(at=3, now=AT), await timeline.fork(at=3, now=AT)
    assert (first.id, second.id) == ("c.fork-3", "c.fork-3~2")


async def test_an_id_that_is_in_use_is_refused() -> None:
    """A fork begins a conversation; it never goes on with another one."""
    store = MemoryStore()
    timeline = await begun(store)
    await opened(store, "mine")
    with pytest.raises(VersionConflict):
        await timeline.fork(conversation="mine", now=AT)
    assert (await timeline.fork(conversation="other", now=AT)).id == "other"
    assert len(await log_of(store, "mine")) == 1


@pytest.mark.parametrize("version", [0, 8])
async def test_a_version_that_is_not_there_is_refused(version: int) -> None:
    """Nothing is opened."""
    store = MemoryStore()
    timeline = await begun(store)
    with pytest.raises(HistoryUnavailable, match="holds the versions 1 to 7"):
        await timeline.fork(at=version, now=AT)
    assert [info.id async for info in store.conversations()] == ["c"]


async def test_a_fork_has_the_policy_and_the_summarizer_of_its_parent() -> None:
    """It goes on as its parent would have."""
    store = MemoryStore()
    timeline = await begun(store)
    branch = await timeline.fork(now=AT)
    assert branch.policy == timeline.policy
    await branch.compact(now=AT)
    [completed] = await payloads_of(store, "compaction.completed", branch.id)
    assert completed.written_by.summarizer == "scribe"


async def test_forks_that_are_begun_at_once_have_ids_of_their_own(tmp_path: Path) -> None:
    """Whoever comes second to a free id takes the next one."""
    async with open_store(tmp_path / "agent.db") as store:
        timeline = await opened(store)
        forks = await asyncio.gather(*(timeline.fork(now=AT) for _ in range(3)))
    assert {fork.id for fork in forks} == {"c.fork-1", "c.fork-1~2", "c.fork-1~3"}
