from __future__ import annotations

from typing import Any, Final

import pytest

from tests.frontier.answers import Answer, answer, chosen
from tests.frontier.hand import LIMIT, figures, replays_of
from tests.frontier.trial import against

FILES: Final = ["a-1h", "b-1h", "c-5m"]


def held(ours: dict[str, Any], theirs: dict[str, Any]) -> Answer | None:
    """Hold a setting against pi's default."""
    return answer(replays_of({"none": figures(200), "pi": theirs, "ours": ours}, FILES), LIMIT, "pi", "ours", FILES)


@pytest.mark.parametrize(
    ("ours", "answered"),
    [
        (figures(95), True),
        (figures(96), False),
        (figures(80, visible=9_999), False),
        (figures(80, reachable_far=7), False),
    ],
)
def test_a_default_is_answered_by_what_keeps_as_much_for_at_most_19_of_20_parts_of_the_cost(
    ours: dict[str, Any], *, answered: bool
) -> None:
    """No less in sight, and no fewer facts one read away."""
    found = held(ours, figures(100))
    assert found is not None
    assert (found.recordings, found.answered) == (3, answered)


@pytest.mark.parametrize("theirs", [figures(100, hidden=0), figures(100, refused="ContextOverflow")])
def test_a_default_that_rewrites_nothing_or_refuses_has_no_answer(theirs: dict[str, Any]) -> None:
    """On such recordings it is no policy, or none that can be compared."""
    assert held(figures(80), theirs) is None


def test_a_trial_says_what_a_setting_comes_to_beside_a_default() -> None:
    """Its cost, and how much it keeps of what the default keeps."""
    told = {"none": figures(200), "pi": figures(100), "ours": figures(80, visible=9_000)}
    found = [*against(replays_of(told, FILES), LIMIT, "pi", FILES)]
    assert found == ["ours  0.800  no  0.900  0.6000/0.6000  0.8000/0.8000"]


def test_the_setting_that_answers_on_most_draws_is_chosen() -> None:
    """Among equally sure ones the cheapest; published defaults are no answers."""
    settings = {"dear": figures(90), "cheap": figures(80), "blind": figures(10, seen_far=0), "cline": figures(70)}
    found = replays_of({"none": figures(200), "pi": figures(100), **settings}, FILES)
    assert chosen(found, LIMIT) == {"pi": "cheap", "cline": "cheap"}
