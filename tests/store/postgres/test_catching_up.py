"""Stores whose queries bring facts and the index of words up to date at once, while others redact and erase."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.depth import DEPTH, Depth, sampled
from tests.postgres import PLACES
from timeline import Timeline, open_store
from timeline.blocks import UserPrompt
from timeline.errors import ConversationErased, ConversationNotFound
from timeline.store.postgres import facts
from timeline.store.testing import events

if TYPE_CHECKING:
    from timeline.ports import EventStore

ROUNDS: Final = {Depth.QUICK: 4, Depth.FULL: 4, Depth.NIGHT: 100}[DEPTH]
QUERIES: Final = 3


async def write(store: EventStore, name: str, gone: set[str], there: set[str]) -> None:
    """Append blocks with a word of their own; redact every third one, and erase every fourth conversation."""
    for number in range(ROUNDS):
        id_, word = f"{name}{number}", f"kept{name}{number}"
        secret = f"secret{name}{number}"
        timeline = await Timeline.open(store, id_)
        await timeline.append(UserPrompt(text=f"common {word}"), UserPrompt(text=f"common {secret}"))
        if number % 4 == 3:
            await store.erase(id_)
            gone |= {word, secret}
        elif number % 3 == 0:
            await timeline.redact([timeline.window.items[-1].block.path], "asked for")
            gone.add(secret)
            there.add(word)
        else:
            there |= {word, secret}


async def query(store: EventStore, gone: set[str], there: set[str], ended: asyncio.Event) -> None:
    """Search and ask for facts, over and over: what was acknowledged as gone is not found, and what is there is."""
    last = False
    while not last:
        last = ended.is_set()
        before, known = set(gone), set(there)
        try:
            found = " ".join([hit.snippet async for hit in store.search("common", page=500)])
            told = " ".join([fact.detail async for fact in store.facts()])
        except (ConversationErased, ConversationNotFound):
            continue  # it was erased between two pages
        words = set(found.replace("«", "").replace("»", "").split())
        assert not before & words
        assert not [word for word in before if word in told.split()]
        assert known <= words


@sampled
@pytest.mark.timeout(600)
@pytest.mark.parametrize("postgres_url", PLACES if DEPTH is Depth.NIGHT else PLACES[:1], indirect=True)
async def test_queries_that_catch_up_at_once_find_what_is_there_and_nothing_that_went(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three stores ask while two others append, redact and erase; in the end what is derived is that of the log."""
    monkeypatch.setattr(facts, "SLICE", 7)  # so that a redaction comes between two slices, and within one
    gone: set[str] = set()
    there: set[str] = set()
    ended = asyncio.Event()
    async with AsyncExitStack() as stack:
        stores: list[Any] = [await stack.enter_async_context(open_store(postgres_url)) for _ in range(QUERIES + 2)]
        await stores[0].append("first", events(30))
        asking = [asyncio.create_task(query(store, gone, there, ended)) for store in stores[2:]]
        await asyncio.gather(*(write(store, name, gone, there) for store, name in zip(stores, "ab", strict=False)))
        ended.set()
        await asyncio.gather(*asking)
        assert await stores[0].examine() == []
        requests = [fact async for fact in stores[2].facts(kind="request")]
        assert len({(fact.conversation, fact.version) for fact in requests}) == len(requests)
