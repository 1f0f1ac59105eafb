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
