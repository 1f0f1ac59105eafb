"""The states of blocks from decisions alone are those of the fold, at every version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.abridged import read_numbered
from tests.scenes import after, answer, prompt, small_policy
from timeline import Timeline
from timeline.events import appended_block
from timeline.inspector.decided import Decisions, FoldedStates
from timeline.log.history import fold_past, reverted_versions

if TYPE_CHECKING:
    from tests.inspector.sent import Sent
    from timeline.ports import EventStore


async def same_at_every_version(store: EventStore, conversation: str) -> set[str | None]:
    """Compare the states of all blocks at every version; return the states that were met."""
    info, met = await store.info(conversation), set[str | None]()
    decisions = Decisions(store)
    for version in range(1, info.version + 1):
        fold = await fold_past(store, conversation, version)
        folded = FoldedStates(fold.window, await reverted_versions(store, conversation, version))
        decided = await decisions.at(info, version)
        live = {item.version: item.tokens for item in fold.window.items}
        async for event in store.read(conversation, until=version):
            if (block := appended_block(event.payload)) is not None:
                at, tokens = (version, event.version), live.get(event.version, 0)
                assert (at, decided.of(event.version)) == (at, folded.of(event.version))
                assert (at, decided.shown(event.version, block, tokens)) == (
                    at,
                    folded.shown(event.version, block, tokens),
                )
                met.add(decided.of(event.version)[0])
    return met


async def test_of_a_conversation_that_compacts_hides_and_undoes(store: EventStore, sent: Sent) -> None:
    """Before the undo, behind it, and behind the compaction that follows."""
    assert await same_at_every_version(store, sent.id) >= {"visible", "hidden", "covered", "omitted"}


async def test_of_a_fork_with_decisions_of_its_own(store: EventStore, sent: Sent) -> None:
    """The shared past has the states that it had there."""
    timeline = await Timeline.open(store, sent.id)
    fork = await timeline.fork(at=30, conversation="fork")
    await fork.append(prompt(400), answer(400), now=after(900))
    await fork.compact(now=after(901))
    assert "covered" in await same_at_every_version(store, "fork")


async def test_of_blocks_that_are_hidden_revealed_omitted_and_redacted(store: EventStore) -> None:
    """In any order, also one behind the other."""
    timeline = await Timeline.open(store, "c", policy=small_policy(max_tokens=9_000), now=after(0))
    blocks = await timeline.append(*(prompt(20) for _ in range(8)), now=after(1))
    paths = [block.path for block in blocks]
    await timeline.hide(paths[0], now=after(2))
    await timeline.hide(paths[1], mode="omit", now=after(2))
    await timeline.hide(paths[2], now=after(2))
    await timeline.reveal(paths[2], now=after(3))
    await timeline.reveal(paths[1], now=after(3))
    await timeline.hide(paths[1], now=after(4))
    await timeline.hide(paths[3], now=after(4))
    await timeline.redact(paths[3], reason="a name", now=after(5))
    await timeline.redact(paths[4], reason="a name", now=after(6))
    await timeline.pin(paths[0], now=after(7))
    assert await same_at_every_version(store, "c") == {"visible", "hidden", "omitted", "redacted"}


async def test_of_a_result_that_is_abridged_and_then_hidden(store: EventStore) -> None:
    """Both are the same type of event; its reason parts them."""
    timeline = await read_numbered(store)
    await timeline.hide("@3")
    assert await same_at_every_version(store, timeline.id) == {"visible", "abridged", "hidden"}
