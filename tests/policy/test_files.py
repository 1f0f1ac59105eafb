"""Policies in TOML files: presets with changes, whole policies, and errors that name the file, the field, the cure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeline import policies
from timeline.errors import InvalidPolicy, TimelineError
from timeline.policy.compare import compare_policies, flat, shown
from timeline.policy.files import parse_policy
from timeline.policy.model import Hiding, Never, OverShare, OverThreshold, Policy
from timeline.policy.presets import PRESETS
from timeline.policy.steps import DropOldest, KeepTurns, Summarize

if TYPE_CHECKING:
    from pathlib import Path

LIMITS = st.integers(min_value=1_000, max_value=2_000_000)
CHANGES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "name": st.text(),
        "max_tokens": LIMITS,
        "margin": st.floats(min_value=-0.3, max_value=1),
        "target": st.floats(min_value=0.001, max_value=1),
        "trigger": st.one_of(st.just("never"), st.floats(min_value=0.01, max_value=1)),
        "hiding": st.one_of(st.none(), st.builds(Hiding, ttl=st.one_of(st.none(), st.integers(1, 9_999)))),
        "form": st.fixed_dictionaries({"heading": st.text(), "question": st.text(), "record": st.booleans()}),
        "compact_when_cold": st.one_of(st.none(), st.floats(min_value=0.01, max_value=1)),
        "steps": st.lists(
            st.one_of(
                st.builds(DropOldest, keep_last=st.integers(1, 99)),
                st.builds(Summarize, cut=st.builds(KeepTurns, turns=st.integers(1, 9)), language=st.text()),
            ),
            max_size=3,
        ),
    },
)


@given(preset=st.sampled_from(sorted(PRESETS)), changes=CHANGES)
def test_a_written_policy_reads_back_as_the_same(preset: str, changes: dict[str, Any]) -> None:
    """Whatever preset and whatever is changed in it, texts with any characters included."""
    policy = policies.by_name(preset, **changes)
    assert parse_policy(policy.to_toml()) == policy


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (1_234_567, "1,234,567"),
        (True, "true"),
        (0.25, "0.25"),
        ("a word", "a word"),
        ("", '""'),
        (" a", '" a"'),
        ("a\nb", '"a\\nb"'),
        (["a", 1], '["a",1]'),
    ],
)
def test_a_value_is_shown_on_one_line_and_plain_where_nothing_is_lost(value: Any, text: str) -> None:
    """Figures have commas; a text that would vanish or break the line is in quotes."""
    assert shown(value) == text


@given(preset=st.sampled_from(sorted(PRESETS)), other=st.sampled_from(sorted(PRESETS)))
def test_a_comparison_holds_every_field_of_both_once(preset: str, other: str) -> None:
    """And none differs exactly where the policies are equal."""
    before, after = policies.by_name(preset), policies.by_name(other)
    rows = compare_policies(before, after)
    assert {row.field for row in rows} == {*flat(before), *flat(after)}
    assert len({row.field for row in rows}) == len(rows)
    assert (policies.diff_policies(before, after) == ()) == (before == after)


def test_every_preset_is_a_name_of_policies() -> None:
    """What the command line knows by name, Python knows as a function."""
    assert {name: getattr(policies, name) for name in PRESETS} == PRESETS
    assert PRESETS.keys() <= set(policies.__all__)


def test_a_difference_names_the_field_and_both_values() -> None:
    """Parts that only one of them has stand as None on the other side."""
    rows = policies.diff_policies(policies.cut_point(), policies.cut_point(hiding=None, max_tokens=9_000))
    assert rows[0] == ("max_tokens", 80_000, 9_000)
    assert ("hiding.intact", 8, None) in rows


def test_a_file_names_a_preset_and_what_is_different(tmp_path: Path) -> None:
    """Its own keywords, single fields, and fields of its parts; the rest stays the preset's."""
    file = tmp_path / "mine.toml"
    file.write_text(
        'preset = "keep_last"\nmessages = 20\nmax_tokens = 64_000\n'
        '[form]\nheading = "So far"\n[trigger]\nshare = 0.7\n',
        encoding="utf-8",
    )
    policy = policies.load(file)
    assert policy == policies.keep_last(
        messages=20,
        max_tokens=64_000,
        form=policies.keep_last().form.model_copy(update={"heading": "So far"}),
        trigger=OverThreshold(share=0.7, output_reserve=4_000, safety_buffer=5_000),
    )
    assert policies.load(str(file), max_tokens=9_000) == policy.model_copy(update={"max_tokens": 9_000})


