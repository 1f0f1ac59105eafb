from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeline.blocks import KNOWN_TYPES, Block, CustomBlock, UserPrompt, instant_text, newer_block
from timeline.errors import InvalidBlock, StoreCorrupt, StoreTooNew
from timeline.events import BlockAppended, NewEvent, UnknownPayload, event_id
from timeline.events.encoding import checksum, encode_payload
from timeline.events.other_payloads import CompactionFailed
from timeline.frozen import sha256_hex
from timeline.ports import Expected
from timeline.store.codec import decode, decode_snapshot, decode_value, encode
from timeline.store.testing import event

if TYPE_CHECKING:
    from timeline.store.codec import Row

TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=300)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
MOMENTS = st.datetimes(timezones=st.just(UTC))


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    """Any block, with any of its fields set or left at its default."""
    classes: list[type[Block]] = [*KNOWN_TYPES.values(), CustomBlock]
    cls = draw(st.sampled_from(classes))
    fields: dict[str, Any] = {"type": "my.own"} if cls is CustomBlock else {}
    for name, field in cls.model_fields.items():
        if name != "type" and (field.is_required() or draw(st.booleans())):
            fields[name] = draw(_values(name))
    return cls(**fields)


def _values(name: str) -> st.SearchStrategy[Any]:
    match name:
        case "at":
            return MOMENTS
        case "data":
            return JSON
        case "meta" | "arguments":
            return st.dictionaries(TEXTS, JSON, max_size=3)
        case "pending" | "is_error":
            return st.booleans()
        case "exit_status":
            return st.none() | st.integers()
        case "call_id" | "name":
            return TEXTS.filter(bool)
        case _:
            return TEXTS


def _stored(payload: BlockAppended, at: datetime) -> str:
    (draft,) = encode("a", [NewEvent(id=event_id(at), at=at, payload=payload)], Expected.ANY, {}, None).drafts
    return draft.payload


@given(block=blocks(), at=MOMENTS, tokens=st.integers(0, 2**40), counter=st.text())
def test_the_fast_way_writes_the_bytes_of_the_definition(block: Block, at: datetime, tokens: int, counter: str) -> None:
    """Whatever a block holds, and whether or not it has its event's time, both ways write the same text."""
    for dated in (block, block.model_copy(update={"at": at})):
        payload = BlockAppended(block=dated, tokens=tokens, counter=counter)
        assert _stored(payload, at) == encode_payload(payload)


def test_a_time_in_another_zone_is_stored_as_the_same_moment() -> None:
    """A block that went round the validator, with a local time, still says when it was."""
    local = datetime.fromisoformat("2026-03-01T12:00:00+02:00")
    block = UserPrompt(text="x").model_copy(update={"at": local})
    stored = _stored(BlockAppended(block=block, tokens=1, counter="c"), datetime.now(UTC))
    assert '"at":"2026-03-01T10:00:00Z"' in stored


@given(moments=st.lists(MOMENTS | MOMENTS.map(lambda at: at.replace(microsecond=0)), min_size=1, max_size=3))
def test_every_id_and_time_of_an_append_is_written_in_the_one_form_that_is_hashed(moments: list[datetime]) -> None:
    """Together or alone: ids as texts, times in UTC with their microseconds, also where these are zero."""
    events = [NewEvent(id=event_id(at), at=at, payload=CompactionFailed(reason="failed")) for at in moments]
    drafts = encode("a", events, Expected.ANY, {}, None).drafts
    assert [(draft.event_id, draft.at) for draft in drafts] == [(str(e.id), instant_text(e.at)) for e in events]


@pytest.mark.shows("004-56")
@given(block=blocks(), at=MOMENTS)
def test_an_event_comes_back_from_its_row_as_it_was(block: Block, at: datetime) -> None:
    """Encoding and decoding give back id, time and payload."""
    written = NewEvent(id=event_id(datetime.now(UTC)), at=at, payload=BlockAppended(block=block, tokens=1, counter="c"))
    read = decode("a", _row(written), "here")
    assert (read.id, read.at, read.payload) == (written.id, written.at, written.payload)


def test_a_block_of_a_later_version_is_indexed_and_kept() -> None:
    """Path, turn and tokens of a block that cannot be read yet still get their columns."""
    data: dict[str, Any] = {"block": {"type": "x.y", "path": "p", "turn_id": "t", "new": 1}, "tokens": 7}
    (draft,) = encode("a", [event(UnknownPayload(type="block.later", data=data))], Expected.ANY, {}, None).drafts
    assert (draft.path, draft.turn_id, draft.tokens) == ("p", "t", 7)
    newer = BlockAppended(block=newer_block({"type": "x.y", "path": "q"}), tokens=1, counter="c")
    (draft,) = encode("a", [event(newer)], Expected.ANY, {}, None).drafts
    assert (draft.path, draft.payload) == ("q", encode_payload(newer))


