"""What is read of all conversations with nothing left out, and the lists of sessions that are made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic_ai.conversation import Conversation
from pydantic_ai.messages import ModelRequest, UserPromptPart

from tests.integrations.claude_agent_sdk.written import KEY, SUB
from tests.store.postgres.test_long_transactions import held
from timeline.integrations.claude_agent_sdk import TimelineSessionStore
from timeline.integrations.pydantic_ai_store import TimelineConversationStore
from timeline.log import all_events as reading
from timeline.log.all_events import all_events, own_events
from timeline.store.memory import MemoryStore
from timeline.store.postgres import horizon
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import compaction, events
from timeline.store.testing.samples import fork

if TYPE_CHECKING:
    from tests.postgres_server import Server


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(horizon, "_PATIENCE", 0.1)


async def test_own_events_are_those_behind_what_a_fork_shares() -> None:
    """Of a conversation that is not there, none."""
    store = MemoryStore()
    await store.append("a", events(3))
    await store.append("b", [fork("a", 2), *events(1)])
    assert [event.version async for event in own_events(store, "b")] == [3, 4]
    assert [event.version async for event in own_events(store, "none")] == []


async def test_events_above_the_horizon_are_among_all(own_postgres: Server) -> None:
    """Of the types that are asked for, while a transaction in another database writes and when it has ended."""
    async with await PostgresStore.open(own_postgres.url()) as store:
        async with held(own_postgres, "other"):
            for id_ in ("a", "b"):
                await store.append(id_, [*events(2), compaction(1, 1)])
            types = ["compaction.completed"]
            assert [event async for event in store.read_all(types=types)] == []
            assert [(e.conversation, e.version) async for e in all_events(store, types)] == [("a", 3), ("b", 3)]
        assert [(e.conversation, e.version) async for e in all_events(store, types)] == [("a", 3), ("b", 3)]


async def test_all_is_read_at_once_where_nothing_is_held_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """No conversation is looked up by itself."""
    store = MemoryStore()
    for id_ in ("a", "b"):
        await store.append(id_, [*events(2), compaction(1, 1)])
    monkeypatch.delattr(reading, "own_events")
    assert len([event async for event in all_events(store, ["compaction.completed"])]) == 2


async def test_a_session_above_the_horizon_is_listed(own_postgres: Server) -> None:
    """And so are its subagents; a delete takes both."""
    async with await PostgresStore.open(own_postgres.url()) as store, held(own_postgres, "other"):
        await TimelineSessionStore(store).append(KEY, [{"type": "x", "uuid": "1"}])
        await TimelineSessionStore(store).append(SUB, [{"type": "y", "uuid": "2"}])
        sessions = TimelineSessionStore(store)
        assert [one["session_id"] for one in await sessions.list_sessions(KEY["project_key"])] == [KEY["session_id"]]
        assert await sessions.list_subkeys(KEY) == [SUB["subpath"]]
        await sessions.delete(KEY)
        assert await sessions.list_sessions(KEY["project_key"]) == []
        assert await sessions.load(SUB) is None


async def test_a_saved_conversation_above_the_horizon_is_listed_with_its_entries(own_postgres: Server) -> None:
    """By another process than the one that saved it."""
    async with await PostgresStore.open(own_postgres.url()) as store, held(own_postgres, "other"):
        conversation = Conversation(conversation_id="c1", messages=[ModelRequest([UserPromptPart("Hello.")])])
        [entry] = await TimelineConversationStore(store).save(conversation)
        assert [record.conversation_id for record in await TimelineConversationStore(store).read_records()] == ["c1"]
        assert await TimelineConversationStore(store).read_entry(entry.id) == entry
