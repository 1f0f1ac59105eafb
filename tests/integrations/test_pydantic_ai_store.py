"""Pydantic AI's conversations in a store of timelines; the framework's own store in memory keeps the same clauses."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from pydantic_ai import Agent, Tool
from pydantic_ai.conversation import Conversation, ConversationTypeAdapter
from pydantic_ai.conversation_store import ConversationConflict, ConversationStore, InMemoryConversationStore
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import BinaryImage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.usage import RunUsage

import timeline.sync
from tests.integrations.test_pydantic_ai import agent_of, timeline_of
from tests.integrations.working import all_fine, bash, small, working
from tests.log.counted import Counted
from tests.providers import Answer, Call, FakeProvider
from timeline import Timeline, open_store
from timeline.errors import InvalidArgument
from timeline.integrations import pydantic_ai_store
from timeline.integrations.pydantic_ai import TimelineCapability
from timeline.integrations.pydantic_ai_store import TimelineConversationStore
from timeline.retention import Budget, scavenge
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage


@pytest.fixture(params=["ours", "theirs"])
def conversations(request: pytest.FixtureRequest) -> ConversationStore:
    """Both stores."""
    return TimelineConversationStore(MemoryStore()) if request.param == "ours" else InMemoryConversationStore()


def asked(text: str) -> ModelRequest:
    """Return a request with a prompt."""
    return ModelRequest([UserPromptPart(text)])


def answered(text: str) -> ModelResponse:
    """Return a response with a text."""
    return ModelResponse([TextPart(text)])


def turn(text: str) -> list[ModelMessage]:
    """Return a question and its answer."""
    return [asked(text), answered(f"{text}!")]


async def events_read(store: Counted, step: Callable[[], Awaitable[object]]) -> int:
    """Return how many events a step reads."""
    before = store.events
    await step()
    return store.events - before


async def saved(store: ConversationStore, id_: str = "c1", *texts: str, **options: Any) -> Conversation:
    """Save a conversation of some turns, each by itself."""
    conversation = Conversation(conversation_id=id_)
    for text in texts or ("one", "two"):
        conversation.messages += turn(text)
        await store.save(conversation, **options)
    return conversation


def said(conversation: Conversation | None) -> list[str]:
    """Return what is said in a conversation."""
    assert conversation is not None
    return [str(part.content) for message in conversation.messages for part in message.parts]  # type: ignore[union-attr]


def serialized(conversation: Conversation) -> Conversation:
    """Return a conversation as the framework's own JSON form gives it back, which is what a database can keep."""
    return ConversationTypeAdapter.validate_json(ConversationTypeAdapter.dump_json(conversation))


async def test_what_was_saved_is_loaded(conversations: ConversationStore) -> None:
    """With files, usage, and what a paused run waits for."""
    assert await conversations.load("c1") is None
    picture = BinaryImage(b"\xff\x00\xd8", media_type="image/png")
    conversation = Conversation(
        conversation_id="c1",
        messages=[ModelRequest([UserPromptPart(["Look.", picture])]), answered("I see.")],
        usage=RunUsage(input_tokens=7, requests=1, details={"reasoning": 3}),
        deferred_tool_requests=DeferredToolRequests(metadata={"x": {"why": "it writes"}}),
    )
    entries = await conversations.save(conversation, scope="ada")
    loaded = await conversations.load("c1")
    assert loaded == conversation
    assert await conversations.load_entries("c1") == entries
    assert [entry.parent_id for entry in entries] == [None, entries[0].id]
    assert await conversations.read_entry(entries[0].id) == entries[0]


async def test_a_save_appends_what_is_new(conversations: ConversationStore) -> None:
    """The newest messages alone can be loaded, and the history goes on behind them."""
    await saved(conversations)
    window = await conversations.load("c1", limit=1)
    assert window is not None
    assert said(window) == ["two!"]
    window.messages += turn("three")
    assert [str(entry.message.parts[0]) for entry in await conversations.save(window)] == [
        str(message.parts[0]) for message in window.messages[1:]
    ]
    assert said(await conversations.load("c1")) == ["one", "one!", "two", "two!", "three", "three!"]
    with pytest.raises(UserError):
        await conversations.load("c1", limit=-1)


async def test_a_copy_that_is_out_of_date_is_not_saved(conversations: ConversationStore) -> None:
    """Nor is a new one over a stored one, nor one of another scope; nothing of it is written."""
    mine = await saved(conversations, scope="ada")
    theirs = await conversations.load("c1")
    assert theirs is not None
    mine.messages += turn("mine")
    await conversations.save(mine)
    theirs.messages += turn("theirs")
    with pytest.raises(ConversationConflict):
        await conversations.save(theirs)
    with pytest.raises(ConversationConflict):
        await conversations.save(Conversation(conversation_id="c1", messages=turn("new")))
    with pytest.raises(ConversationConflict):
        await conversations.save(mine, scope="bob")
    assert said(await conversations.load("c1"))[-2:] == ["mine", "mine!"]