def test_a_file_holds_a_whole_policy() -> None:
    """Without a preset, everything that is not said has the library's default; steps are arrays of tables."""
    policy = parse_policy(
        """
        name = "mine"
        trigger = 0.8
        hiding = { ttl = 300 }
        [[steps]]
        kind = "summarize"
        cut = { kind = "keep_turns", turns = 3 }
        [[steps]]
        kind = "drop_oldest"
        """
    )
    assert policy == Policy(
        name="mine",
        trigger=OverShare(share=0.8),
        hiding=Hiding(ttl=300),
        steps=(Summarize(cut=KeepTurns(turns=3)), DropOldest()),
    )


def test_false_switches_a_part_off() -> None:
    """TOML has no word for nothing."""
    assert parse_policy('preset = "cut_point"\nhiding = false\ncompact_when_cold = false').hiding is None


def test_another_kind_of_part_replaces_the_presets() -> None:
    """Only parts of one kind are merged field by field."""
    assert parse_policy('preset = "keep_last"\n[trigger]\nkind = "over_share"\nshare = 0.5').trigger == OverShare(
        share=0.5
    )
    assert parse_policy('preset = "keep_last"\ntrigger = "never"').trigger == Never()


def test_a_file_names_a_model() -> None:
    """The preset takes its limits."""
    assert parse_policy('preset = "keep_last"\nmodel = "gpt-4"').max_tokens == 8_192


@pytest.mark.parametrize(
    ("text", "field", "near"),
    [
        ("max_tokns = 4", "max_tokns", "max_tokens"),
        ('preset = "keep_lst"', "preset", "keep_last"),
        ('preset = "keep_last"\nmesages = 3', "mesages", "messages"),
        ('preset = "cut_point"\nkeep_recnt = 0.1', "keep_recnt", "keep_recent"),
        ('trigger = "nevr"', "trigger", "never"),
        ("[trigger]\nkind = 'over_shares'", "trigger", "over_share"),
        ("[hiding]\nttll = 4", "hiding.ttll", "ttl"),
        ('on_failure = "fallbck"', "on_failure", "fallback"),
        ('[[steps]]\nkind = "sumarize"', "steps.0", "summarize"),
        ('[[steps]]\nkind = "drop_oldest"\nkeep = 4', "steps.0.keep", "keep_last"),
        ('[[steps]]\nkind = "summarize"\ncut = { kind = "keeplast" }', "steps.0.cut", "keep_last"),
        ('preset = "keep_last"\n[form]\nheding = "x"', "form.heding", "heading"),
        ('prset = "none"', "prset", "preset"),
    ],
)
def test_a_wrong_name_is_told_with_the_nearest_valid_one(text: str, field: str, near: str) -> None:
    """Fields, keywords, presets, kinds of steps, cuts and triggers alike; the file is named."""
    with pytest.raises(InvalidPolicy) as caught:
        parse_policy(text, file="mine.toml")
    assert (caught.value.field, caught.value.file) == (field, "mine.toml")
    assert f"the nearest is {near!r}" in str(caught.value)
    assert "mine.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "field"),
    [("max_tokens = 1", "max_tokens"), ("[[steps]]\nturns = 2", "steps.0"), ("preset = 3", "preset"), ("x =", "")],
)
def test_a_value_that_does_not_hold_is_told(text: str, field: str) -> None:
    """By its field; a text that is no TOML as a whole."""
    with pytest.raises(InvalidPolicy) as caught:
        parse_policy(text)
    assert caught.value.field == field


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_a_typed_error(tmp_path: Path, content: bytes | None) -> None:
    """Missing, or no text."""
    file = tmp_path / "mine.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidPolicy, match="cannot be read") as caught:
        policies.load(file)
    assert caught.value.file == str(file)


@given(st.text())
def test_no_text_does_anything_but_load_or_fail_in_type(text: str) -> None:
    """A file from anywhere never ends in an unexpected error."""
    try:
        policy = parse_policy(text)
    except TimelineError:
        return
    assert policy == Policy()
