from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from timeline.frozen import (
    Frozen,
    canonical_json,
    common_length,
    compact_json,
    repair_json,
    repair_text,
    sha256_hex,
    without_empty,
)

TEXTS = st.text(st.characters(), max_size=300)  # lone surrogates included
ARGUMENTS = st.dictionaries(TEXTS, TEXTS | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False))


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


@pytest.mark.parametrize(
    ("one", "other", "length"), [("", "a", 0), ("ab", "abc", 2), ("abc", "ab", 2), ("abc", "axc", 1)]
)
def test_what_two_sequences_have_in_common_ends_at_the_first_difference(one: str, other: str, length: int) -> None:
    """Or with the shorter one."""
    assert common_length(one, other) == length


def test_canonical_json_sorts_keys_and_writes_no_spaces() -> None:
    """The hashed form is the same for the same value, however it was put together."""
    assert canonical_json({"b": [1, 2.5, None, True], "a": {"z": 1, "y": "é"}}) == (
        '{"a":{"y":"é","z":1},"b":[1,2.5,null,true]}'
    )


@given(value=ARGUMENTS.map(lambda flat: {k: v for k, v in flat.items() if v not in {math.inf, -math.inf}}))
def test_an_object_is_written_as_the_json_module_writes_it(value: dict[str, Any]) -> None:
    """The quick way for flat objects makes the same text, in either order of keys."""
    written = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    assert compact_json(value) == written
    assert canonical_json(value) == json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def test_keys_that_are_no_texts_become_those_that_the_json_module_writes() -> None:
    """A bias of tokens has their numbers as keys."""
    keys: dict[Any, int] = {50256: -100, 1.5: 1, True: 2, None: 3, "7": 4}
    assert list(repair_json(keys).items()) == list(json.loads(json.dumps(keys)).items())
    for wrong in ((1, 2), math.nan):
        with pytest.raises(ValueError, match=r"key|JSON"):
            repair_json({wrong: 1})


@given(text=TEXTS)
def test_a_text_is_written_alike_whatever_its_length(text: str) -> None:
    """The writer of flat objects escapes what the other one does."""
    assert compact_json({"": text * 3}) == f'{{"":{json.dumps(text * 3, ensure_ascii=False)}}}'


@pytest.mark.parametrize("value", [{1: "a"}, {True: 1}, {"a": 10**30, "b": {"c": 0.1}}])
def test_other_objects_are_written_as_the_json_module_writes_them(value: dict[Any, Any]) -> None:
    """Keys that are no texts, and values inside values, take the long way."""
    assert compact_json(value) == json.dumps(value, separators=(",", ":"))


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
