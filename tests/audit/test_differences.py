"""Comparing what two conversations were sent: forks of one, a fork and its parent, and strangers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenes import Scribe, small_policy, turn
from timeline import Timeline, open_store
from timeline.audit.differences import Side, diff_sides, shared_versions
from timeline.blocks import UserPrompt
from timeline.errors import ContextNotFound, ConversationNotFound

if TYPE_CHECKING:
    from timeline.ports import EventStore

SYSTEM = "You build a flashcard app."


async def _open(store: EventStore, id_: str) -> Timeline:
    return await Timeline.open(store, id_, policy=small_policy(), summarizer=Scribe())


async def _forked(store: EventStore) -> tuple[Timeline, Timeline, int]:
    """Two conversations with one beginning, each of which was asked something else; return the last shared version."""
    parent = await _open(store, "parent")
    await parent.append(*turn(100), *turn(100))
    await parent.render(system=SYSTEM)
    fork = await parent.fork(conversation="fork")
    base = (await store.info("fork")).base
    for timeline, asked in ((parent, "Write it in Rust."), (fork, "Write it in Go.")):
        await timeline.append(UserPrompt(text=asked))
        await timeline.render(system=SYSTEM)
    return parent, fork, base


async def test_blocks_of_one_path_behind_a_fork_are_two_blocks() -> None:
    """Each side shows its own, and what both have in common is neither in one list nor in the other."""
    async with open_store("memory://") as store:
        parent, fork, base = await _forked(store)
        found, _ = await diff_sides(store, Side("parent", "last"), Side("fork", "last"))
        ((went,), (came,)) = found.left, found.entered
        assert went.path == came.path
        assert min(went.version, came.version) > base
        assert (await parent.read(f"@{went.version}")).text == "Write it in Rust."
        assert (await fork.read(f"@{came.version}")).text == "Write it in Go."
        assert found.changed == ()
        assert [side.conversation for side in (found.before, found.after)] == ["parent", "fork"]


async def test_the_fork_is_the_cause_where_the_messages_part() -> None:
    """No decision of one log explains what the other was sent; the common prefix ends in front of what was asked."""
    async with open_store("memory://") as store:
        _, _, base = await _forked(store)
        found, _ = await diff_sides(store, Side("parent", "last"), Side("fork", "last"))
        for prefix in found.prefixes:
            assert (prefix.cause.kind, prefix.cause.version) == ("forked", base)
            assert prefix.first_difference is not None
            assert prefix.first_difference.before.startswith(prefix.first_difference.after[:5])
            assert 0 < prefix.common_bytes < prefix.before_bytes
            assert not prefix.intact


async def test_a_fork_that_only_goes_on_keeps_the_prefix() -> None:
    """Its context begins with what its parent was sent, so that the provider's cache answers it."""
    async with open_store("memory://") as store:
        await _forked(store)
        found, _ = await diff_sides(store, Side("parent", "#1"), Side("fork", "last"))
        assert (found.prefixes[0].cause.kind, found.prefixes[0].intact) == ("appended", True)
        assert found.left == ()
        assert [row.path for row in found.entered] == ["ar:turn_3.user.prompt"]


async def test_two_forks_share_what_both_have_of_their_parent() -> None:
    """The one that was forked off first decides; a fork of a fork shares with its grandparent what its parent does."""
    async with open_store("memory://") as store:
        parent = await _open(store, "parent")
        bases = []
        for name in ("early", "late"):
            await parent.append(*turn(40))
            bases.append((await parent.fork(conversation=name)).version)
        late = await _open(store, "late")
        await late.append(*turn(40))
        await late.fork(conversation="later")
        early, later = (await store.info("early")).base, (await store.info("later")).base
        shared = {pair: await shared_versions(store, *pair) for pair in (("early", "late"), ("late", "early"))}
        assert set(shared.values()) == {early}
        assert await shared_versions(store, "later", "late") == later
        assert await shared_versions(store, "later", "parent") == (await store.info("late")).base
        assert await shared_versions(store, "later", "early") == early
        assert early < (await store.info("late")).base < later


async def test_strangers_share_nothing() -> None:
    """Everything of the one is out, and everything of the other is in, also where their texts are the same."""
    async with open_store("memory://") as store:
        for name in ("one", "other"):
            timeline = await _open(store, name)
            await timeline.append(UserPrompt(text="Write it in Go."))
            await timeline.render(system=SYSTEM)
        found, _ = await diff_sides(store, Side("one", "last"), Side("other", "last"))
        assert [len(rows) for rows in (found.left, found.entered, found.changed)] == [1, 1, 0]
        assert all(prefix.intact for prefix in found.prefixes)


async def test_one_conversation_is_compared_as_ever() -> None:
    """Both sides of one log: the answer is that of `Timeline.diff`."""
    async with open_store("memory://") as store:
        parent, _, _ = await _forked(store)
        found, chosen = await diff_sides(store, Side("parent", "#1"), Side("parent", "last"))
        assert found == await parent.diff("#1", "last")
        assert [context.number for context in chosen] == [1, 2]


async def test_what_is_not_there_is_an_error() -> None:
    """A conversation, and a context of the other one."""
    async with open_store("memory://") as store:
        await _forked(store)
        with pytest.raises(ConversationNotFound):
            await diff_sides(store, Side("parent", "last"), Side("nobody", "last"))
        with pytest.raises(ContextNotFound):
            await diff_sides(store, Side("parent", "last"), Side("fork", "#9"))
