"""Events of some types from the newest one back, read no further than they are asked for."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from tests.log.counted import Counted
from timeline import Timeline
from timeline.blocks import Note
from timeline.errors import ConversationNotFound
from timeline.log.newest_first import newest_first

APPENDED = ["block.appended"]


async def noted(store: Counted, notes: int) -> Timeline:
    """Return a conversation of some notes."""
    timeline = await Timeline.open(store, "c")
    await timeline.append(*(Note(text=str(number)) for number in range(notes)))
    return timeline


@pytest.mark.parametrize("notes", [1, 62, 63, 64, 200, 1_000])
async def test_every_event_of_the_types_comes_once_the_newest_first(notes: int) -> None:
    """However many parts of the log it takes."""
    store = Counted()
    timeline = await noted(store, notes)
    expected = [event.version async for event in store.read("c", types=APPENDED)]
    found = [event.version async for event in newest_first(store, "c", APPENDED, until=timeline.version)]
    assert found == expected[::-1]
    assert [event.version async for event in newest_first(store, "c", APPENDED, until=expected[0])] == expected[:1]


async def test_the_newest_event_costs_one_part_of_the_log() -> None:
    """The history before it is not read."""
    store = Counted()
    timeline = await noted(store, 1_000)
    store.events = 0
    async with aclosing(newest_first(store, "c", APPENDED, until=timeline.version)) as events:
        assert (await anext(events)).version == timeline.version
    assert store.events <= 64


async def test_a_conversation_that_is_not_there_is_an_error() -> None:
    """As for every read."""
    with pytest.raises(ConversationNotFound):
        await anext(newest_first(Counted(), "c", APPENDED, until=10))
