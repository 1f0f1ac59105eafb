"""Policies that take every decision of another one, and send less (ADR 0105)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from timeline import policies
from timeline.errors import InvalidPolicy
from timeline.policy import lean
from timeline.policy.files import find_policy, policy_names
from timeline.policy.model import LineNumbers, Policy, Repeats
from timeline.policy.steps import Summarize

if TYPE_CHECKING:
    from pathlib import Path

LEAN = {"name", "repeats", "line_numbers", "abridged_counted_as", "steps", "cache_points"}
"""The fields that are another policy's own."""


@pytest.mark.parametrize("name", [name for name in policy_names() if not name.startswith(lean.PREFIX)])
def test_a_lean_policy_is_the_other_one_but_for_what_it_sends(name: str) -> None:
    """Triggers, targets, cuts, hides and summaries are the same fields; a summary is asked for in another way."""
    plain, made = (policies.by_name(given, max_tokens=100_000) for given in (name, f"lean-{name}"))
    assert plain.model_dump(exclude=LEAN) == made.model_dump(exclude=LEAN)
    assert [step.model_copy(update={"asked": "alone"}) for step in plain.steps] == [
        step.model_copy(update={"asked": "alone"}) for step in made.steps
    ]
    assert all(step.asked == "in_cache" for step in made.steps if isinstance(step, Summarize))
    assert made.name == f"lean-{name}"
    assert made.abridges
    assert made.abridged_counted_as == (plain.abridged_counted_as if plain.abridges else "whole")
    assert made.cache_points == plain.cache_points.model_copy(update={"kept_long": "fixed_part"})


def test_what_a_policy_says_itself_stays() -> None:
    """Its own repeats and numbers, and what it keeps for an hour."""
    own = policies.cut_point(
        repeats=Repeats(lines=9), line_numbers=LineNumbers(every=5), cache_points={"kept_long": "everything"}
    )
    made = policies.lean(own)
    assert (made.repeats, made.line_numbers, made.cache_points) == (own.repeats, own.line_numbers, own.cache_points)


def test_a_policy_that_abridges_already_goes_on_abridging_and_counting_as_it_does() -> None:
    """To count whole what it shows without its numbers would decide earlier."""
    balanced = policies.balanced()
    assert policies.by_name("lean-balanced") == balanced.model_copy(update={"name": "lean-balanced"})
    own = policies.cut_point(repeats=Repeats())
    made = policies.lean(own)
    assert (made.repeats, made.line_numbers, made.abridged_counted_as) == (own.repeats, None, "shown")


def test_a_lean_policy_is_made_lean_once() -> None:
    """Made lean again it is the same, its name included."""
    made = policies.by_name("lean-pi")
    assert policies.lean(made) == made


def test_what_makes_a_policy_lean_is_changed_in_it_as_in_a_file() -> None:
    """A gateway may know no hour, and a loop may record no decision."""
    made = policies.by_name(
        "lean-pi", line_numbers=None, repeats={"lines": 9}, cache_points={"kept_long": "nothing"}, name="mine"
    )
    assert (made.name, made.line_numbers, made.repeats) == ("mine", None, Repeats(lines=9))
    assert made.cache_points.kept_long == "nothing"
    assert made.abridged_counted_as == "whole"
    assert policies.by_name("lean-pi", cache_points={"min_rounds": 3}).cache_points.kept_long == "fixed_part"
    assert policies.by_name("lean-pi", abridged_counted_as="shown").abridged_counted_as == "shown"


def test_a_change_of_what_makes_it_lean_that_does_not_hold_is_refused() -> None:
    """With the nearest value, as everywhere."""
    with pytest.raises(InvalidPolicy, match=r"cache_points\.kept_long.*nothing"):
        policies.by_name("lean-pi", cache_points={"kept_long": "nothin"})


def test_a_name_makes_what_the_function_makes_and_knows_what_made_it() -> None:
    """A conversation that recorded it finds it again by its name and arguments."""
    made = policies.by_name("lean-keep_last", model="gpt-4o", messages=4)
    assert made == policies.lean(policies.keep_last(model="gpt-4o", messages=4))
    assert (made.origin.preset, made.origin.release) == ("lean-keep_last", 1)
    assert made.origin.arguments == {"model": "gpt-4o", "messages": 4}
    assert Policy.parse(made.canonical()) == made


def test_a_release_of_the_plain_policy_is_one_of_the_lean_one() -> None:
    """A conversation that recorded an earlier one keeps its figures."""
    assert policies.by_name("lean-balanced").origin.release == policies.balanced().origin.release


def test_a_file_changes_a_lean_policy(tmp_path: Path) -> None:
    """As it changes any other."""
    file = tmp_path / "mine.toml"
    file.write_text('preset = "lean-pi"\n[cache_points]\nkept_long = "everything"\n', encoding="utf-8")
    made = find_policy(str(file), max_tokens=64_000)
    assert (made.name, made.max_tokens, made.cache_points.kept_long) == ("lean-pi", 64_000, "everything")
    assert find_policy(str(file)).steps == policies.by_name("lean-pi").steps


@pytest.mark.parametrize("part", ["repeats", "line_numbers"])
def test_a_file_switches_off_what_is_left_out(tmp_path: Path, part: str) -> None:
    """As in any other policy."""
    file = tmp_path / "mine.toml"
    file.write_text(f'preset = "lean-pi"\n{part} = false\n', encoding="utf-8")
    assert getattr(find_policy(str(file)), part) is None


@pytest.mark.parametrize(("slip", "meant"), [("lean-pj", "lean-pi"), ("lean-lean-pi", "lean-pi")])
def test_a_slip_is_refused_with_the_nearest_name(slip: str, meant: str) -> None:
    """A policy is lean once."""
    with pytest.raises(InvalidPolicy, match=meant):
        policies.by_name(slip)


def test_its_outline_says_what_it_leaves_out_and_how_it_counts() -> None:
    """As `timeline policies show lean-pi` prints it."""
    shown = policies.outline(policies.by_name("lean-pi"))
    assert shown.repeats
    assert shown.line_numbers
    assert shown.counts == "o200k_base, abridged results as if they were whole"