async def test_of_two_at_a_time_one_is_saved(conversations: ConversationStore) -> None:
    """The other one learns of it."""
    await saved(conversations)
    copies = [await conversations.load("c1") for _ in range(4)]
    for number, copy in enumerate(copies):
        assert copy is not None
        copy.messages += turn(f"of {number}")
    done = await asyncio.gather(*(conversations.save(c) for c in copies if c is not None), return_exceptions=True)
    assert sum(isinstance(result, ConversationConflict) for result in done) == 3
    assert len(said(await conversations.load("c1"))) == 6


async def test_a_conversation_is_branched_and_branched_back(conversations: ConversationStore) -> None:
    """What is left stays stored."""
    conversation = await saved(conversations)
    again = await conversations.branch("c1", at=2, expected_revision=conversation.revision)
    assert said(again) == ["one", "one!"]
    again.messages += turn("due")
    await conversations.save(again)
    assert said(await conversations.load("c1")) == ["one", "one!", "due", "due!"]
    record = await conversations.read_record("c1")
    assert record is not None
    [left] = record.branches
    back = await conversations.branch("c1", from_entry=left, expected_revision=again.revision)
    assert said(back) == ["one", "one!", "two", "two!"]
    with pytest.raises(ConversationConflict):
        await conversations.branch("c1", at=1, expected_revision=again.revision)


async def test_a_history_that_was_rewritten_branches_off(conversations: ConversationStore) -> None:
    """What both share is not stored twice."""
    await saved(conversations)
    loaded = await conversations.load("c1")
    assert loaded is not None
    rewritten = Conversation(
        conversation_id="c1", messages=[*loaded.messages[:2], *turn("other")], revision=loaded.revision
    )
    assert len(await conversations.save(rewritten)) == 2
    record = await conversations.read_record("c1")
    assert record is not None
    assert len(record.branches) == 1
    assert said(await conversations.load("c1")) == ["one", "one!", "other", "other!"]


async def test_a_fork_shares_what_came_before(conversations: ConversationStore) -> None:
    """And goes on by itself, also when its parent is deleted."""
    await saved(conversations, "c1", "one", "two", scope="ada")
    fork = await conversations.fork("c1", at=2, new_conversation_id="c2")
    fork.messages += turn("due")
    await conversations.save(fork)
    whole = await conversations.fork("c1", new_conversation_id="c3")
    assert said(whole) == ["one", "one!", "two", "two!"]
    with pytest.raises(ConversationConflict):
        await conversations.fork("c1", new_conversation_id="c2")
    await conversations.delete("c1")
    assert said(await conversations.load("c2")) == ["one", "one!", "due", "due!"]
    assert said(await conversations.load("c3", scope="ada")) == ["one", "one!", "two", "two!"]


async def test_conversations_are_listed_by_scope_the_newest_first(conversations: ConversationStore) -> None:
    """A deleted one is neither listed nor loaded, and may be begun again."""
    for id_, scope in (("a", "ada"), ("b", "bob"), ("c", "ada")):
        await saved(conversations, id_, "one", scope=scope)
    assert [record.conversation_id for record in await conversations.list_conversations()] == ["c", "b", "a"]
    assert [r.conversation_id for r in await conversations.list_conversations(scope="ada", limit=1)] == ["c"]
    assert await conversations.load("b", scope="ada") is None
    await conversations.delete("c", scope="bob")
    await conversations.delete("a")
    assert [record.conversation_id for record in await conversations.list_conversations()] == ["c", "b"]
    assert await conversations.load("a") is None
    await saved(conversations, "a", "anew")
    assert said(await conversations.load("a")) == ["anew", "anew!"]


async def test_an_entry_that_is_not_there_is_a_lookup_error(conversations: ConversationStore) -> None:
    """And no record ends with it."""
    with pytest.raises(LookupError):
        await conversations.read_entry("none")
    conversation = await saved(conversations)
    record = await conversations.read_record("c1")
    assert record is not None
    record.head_id = "none"
    with pytest.raises(ConversationConflict):
        await conversations.write_record(record, expected_revision=conversation.revision)


def test_a_store_without_an_event_loop_is_refused_before_anything_is_written() -> None:
    """A capability takes one; the framework awaits its stores of conversations."""
    with timeline.sync.open_store("memory://") as store, pytest.raises(InvalidArgument, match=r"timeline\.open_store"):
        TimelineConversationStore(store)  # type: ignore[arg-type]


async def test_another_process_loads_it(tmp_path: Path) -> None:
    """From the file, by an instance that has not read it before; an entry is found by its id alone."""
    async with open_store(tmp_path / "a.db") as store:
        conversations = TimelineConversationStore(store)
        await saved(conversations)
        fork = await conversations.fork("c1", at=2, new_conversation_id="c2")
        fork.messages += turn("due")
        [entry, _] = await conversations.save(fork)
    async with open_store(tmp_path / "a.db") as store:
        assert await TimelineConversationStore(store).read_entry(entry.id) == entry
        assert said(await TimelineConversationStore(store).load("c2")) == ["one", "one!", "due", "due!"]
        for id_ in ("c1", "c2"):
            assert (await (await timeline_of(store, id_)).verify()).ok


