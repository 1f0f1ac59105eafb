"""Figures in units: a counter's tokens, or those of a provider that counts a ratio of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scenes import COUNTER, answer, window_of, words
from timeline.events import Replacement
from timeline.fold.counts import in_unit, parts_of_unit, plain_tokens, plainly
from timeline.fold.window import Hide

RATIOS = st.integers(70, 200).map(lambda percent: percent / 100)


@given(RATIOS, st.integers(0, 10_000))
def test_a_figure_says_by_its_unit_how_many_tokens_of_the_counter_it_is(ratio: float, tokens: int) -> None:
    """To within the rounding; at a ratio of one the unit is the counter itself."""
    unit = in_unit(COUNTER, ratio)
    assert parts_of_unit(unit.name) == (COUNTER.name, ratio)
    assert abs(plain_tokens(unit.count(words(tokens)), unit.name) - tokens) <= 1


@pytest.mark.parametrize("name", ["of an application", "a*b", "*"])
def test_an_applications_counter_may_have_any_name(name: str) -> None:
    """A star alone makes no unit."""
    assert parts_of_unit(name) == (name, 1.0)
    assert plain_tokens(7, name) == 7


@given(own=RATIOS, of_hide=RATIOS, is_hidden=st.booleans())
def test_an_item_is_listed_in_the_counters_tokens_whatever_units_its_figures_have(
    own: float, of_hide: float, *, is_hidden: bool
) -> None:
    """A decision has the unit of its own time, its block's may be another one."""
    [item] = window_of(answer(400)).items
    unit, later = in_unit(COUNTER, own), in_unit(COUNTER, of_hide)
    item = item._replace(tokens=unit.count(words(400)), counter=unit.name)
    if is_hidden:
        shown = Replacement(version=item.version, text=words(100), tokens=later.count(words(100)))
        item = item._replace(replacement=shown, hide=Hide(3, "cold", {}, later.name))
    plain = plainly(item)
    assert (plain.tokens, plain.shown_tokens) == (400, 100 if is_hidden else 400)
