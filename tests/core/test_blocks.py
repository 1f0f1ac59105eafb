"""Blocks: the unit of context (design, section 2)."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import ValidationError

from tests.scenes import AT, log_of, opened
from timeline.answers.about import about_block
from timeline.blocks import (
    KNOWN_TYPES,
    AssistantCompletion,
    CustomBlock,
    NewerBlock,
    Reasoning,
    ToolCall,
    ToolResult,
    UserPrompt,
    newer_block,
    parse_block,
)
from timeline.errors import InvalidBlock, TimelineError
from timeline.store.memory import MemoryStore

SIGNED: dict[str, Any] = {
    "type": "thinking",
    "thinking": "Two  spaces,\r\nand a tab\t— ½ “quoted” \\u0041 😀",
    "signature": "ErUBCkYIBxgCIkD+/==\u2028",
    "order": {"z": 1, "a": [1.0, 1, 1e21, -0.0, None, True, ""]},
}


@pytest.mark.shows("004-12")
def test_the_wire_names_are_those_of_seed_002() -> None:
    """A type's name is what seed 002 calls it."""
    assert list(KNOWN_TYPES) == [
        "turn.header",
        "user.prompt",
        "user.attachment",
        "assistant.completion",
        "assistant.reasoning",
        "react.tool.call",
        "react.tool.result",
        "conv.range.summary",
        "system.message",
        "note",
        "stage.digest",
    ]


@pytest.mark.parametrize("type_", [t for t in KNOWN_TYPES if not t.startswith("react.tool")])
def test_a_type_name_picks_its_class(type_: str) -> None:
    """The discriminated union reads each known type into its own class."""
    assert type(parse_block({"type": type_, "text": "x"})) is KNOWN_TYPES[type_]


def test_an_unknown_dotted_type_is_kept_as_a_custom_block() -> None:
    """Any other dotted type is a block too, with all its content."""
    value = {
        "type": "app.weather.report-2",
        "author": "weather_agent",
        "text": "rain",
        "data": {"mm": 3},
        "meta": {"a": [1]},
    }
    block = parse_block(value)
    assert isinstance(block, CustomBlock)
    assert block.dump() == value


@pytest.mark.parametrize("type_", ["", "two words", "a..b", ".a", "a.", "é", "x" * 101])
def test_a_type_that_is_no_dotted_name_is_refused(type_: str) -> None:
    """A type is letters, digits, hyphens and underscores between dots, at most 100 characters."""
    with pytest.raises(InvalidBlock) as caught:
        parse_block({"type": type_})
    assert caught.value.field == "type"


def test_a_known_type_is_no_custom_block() -> None:
    """A type with a class of its own is built by that class only."""
    with pytest.raises(ValidationError, match="UserPrompt"):
        CustomBlock(type="user.prompt")


def test_a_newer_block_keeps_all_of_what_was_read() -> None:
    """Of a block that a later version wrote, text and address are usable and the whole of it is in ``data``."""
    value = {"type": "user.prompt", "path": "p", "turn_id": "t", "text": "hi", "author": "user", "shape": {"new": True}}
    block = newer_block(value)
    assert isinstance(block, NewerBlock)
    assert (block.type, block.path, block.turn_id, block.text, block.author) == ("user.prompt", "p", "t", "hi", "user")
    assert block.data == value


def test_a_newer_block_does_without_fields_that_changed_their_form() -> None:
    """A field that is no text any more is left to ``data``; reading does not fail for it."""
    assert newer_block({"type": "user.prompt", "text": ["parts"]}).text == ""


async def test_opaque_reasoning_is_stored_byte_for_byte() -> None:
    """Signed content comes back with the same bytes: order of keys, white space, escapes and kinds of numbers."""
    store = MemoryStore()
    timeline = await opened(store)
    [stored] = await timeline.append(Reasoning(data=SIGNED))
    again = await opened(store)
    for block in (stored, await timeline.read(stored.path), again.window.items[0].block):
        assert json.dumps(block.data) == json.dumps(SIGNED)


@pytest.mark.parametrize(
    ("block", "field"),
    [
        ({"type": "user.prompt", "text": 7}, "text"),
        ({"type": "user.prompt", "colour": "red"}, "colour"),
        ({"type": "user.prompt", "at": "2026-03-01T12:00:00"}, "at"),
        ({"type": "user.prompt", "at": "yesterday"}, "at"),
        ({"type": "user.prompt", "meta": {"x": {1, 2}}}, "meta.x"),
        ({"type": "user.prompt", "meta": []}, "meta"),
        ({"type": "user.prompt", "data": b"\x00"}, "data"),
        ({"type": "user.prompt", "data": math.nan}, "data"),
        ({"type": "user.prompt", "meta": {"deep": [{"x": math.inf}]}}, "meta"),
        ({"type": "react.tool.call", "name": "run"}, "call_id"),
        ({"type": "react.tool.call", "call_id": "", "name": "run"}, "call_id"),
        ({"type": "react.tool.call", "call_id": "c1"}, "name"),
        ({"type": "react.tool.result", "text": "ok"}, "call_id"),
        ({"type": "two words"}, "type"),
        ({"text": "no type"}, "type"),
        ("no block at all", "blocks"),
    ],
    ids=str,
)
async def test_an_invalid_block_is_refused_before_anything_is_written(block: Any, field: str) -> None:
    """The error names the field, and neither log nor window changed: the valid block before it is not written."""
    store = MemoryStore()
    timeline = await opened(store)
    log = await log_of(store)
    with pytest.raises(InvalidBlock) as caught:
        await timeline.append(UserPrompt(text="valid"), block)
    assert caught.value.field == field
    assert field in str(caught.value)
    assert await log_of(store) == log
    assert timeline.window.items == ()


