"""Ages: how many rounds or turns are newer than a block's own (design, section 6, hiding)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.scenes import answer, call, exchange, prompt, result, turn, window_of
from timeline.blocks import Note
from timeline.planning.hide import AgeUnit, ages


def test_a_response_and_its_results_are_one_round() -> None:
    """What the model said, called and got in one go has one age; the newest round has age 0."""
    window = window_of(
        prompt(), answer(), call("a"), call("b"), result("a"), result("b"), *exchange("d"), *exchange("e")
    )
    assert ages(window.items, "rounds")[1:] == [2, 2, 2, 2, 2, 1, 1, 0, 0]


def test_what_belongs_to_no_response_is_as_old_as_the_rounds_behind_it() -> None:
    """A prompt or note counts the rounds that came after it."""
    window = window_of(prompt(), *exchange("a"), Note(text="n"), *exchange("b"), prompt())
    assert ages(window.items, "rounds") == [2, 1, 1, 1, 0, 0, 0]


def test_a_result_that_comes_late_has_the_age_of_its_place() -> None:
    """It answers no call any more, so it is as old as what came after it."""
    first = call("a", response_id="r1")
    window = window_of(prompt(), first, *exchange("b", response_id="r2"), result("a"), *exchange("d", response_id="r3"))
    assert window.items[4].answers is None
    assert ages(window.items, "rounds")[4] == 1


def test_the_result_of_a_pending_call_is_as_old_as_its_call() -> None:
    """It belongs to the round of the call that waited, whenever it comes."""
    waits = call("a", pending=True, response_id="r1")
    window = window_of(prompt(), waits, *exchange("b", response_id="r2"), result("a"))
    assert ages(window.items, "rounds") == [2, 1, 0, 0, 1]


@given(st.sets(st.integers(1, 5_000), min_size=1, max_size=12))
def test_rounds_are_counted_in_their_order_however_many_were_covered_between_them(numbers: set[int]) -> None:
    """What is carried, pinned or open may be hundreds of rounds older than what stands beside it."""
    items = window_of(*(answer(response_id=f"r{number}") for number in numbers)).items
    placed = [item._replace(response=number) for item, number in zip(items, sorted(numbers), strict=True)]
    assert ages(placed, "rounds") == [*reversed(range(len(numbers)))]


def test_turns_count_from_the_newest() -> None:
    """In turns a long turn has one age, however many rounds it has."""
    window = window_of(*turn(), prompt(), *exchange("a"), *exchange("b"), *turn())
    assert ages(window.items, "turns") == [2, 2, 1, 1, 1, 1, 1, 0, 0]


def test_a_turn_that_goes_on_again_is_as_young_as_its_newest_block() -> None:
    """A block with an old turn's id makes that turn the newest one."""
    window = window_of(prompt(turn_id="A"), prompt(turn_id="B"), answer(turn_id="A"))
    assert ages(window.items, "turns") == [0, 1, 0]


def test_an_empty_window_has_no_ages() -> None:
    """No items, no ages, in either unit."""
    assert ages((), "rounds") == ages((), "turns") == []


@given(st.lists(st.integers(0, 3), max_size=30), st.sampled_from(["rounds", "turns"]))
def test_appending_never_makes_a_block_younger(kinds: list[int], unit: AgeUnit) -> None:
    """Ages only rise while a conversation goes on, by one at a time, and never below 0."""
    made = [
        block
        for n, kind in enumerate(kinds)
        for block in ([prompt()], [answer()], exchange(f"c{n}"), [Note(text="n")])[kind]
    ]
    before: list[int] = []
    for end in range(len(made) + 1):
        now = ages(window_of(*made[:end]).items, unit)
        assert all(0 <= new - old <= 1 for old, new in zip(before, now, strict=False))
        assert min(now, default=0) >= 0
        before = now
