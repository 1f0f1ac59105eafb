from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.entries import answer, call, prompt, result
from timeline.errors import InvalidArgument
from timeline.frozen import MOST_NESTING
from timeline.wire import WIRES, decoder, encoder, message_decoder
from timeline.wire.foreign import decode_value
from timeline.wire.groups import Call, Ids, Response, fit, gather
from timeline.wire.neutral import NeutralContext
from timeline.wire.providers import ANTHROPIC, OPENAI_CHAT

CALL_IDS = st.lists(st.text(max_size=5) | st.sampled_from(["a", "a_2", "x" * 64, "x" * 65]))


@given(CALL_IDS)
def test_given_ids_are_legal_and_never_repeat(call_ids: list[str]) -> None:
    """Whatever the ids in a log, those that go out fit the provider and differ."""
    for facts in (ANTHROPIC, OPENAI_CHAT):
        ids = Ids(facts.id_pattern, facts.id_length)
        given_ids = [ids.give(id_) for id_ in call_ids]
        assert len(set(given_ids)) == len(call_ids)
        assert all(facts.id_pattern.fullmatch(id_) and len(id_) <= facts.id_length for id_ in given_ids)


@given(CALL_IDS, CALL_IDS, CALL_IDS)
def test_a_context_that_goes_on_from_another_gives_each_call_the_id_that_it_has_alone(
    first: list[str], second: list[str], third: list[str]
) -> None:
    """From where the other one ended, and from a mark inside it; the other one stays as it was."""
    alone, begun = (Ids(ANTHROPIC.id_pattern, ANTHROPIC.id_length) for _ in range(2))
    expected = [alone.give(id_) for id_ in (*first, *second, *third)]
    known = [begun.give(id_) for id_ in first]
    mark = begun.mark()
    known += [begun.give(id_) for id_ in second]
    for _ in range(2):
        branch, cut = begun.branch(), begun.cut(mark)
        assert known + [branch.give(id_) for id_ in third] == expected
        assert known[: len(first)] + [cut.give(id_) for id_ in (*second, *third)] == expected


def test_a_word_that_fits_is_left_alone() -> None:
    """Only what a provider refuses is rewritten."""
    assert fit("call-1_a", ANTHROPIC.id_pattern, 64) == "call-1_a"
    assert fit("mcp.tool", ANTHROPIC.name_pattern, 64).startswith("mcp_tool_")


def test_a_result_joins_the_oldest_call_of_its_group_that_waits_and_else_the_newest_of_its_id() -> None:
    """No result is left without its call because the two are in different groups."""
    calls = [call("a", path=f"tc:{n}.call", response_id=f"r{n}", group=n // 2) for n in range(4)]
    items = gather([*calls, *(result("a", path=f"tc:{n}.result", group=group) for n, group in enumerate((0, 7, 7)))])
    assert [
        [
            (part.placed.entry.path, part.result and part.result.entry.path)
            for part in item.parts
            if isinstance(part, Call)
        ]
        for item in items
        if isinstance(item, Response)
    ] == [
        [("tc:0.call", "tc:0.result")],
        [("tc:1.call", None)],
        [("tc:2.call", "tc:2.result")],
        [("tc:3.call", "tc:1.result")],
    ]
    assert len(items) == 4


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
    for found in (encoder, decoder, message_decoder):
        with pytest.raises(InvalidArgument, match=r"anthropic, .*openai_chat"):
            found("carrier-pigeon")


def test_foreign_json_is_read_so_that_it_can_be_written_again() -> None:
    """Numbers without a JSON form become text, lone surrogates are repaired, absurd nesting is refused."""
    value, end = decode_value('  {"a": [NaN, 1e999, 1.5], "b": "\\ud800"} rest')
    assert value == {"a": ["NaN", "1e999", 1.5], "b": "\ufffd"}
    assert end == 41
    for levels in (MOST_NESTING + 1, 100_000):
        with pytest.raises(ValueError, match="nested too deeply"):
            decode_value("[" * levels + "]" * levels)
