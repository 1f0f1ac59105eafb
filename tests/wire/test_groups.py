from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.entries import answer, call, prompt, result
from timeline.errors import InvalidArgument
from timeline.frozen import MOST_NESTING
from timeline.wire import WIRES, decoder, encoder
from timeline.wire.foreign import decode_value
from timeline.wire.groups import Ids, fit
from timeline.wire.neutral import NeutralContext
from timeline.wire.providers import ANTHROPIC, OPENAI_CHAT


@given(st.lists(st.text(max_size=5) | st.sampled_from(["a", "a_2", "x" * 64, "x" * 65])))
def test_given_ids_are_legal_and_never_repeat(call_ids: list[str]) -> None:
    """Whatever the ids in a log, those that go out fit the provider and differ."""
    for facts in (ANTHROPIC, OPENAI_CHAT):
        ids = Ids(facts.id_pattern, facts.id_length)
        given_ids = [ids.give(id_) for id_ in call_ids]
        assert len(set(given_ids)) == len(call_ids)
        assert all(facts.id_pattern.fullmatch(id_) and len(id_) <= facts.id_length for id_ in given_ids)


def test_a_word_that_fits_is_left_alone() -> None:
    """Only what a provider refuses is rewritten."""
    assert fit("call-1_a", ANTHROPIC.id_pattern, 64) == "call-1_a"
    assert fit("mcp.tool", ANTHROPIC.name_pattern, 64).startswith("mcp_tool_")


@pytest.mark.parametrize("wire", WIRES)
def test_encoding_ten_thousand_entries_keeps_each_of_them(wire: str) -> None:
    """A long context goes through every wire, with ids that all repeat, in one pass."""
    entries = []
    for group in range(2_500):
        shared: dict[str, Any] = {"group": group, "response_id": f"r{group}"}
        entries += [
            prompt(f"p{group}"),
            call("same", **shared),
            result("same", f"r{group}", **shared),
            answer(f"a{group}"),
        ]
    body = encoder(wire)(NeutralContext(entries=tuple(entries)))
    assert len(decoder(wire)(body)) == 10_000


def test_an_unknown_wire_is_refused_with_the_known_ones() -> None:
    """The error says which formats there are."""
    with pytest.raises(InvalidArgument, match="anthropic, openai_chat"):
        encoder("carrier-pigeon")


def test_foreign_json_is_read_so_that_it_can_be_written_again() -> None:
    """Numbers without a JSON form become text, lone surrogates are repaired, absurd nesting is refused."""
    value, end = decode_value('  {"a": [NaN, 1e999, 1.5], "b": "\\ud800"} rest')
    assert value == {"a": ["NaN", "1e999", 1.5], "b": "\ufffd"}
    assert end == 41
    for levels in (MOST_NESTING + 1, 100_000):
        with pytest.raises(ValueError, match="nested too deeply"):
            decode_value("[" * levels + "]" * levels)