async def test_a_number_that_json_lacks_is_refused_in_arguments_too() -> None:
    """A NaN in a call's arguments is an invalid block, not a failure of the token counter."""
    timeline = await opened(MemoryStore())
    with pytest.raises(InvalidBlock) as caught:
        await timeline.append({"type": "react.tool.call", "call_id": "c", "name": "run", "arguments": {"x": math.nan}})
    assert caught.value.field.startswith("arguments")
    assert timeline.version == 1


@pytest.mark.parametrize(
    "block",
    [
        {"type": "user.prompt", "text": "a\ud83d b", "author": "user"},
        {"type": "assistant.completion", "response_id": "r\udc00"},
        {"type": "react.tool.call", "call_id": "c\ud83d", "name": "run\udfff", "arguments": {"k\ud83d": ["\udc00"]}},
        {"type": "react.tool.call", "call_id": "c", "name": "run", "arguments": "{broken \ud83d"},
        {"type": "react.tool.result", "call_id": "c\ud83d", "text": "\udc00"},
        {"type": "user.attachment", "meta": {"file": "a\ud83d.txt"}, "data": {"\udc00": "\udc00"}},
    ],
    ids=lambda block: block["type"],
)
async def test_lone_surrogates_are_repaired_wherever_they_stand(block: dict[str, Any]) -> None:
    """No text of a block is refused for half a character; it is replaced before it is counted, hashed or stored."""
    timeline = await opened(MemoryStore())
    [stored] = await timeline.append(block)
    assert "\ufffd" in str(stored.dump())
    str(stored.dump()).encode()
    assert (await timeline.read(stored.path)) == stored


def test_a_time_without_a_zone_is_refused() -> None:
    """Nobody can tell when ``12:00`` is."""
    with pytest.raises(ValidationError, match="time zone"):
        UserPrompt(at=datetime(2026, 3, 1, 12))  # noqa: DTZ001 - the point of the test


def test_a_time_in_another_zone_is_kept_in_utc() -> None:
    """Times compare and sort as texts, since all of them are UTC."""
    at = datetime(2026, 3, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    assert UserPrompt(at=at).dump()["at"] == "2026-03-01T12:00:00Z"


async def test_now_without_a_zone_is_a_typed_error() -> None:
    """A naive ``now`` is refused in the library's own tree, and nothing is written."""
    timeline = await opened(MemoryStore())
    with pytest.raises(TimelineError):
        await timeline.append(UserPrompt(text="x"), now=datetime(2026, 3, 1, 12))  # noqa: DTZ001 - the point of the test
    assert timeline.version == 1


async def test_now_in_another_zone_is_kept_in_utc() -> None:
    """What fills in a block's time is turned to UTC like a time that the block brings."""
    timeline = await opened(MemoryStore())
    [block] = await timeline.append(
        UserPrompt(text="x"), now=datetime(2026, 3, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    )
    assert (block.at, block.at.tzinfo if block.at else None) == (AT, UTC)


def test_a_dump_leaves_defaults_out() -> None:
    """The log keeps the type and what differs from the defaults."""
    assert UserPrompt(text="hi").dump() == {"type": "user.prompt", "text": "hi"}


@pytest.mark.shows("001-5", "004-26", "004-38", "R-001-4")
def test_a_call_counts_its_name_and_its_arguments() -> None:
    """What the model would be sent of a call is its name and its arguments as JSON."""
    assert ToolCall(call_id="c", name="run", arguments={"b": 1, "a": "x"}).countable() == 'run{"a":"x","b":1}'


def test_arguments_that_are_no_object_are_kept_as_the_model_wrote_them() -> None:
    """Broken JSON is evidence: it is stored as raw text."""
    block = parse_block({"type": "react.tool.call", "call_id": "c", "name": "run", "arguments": '{"a": 1,'})
    assert isinstance(block, ToolCall)
    assert block.arguments == '{"a": 1,'


@pytest.mark.shows("004-16")
async def test_append_fills_in_turn_path_and_time_and_returns_what_was_stored() -> None:
    """What comes back is the stored block, whole."""
    timeline = await opened(MemoryStore())
    stored = await timeline.append(UserPrompt(text="hi"), AssistantCompletion(text="yes"))
    assert [(b.turn_id, b.path, b.at) for b in stored] == [
        ("turn_1", "ar:turn_1.user.prompt", AT),
        ("turn_1", "ar:turn_1.assistant.completion", AT),
    ]
    assert [await timeline.read(b.path) for b in stored] == stored


async def test_appending_nothing_writes_nothing() -> None:
    """An empty append is no event."""
    timeline = await opened(MemoryStore())
    assert await timeline.append() == []
    assert timeline.version == 1


@pytest.mark.parametrize(
    ("said", "failed"),
    [
        ({}, False),
        ({"exit_status": 0}, False),
        ({"exit_status": 1}, True),
        ({"is_error": True, "exit_status": 0}, True),
    ],
)
def test_a_result_failed_if_it_says_so_or_by_its_status(said: dict[str, Any], *, failed: bool) -> None:
    """What is listed says the same, and the log holds no more for it."""
    block = ToolResult(call_id="c", text="words", **said)
    assert block.failed is failed
    assert about_block(block, 80) == ("error: words" if failed else "words")
    assert "failed" not in block.model_dump()
