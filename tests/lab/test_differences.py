from __future__ import annotations

from typing import Any

import pytest

from tests.lab.rows import row, run_of
from timeline.lab.differences import against_the_first, differences, largest


def test_calls_that_cost_the_same_are_left_out() -> None:
    """A difference is the second policy's cost less the first one's, summaries included."""
    first = run_of("first", row(1, 100), row(2, 100), row(3, 300))
    second = run_of("second", row(1, 100), row(2, 90, summary_units=50.0), row(3, 100))
    found = differences(first, second)
    assert [(one.number, one.units) for one in found] == [(2, 40.0), (3, -200.0)]
    assert found[0].policies == ("first", "second")
    assert found[0].rows == (first.rows[1], second.rows[1])


@pytest.mark.parametrize(
    ("cheap", "dear", "reason"),
    [
        ({}, {"lost": 90, "cause": "hide"}, "hide"),
        ({"lost": 40, "cause": "gap"}, {"lost": 90, "cause": "gap"}, "gap"),
        ({"lost": 90, "cause": "gap"}, {"lost": 90, "cause": "gap"}, "size"),
        ({}, {}, "size"),
        ({"read": 40}, {"read": 20}, "cold"),
        ({}, {"lost": 90, "cause": "compaction", "summary_units": 300.0}, "summary"),
        ({"refused": "ContextOverflow"}, {"lost": 90, "cause": "gap"}, "refused"),
    ],
    ids=["broke", "lost more", "lost as much", "sends more", "reads less", "summary", "refusal"],
)
def test_the_reason_is_that_of_the_dearer_one(cheap: dict[str, Any], dear: dict[str, Any], reason: str) -> None:
    """It is the same whichever of the two comes first."""
    one, other = run_of("one", row(1, 50, **cheap)), run_of("other", row(1, 200, **dear))
    assert [found.reason for found in (*differences(one, other), *differences(other, one))] == [reason, reason]


def test_the_largest_come_first_whichever_way_they_go() -> None:
    """Of equals the earlier call."""
    first = run_of("first", row(1, 100), row(2, 100), row(3, 100))
    second = run_of("second", row(1, 110), row(2, 50), row(3, 150))
    assert [one.number for one in largest(differences(first, second), "units")] == [2, 3, 1]


def test_the_largest_is_told_in_dollars_where_every_model_has_a_price() -> None:
    """Calls to a dear model come before calls that only send more; without prices base tokens decide."""
    for priced, order in ((True, [2, 1]), (False, [1, 2])):
        first = run_of("first", row(1, 100), row(2, 100), priced=priced)
        second = run_of("second", row(1, 900, money=0.002), row(2, 200, money=0.5), priced=priced)
        found = against_the_first([first, second])[1000, "second"]
        assert [one.number for one in found] == order


def test_every_policy_is_held_against_the_first_of_its_limit() -> None:
    """Over all recordings; limits are not mixed."""
    runs = [
        run_of(policy, row(1, units * limit), limit=limit, file=file, conversation=file)
        for file in ("a", "b")
        for limit in (10, 20)
        for policy, units in (("first", 1), ("second", 2), ("third", 1))
    ]
    found = against_the_first(runs)
    assert {key: [(one.file, one.units) for one in several] for key, several in found.items()} == {
        (10, "second"): [("a", 10.0), ("b", 10.0)],
        (10, "third"): [],
        (20, "second"): [("a", 20.0), ("b", 20.0)],
        (20, "third"): [],
    }
