"""A subject is found wherever it is stored, also where followers of all conversations do not read yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from tests.forgetting.planted import PLAIN, plant
from tests.store.postgres.test_long_transactions import held
from timeline import Timeline, open_store
from timeline.blocks import UserPrompt
from timeline.errors import InvalidArgument
from timeline.forgetting import find_subject
from timeline.store.postgres import horizon
from timeline.store.postgres.store import PostgresStore
from timeline.store.testing import block_event

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.postgres_server import Server
    from timeline.forgetting import FoundPlace
    from timeline.ports import EventStore
    from timeline.queries import StoredFact

KINDS = {"block", "summary", "title", "event", "value"}


async def found(store: EventStore, *conversations: str) -> list[FoundPlace]:
    """Return every place of the planted secret."""
    return [place async for place in find_subject(store, PLAIN, conversations or None)]


async def test_every_place_is_found_while_a_transaction_writes_in_another_database(
    own_postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same places are found when it has ended."""
    monkeypatch.setattr(horizon, "_PATIENCE", 0.1)
    async with await PostgresStore.open(own_postgres.url()) as store:
        async with held(own_postgres, "other"):
            await plant(store)
            assert [event async for event in store.read_all()] == []
            meanwhile = await found(store)
            own = await found(store, "cards.late")
        assert {place.kind for place in meanwhile} >= KINDS
        assert meanwhile == await found(store)
        assert own == [place for place in meanwhile if place.conversation == "cards.late"]


async def test_every_place_is_found_in_a_store_whose_events_are_above_the_counter_of_its_server(
    own_postgres: Server,
) -> None:
    """As in one that was restored into a younger server and that nobody has opened for writing since."""
    async with await PostgresStore.open(own_postgres.url()) as store:
        await plant(store)
        before = await found(store)
    connection = await asyncpg.connect(own_postgres.url())
    await connection.execute("UPDATE timeline.store_meta SET xid_offset = xid_offset - 100000")
    await connection.close()
    async with await PostgresStore.open(own_postgres.url(), readonly=True) as store:
        assert [event async for event in store.read_all()] == []
        assert await found(store) == before


async def test_events_are_listed_by_conversation_and_then_by_version() -> None:
    """Not as they were appended; conversations in the order in which they were opened, or in which they are named."""
    async with open_store("memory://") as store:
        for conversation, path in (("a", "p"), ("b", "p"), ("a", "q")):
            await store.append(conversation, [block_event(path, PLAIN)])
        listed = [(place.conversation, place.place) for place in await found(store)]
        assert listed == [("a", "@1"), ("a", "@2"), ("b", "@1")]
        named = [(place.conversation, place.place) for place in await found(store, "b", "a")]
        assert named == [("b", "@1"), ("a", "@1"), ("a", "@2")]


async def test_a_place_in_one_conversation_is_found_without_the_list_and_the_facts_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both grow with the store, and what one conversation holds does not."""
    asked: list[object] = []
    async with open_store("memory://") as store:
        for conversation in ("a", "b"):
            await store.append(conversation, [block_event("p", PLAIN)])
        facts = store.facts

        def asking(**given: Any) -> AsyncIterator[StoredFact]:
            asked.append(given)
            return facts(**given)

        monkeypatch.setattr(store, "conversations", None)
        monkeypatch.setattr(store, "facts", asking)
        assert [place.place for place in await found(store, "b")] == ["@1"]
    assert asked == []


async def test_a_text_that_no_store_can_hold_is_refused() -> None:
    """A lone surrogate is stored as U+FFFD, so that "nowhere" would be wrong: who asks has another encoding."""
    async with open_store("memory://") as store:
        timeline = await Timeline.open(store, "cards")
        await timeline.append(UserPrompt(text="M\udcfcsli"))
        with pytest.raises(InvalidArgument, match="LC_ALL"):
            await anext(find_subject(store, "M\udcfcsli"))


async def test_what_a_fork_shares_is_found_once() -> None:
    """Under the conversation that it was forked from."""
    async with open_store("memory://") as store:
        timeline = await Timeline.open(store, "cards")
        await timeline.append({"type": "user.prompt", "text": PLAIN})
        await timeline.fork(conversation="branch")
        assert [place.conversation for place in await found(store)] == ["cards"]
        assert await found(store, "branch") == []


async def test_a_conversation_that_is_erased_meanwhile_is_left_out_and_its_fork_is_not() -> None:
    """The fork keeps what both shared as its own, and there it is found."""
    async with open_store("memory://") as store:
        timeline = await Timeline.open(store, "cards", title=PLAIN)
        await timeline.append({"type": "user.prompt", "text": PLAIN})
        await timeline.fork(conversation="branch")
        first = await Timeline.open(store, PLAIN)  # the id is a place: the first one that is yielded
        assert first.id == PLAIN
        looking = find_subject(store, PLAIN)
        assert (await anext(looking)).kind == "conversation"
        await store.erase("cards", forks="copy")
        assert [place.conversation async for place in looking] == ["branch", "branch"]


async def test_a_place_says_whether_it_has_the_text_as_it_was_asked_for_and_how_often() -> None:
    """It is not exact where only the folded texts are the same; both ways of writing it count."""
    async with open_store("memory://") as store:
        await store.append("a", [block_event(path, text) for path, text in (("p", "Jane met JANE."), ("q", "JANE"))])
        listed = [(place.place, place.exact, place.times) async for place in find_subject(store, "Jane")]
        assert listed == [("@1", True, 2), ("@2", False, 1)]


async def test_to_find_a_subject_makes_no_facts_where_nothing_was_scavenged(tmp_path: Path) -> None:
    """The log says all that they say, and to make them takes longer than to read it."""
    async with open_store(tmp_path / "agent.db") as store:
        timeline = await Timeline.open(store, "cards")
        await timeline.append(UserPrompt(text="Ask jane@example.org."))
        assert [place.place async for place in find_subject(store, "jane@example.org")] == ["@2"]
        assert (await store.fact_reach()).position == 0