async def test_a_store_that_lives_for_long_keeps_the_places_of_the_newest_entries_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each save ends with another entry; one that is no longer known is found in the whole store."""
    monkeypatch.setattr(pydantic_ai_store, "_MOST_HOMES", 3)
    conversations = TimelineConversationStore(MemoryStore())
    first = await saved(conversations, "c1", "one")
    for number in range(2, 9):
        await saved(conversations, f"c{number}", "one", "two")
    assert len(conversations._homes) == 3
    assert said(await conversations.load(first.conversation_id)) == ["one", "one!"]


async def test_what_a_step_reads_does_not_grow_with_the_saves_before_it() -> None:
    """A save, one without anything new, the record, the newest entries, and one entry; only a load reads all."""
    read: list[list[int]] = []
    for saves in (40, 200):
        store = Counted()
        conversations = TimelineConversationStore(store)
        conversation = await saved(conversations, "c1", *map(str, range(saves)))
        record = await conversations.read_record("c1")
        assert record is not None
        conversation.messages += turn("one more")
        steps: list[Callable[[], Awaitable[object]]] = [
            lambda: conversations.save(conversation),  # noqa: B023 - called in this round
            lambda: conversations.save(conversation),  # noqa: B023
            lambda: conversations.read_record("c1"),  # noqa: B023
            lambda: conversations.read_history(record.head_id, limit=4),  # noqa: B023
            lambda: conversations.read_entry(str(record.head_id)),  # noqa: B023
        ]
        read.append([await events_read(store, step) for step in steps])
    assert read[0] == read[1]


async def test_with_the_capability_there_is_one_log(tmp_path: Path) -> None:
    """A long run is compacted, branched in the middle, and forked; the model sees the fork's own summaries."""
    async with open_store(tmp_path / "a.db") as store:
        with FakeProvider(working(14), limit=4_500) as provider:
            conversations = TimelineConversationStore(store)
            agent = agent_of(provider, store)
            result = await agent.run("Fix it.", conversation=Conversation(conversation_id="c1"))
            await conversations.save(result)
            loaded = await conversations.load("c1")
            assert loaded == serialized(result.conversation)
            forked = await conversations.fork("c1", new_conversation_id="c2")
            other = await timeline_of(store, "c2")
            assert other.window.summaries == (await timeline_of(store)).window.summaries
            await conversations.save(await agent.run("And in Rust?", conversation=forked))
            branched = await conversations.branch("c1", at=1, expected_revision=result.conversation.revision)
            await conversations.save(await agent.run(conversation=branched))
            assert all_fine(await (await timeline_of(store)).verify(), provider)
            assert all_fine(await (await timeline_of(store, "c2")).verify(), provider)
        assert "[" in provider.asked[15].text
        assert [text for _, text in provider.asked[-1].said] == ["Fix it."]


async def test_a_paused_run_goes_on_from_what_was_stored() -> None:
    """Approvals are part of the conversation."""
    store = MemoryStore()
    conversations = TimelineConversationStore(store)
    with FakeProvider([Answer(calls=(Call("bash", {"command": "rm"}, "x"),)), "Done."]) as provider:
        options: Any = {"tools": [Tool(bash, requires_approval=True)], "output_type": [str, DeferredToolRequests]}
        first = await agent_of(provider, store, **options).run(
            "Fix it.", conversation=Conversation(conversation_id="c1")
        )
        await conversations.save(first)
        loaded = await TimelineConversationStore(store).load("c1")
        assert loaded is not None
        assert loaded.deferred_tool_requests is not None
        results = loaded.deferred_tool_requests.build_results(approve_all=True)
        await agent_of(provider, store, **options).run(conversation=loaded, deferred_tool_results=results)
        assert all_fine(await (await timeline_of(store)).verify(), provider)
    assert "ran rm" in provider.asked[-1].text


async def test_a_timelines_own_fork_is_a_conversation_that_loads() -> None:
    """With the past that it shares, and a record of its own from its first save on."""
    store = MemoryStore()
    conversations = TimelineConversationStore(store)
    await saved(conversations)
    await (await Timeline.open(store, "c1", create=False)).fork(conversation="mine")
    mine = await conversations.load("mine")
    assert mine is not None
    mine.messages += turn("three")
    await conversations.save(mine)
    assert said(await conversations.load("mine"))[-2:] == ["three", "three!"]
    assert said(await conversations.load("c1"))[-2:] == ["two", "two!"]


async def test_a_scavenge_leaves_the_frameworks_history(tmp_path: Path) -> None:
    """What the blocks before the window said is removed; what the framework stores as its own is not."""
    async with open_store(tmp_path / "a.db") as store:
        with FakeProvider(working(14)) as provider:
            capability = TimelineCapability[None](store, policy=small())
            agent: Agent[None, str] = agent_of(provider, store, capability=capability)
            result = await agent.run("Fix it.", conversation=Conversation(conversation_id="c1"))
            await TimelineConversationStore(store).save(result)
        await store.set_retention("window")
        assert (await scavenge(store, budget=Budget(events=10_000))).events
        assert await TimelineConversationStore(store).load("c1") == serialized(result.conversation)
