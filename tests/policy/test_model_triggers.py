"""Triggers: the published conditions, each as a line in tokens of the whole account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from timeline.policy.model import (
    Never,
    Overdrawn,
    OverFallingShare,
    OverShare,
    OverThreshold,
    OverUtilization,
    Policy,
    Reserved,
)

if TYPE_CHECKING:
    from timeline.policy.model import Trigger

HELD = Reserved(fixed=9_500, tools=300, reserved=9_000)
"""A system prompt of 200 tokens, tools of 300, reserves of 9,000."""


def test_a_share_counts_everything() -> None:
    """Seeds 002 and 000: the total against a share of the limit, strictly above it."""
    assert OverShare(share=0.9).line(80_000, HELD) == 72_000
    assert OverShare(share=0.85).line(128_000, HELD) == 108_800


@pytest.mark.parametrize(
    ("limit", "line"), [(32_000, 28_800), (100_000, 90_000), (200_000, 120_000), (1_000_000, 360_000)]
)
def test_of_a_wide_window_a_smaller_share_is_used(limit: int, line: int) -> None:
    """Nine tenths of the first 100,000 tokens, three tenths of the others."""
    assert OverFallingShare().line(limit, HELD) == line


@pytest.mark.parametrize(
    ("fixed", "line"),
    [(85_000, 120_000), (110_000, 137_000), (130_000, 151_000), (170_000, 179_000), (190_000, 180_000)],
)
def test_a_large_fixed_part_leaves_messages_the_smaller_share_of_the_room(fixed: int, line: int) -> None:
    """They had a twentieth of the window, and none behind a fixed part of the line's size; 0.9 is the most."""
    assert OverFallingShare().line(200_000, Reserved(fixed=fixed)) == line
    assert OverFallingShare().line(100_000, Reserved(fixed=fixed)) == 90_000


@given(st.integers(1_000, 2_000_000), st.integers(1, 100_000))
def test_a_wider_window_never_compacts_earlier(limit: int, more: int) -> None:
    """The share falls, the line does not."""
    assert OverFallingShare().line(limit, HELD) <= OverFallingShare().line(limit + more, HELD) <= limit + more


def test_the_threshold_of_seed_001_is_93600() -> None:
    """Of 128,000 less 2,000, 4,000 and 5,000 four fifths."""
    assert OverThreshold().threshold(128_000, 9_000) == 93_600


def test_the_threshold_is_reached_not_passed() -> None:
    """Compared with ``>=``; the system prompt counts among the messages, tools and reserves do not."""
    line = OverThreshold().line(128_000, HELD)
    assert line == 93_599 + 300 + 9_000
    system_and_messages = line - 300 - 9_000
    assert system_and_messages + 1 == 93_600


@pytest.mark.parametrize(("limit", "threshold"), [(8_192, 0), (200_000, 151_200), (11_000, 0), (11_002, 1)])
def test_the_threshold_of_other_limits(limit: int, threshold: int) -> None:
    """The limits of seed 001's table; where the reserves take all, everything is due."""
    assert OverThreshold().threshold(limit, 9_000) == threshold


def test_utilization_is_of_the_room_for_messages() -> None:
    """Seed 003: messages over (limit - system - tools - output), strictly above 0.8."""
    assert OverUtilization().line(200_000, HELD) == 9_500 + 152_400


def test_utilization_without_any_room_is_always_due() -> None:
    """Available may be negative."""
    assert OverUtilization().line(9_000, HELD) == HELD.fixed


@pytest.mark.shows("004-40")
def test_overdrawn_is_due_when_nothing_is_available() -> None:
    """Seed 004: available below 0, reserves included."""
    assert Overdrawn().line(16_000, HELD) == 16_000


def test_never_is_never_due_below_the_limit() -> None:
    """The switch that turns all of it off."""
    assert Never().line(16_000, HELD) == 16_000


@given(
    limit=st.integers(1_000, 10**6),
    fixed=st.integers(0, 20_000),
    messages=st.integers(0, 10**6),
    percent=st.integers(5, 100),
)
def test_a_line_says_what_the_published_condition_says(limit: int, fixed: int, messages: int, percent: int) -> None:
    """Above the line the condition holds, at or below it does not; a share is what its decimal figures say."""
    held, total, share = Reserved(fixed=fixed), fixed + messages, percent / 100
    room = limit - fixed
    utilization = OverUtilization(share=share)
    assert (total > utilization.line(limit, held)) == (messages > percent * max(0, room) // 100)
    assert (total > Overdrawn().line(limit, held)) == (limit - total < 0)
    assert (total > OverShare(share=share).line(limit, held)) == (total > percent * limit // 100)


@given(limit=st.integers(1_000, 10**6), tools=st.integers(0, 5_000), messages=st.integers(0, 10**6))
def test_the_line_of_seed_001_says_what_it_compares(limit: int, tools: int, messages: int) -> None:
    """Messages with the system prompt, at least the threshold; and no line is above the limit."""
    held = Reserved(fixed=tools + 9_000, tools=tools, reserved=9_000)
    line = OverThreshold().line(limit, held)
    assert line <= limit
    if line < limit:
        assert (messages + held.fixed > line) == (messages >= OverThreshold().threshold(limit, 9_000))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (0.85, OverShare(share=0.85)),
        (1, OverShare(share=1)),
        ("overdrawn", Overdrawn()),
        ("never", Never()),
        ({"kind": "over_threshold", "system_reserve": 0}, OverThreshold(system_reserve=0)),
    ],
)
def test_a_trigger_may_be_written_short(written: Any, meant: Trigger) -> None:
    """A bare number is a share of the limit, a bare name the trigger with its own figures."""
    assert Policy(trigger=written).trigger == meant


@pytest.mark.parametrize("written", [0, 1.1, True, "sometimes", {"kind": "over_share", "shard": 1}])
def test_what_is_no_trigger_is_refused(written: Any) -> None:
    """By name of the field."""
    with pytest.raises(ValidationError, match="trigger"):
        Policy(trigger=written)
