"""What of a new result need not be sent (ADRs 0090, 0091)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.planning.test_repeats import LINES, abridged, numbered, read
from tests.scenes import COUNTER, answer, call, fold_of, grow, prompt, window_of
from timeline import policies
from timeline.fold.fold import Fold
from timeline.planning.abridge import abridgeable
from timeline.policy.model import LineNumbers, Repeats

if TYPE_CHECKING:
    from timeline.blocks import Block

NUMBERS = policies.none(line_numbers=LineNumbers())
BOTH = policies.none(line_numbers=LineNumbers(), repeats=Repeats())


def test_a_new_result_shows_one_number_in_ten_and_says_so() -> None:
    """Of forty lines the first one and four more keep theirs."""
    lines = numbered(LINES)
    planned = abridged(window_of(prompt(), *read("a", lines)), NUMBERS)
    shown = planned.numbered[0].text.split("\n")
    assert shown[0] == "[one line in 10 has its number, all of them in @4]"
    assert [line for line in shown if line in lines] == [lines[place] for place in (0, 9, 19, 29, 39)]
    assert planned.repeated == ()
    assert planned.numbered[0].tokens == COUNTER.count(planned.numbered[0].text)


def test_passages_are_left_out_before_numbers_are() -> None:
    """The ends of a passage keep their numbers: what is left out between them is numbered from there."""
    edited = [*LINES[:20], *[f"    and new line {number} of the edit" for number in range(12)], *LINES[20:]]
    window = window_of(prompt(), *read("a", numbered(LINES)), *read("b", numbered(edited)))
    planned = abridged(window, BOTH)
    lines = numbered(edited)
    above = [lines[0], "[… 18 lines, as above in @4]", lines[19]]
    new = [*edited[20:29], lines[29], *edited[30:32]]
    below = [lines[32], "[… 18 lines, as above in @4]", lines[-1]]
    shown = ["[one line in 10 has its number, all of them in @6]", *above, *new, *below]
    assert planned.repeated[0].text.split("\n") == shown


def test_each_result_of_one_response_has_its_own_reason() -> None:
    """One repeats what is above, another has numbers only."""
    both: list[Block] = [call(name, response_id="r") for name in "bc"]
    texts = {"b": LINES, "c": [f"{number:6}→{number * number} and so on" for number in range(1, 60)]}
    both += [read(name, lines)[1] for name, lines in texts.items()]
    planned = abridged(window_of(prompt(), *read("a", LINES), *both), BOTH)
    assert [(reason, [block.version for block in blocks]) for reason, blocks in planned.by_reason] == [
        ("repeated", [7]),
        ("numbered", [8]),
    ]


@pytest.mark.parametrize("behind", [answer(response_id="later"), call("later", response_id="later")])
def test_numbers_that_were_sent_stay(behind: Block) -> None:
    """Leaving them out now would cost the provider's cache."""
    assert abridgeable(window_of(prompt(), *read("a", numbered(LINES)), behind), NUMBERS) == []


def test_a_result_of_a_few_numbered_lines_stays() -> None:
    """What it saves is less than `LineNumbers.minimum`."""
    planned = abridged(window_of(prompt(), *read("a", numbered(LINES[:12]))), NUMBERS)
    assert planned == ((), ())


def test_a_list_of_messages_keeps_its_numbers() -> None:
    """The next list would bring them again, behind the provider's cached prefix."""
    fold = Fold("c", readable=False)
    fold.version = 1
    grow(fold, prompt(), *read("a", numbered(LINES)))
    assert abridgeable(fold.window, NUMBERS) == []


def test_a_policy_without_either_looks_at_nothing() -> None:
    """It is what published designs do."""
    assert abridgeable(fold_of(prompt(), *read("a", numbered(LINES))).window, policies.none()) == []
