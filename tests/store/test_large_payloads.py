"""Events of more than a million characters: written like all others, though no copy of them is kept meanwhile."""

from __future__ import annotations

from time import thread_time
from typing import TYPE_CHECKING

import pytest

from tests.scenes import AT
from timeline import open_store
from timeline.blocks import UserPrompt
from timeline.errors import DuplicateEvent, PathTaken
from timeline.events import BlocksHidden, NewEvent, Replacement, appended_block, block_appended, event_id
from timeline.events.encoding import encode_payload
from timeline.ports import Expected

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from timeline.ports import EventStore

LARGE = "a long line of output\n" * 100_000


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventStore]:
    """Give an empty store of each kind."""
    async with open_store("memory://" if request.param == "memory" else tmp_path / "agent.db") as opened:
        yield opened


def said(path: str, text: str = LARGE) -> NewEvent:
    """Return the event of a prompt."""
    block = UserPrompt(text=text, path=path, turn_id="turn_1", at=AT)
    return NewEvent(id=event_id(AT), at=AT, payload=block_appended(block, 1, "chars4"))


async def test_large_and_small_events_keep_their_order_and_texts(store: EventStore) -> None:
    """In one append, and with their checksums."""
    texts = ["small", LARGE, "ä" * 1_500_000, "small again", LARGE]
    await store.append("c", [said(f"p{n}", text) for n, text in enumerate(texts)])
    events = [event async for event in store.read("c")]
    assert [event.version for event in events] == [1, 2, 3, 4, 5]
    assert [block.text for event in events if (block := appended_block(event.payload))] == texts
    assert [event.position for event in events] == sorted(event.position for event in events)


async def test_a_large_event_is_appended_once(store: EventStore) -> None:
    """The same append again answers with the place of the first one."""
    events = [said("p1"), said("p2")]
    first = await store.append("c", events, expected=Expected.ANY)
    again = await store.append("c", events, expected=Expected.ANY)
    assert (again.first_version, again.repeated) == (first.first_version, True)
    assert (await store.info("c")).version == 2


async def test_a_large_event_in_the_place_of_another_is_refused(store: EventStore) -> None:
    """By its id or by its path; nothing is written, and the next append is."""
    known = said("p1")
    await store.append("c", [known])
    with pytest.raises(PathTaken):
        await store.append("c", [said("p2"), said("p1")])
    with pytest.raises(DuplicateEvent):
        await store.append("c", [NewEvent(id=known.id, at=AT, payload=said("p3").payload)])
    assert (await store.info("c")).version == 1
    await store.append("c", [said("p2")])
    blocks = [appended_block(event.payload) async for event in store.read("c")]
    assert [block.path for block in blocks if block] == ["p1", "p2"]


async def test_a_decision_about_very_many_blocks_is_encoded_off_the_loop(tmp_path: Path) -> None:
    """The loop's own thread spends a fraction of what encoding takes, in one of five appends at the least.

    In any of them the garbage collector may come by, in whichever thread.
    """
    shown = tuple(Replacement(version=n, text=f"{n} {'hidden ' * 40}", tokens=40) for n in range(2, 4_002))
    hidden = BlocksHidden(reason="cold", blocks=shown)
    begun = thread_time()
    encode_payload(hidden)
    encoding = thread_time() - begun
    spent: list[float] = []
    async with open_store(tmp_path / "agent.db") as store:
        for _ in range(5):
            begun = thread_time()
            await store.append("c", [NewEvent(id=event_id(AT), at=AT, payload=hidden)])
            spent.append(thread_time() - begun)
        assert [event.payload async for event in store.read("c")] == [hidden] * 5
    assert min(spent) < encoding / 2
