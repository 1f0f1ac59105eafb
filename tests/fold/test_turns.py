"""Turns, responses and the calls that results answer (design, words: turn, round, open call)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.scenes import AT, answer, apply, call, fold_of, grow, prompt, result, window_of
from timeline import Timeline, open_store
from timeline.blocks import Attachment, CustomBlock, Note, Reasoning, ToolCall, TurnHeader
from timeline.errors import InvalidBlock
from timeline.events import ABANDONED, REJECTED, BlocksHidden, BlocksRevealed, Replacement
from timeline.fold import turns
from timeline.fold.snapshot import restore, take_snapshot
from timeline.fold.turns import Turns
from timeline.log.history import load_fold

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.fold.fold import Fold


def turn_ids(*blocks: object) -> list[str]:
    """Return the turn ids that blocks get."""
    return [item.block.turn_id for item in window_of(*blocks).items]  # type: ignore[arg-type]  # blocks all


def responses(*blocks: object) -> list[int]:
    """Return the response numbers that blocks get."""
    return [item.response for item in window_of(*blocks).items]  # type: ignore[arg-type]  # blocks all


def test_each_prompt_opens_a_turn() -> None:
    """Turns are numbered by their prompts; what follows belongs to the turn."""
    assert turn_ids(prompt(), answer(), prompt(), call("c"), result("c"), answer()) == [
        "turn_1",
        "turn_1",
        "turn_2",
        "turn_2",
        "turn_2",
        "turn_2",
    ]


def test_a_header_opens_the_turn_and_the_prompt_after_it_joins() -> None:
    """Header, prompt and attachments are one opening."""
    assert turn_ids(TurnHeader(), prompt(), Attachment(), answer(), TurnHeader(), prompt()) == [
        "turn_1",
        "turn_1",
        "turn_1",
        "turn_1",
        "turn_2",
        "turn_2",
    ]


def test_a_second_prompt_after_a_header_opens_the_next_turn() -> None:
    """A header waits for one prompt only."""
    assert turn_ids(TurnHeader(), prompt(), prompt()) == ["turn_1", "turn_1", "turn_2"]


@pytest.mark.parametrize("said", [Reasoning(text="hm"), answer(), call("c")])
def test_a_prompt_behind_what_the_model_said_under_a_header_opens_the_next_turn(said: Block) -> None:
    """A scheduled turn has a header and no prompt: what the user says later is no part of it."""
    assert turn_ids(TurnHeader(), said, prompt()) == ["turn_1", "turn_1", "turn_2"]


def test_what_comes_before_any_prompt_is_turn_0() -> None:
    """A conversation may begin with a note or an agent's own words."""
    assert turn_ids(Note(text="n"), answer(), prompt()) == ["turn_0", "turn_0", "turn_1"]


def test_a_given_turn_id_is_kept_and_followed() -> None:
    """Blocks without a turn id of their own join the turn that was given last."""
    assert turn_ids(prompt(turn_id="monday"), answer(), call("c"), result("c")) == ["monday"] * 4


def test_derived_turn_ids_step_over_numbers_that_were_given() -> None:
    """A given ``turn_7`` is followed by ``turn_8``; another name counts as one turn."""
    assert turn_ids(prompt(turn_id="turn_7"), prompt(), prompt(turn_id="x"), prompt()) == [
        "turn_7",
        "turn_8",
        "x",
        "turn_10",
    ]


def test_blocks_of_one_response_id_are_one_response() -> None:
    """Reasoning, text and calls with the same response id belong together even with a result in between."""
    assert responses(
        prompt(),
        Reasoning(text="r", response_id="m1"),
        call("a", response_id="m1"),
        result("a"),
        call("b", response_id="m1"),
        result("b"),
        answer(response_id="m2"),
    ) == [0, 1, 1, 1, 1, 1, 2]


def test_without_ids_a_response_ends_where_something_else_begins() -> None:
    """A run of assistant blocks is one response; a result or a prompt ends it."""
    first = (Reasoning(text="r"), answer(), call("a"), call("b"), result("a"), result("b"))
    assert responses(prompt(), *first, answer(), prompt(), answer()) == [0, 1, 1, 1, 1, 1, 1, 2, 0, 3]


def test_a_response_without_an_id_does_not_join_one_that_has_one() -> None:
    """Only what says that it belongs to a response, or directly continues one like it, does."""
    assert responses(answer(response_id="m1"), answer()) == [1, 2]


def test_a_result_answers_the_oldest_waiting_call_of_its_id() -> None:
    """A repeated call id is answered in the order of its calls."""
    window = window_of(prompt(), call("a"), call("a"), result("a"), result("a"))
    assert [item.answers for item in window.items] == [None, None, None, 3, 4]


