from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.lab.rows import row, run_of
from timeline import policies
from timeline.lab.comparison import cheapest, standings
from timeline.lab.work import Failure, Outcome, Work

if TYPE_CHECKING:
    from timeline.lab.results import CallRow


def compared(*named: tuple[str, CallRow]) -> tuple[list[Work], list[Outcome]]:
    """Return units of one file, each with the one call that it came to."""
    works = [Work(file="a.jsonl", policy=policies.none(max_tokens=1000), name=name) for name, _ in named]
    return works, [Outcome(runs=(run_of(name, call),)) for name, call in named]


def test_costs_are_shares_of_the_first_policys() -> None:
    """In the order of the work."""
    found = standings(*compared(("dear", row(1, 200)), ("cheap", row(1, 50))))
    assert [(one.policy, one.relative) for one in found] == [("dear", 1.0), ("cheap", 0.25)]


@pytest.mark.parametrize("fault", [{"over_limit": True}, {"refused": "ContextOverflow"}, {"orphans": 1}], ids=str)
def test_what_does_not_keep_to_the_limit_is_never_the_cheapest(fault: dict[str, Any]) -> None:
    """A policy that sends too much, or nothing, compares with nothing."""
    found = standings(*compared(("unsound", row(1, 1, **fault)), ("dear", row(1, 200)), ("sound", row(1, 100))))
    best = cheapest(found)
    assert best is not None
    assert best.policy == "sound"


def test_there_may_be_none() -> None:
    """No policy keeps to the limit, or no file could be read."""
    assert cheapest(standings(*compared(("unsound", row(1, 1, over_limit=True))))) is None
    works, _ = compared(("any", row(1, 1)))
    unread = standings(works, [Outcome(failure=Failure(type="ImportFailed", message="it is none"))])
    assert [(one.policy, one.relative, one.keeps_to_the_limit) for one in unread] == [("any", None, False)]


def test_costs_are_compared_in_dollars_where_every_model_has_a_price() -> None:
    """A token of a dear model is not one of a cheap model: fewer base tokens may cost more."""
    found = standings(*compared(("dear tokens", row(1, 100, money=5.0)), ("many tokens", row(1, 400, money=1.0))))
    assert [(one.cost_in, one.cost, one.relative) for one in found] == [("money", 5.0, 1.0), ("money", 1.0, 0.2)]
    best = cheapest(found)
    assert best is not None
    assert best.policy == "many tokens"


def test_costs_are_compared_in_base_tokens_where_a_model_has_no_price() -> None:
    """One such model anywhere, and all are: a comparison has one measure."""
    works, outcomes = compared(("first", row(1, 100, money=5.0)), ("second", row(1, 400, money=1.0)))
    unpriced = Outcome(runs=(run_of("first", row(1, 1, money=1.0), priced=False),))
    found = standings([*works, works[0]], [*outcomes, unpriced])
    assert [(one.cost_in, one.cost) for one in found] == [("units", 101.0), ("units", 400.0)]
    best = cheapest(found)
    assert best is not None
    assert best.policy == "first"


def test_a_policy_that_failed_on_a_recording_is_never_the_cheapest() -> None:
    """It pays for fewer calls than the others; a file that nobody can read is held against none."""
    names = ("fails", "works")
    works = [
        Work(file=file, policy=policies.none(max_tokens=1000), name=name)
        for file in ("a.jsonl", "b.jsonl", "no recording")
        for name in names
    ]
    failure = Failure(type="SummarizerFailed", message="no summary")
    done = {
        (file, name): Outcome(runs=(run_of(name, row(1, 100), file=file),))
        for file in ("a.jsonl", "b.jsonl")
        for name in names
    }
    done["b.jsonl", "fails"] = Outcome(failure=failure)
    found = standings(works, [done.get((work.file, work.name), Outcome(failure=failure)) for work in works])
    assert [(one.policy, one.failed, one.keeps_to_the_limit) for one in found] == [
        ("fails", 1, False),
        ("works", 0, True),
    ]
    best = cheapest(found)
    assert best is not None
    assert best.policy == "works"


def test_a_policy_that_sends_the_same_under_another_name_names_the_first() -> None:
    """It is one policy: a count of policies counts it once."""
    found = standings(*compared(("one", row(1, 200)), ("other", row(1, 150)), ("one again", row(1, 200))))
    assert [(one.policy, one.same_as) for one in found] == [("one", ""), ("other", ""), ("one again", "one")]


def test_a_refused_call_counts_under_neither_policy() -> None:
    """What refuses one of two calls is a share of what the first policy pays for the other one."""
    works = [Work(file="a.jsonl", policy=policies.none(max_tokens=1000), name=name) for name in ("all", "refuses")]
    runs = (
        run_of("all", row(1, 100), row(2, 300)),
        run_of("refuses", row(1, 80), row(2, 0, refused="ContextOverflow")),
    )
    found = standings(works, [Outcome(runs=(run,)) for run in runs])
    assert [(one.policy, one.relative, one.keeps_to_the_limit) for one in found] == [
        ("all", 1.0, True),
        ("refuses", pytest.approx(0.8), False),
    ]
