from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeline.blocks import KNOWN_TYPES, Note, parse_instant
from timeline.errors import StoreCorrupt
from timeline.events import BlockAppended
from timeline.events.appended import columns_of, read_appended, written_columns
from timeline.events.encoding import decode_payload, encode_payload

NAMES = sorted({name for cls in KNOWN_TYPES.values() for name in cls.model_fields} | {"unknown"})
MOMENTS = st.sampled_from(
    [
        "2026-01-01T00:00:00.000137Z",
        "2026-01-01T00:00:00Z",
        "2026-01-01T02:00:00+02:00",
        "2026-01-01T00:00:00,000137Z",
        "2026-W01-1T00:00:00Z",
        "2026-01-01 00:00:00Z",
        "2026-01-01T00:00:00",
        "yesterday",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["\ud800", ""]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
BLOCKS = st.builds(
    lambda type_, fields: {"type": type_, **fields},
    st.sampled_from([*KNOWN_TYPES, "app.poll"]),
    st.dictionaries(st.sampled_from(NAMES), st.text(max_size=4) | MOMENTS | JSON, max_size=5),
)


@given(BLOCKS, st.integers(-1, 9) | st.none() | st.booleans(), st.text(max_size=3) | st.integers())
def test_a_block_that_is_read_at_once_is_the_one_that_pydantic_reads(
    block: dict[str, Any], tokens: Any, name: Any
) -> None:
    """Its fields, their order and the names of those that were given are the same; every error is pydantic's."""
    text = json.dumps({"block": block, "counter": name, "tokens": tokens})
    read, columns = read_appended(text), columns_of(text)
    if read is None:
        assert columns is None
        return
    assert columns == (read.block.path or None, read.block.turn_id or None, read.tokens)
    slow = BlockAppended.model_validate(json.loads(text))
    assert read == slow
    assert list(read.block.__dict__.items()) == list(slow.block.__dict__.items())
    assert read.block.model_fields_set == slow.block.model_fields_set
    assert encode_payload(read) == encode_payload(slow)


@given(BLOCKS, st.integers(-1, 9), st.text(max_size=3))
def test_a_text_is_as_written_only_if_its_payload_is_written_so(block: dict[str, Any], tokens: int, name: str) -> None:
    """Neither its spaces, the order of its fields, a default that is there, nor a form of a moment is passed over."""
    ordered = dict(sorted(block.items()))
    for spaces in ((",", ":"), (", ", ": ")):
        for ascii_ in (True, False):
            for fields in (block, ordered):
                value = {"block": fields, "counter": name, "tokens": tokens}
                text = json.dumps(value, ensure_ascii=ascii_, separators=spaces)
                raw = text.encode("utf-8", "surrogatepass")
                for time in ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000137Z"):
                    columns = written_columns(raw, time)
                    if columns is not None:
                        read = read_appended(text)
                        assert read is not None
                        assert encode_payload(read) == text
                        assert columns == columns_of(text)


@pytest.mark.parametrize("type_", KNOWN_TYPES)
def test_every_block_as_it_is_stored_is_read_at_once(type_: str) -> None:
    """A row of a known type needs no second look, whatever plain values it has."""
    cls = KNOWN_TYPES[type_]
    values: dict[str, Any] = {
        "call_id": "c",
        "name": "bash",
        "arguments": {"a": [1, {"b": None}]},
        "exit_status": 2,
        "pending": True,
    }
    values |= {"at": datetime(2026, 1, 1, tzinfo=UTC), "text": "é\n", "path": "p", "meta": {"k": True}, "data": ["x"]}
    block = cls.model_validate({name: value for name, value in values.items() if name in cls.model_fields})
    read = read_appended(encode_payload(BlockAppended(block=block, tokens=3, counter="o200k_base")))
    assert read is not None
    assert read.block == block
    flat = block.model_copy(update={"arguments": {"a": 1}} if "arguments" in cls.model_fields else {})
    flat = flat.model_copy(update={"data": "x"}) if "data" in cls.model_fields else flat
    text = encode_payload(BlockAppended(block=flat, tokens=3, counter="o200k_base"))
    assert written_columns(text.encode(), "2026-01-01T00:00:00Z") == columns_of(text) == ("p", None, 3)


def test_a_moment_that_is_none_is_not_as_written() -> None:
    """A text of the right form says nothing: the thirteenth month is left to pydantic, which refuses it."""
    text = '{"block":{"at":"2026-13-01T00:00:00Z","type":"note"},"counter":"","tokens":0}'
    assert written_columns(text.encode(), "2026-01-01T00:00:00Z") is None
    assert written_columns(text.replace("-13-", "-12-").encode(), "2026-01-01T00:00:00Z") == (None, None, 0)


def test_blocks_do_not_share_what_can_be_changed() -> None:
    """An empty object of one block is not that of another."""
    text = encode_payload(BlockAppended(block=Note(), tokens=0, counter=""))
    one, two = read_appended(text), read_appended(text)
    assert one is not None
    assert two is not None
    assert one.block.meta is not two.block.meta


@pytest.mark.parametrize("damage", ['"tokens":"three"', '"tokens":1,"more":2', '"tokens":NaN', '"tokens":null'])
def test_what_does_not_hold_its_fields_is_an_error_as_before(damage: str) -> None:
    """A payload that is not as its type promises is damage, whichever way reads it."""
    with pytest.raises(StoreCorrupt):
        decode_payload("block.appended", 1, '{"block":{"type":"note","author":"a"},"counter":"",' + damage + "}")


@given(st.datetimes(timezones=st.just(UTC)), st.booleans())
def test_a_moment_of_the_log_is_read_as_any_other(at: datetime, whole: bool) -> None:  # noqa: FBT001 - drawn
    """The quick way gives the same moment, in UTC; a text that is no moment is refused."""
    written = at.replace(microsecond=0).isoformat() if whole else at.isoformat("T", "microseconds")
    read = parse_instant(written.replace("+00:00", "Z"))
    assert abs(read - at) < timedelta(seconds=1)
    assert read.tzinfo is UTC
    with pytest.raises(ValueError, match="month"):
        parse_instant("2026-13-01T00:00:00Z")
