"""Calls of Google's whose arguments arrive in pieces, as Vertex streams them when it is asked to."""

from __future__ import annotations

from typing import Any

import pytest
from google.genai.types import GenerateContentResponse

from timeline.blocks import ToolCall
from timeline.wire.responses import CUT_CALLS
from timeline.wire.streams import StreamReader

Piece = dict[str, Any]


def read(*calls: Piece, finish: str | None = "STOP") -> Any:
    """Return the response that a stream of the SDK's objects brings."""
    reader = StreamReader()
    for call in calls:
        content = {"role": "model", "parts": [{"functionCall": call}]}
        reader.take(GenerateContentResponse.model_validate({"candidates": [{"content": content}]}))
    reader.take(GenerateContentResponse.model_validate({"candidates": [{"finishReason": finish}]}))
    return reader.response(unnamed="r")


def at(path: str, *, goes_on: bool = False, **value: Any) -> Piece:
    """Return a piece of a call that has one more behind it."""
    return {"partialArgs": [{"jsonPath": path, "willContinue": goes_on, **value}], "willContinue": True}


BEGUN: Piece = {"name": "weather", "id": "c1", "willContinue": True}


def test_a_call_in_pieces_is_one_call() -> None:
    """With every kind of value, and a text in two pieces."""
    response = read(
        BEGUN,
        at("$.city", goes_on=True, stringValue="New "),
        at("$.city", stringValue="York"),
        at("$.days[0].n", numberValue=3),
        at("$.days[1].n", numberValue=0.5),
        at("$['in detail']", boolValue=True),
        at("$.until", nullValue="NULL_VALUE"),
        {},
    )
    [call] = response.blocks
    assert isinstance(call, ToolCall)
    assert (call.call_id, call.name) == ("c1", "weather")
    assert call.arguments == {
        "city": "New York",
        "days": [{"n": 3}, {"n": 0.5}],
        "in detail": True,
        "until": None,
    }


def test_calls_in_pieces_follow_one_another() -> None:
    """And those that come whole."""
    whole = {"name": "ls", "args": {"path": "a"}}
    response = read(BEGUN, at("$.city", stringValue="Rome"), {}, whole, {**BEGUN, "id": "c2"}, {})
    assert [(call.name, call.arguments) for call in response.blocks] == [
        ("weather", {"city": "Rome"}),
        ("ls", {"path": "a"}),
        ("weather", {}),
    ]


def test_half_a_call_is_none() -> None:
    """A stream that was cut in it keeps what came."""
    response = read(BEGUN, at("$.city", goes_on=True, stringValue="New "), finish=None)
    [block] = response.blocks
    assert block.meta[CUT_CALLS] == [{"call_id": "c1", "name": "weather", "arguments": '{"city":"New "}'}]


@pytest.mark.parametrize("path", ["city", "$", "$.a[999999]", "$..a", "$.a" * 99, ""])
def test_a_path_of_any_kind_is_no_error(path: str) -> None:
    """What has no place is left out."""
    response = read(BEGUN, at(path, stringValue="x"), at("$.a.b", stringValue="y"), {})
    assert [call.name for call in response.blocks] == ["weather"]