def test_a_result_without_a_call_answers_nothing() -> None:
    """An orphan stands alone and belongs to no response."""
    item = window_of(prompt(), result("lost")).items[-1]
    assert (item.answers, item.response) == (None, 0)


def test_the_second_result_of_a_call_answers_nothing() -> None:
    """A call is answered once."""
    window = window_of(prompt(), call("a"), result("a"), result("a"))
    assert [item.answers for item in window.items[2:]] == [3, None]


def test_a_call_of_an_older_response_is_dead() -> None:
    """When the model goes on without the answer, a late result no longer answers the call."""
    window = window_of(prompt(), call("a", response_id="m1"), answer(response_id="m2"), result("a"))
    assert window.items[-1].answers is None
    assert [i.block.call_id for i in window.unanswered()] == ["a"]
    assert window.open_calls() == ()


def test_a_pending_call_stays_open_while_the_model_goes_on() -> None:
    """A call that waits for an approval is answered whenever that comes."""
    blocks = (prompt(), call("a", response_id="m1", pending=True), answer(response_id="m2"), prompt())
    assert [i.block.call_id for i in window_of(*blocks).open_calls()] == ["a"]
    window = window_of(*blocks, result("a"))
    assert window.items[-1].answers == 3
    assert window.open_calls() == ()


def test_the_unanswered_calls_of_the_newest_response_are_open() -> None:
    """Parallel calls are open until their own results come."""
    window = window_of(prompt(), call("a"), call("b"), call("c"), result("b"))
    assert [i.block.call_id for i in window.open_calls()] == ["a", "c"]


@pytest.mark.parametrize(
    ("blocks", "speaking"),
    [
        ((), False),
        ((prompt(),), False),
        ((prompt(), answer()), True),
        ((prompt(), CustomBlock(type="assistant.part", author="assistant", response_id="m1")), True),
        ((prompt(), call("a"), call("b"), result("a")), True),
        ((prompt(), call("a"), prompt()), True),
        ((prompt(), call("a"), call("b"), result("a"), result("b")), False),
        ((prompt(), answer(), prompt()), False),
        ((prompt(), call("a", response_id="m1", pending=True), answer(response_id="m2"), prompt()), False),
        ((prompt(), call("a", response_id="m1"), answer(response_id="m2"), result("a")), False),
    ],
)
def test_the_model_speaks_until_something_is_said_to_it_and_its_calls_are_answered(
    blocks: tuple[Block, ...],
    speaking: bool,  # noqa: FBT001 - drawn from the table
) -> None:
    """Only the newest response may go on; what is dead, or waits for an approval, belongs to an earlier one."""
    assert window_of(*blocks).speaking is speaking


def test_results_that_answer_no_live_call_are_told() -> None:
    """Orphans and late results are known to the window."""
    window = window_of(prompt(), result("lost"), call("a"), result("a"))
    assert [i.answers for i in window.items if i.block.type == "react.tool.result"] == [None, 4]


@pytest.mark.parametrize("author", ["assistant", "planner", "user"])
def test_a_custom_block_is_part_of_no_response(author: str) -> None:
    """Only completions, reasoning and calls make up a response."""
    assert responses(prompt(), CustomBlock(type="app.x", author=author), answer()) == [0, 0, 1]


def test_the_running_state_survives_json() -> None:
    """What a snapshot keeps of it is the whole of it."""
    turns = fold_of(TurnHeader(), prompt(), call("a", pending=True), call("a"), result("a"), answer()).turns
    assert Turns.parse(json.loads(json.dumps(turns.dump()))) == turns


def test_a_copy_goes_its_own_way() -> None:
    """Addressing an append ahead of the log leaves the log's own state alone."""
    fold = fold_of(prompt(), call("a"))
    before = fold.turns.dump()
    twin = fold.turns.copy()
    twin.advance(result("a", turn_id="turn_1"), "turn_1", 9)
    twin.advance(prompt(turn_id="turn_2"), "turn_2", 10)
    assert fold.turns.dump() == before
    assert twin.dump() != before


def _omit(fold: Fold, reason: str, *versions: int) -> None:
    """Omit the blocks of these versions."""
    gone = tuple(Replacement(version=version) for version in versions)
    apply(fold, fold.version + 1, BlocksHidden(mode="omit", reason=reason, blocks=gone))


