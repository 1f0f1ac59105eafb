"""Events: what the log keeps, byte for byte (design, section 2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.depth import examples
from tests.scenes import AT, log_of, opened
from timeline.blocks import CustomBlock, NewerBlock, RangeSummary, UserPrompt, instant_text, parse_instant
from timeline.errors import StoreCorrupt
from timeline.events import (
    BlockAppended,
    BlocksHidden,
    CompactionCompleted,
    ContextRendered,
    ConversationOpened,
    Covers,
    ModelCalled,
    NewEvent,
    Payload,
    Replacement,
    UnknownPayload,
    WrittenBy,
    appended_block,
    derived_event_id,
    event_id,
)
from timeline.events.encoding import PAYLOADS, checksum, decode_payload, encode_payload
from timeline.frozen import canonical_json, compact_json
from timeline.store.memory import MemoryStore


def test_the_event_types_are_those_of_the_design() -> None:
    """Each event of this version has its dotted name."""
    assert sorted(PAYLOADS) == [
        "block.appended",
        "block.redacted",
        "blocks.hidden",
        "blocks.pinned",
        "blocks.revealed",
        "blocks.unpinned",
        "compaction.boundary",
        "compaction.completed",
        "compaction.failed",
        "compaction.reverted",
        "compaction.started",
        "context.overflowed",
        "context.rendered",
        "conversation.opened",
        "framework.entry",
        "framework.record",
        "hook.failed",
        "model.called",
        "policy.changed",
        "policy.overridden",
        "prefix.changed",
        "retention.set",
        "stage.approved",
        "stage.entered",
        "stage.rewound",
        "tools.changed",
    ]


ITEMS = st.lists(st.one_of(st.integers(), st.text(), st.none(), st.dictionaries(st.text(), st.text(), max_size=2)))


@given(st.integers(0, 3), st.integers(0, 3), st.lists(ITEMS, min_size=1, max_size=3))
@settings(max_examples=examples(100))
def test_long_lists_are_written_as_the_whole_would_be(of_own: int, nested: int, items: list[list[Any]]) -> None:
    """A decision about thousands of blocks is written in parts, which nothing in the text shows."""
    lists = [[*each * 150][: 150 * size] for size, each in zip((of_own, nested), (items[0], items[-1]), strict=True)]
    data: dict[str, Any] = {
        "a": 1,
        "ü": lists[0],
        "digest": {"deep": {"list": lists[1]}, "list": lists[1], "x": []},
        "z": {},
    }
    assert encode_payload(UnknownPayload(type="x", data=data)) == compact_json(data)


@given(
    st.text(),
    st.none()
    | st.dictionaries(st.text(), st.text() | st.floats(allow_nan=False, allow_infinity=False) | st.integers()),
)
@settings(max_examples=examples(50))
def test_a_hide_that_shows_a_long_text_is_written_as_any_other(text: str, arguments: dict[str, Any] | None) -> None:
    """It is written in less time, which nothing in the text shows."""
    blocks = (
        Replacement(version=2, text=text + "é\n" * 5_001, tokens=9, repeats=(1,)),
        Replacement(version=3, arguments=arguments),
    )
    hidden = BlocksHidden(reason="numbered", blocks=blocks, facts={"blocks": 2})
    assert encode_payload(hidden) == compact_json(hidden.dump())


@pytest.mark.parametrize(
    "payload",
    [
        ConversationOpened(title="A talk"),
        BlockAppended(block=UserPrompt(text="hi", at=AT), tokens=1, counter="chars4"),
        BlockAppended(block=CustomBlock(type="app.event", data={"b": 1, "a": [1.0, 2]}), tokens=0, counter="chars4"),
        BlocksHidden(
            reason="ttl", blocks=(Replacement(version=2, arguments={"a": 1}, tokens=3), Replacement(version=3))
        ),
        ModelCalled(model="m", started_at=AT),
        ContextRendered(version=3, projection=1, fingerprint="f", policy="p"),
        CompactionCompleted(
            block=RangeSummary(text="s", path="su:t.conv.range.summary", turn_id="t"),
            tokens=1,
            counter="chars4",
            covers=Covers(ranges=((2, 5), (7, 9)), summaries=(6,)),
            written_by=WrittenBy(summarizer="extractive"),
        ),
    ],
    ids=lambda payload: payload.type,
)
def test_a_payload_survives_its_round_trip(payload: Payload) -> None:
    """What is stored reads back as the same value and is written as the same text."""
    text = encode_payload(payload)
    again = decode_payload(payload.type, payload.schema_version, text)
    assert again == payload
    assert encode_payload(again) == text


@pytest.mark.parametrize(
    ("type_", "schema_version"),
    [("block.appended", 2), ("compaction.completed", 9), ("tide.turned", 1), ("weather.changed", 3)],
)
def test_what_a_later_version_wrote_survives_byte_for_byte(type_: str, schema_version: int) -> None:
    """A later schema version of a known type, or a type of later days, is written back as it was read."""
    text = canonical_json(
        {"new": {"z": [1, 1.0, 1e300, None], "a": "é\u2028"}, "block": {"type": "user.prompt", "x": 1}}
    )
    payload = decode_payload(type_, schema_version, text)
    assert isinstance(payload, UnknownPayload)
    assert encode_payload(payload) == text
    event = NewEvent(id=event_id(AT), at=AT, payload=payload)
    assert (event.type, event.schema_version) == (type_, schema_version)


async def test_a_log_with_events_of_a_later_version_opens_and_shows_their_blocks() -> None:
    """Reading never fails for what is new; a block in it has its text and its place in the window."""
    store = MemoryStore()
    data: dict[str, Any] = {
        "block": {"type": "user.prompt", "path": "ar:t.user.prompt", "turn_id": "t", "text": "hello", "mood": "new"},
        "tokens": 7,
    }
    await opened(store)
    later = UnknownPayload(type="block.appended", data=data, stored_schema_version=2)
    await store.append("c", [NewEvent(id=event_id(AT), at=AT, payload=later)])
    timeline = await opened(store)
    [item] = timeline.window.items
    assert isinstance(item.block, NewerBlock)
    assert (item.block.text, item.tokens) == ("hello", 7)
    assert (await log_of(store))[-1].payload == later
    assert (await timeline.verify()).ok


def test_a_newer_block_is_found_in_an_unknown_event() -> None:
    """An event of an unknown type may append a block; one without adds none."""
    block = appended_block(UnknownPayload(type="x.y", data={"block": {"type": "note", "text": "n"}}))
    assert block is not None
    assert block.text == "n"
    assert appended_block(UnknownPayload(type="x.y", data={"other": 1})) is None
    assert appended_block(ModelCalled()) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"tokens":1}'])
def test_a_payload_that_does_not_hold_is_corruption(text: str) -> None:
    """A known type whose stored text is broken is damage, not something new."""
    with pytest.raises(StoreCorrupt, match=r"block\.appended"):
        decode_payload("block.appended", 1, text)


def test_defaults_are_not_stored() -> None:
    """The stored text holds only what differs from the defaults."""
    assert encode_payload(ModelCalled(model="m")) == '{"model":"m"}'


def test_coverage_is_asked_by_version() -> None:
    """A range includes both its ends; a superseded summary is covered by name."""
    covers = Covers(ranges=((2, 5), (8, 8)), summaries=(11,))
    assert [v for v in range(1, 13) if v in covers] == [2, 3, 4, 5, 8, 11]


def test_an_event_id_is_a_uuid_of_version_7_that_begins_with_its_time() -> None:
    """Ids sort by time, to the millisecond."""
    at = datetime(2026, 3, 1, 12, 0, 0, 123_456, tzinfo=UTC)
    id_ = event_id(at)
    assert (id_.version, id_.variant) == (7, "specified in RFC 4122")
    assert id_.int >> 80 == int(at.timestamp() * 1000)
    assert event_id(at + timedelta(milliseconds=1)) > id_


def test_event_ids_of_one_moment_differ() -> None:
    """What is random in them tells them apart."""
    assert len({event_id(AT) for _ in range(1000)}) == 1000


def test_a_derived_id_is_the_same_each_time() -> None:
    """The same recorded thing has the same id, on every machine."""
    assert derived_event_id(AT, "conversation", "line 7") == UUID("019ca945-0a00-72e6-99e9-931c8e389fc7")
    assert derived_event_id(AT, "conversation", "line 7").version == 7


def test_a_derived_id_depends_on_each_part_and_on_the_time() -> None:
    """Parts are kept apart: moving a letter from one to the next gives another id."""
    ids = {
        derived_event_id(AT, "ab", "c"),
        derived_event_id(AT, "a", "bc"),
        derived_event_id(AT, "abc"),
        derived_event_id(AT + timedelta(seconds=1), "ab", "c"),
    }
    assert len(ids) == 4


def test_a_checksum_covers_everything_but_the_position() -> None:
    """Any change to what the log says of an event changes its checksum."""
    parts: list[Any] = ["c", 1, "id", "block.appended", 1, "2026", "{}"]
    sums = {checksum(*parts)}
    for place in range(len(parts)):
        changed = [*parts]
        changed[place] = 2 if isinstance(parts[place], int) else parts[place] + "x"
        sums.add(checksum(*changed))
    assert len(sums) == len(parts) + 1


def test_a_moment_is_written_in_one_way() -> None:
    """Microseconds and ``Z``, whatever the moment."""
    assert instant_text(AT) == "2026-03-01T12:00:00.000000Z"
    assert parse_instant(instant_text(AT)) == AT


def test_a_moment_is_read_from_other_zones_too() -> None:
    """An offset is turned to UTC; no offset is refused."""
    assert parse_instant("2026-03-01T14:00:00+02:00") == AT
    with pytest.raises(ValueError, match="time zone"):
        parse_instant("2026-03-01T12:00:00")


@pytest.mark.parametrize("text", ["2026", "2026-03-01", "20260301", "1772366400", "-5", "1.5"])
def test_a_number_or_a_day_is_no_moment(text: str) -> None:
    """Nobody means seconds since 1970 by it: a search since 2026 found everything."""
    with pytest.raises(ValueError, match="a number or a day is no time"):
        parse_instant(text)
