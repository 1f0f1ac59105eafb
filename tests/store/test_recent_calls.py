"""A store remembers the calls that wait for results; what it remembers never makes another fact than the log does."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from timeline.blocks import ToolCall
from timeline.errors import DuplicateEvent
from timeline.events import BlockRedacted
from timeline.facts.extracting import read_call
from timeline.store.sqlite import recent_calls
from timeline.store.sqlite.recent_calls import LARGEST, RecentCalls
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import block_event, event, fork
from timeline.store.testing.facts import call, found, result

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.facts.extracting import ReadCall
    from timeline.ports import EventStore


async def subjects(store: EventStore, conversation: str = "a") -> list[str]:
    """Return the commands that a query finds."""
    return [fact.subject for fact in await found(store, conversation=conversation, kind="command")]


async def test_a_call_that_another_store_redacted_gives_no_fact(tmp_path: Path) -> None:
    """The redaction is in the log before the result, or comes with it."""
    async with AsyncExitStack() as stack:
        one, other = [await stack.enter_async_context(await SQLiteStore.open(tmp_path / "a.db")) for _ in range(2)]
        await one.append("a", [call(id_, "Bash", {"command": f"rm {id_}"}) for id_ in "123"])
        await other.append("a", [event(BlockRedacted(version=1))])
        await one.append("a", [result("1"), result("2"), result("3"), event(BlockRedacted(version=3))])
        assert await subjects(one) == ["rm 2"]
        assert await subjects(other) == ["rm 2"]


async def test_a_result_of_another_store_and_of_a_fork_answers_the_call(tmp_path: Path) -> None:
    """What a store does not remember, it looks up."""
    async with AsyncExitStack() as stack:
        one, other = [await stack.enter_async_context(await SQLiteStore.open(tmp_path / "a.db")) for _ in range(2)]
        await one.append("a", [call("1", "Bash", {"command": "make"})])
        await one.append("b", [fork("a", 1), result("1", "in the fork")])
        await other.append("a", [result("1", "in the parent")])
        assert await subjects(one, "a") == ["make"]
        assert await subjects(one, "b") == ["make"]


async def test_a_call_of_a_refused_append_is_forgotten(tmp_path: Path) -> None:
    """Its path is free again; the call that takes it is the one that the result answers."""
    async with await SQLiteStore.open(tmp_path / "a.db") as store:
        known = block_event()
        await store.append("a", [known])
        with pytest.raises(DuplicateEvent):
            await store.append("a", [call("1", "Bash", {"command": "first"}), known])
        await store.append("a", [call("1", "Bash", {"command": "second"})])
        await store.append("a", [result("1")])
        assert await subjects(store) == ["second"]


async def test_calls_that_are_not_remembered_are_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that wait while many others come, and those with a very long command."""
    monkeypatch.setattr(recent_calls, "MOST", 2)
    commands = ["one", "two", "three", "x" * (LARGEST + 1)]
    async with await SQLiteStore.open(tmp_path / "a.db") as store:
        for number, text in enumerate(commands):
            await store.append("a", [call(f"{number}", "Bash", {"command": text})])
        for number in range(len(commands)):
            await store.append("a", [result(f"{number}")])
        assert await subjects(store) == commands


def read(number: int, command: str = "make") -> tuple[int, ReadCall]:
    """Return a call at its place in an append."""
    block = ToolCall(call_id=f"{number}", name="Bash", arguments={"command": command}, path=f"{number}.call")
    return number, read_call(block)


def test_a_call_is_remembered_from_its_commit_until_its_result() -> None:
    """By conversation and path, with its version."""
    recent = RecentCalls()
    recent.written(1, 5, [read(0), read(2)])
    assert recent.take(1, 1, "0.call") is None
    recent.committed()
    assert recent.take(2, 1, "0.call") is None
    assert recent.take(1, 1, "2.call") == (7, read(2)[1])
    assert recent.take(1, 1, "2.call") is None
    assert recent.take(1, 1, "0.call") == (5, read(0)[1])


def test_calls_that_were_rolled_back_may_be_scavenged_or_are_too_many_are_not_remembered() -> None:
    """Nor those whose command is longer than what may be kept."""
    recent = RecentCalls()
    recent.written(1, 5, [read(0)])
    recent.rolled_back()
    recent.committed()
    assert recent.take(1, 1, "0.call") is None
    recent.written(1, 5, [read(0), read(1, "x" * (LARGEST + 1)), *(read(n) for n in range(2, recent_calls.MOST + 2))])
    recent.committed()
    assert recent.take(1, 1, "0.call") is None
    assert recent.take(1, 1, "1.call") is None
    assert recent.take(1, 8, "2.call") is None
    assert recent.take(1, 8, "3.call") == (8, read(3)[1])
