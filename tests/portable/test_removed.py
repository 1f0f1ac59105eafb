"""A fork shares a past that no scavenge of its parent reaches: its file and its copy have all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenes import call, prompt, result, small_policy
from timeline import Timeline
from timeline.errors import HistoryUnavailable
from timeline.portable import Exported, NotCopied, copy_conversation, copy_store, export_log, import_copy, read_copies
from timeline.retention import scavenge
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

BASE = 9
"""The last version that the fork shares; what is removed of its parent lies behind it."""


@pytest.fixture
async def store() -> MemoryStore:
    """Give a store with a scavenged conversation, and with a fork of its beginning."""
    store = MemoryStore()
    timeline = await Timeline.open(store, "cards", policy=small_policy(max_tokens=4_000, keep_recent_tokens=400))
    await timeline.append(prompt(text="look", turn_id="turn_1"))
    for n in range(30):
        await timeline.append(call(f"c{n}", turn_id="turn_1", response_id=f"m{n}"))
        await timeline.append(result(f"c{n}", 900, turn_id="turn_1"))
        await timeline.render()
        if n == BASE:
            await timeline.fork(at=BASE, conversation="early")
    await store.set_retention("window")
    assert (await scavenge(store)).events
    return store


async def test_the_file_of_a_fork_of_a_scavenged_conversation_is_imported(store: MemoryStore, tmp_path: Path) -> None:
    """It holds nothing of what went."""
    result = Exported()
    file = tmp_path / "early.jsonl"
    lines = [line async for line in export_log(store, ["early"], result=result)]
    file.write_text("\n".join(lines), encoding="utf-8")
    assert result.scavenged == []
    other = MemoryStore()
    for found in read_copies(file) or []:
        await import_copy(other, found)
    assert [line async for line in export_log(other, ["early"])] == lines
    assert await other.chain_head("early") == await store.chain_head("early")


async def test_a_fork_of_a_scavenged_conversation_is_copied_with_what_it_shares(store: MemoryStore) -> None:
    """Of its parent no more than that."""
    other = MemoryStore()
    await copy_conversation(store, "early", other)
    assert await other.chain_head("early") == await store.chain_head("early")
    assert (await other.info("cards")).version == BASE


async def test_a_copied_store_has_the_forks_of_scavenged_conversations(store: MemoryStore) -> None:
    """The report names the scavenged one, with a version that is not there."""
    other = MemoryStore()
    done = [outcome async for outcome in copy_store(store, other)]
    [refused] = [outcome for outcome in done if isinstance(outcome, NotCopied)]
    assert isinstance(refused.error, HistoryUnavailable)
    assert not await store.read_versions("cards", [refused.error.first_version - 2])
    assert await other.chain_head("early") == await store.chain_head("early")


async def test_of_the_parents_of_a_fork_that_is_scavenged_itself_nothing_is_copied(store: MemoryStore) -> None:
    """Without the fork it would be the beginning of a conversation that nobody goes on with."""
    early = await Timeline.open(store, "early", create=False)
    for n in range(30):
        await early.append(call(f"e{n}", turn_id="turn_1", response_id=f"e{n}"))
        await early.append(result(f"e{n}", 900, turn_id="turn_1"))
        await early.render()
    assert (await scavenge(store)).events
    other = MemoryStore()
    done = [outcome async for outcome in copy_store(store, other)]
    assert [(type(outcome), outcome.conversation) for outcome in done] == [(NotCopied, "cards"), (NotCopied, "early")]
    assert [info.id async for info in other.conversations()] == []