@pytest.mark.parametrize(
    ("blocks", "left", "then", "turn_id", "answers"),
    [
        ([prompt(), answer(), prompt(), answer(), prompt()], (5, 6), answer(), "turn_2", None),
        ([prompt(), answer(), TurnHeader()], (3,), prompt(), "turn_2", None),
        ([prompt(), answer(), prompt()], (2, 3, 4), prompt(), "turn_3", None),
        ([prompt(), call("a"), prompt(), answer()], (4, 5), result("a"), "turn_1", 3),
        ([prompt(), call("a", response_id="r"), answer(response_id="s"), prompt()], (5,), result("a"), "turn_1", None),
    ],
    ids=["turn-of-the-newest", "header-without-prompt", "nothing-is-shown", "open-call", "call-of-an-earlier-response"],
)
def test_after_a_branch_is_left_the_next_block_goes_on_from_what_is_shown(
    blocks: list[Block], left: tuple[int, ...], then: Block, turn_id: str, answers: int | None
) -> None:
    """It belongs to the turn of the newest block that is shown, and answers a call of the newest response there."""
    fold = fold_of(*blocks)
    _omit(fold, ABANDONED, *left)
    grow(fold, then)
    assert (fold.window.items[-1].block.turn_id, fold.window.items[-1].answers) == (turn_id, answers)


def test_a_block_that_a_person_omits_or_reveals_moves_no_turn() -> None:
    """Only a framework that leaves a branch goes back."""
    fold = fold_of(prompt(), answer(), prompt())
    _omit(fold, "manual", 3, 4)
    apply(fold, fold.version + 1, BlocksRevealed(versions=(3,)))
    grow(fold, answer())
    assert fold.window.items[-1].block.turn_id == "turn_2"


@pytest.mark.parametrize(("reason", "answers"), [("manual", 3), (REJECTED, None)])
def test_a_result_answers_an_omitted_call_unless_the_call_never_happened(reason: str, answers: int | None) -> None:
    """What a person takes out of view was called; what a framework rejected was not."""
    fold = fold_of(prompt(), call("a"))
    _omit(fold, reason, 3)
    grow(fold, result("a"))
    assert fold.window.items[-1].answers == answers


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """Lower the number of blocks that a response may have while its calls wait."""
    monkeypatch.setattr(turns, "MOST_WAITING", 20)
    return 20


def _calls(first: int, number: int) -> list[Block]:
    return [ToolCall(call_id=f"c{n}", name="Read", response_id="r") for n in range(first, first + number)]


def _address(fold: Fold, *blocks: Block) -> list[Block]:
    return fold.address([(block, AT) for block in blocks])


def test_a_response_whose_calls_wait_ends_at_a_size_that_no_model_reaches(few: int) -> None:
    """No window could be cut in it. Results and other responses are appended still."""
    fold = fold_of(prompt(), *_calls(0, 1))
    more = _calls(1, few - 1)
    assert len(_address(fold, *more)) == few - 1
    with pytest.raises(InvalidBlock, match="append those first, or what follows as another response"):
        _address(fold, *more, *_calls(few, 1))
    results = [result(f"c{n}") for n in range(few)]
    assert _address(fold, *more, *results, *_calls(few, 2))
    with pytest.raises(InvalidBlock, match="response_id"):
        _address(fold, *more, *results[:-1], *_calls(few, 1))
    assert _address(fold, *more, answer(response_id="s"))


def test_a_response_that_waits_for_nothing_in_between_is_as_long_as_it_likes(few: int) -> None:
    """It is parted there."""
    rounds = [block for n in range(few) for block in (*_calls(n, 1), result(f"c{n}"))]
    assert len(_address(fold_of(prompt()), *rounds)) == 2 * few


def test_a_result_that_comes_much_too_late_is_refused(few: int) -> None:
    """What lies between it and its call could not be cut either."""
    fold = fold_of(prompt(), *_calls(0, 1))
    assert _address(fold, *[Note(text="n")] * (2 * few - 1), result("c0"))
    with pytest.raises(InvalidBlock, match="append it as a note"):
        _address(fold, *[Note(text="n")] * (2 * few), result("c0"))


async def test_a_log_that_holds_an_endless_response_is_opened_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was written before there was a limit, or by another program. A snapshot of it goes on from what it shows."""
    async with open_store("memory://") as store:
        timeline = await Timeline.open(store, "c")
        await timeline.append(prompt(), *_calls(0, 25))
        monkeypatch.setattr(turns, "MOST_WAITING", 20)
        again = await Timeline.open(store, "c")
        assert len(again.window.items) == 26
        events = [event async for event in store.read("c")]
        fold = await load_fold(store, "c")
        for each in (fold, restore("c", take_snapshot(fold), events)):
            with pytest.raises(InvalidBlock, match="response_id"):
                _address(each, *_calls(25, 1))
            assert len(_address(each, result("c0"), prompt())) == 2
        with pytest.raises(InvalidBlock):
            await again.append(*_calls(25, 1))
        assert (await store.info("c")).version == 27
