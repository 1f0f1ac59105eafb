from __future__ import annotations

import hashlib
import math

import pytest
from pydantic import ValidationError

from timeline.frozen import Frozen, canonical_json, repair_json, repair_text, sha256_hex, without_empty


class Pair(Frozen):
    """Two fields, for these tests."""

    left: int
    right: int = 0


def test_a_value_does_not_change() -> None:
    """Assigning a field raises and leaves the value as it was."""
    pair = Pair(left=1)
    with pytest.raises(ValidationError):
        pair.left = 2  # type: ignore[misc]  # the point of the test
    assert pair.left == 1


def test_a_value_is_closed_to_unknown_fields() -> None:
    """A misspelt field is refused, not dropped."""
    with pytest.raises(ValidationError, match="rihgt"):
        Pair.model_validate({"left": 1, "rihgt": 2})


def test_canonical_json_sorts_keys_and_writes_no_spaces() -> None:
    """The hashed form is the same for the same value, however it was put together."""
    assert canonical_json({"b": [1, 2.5, None, True], "a": {"z": 1, "y": "é"}}) == (
        '{"a":{"y":"é","z":1},"b":[1,2.5,null,true]}'
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_canonical_json_refuses_numbers_that_json_lacks(value: float) -> None:
    """NaN and infinities have no form, so they never reach a hash."""
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"x": value})


def test_a_hash_is_taken_over_utf_8() -> None:
    """The hash of a text is that of its UTF-8 bytes."""
    assert sha256_hex("é") == hashlib.sha256(b"\xc3\xa9").hexdigest()


def test_a_lone_surrogate_becomes_the_replacement_character() -> None:
    """Half of a character that UTF-8 cannot write is replaced, as the tokenizer does it."""
    assert repair_text("a\ud83d b") == "a\ufffd b"


def test_two_surrogates_that_belong_together_become_their_character() -> None:
    """A character that arrives in two halves is put together."""
    assert repair_text("a\ud83d\ude00 b") == "a😀 b"


def test_repairing_reaches_keys_and_nested_values() -> None:
    """Every string of a JSON value is repaired, keys included."""
    assert repair_json({"\ud83d": ["\udc00", {"k": "ok"}, 1, None]}) == {"\ufffd": ["\ufffd", {"k": "ok"}, 1, None]}


def test_leaving_out_what_is_empty_keeps_zero_and_false() -> None:
    """Zero and False are values; None and empty containers are none."""
    assert without_empty({"a": 0, "b": False, "c": None, "d": "", "e": [], "f": {}, "g": ()}) == {"a": 0, "b": False}
