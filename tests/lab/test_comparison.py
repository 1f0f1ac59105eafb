from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.lab.rows import row, run_of
from timeline import policies
from timeline.lab.comparison import by_lifetime, cheapest, standings
from timeline.lab.work import Failure, Outcome, Work

if TYPE_CHECKING:
    from timeline.lab.results import ReplayedCallRow, RunResult


def compared(*named: tuple[str, ReplayedCallRow]) -> tuple[list[Work], list[Outcome]]:
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
    assert [(one.policy, one.failed_recordings, one.keeps_to_the_limit) for one in found] == [
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


def test_a_call_that_the_first_policy_refused_counts_under_neither() -> None:
    """Or whoever answers it seems to cost more than it does."""
    works = [Work(file="a.jsonl", policy=policies.none(max_tokens=1000), name=name) for name in ("refuses", "all")]
    runs = (
        run_of("refuses", row(1, 100), row(2, 0, refused="ContextOverflow")),
        run_of("all", row(1, 80), row(2, 300)),
    )
    found = standings(works, [Outcome(runs=(run,)) for run in runs])
    assert [one.relative for one in found] == [1.0, pytest.approx(0.8)]


def test_the_cost_with_reads_is_a_share_over_the_same_calls() -> None:
    """So that it is never below the cost without them because calls were refused."""
    works = [Work(file="a.jsonl", policy=policies.none(max_tokens=1000), name=name) for name in ("all", "refuses")]
    runs = (
        run_of("all", row(1, 100), row(2, 300)),
        run_of("refuses", row(1, 80, fetch_money=0.00001), row(2, 0, refused="ContextOverflow")),
    )
    found = standings(works, [Outcome(runs=(run,)) for run in runs])
    assert [one.relative_with_reads for one in found] == [1.0, pytest.approx(0.9)]


def of_class(lifetime: str, *named: tuple[str, ReplayedCallRow]) -> list[tuple[str, RunResult]]:
    """Return runs of a file whose cache is kept so."""
    return [
        (name, run_of(name, call, file=f"{lifetime}.jsonl").model_copy(update={"lifetime": lifetime}))
        for name, call in named
    ]


def by_class(*runs: tuple[str, RunResult]) -> tuple[list[Work], list[Outcome]]:
    """Return a unit for each run."""
    works = [Work(file=one.file, policy=policies.none(max_tokens=1000), name=name) for name, one in runs]
    return works, [Outcome(runs=(one,)) for _, one in runs]


def test_recordings_whose_caches_differ_are_summed_by_class_too() -> None:
    """A policy may be cheaper than none with one lifetime, and dearer with another: the whole does not show it."""
    hour = of_class("1h", ("none", row(1, 100)), ("ours", row(1, 120)))
    minutes = of_class("5m", ("none", row(1, 100)), ("ours", row(1, 40)))
    compared_by = by_class(*hour, *minutes)
    assert [(one.policy, one.lifetime, one.relative) for one in standings(*compared_by)] == [
        ("none", "", 1.0),
        ("ours", "", 0.8),
    ]
    assert [(one.policy, one.lifetime, one.relative) for one in by_lifetime(*compared_by)] == [
        ("none", "1h", 1.0),
        ("ours", "1h", 1.2),
        ("none", "5m", 1.0),
        ("ours", "5m", 0.4),
    ]


def test_recordings_of_one_class_are_not_summed_twice() -> None:
    """The whole is the class."""
    assert by_lifetime(*by_class(*of_class("1h", ("none", row(1, 100)), ("ours", row(1, 120))))) == []


def test_costs_are_held_against_the_cheapest_published_design_that_keeps_to_the_limit() -> None:
    """Presets that are published designs, and the library's; a design that sends too much is none."""
    found = standings(
        *compared(
            ("none", row(1, 300)),
            ("pi", row(1, 50, over_limit=True)),
            ("cline", row(1, 200)),
            ("cut_point", row(1, 160)),
            ("balanced", row(1, 120)),
        )
    )
    assert {one.policy: one.of_published for one in found} == pytest.approx(
        {"none": 300 / 160, "pi": 50 / 160, "cline": 200 / 160, "cut_point": 1.0, "balanced": 0.75}
    )
    assert [one.of_published for one in standings(*compared(("none", row(1, 300)), ("balanced", row(1, 100))))] == [
        None
    ] * 2
