"""Which blocks of a message list are in the log already: told by content and order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scenes import answer, call, prompt, result
from timeline.agent.deduplication import content_key, content_keys, new_messages, places_in_runs
from timeline.blocks import AssistantCompletion, Block, CustomBlock, RangeSummary, SystemMessage, ToolCall
from timeline.frozen import common_length

if TYPE_CHECKING:
    from collections.abc import Sequence

WORDS = st.sampled_from(["go on", "yes", "done"])
BLOCKS: st.SearchStrategy[Block] = st.one_of(
    WORDS.map(lambda text: prompt(text=text)),
    WORDS.map(lambda text: answer(text=text)),
    st.sampled_from(["a", "b"]).map(call),
    st.sampled_from(["a", "b"]).map(lambda id_: result(id_, text="ok")),
)
MESSAGES = st.lists(st.lists(BLOCKS, min_size=1, max_size=3), max_size=12)
NOTICE = SystemMessage(text="Older content is hidden.")


@given(MESSAGES, MESSAGES, st.lists(st.integers(0, 20), max_size=3))
def test_what_came_behind_the_known_part_is_new_and_nothing_else(
    known: list[list[Block]], new: list[list[Block]], notices: list[int]
) -> None:
    """However often the same words are said, and whatever the runtime put between them."""
    log = [block for message in known for block in message]
    for place in notices:
        log.insert(min(place, len(log)), NOTICE)
    assert new_messages([*known, *new], content_keys(log)) == new


@given(MESSAGES, st.data())
def test_a_part_of_what_is_known_is_not_new(known: list[list[Block]], data: st.DataObject) -> None:
    """Messages may be missing in the list; what is left of it is in the log all the same."""
    kept = [message for message in known if data.draw(st.booleans())]
    assert new_messages(kept, content_keys([block for message in known for block in message])) == []


def test_where_a_block_stands_and_when_it_came_is_no_part_of_its_content_key() -> None:
    """Path, turn, time and the response's id are given by the log."""
    placed = answer(text="x", path="ar:turn_1.assistant.completion", turn_id="turn_1", response_id="msg_1")
    assert content_key(placed) == content_key(answer(text="x"))
    assert content_key(placed) != content_key(prompt(text="x"))
    assert content_key(call("a")) != content_key(call("b"))
    assert content_key(call("a", arguments={"x": 1})) != content_key(call("a", arguments={"x": 2}))


def test_a_call_that_an_older_log_holds_as_a_part_is_the_call() -> None:
    """A list that goes on from there has it as the call that it is."""
    item: dict[str, Any] = {"type": "shell_call", "call_id": "a", "action": {"commands": ["ls"]}, "status": "completed"}
    older = CustomBlock(type="assistant.part", author="assistant", data=item, response_id="r1")
    assert content_key(older) == content_key(call("a", name="shell", arguments={"commands": ["ls"]}))


def test_white_space_around_an_answer_is_nothing_that_is_said() -> None:
    """Frameworks strip it, and a request whose last word it is has it without; it comes back in that form."""
    assert content_key(answer(text="x \n")) == content_key(answer(text="x"))
    assert content_key(answer(text="\n\nx")) == content_key(answer(text="x"))
    assert content_key(answer(text="x  y")) != content_key(answer(text="x y"))
    assert content_key(prompt(text="x ")) != content_key(prompt(text="x"))


def test_summaries_and_empty_marks_are_nothing_that_a_list_would_say() -> None:
    """A cut call stands at the end of its response, behind the calls that came whole."""
    mark: dict[str, Any] = {
        "interrupted": True,
        "cut_calls": [{"call_id": "b", "name": "run", "arguments": '{"x'}, {"name": "no id"}],
    }
    log: list[Block] = [
        RangeSummary(text="what was"),
        AssistantCompletion(response_id="m", meta=mark),
        call("a", response_id="m"),
        prompt(text="go on"),
    ]
    cut = ToolCall(call_id="b", name="run", arguments='{"x')
    assert list(content_keys(log)) == [content_key(call("a")), content_key(cut), content_key(prompt(text="go on"))]


def test_what_is_said_at_many_places_is_meant_where_most_follows() -> None:
    """The list is the end of a history, or lacks a part of it; what is nowhere has no place."""
    log = [*"acbcdce"]
    assert places_in_runs([*"cdce"], log) == {0: 3, 1: 4, 2: 5, 3: 6}
    assert places_in_runs([*"acdce"], log) == {0: 0, 1: 1, 2: 4, 3: 5, 4: 6}
    assert places_in_runs([*"acxce"], log) == {0: 0, 1: 1, 3: 5, 4: 6}
    assert places_in_runs([*"xy"], log) == {}
    assert places_in_runs([], log) == {}


def runs_by_comparing(keys: Sequence[str], known: Sequence[str]) -> dict[int, int]:
    """Place a list in a log by comparing it with each place of it: the first of the longest runs holds."""
    found: dict[int, int] = {}
    number, behind = 0, 0
    while number < len(keys):
        lengths = [common_length(keys[number:], known[place:]) for place in range(behind, len(known))]
        longest = max(lengths, default=0)
        place = behind + lengths.index(longest) if longest else behind
        found |= {number + n: place + n for n in range(longest)}
        number, behind = number + max(longest, 1), place + longest
    return found


@given(st.lists(st.sampled_from("abc"), max_size=30), st.lists(st.sampled_from("abcd"), max_size=30))
def test_a_list_lies_where_the_longest_run_of_it_begins_first(known: list[str], keys: list[str]) -> None:
    """The search for a text finds what comparing with each place finds."""
    assert places_in_runs(keys, known) == runs_by_comparing(keys, known)


@given(st.lists(st.sampled_from("abc"), max_size=30), st.integers(0, 30), st.integers(0, 30))
def test_a_trimmed_list_lies_in_its_log_as_comparing_says(known: list[str], start: int, end: int) -> None:
    """Without its beginning, and without a part of its middle."""
    keys = [*known[:start], *known[end:]]
    assert places_in_runs(keys, known) == runs_by_comparing(keys, known)


@pytest.mark.timeout(60)  # comparing with each place takes minutes
def test_rounds_that_are_all_alike_are_placed_in_a_time_that_grows_as_they_do() -> None:
    """A tool that is polled says the same for hours, and the list is placed before each call of the model."""
    known = ["call", "result"] * 20_000
    assert places_in_runs(["asked", *known[20_000:]], ["asked", *known]) == {n: n for n in range(20_001)}
