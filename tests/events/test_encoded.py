from __future__ import annotations

from datetime import UTC, datetime

import pytest

from timeline.blocks import UserPrompt, instant_text
from timeline.errors import InvalidBlock
from timeline.events import BlockAppended, ModelCalled, NewEvent, Payload, event_id
from timeline.events.appended import Columns, columns_of
from timeline.events.encoded import EncodedEvent, encoded_event
from timeline.events.encoding import checksum, encode_payload
from timeline.ports import Expected
from timeline.store.codec import encode
from timeline.store.memory import MemoryStore

AT = datetime(2026, 1, 1, tzinfo=UTC)
PROMPT = BlockAppended(block=UserPrompt(text="hé", path="p", turn_id="turn_1", at=AT), tokens=2, counter="chars4")
CALLED = ModelCalled(model="m", duration=0.25)


def plain(payload: Payload) -> NewEvent:
    """Return an event that nobody wrote before."""
    return NewEvent(id=event_id(AT), at=AT, payload=payload)


def written(event: NewEvent, version: int = 1) -> EncodedEvent:
    """Return the same event as an import brings it to the conversation ``a``."""
    text, at = encode_payload(event.payload), instant_text(event.at)
    own = (str(event.id), at, event.type, event.schema_version)
    proved = (version, checksum("a", version, event.id, event.type, event.schema_version, at, text))
    return encoded_event(own, text, columns=columns_of(text), proved=proved)


@pytest.mark.parametrize("payload", [PROMPT, CALLED], ids=lambda payload: payload.type)
def test_an_event_that_was_written_before_has_the_values_of_the_plain_one(payload: Payload) -> None:
    """Whatever is asked first: its id, its time, its payload, its type or its schema version."""
    event = plain(payload)
    for first in ("id", "at", "payload", "type", "schema_version"):
        found = written(event)
        assert getattr(found, first) == getattr(event, first)
        assert (found.id, found.at, found.payload, found.type) == (event.id, event.at, payload, event.type)


def test_an_event_that_was_written_before_has_no_other_fields() -> None:
    """A wrong name is the error that it is on any event."""
    with pytest.raises(AttributeError, match="position"):
        _ = written(plain(PROMPT)).position  # type: ignore[attr-defined] # what is tested


@pytest.mark.parametrize("payload", [PROMPT, CALLED], ids=lambda payload: payload.type)
def test_an_event_that_was_written_before_is_stored_as_the_plain_one(payload: Payload) -> None:
    """Alone, and beside an event that was not."""
    events = [plain(payload) for _ in range(2)]
    (both, first) = ([written(e) for e in events], [written(events[0]), events[1]])
    if payload is PROMPT:
        events, both, first = events[:1], both[:1], first[:1]  # its path is taken once
    drafts = encode("a", events, Expected.ANY, {}, None).drafts
    assert encode("a", both, Expected.ANY, {}, None).drafts == drafts
    assert encode("a", first, Expected.ANY, {}, None).drafts == drafts


async def test_a_checksum_that_was_compared_holds_for_its_version_alone() -> None:
    """An event that comes at another version than it was written for has the checksum of that one."""
    async with MemoryStore() as store:
        events = [written(plain(CALLED), version) for version in (1, 2)]
        await store.append("a", [events[1]])
        await store.append("a", [events[0]])
        found = [event async for event in store.read("a")]
    assert [event.id for event in found] == [events[1].id, events[0].id]
    assert {event.checksum for event in found}.isdisjoint(event.proved[1] for event in events if event.proved)


def test_a_number_that_no_column_holds_is_refused() -> None:
    """The columns of an event that was written before are looked at as those of any other."""
    own = (str(event_id(AT)), instant_text(AT), PROMPT.type, 1)
    event = encoded_event(own, encode_payload(PROMPT), columns=Columns("p", None, 2**63))
    with pytest.raises(InvalidBlock, match="64 bits"):
        encode("a", [event], Expected.ANY, {}, None)
