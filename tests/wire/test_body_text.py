from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeline.frozen import compact_json, sha256_hex
from timeline.wire.body_text import BodyWriter, body_alone
from timeline.wire.read_only import read_only

if TYPE_CHECKING:
    from collections.abc import Iterator

MESSAGES = st.lists(st.sampled_from([read_only({"role": "user", "content": text}) for text in ("a", "é\n", "")]))
VALUES = st.sampled_from([1, True, 1.0, "x", None, {"b": 1, "a": 2}, {"a": 2, "b": 1}, [], [True], [1]])


@pytest.fixture(autouse=True, scope="module")
def _short_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("timeline.wire.body_text._TOGETHER", 3)
        yield


@st.composite
def bodies(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Return bodies of one conversation: most go on from the one before, some change it, some are cut."""
    made: list[dict[str, Any]] = []
    messages: list[Any] = []
    for _ in range(draw(st.integers(1, 6))):
        kept: int = draw(st.integers(0, 20))
        more: list[Any] = draw(MESSAGES)
        messages = [*messages[: kept or None], *more]
        is_marked: bool = draw(st.booleans())
        if messages and is_marked:
            place = draw(st.integers(0, len(messages) - 1))
            messages[place] = {**messages[place], "marker": draw(VALUES)}
        head = draw(st.dictionaries(st.sampled_from(["model", "tools"]), VALUES))
        behind = draw(st.dictionaries(st.sampled_from(["store", "system"]), VALUES))
        key = draw(st.sampled_from(["messages", "messages", "input", "contents"]))
        made.append({**head, key: messages, **behind})
    return made


@given(bodies())
def test_a_body_is_written_and_hashed_as_if_it_were_alone(written: list[dict[str, Any]]) -> None:
    """Whatever the bodies before it were; and theirs stay as they are."""
    writer = BodyWriter()
    found = [writer.write(body) for body in written]
    for body, text in zip(written, found, strict=True):
        assert text.text == compact_json(body) == body_alone(body).text
        assert text.sha256 == sha256_hex(text.text) == body_alone(body).sha256


def test_what_is_equal_but_written_otherwise_is_written_anew() -> None:
    """Python takes 1, 1.0 and True for the same, and an object for another one with its keys in another order."""
    writer = BodyWriter()
    for value in (1, True, 1.0, {"a": 1, "b": 2}, {"b": 2, "a": 1}):
        body = {"messages": [{"role": "user", "content": value}] * 7}
        assert writer.write(body).text == compact_json(body)


def test_bodies_share_what_they_have_in_common() -> None:
    """The pieces of the messages that were there before are the same texts."""
    writer = BodyWriter()
    messages = [read_only({"role": "user", "content": str(number)}) for number in range(9)]
    first = writer.write({"messages": messages})
    second = writer.write({"messages": [*messages, {"role": "user", "content": "more"}]})
    assert [a is b for a, b in zip(first.pieces, second.pieces, strict=True)] == [True] * 3


def test_a_value_that_has_no_form_leaves_the_writer_as_it_was() -> None:
    """The next body is written as if the refused one had not been."""
    writer = BodyWriter()
    body: dict[str, Any] = {"model": "m", "messages": [{"content": str(number)} for number in range(7)]}
    writer.write(body)
    for wrong in (float("nan"), "\ud800"):
        with pytest.raises(ValueError, match=r"compliant|surrogates"):
            writer.write({**body, "messages": [{"content": wrong}] * 9})
        with pytest.raises(ValueError, match=r"compliant|surrogates"):
            writer.write({**body, "model": wrong})
    assert writer.write(body).text == compact_json(body)
