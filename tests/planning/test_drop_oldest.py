"""Dropping the oldest behind a notice (seed 000, P5; seed 003, graceful degradation)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenes import COUNTER, answer, call, exchange, planned, prompt, refused, result, turn, window_of, words
from timeline import policies
from timeline.planning.drop_oldest import NOTICE_BY, truncation_notice
from timeline.policy.steps import DropOldest

if TYPE_CHECKING:
    from timeline.policy.model import Policy


def dropping(keep_last: int) -> Policy:
    """Return a policy that only drops."""
    return policies.priority_chain(steps=[DropOldest(keep_last=keep_last)], min_progress_tokens=0)


@pytest.mark.shows("000-37", "R-000-20")
def test_the_newest_messages_stay_and_a_notice_stands_for_the_others() -> None:
    """Of sixty messages fifty stay; what is said of the others is known without asking anybody."""
    window = window_of(*[block for _ in range(30) for block in turn(50, asked=50)])
    plan = planned(window, dropping(50))
    assert len(plan.covered) == 10
    assert plan.cut_version == window.items[10].version
    assert plan.written_by == NOTICE_BY
    assert plan.written is not None
    assert plan.written.history.startswith("[Context truncated. Earlier conversation contained 10 messages about: ")


def test_no_more_messages_than_are_kept_are_left_alone() -> None:
    """Fifty messages are what fifty keep."""
    window = window_of(*[block for _ in range(25) for block in turn(20, asked=20)])
    assert refused(window, dropping(50)).reason == "nothing_to_cover"


def test_no_call_is_parted_from_its_result() -> None:
    """A boundary between a call and its results moves back to the call."""
    window = window_of(prompt(300), *exchange("a", 300), call("b"), call("c"), result("b", 50), result("c", 50))
    assert len(planned(window, dropping(1)).covered) == 3


def test_the_notice_names_what_was_asked() -> None:
    """The newest prompts are the topics, each on one line and shortened."""
    items = window_of(*[block for n in range(12) for block in (prompt(text=f"Question\n{n}"), answer())]).items
    notice = truncation_notice(items, 500, COUNTER).history
    assert notice == (
        "[Context truncated. Earlier conversation contained 24 messages about: "
        + "; ".join(f"Question {n}" for n in range(4, 12))
        + "]"
    )
    [long] = window_of(prompt(text=words(100))).items
    assert "abc…]" in truncation_notice([long], 500, COUNTER).history


def test_the_notice_keeps_its_cap_and_its_brackets() -> None:
    """Where room is short the topics are cut."""
    items = window_of(
        *[block for n in range(12) for block in (prompt(text=f"Question {n}: {words(9)}"), answer())]
    ).items
    notice = truncation_notice(items, 40, COUNTER).history
    assert COUNTER.count(notice) <= 40
    assert notice.startswith("[Context truncated. ")
    assert notice.endswith("]")


def test_without_a_prompt_the_notice_says_so() -> None:
    """In a long run all that is dropped may belong to one prompt that stays."""
    items = window_of(prompt(), *exchange("a"), *exchange("b")).items[1:]
    notice = truncation_notice(items, 100, COUNTER).history
    assert (
        notice == "[Context truncated. Earlier conversation contained 4 messages about: the work of an earlier prompt]"
    )