@pytest.mark.parametrize("later", [{"shown_as": "a list"}, {"mode": "folded"}, {"blocks": [{"version": 3, "of": 2}]}])
def test_an_event_with_what_only_a_later_version_knows_is_no_damage(later: dict[str, Any]) -> None:
    """Neither a new field nor a new choice: who put a backup in its place would lose what was appended since."""
    data = {"reason": "age", "blocks": [{"version": 3}], **later}
    written = event(UnknownPayload(type="blocks.hidden", data=data))
    with pytest.raises(StoreTooNew, match=r"event 3 .* is of a later version.*Upgrade timeline-engine") as refused:
        decode("a", _row(written), "agent.db")
    assert "restore" not in str(refused.value)


def test_an_event_with_a_field_of_another_kind_is_damaged() -> None:
    """No version writes it so, whatever else it holds."""
    written = event(UnknownPayload(type="blocks.hidden", data={"reason": 3, "blocks": [], "shown_as": "a list"}))
    with pytest.raises(StoreCorrupt, match=r"is damaged.*`timeline restore FILE`"):
        decode("a", _row(written), "agent.db")


@pytest.mark.parametrize("tokens", ["many", True, -1, 2**70, None])
def test_tokens_that_the_column_cannot_hold_are_left_out(tokens: Any) -> None:
    """A later version may mean something else by "tokens"; the payload keeps it all the same."""
    unknown = UnknownPayload.model_construct(type="block.later", data={"tokens": tokens})
    (draft,) = encode("a", [event(unknown)], Expected.ANY, {}, None).drafts
    assert draft.tokens is None
    assert draft.payload == encode_payload(unknown)


def test_a_number_beyond_64_bits_is_refused() -> None:
    """What no column can hold is named before anything is written."""
    huge = UnknownPayload(type="block.later", data={}, stored_schema_version=2**70)
    with pytest.raises(InvalidBlock, match="64 bits"):
        encode("a", [event(huge)], Expected.ANY, {}, None)


@pytest.mark.parametrize("column", range(1, 11))
def test_damage_in_any_column_is_noticed(column: int) -> None:
    """The checksum covers all up to itself; path, turn and tokens are compared with the payload."""
    block = UserPrompt(text="x", path="ar:turn_1.user.prompt", turn_id="turn_1")
    row = list(_row(event(BlockAppended(block=block, tokens=1, counter="c"))))
    row[column] = row[column] + 1 if isinstance(row[column], int) else row[column][:-1] + "~"
    with pytest.raises(StoreCorrupt, match=r"conversation 'a' \(position 9\)") as damage:
        decode("a", tuple(row), "agent.db")
    assert "agent.db: event" in str(damage.value)


def test_an_event_of_another_conversation_is_noticed() -> None:
    """The checksum covers the conversation: a row that was moved is a damaged row."""
    row = _row(event(BlockAppended(block=UserPrompt(text="x"), tokens=1, counter="c")))
    with pytest.raises(StoreCorrupt):
        decode("b", row, "agent.db")


@pytest.mark.parametrize("payload", ["", "[]", "{", '{"block":{"type":"user.prompt"}}'])
def test_a_payload_that_is_not_what_its_type_says_is_corrupt(payload: str) -> None:
    """Even with a right checksum, what cannot be read is reported with its place."""
    _, version, id_, type_, schema, at, _, _, *columns = _row(
        event(BlockAppended(block=UserPrompt(text="x"), tokens=1, counter="c"))
    )
    hashed = checksum("a", version, id_, type_, schema, at, payload)
    row = (9, version, id_, type_, schema, at, payload, hashed, *columns)
    with pytest.raises(StoreCorrupt, match=r"event 3 of conversation 'a' \(position 9\) is damaged"):
        decode("a", row, "agent.db")


def test_a_damaged_snapshot_or_value_is_noticed() -> None:
    """Neither is used when its text does not have its hash."""
    body = '{"version":3,"window_start":2}'
    assert decode_snapshot("a", body, sha256_hex(body), "agent.db").version == 3
    with pytest.raises(StoreCorrupt, match="snapshot of conversation 'a'"):
        decode_snapshot("a", body.replace("3", "4"), sha256_hex(body), "agent.db")
    with pytest.raises(StoreCorrupt, match="snapshot of conversation 'a'"):
        decode_snapshot("a", "{}", sha256_hex("{}"), "agent.db")
    with pytest.raises(StoreCorrupt, match="stored value"):
        decode_value("0" * 64, "text", "agent.db")


def _row(written: NewEvent) -> Row:
    (draft,) = encode("a", [written], Expected.ANY, {}, None).drafts
    return (9, 3, *draft[:4], draft.payload, draft.checksum("a", 3), *draft[4:7])
