"""Policies: frozen values with one canonical text (design, section 6, the table of numbers)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from timeline import policies
from timeline.errors import InvalidArgument, InvalidPolicy
from timeline.frozen import Frozen, sha256_hex
from timeline.planning.account import FixedPart, limits_of_policy
from timeline.policy.model import CachePointRule, Hiding, OverShare, OverThreshold, Policy
from timeline.policy.presets import PRESETS
from timeline.policy.steps import ClearToolOutputs, CutPoint, KeepLast, KeepTurns, Oldest, Summarize


def parts_of(model: type[Frozen] = Frozen) -> list[type[Frozen]]:
    """Return all values that policies are made of."""
    below = [part for each in model.__subclasses__() for part in parts_of(each)]
    return [model, *below] if model.__module__.startswith("timeline.policy.") else below


@pytest.mark.parametrize("part", parts_of())
def test_every_default_is_a_value_that_its_field_takes(part: type[Frozen]) -> None:
    """A policy is read back from its text, where nothing is a default any more."""
    if any(field.is_required() for field in part.model_fields.values()):
        return
    assert part.model_validate(part().model_dump()) == part()


@pytest.mark.shows("002-30", "002-31", "R-002-7")
def test_the_defaults_are_the_designs_numbers() -> None:
    """What the table of section 6 says."""
    policy = Policy()
    assert limits_of_policy(policy, FixedPart()) == (80_000, 72_000, 56_000)
    assert policy.steps == (Summarize(cut=CutPoint(keep_recent=0.2, halvings=4, on_split="split")),)
    assert (policy.summary_tokens, policy.turn_prefix_tokens, policy.digest_tokens) == (800, 400, 300)
    assert (policy.preview_tokens, policy.carried_share) == (400, 0.15)
    assert (policy.min_progress, policy.min_progress_tokens) == (0.1, 256)
    assert (policy.attempts, policy.stop_at, policy.on_failure) == (3, "target", "fallback")
    assert policy.cache_points == CachePointRule(offset_rounds=4, min_rounds=5, lookback_blocks=20)
    assert Hiding().model_dump() == {
        "unit": "rounds",
        "intact": 8,
        "files": 40,
        "old": 24,
        "ttl": None,
        "grace": 60,
        "minimum": 0.01,
        "pressure_minimum": None,
        "replacement_tokens": 60,
        "payback": None,
    }


def test_the_target_is_never_above_the_trigger() -> None:
    """A policy that compacts early folds down to its trigger at the most."""
    assert limits_of_policy(Policy.model_validate({"trigger": 0.5, "target": 0.7}), FixedPart()) == (
        80_000,
        40_000,
        40_000,
    )


def test_the_canonical_text_reads_back() -> None:
    """What is stored with a recorded context is the whole policy."""
    policy = policies.cut_point(max_tokens=9_000, keep_recent_tokens=700, cache_points={"offset_rounds": 2})
    assert Policy.parse(policy.canonical()) == policy
    assert json.loads(policy.canonical())["cache_points"]["offset_rounds"] == 2


@pytest.mark.parametrize(("said", "meant"), [("short", "nothing"), ("long", "fixed_part")])
def test_a_recorded_policy_that_says_it_as_before_reads_back(said: str, meant: str) -> None:
    """Logs are kept for ever; what was kept for long had another name once."""
    text = Policy(cache_points=CachePointRule.model_validate({"kept_long": meant})).canonical()
    assert Policy.parse(text.replace(f'"kept_long":"{meant}"', f'"fixed_part":"{said}"')) == Policy.parse(text)
    for wrong in ('"fixed_part":"never"', '"fixed_part":[]', f'"fixed_part":"{said}","kept_long":"nothing"'):
        with pytest.raises(InvalidPolicy, match="fixed_part"):
            Policy.parse(text.replace(f'"kept_long":"{meant}"', wrong))


def test_a_policy_is_stored_and_hashed_under_the_names_of_older_logs() -> None:
    """A log names its policy by the hash of that text: under another name an undo would not bind it any more."""
    policy = Policy(compact_when_cold=0.25)
    stored = policy.canonical()
    assert json.loads(stored)["fold_when_cold"] == 0.25
    assert "compact_when_cold" not in stored
    assert Policy.parse(stored) == policy
    with pytest.raises(InvalidPolicy, match="fold_when_cold"):
        Policy.parse(stored.replace("{", '{"compact_when_cold":0.5,', 1))


def test_the_hash_is_that_of_the_canonical_text() -> None:
    """Equal policies have one hash; any changed figure another."""
    policy = policies.cut_point(max_tokens=9_000)
    assert policy.hash() == sha256_hex(policy.canonical()) == policies.cut_point(max_tokens=9_000).hash()
    assert policies.cut_point(max_tokens=9_001).hash() != policy.hash()


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('{"max_tokens": 10}', "max_tokens"),
        ('{"max_tokens": "many"}', "max_tokens"),
        ('{"trigger": 1.5}', "trigger.share"),
        ('{"steps": [{"kind": "summarise"}]}', "steps.0"),
        ('{"cache_points": {"offset_rounds": 0}}', "cache_points.offset_rounds"),
        ('{"cache_points": {"offset": 4}}', "cache_points.offset"),
        ('{"max_token": 80000}', "max_token"),
    ],
)
def test_a_wrong_field_is_named(text: str, field: str) -> None:
    """The typed error says which field of a policy does not hold."""
    with pytest.raises(InvalidPolicy) as caught:
        Policy.parse(text)
    assert caught.value.field == field
    assert field in str(caught.value)


@pytest.mark.parametrize(
    ("part", "field", "least_or_most", "beyond"),
    [
        (Policy, "max_tokens", 1_000, 999),
        (Policy, "min_progress", 0, 1),
        (Policy, "min_progress_tokens", 0, -1),
        (Policy, "carried_share", 1, 0),
        (Policy, "attempts", 10, 11),
        (Policy, "preview_tokens", 50, 49),
        (Policy, "system_parts", 1, 0),
        (OverThreshold, "safety_buffer", 0, -1),
        (Hiding, "replacement_tokens", 20, 19),
        (CutPoint, "keep_recent_tokens", 1, 0),
        (CutPoint, "halvings", 0, -1),
        (CutPoint, "halvings", 10, 11),
        (KeepLast, "messages", 1, 0),
        (KeepTurns, "turns", 1, 0),
        (Oldest, "messages", 1, 0),
        (ClearToolOutputs, "protect", 0, -1),
    ],
)
def test_a_figure_is_taken_at_its_bound_and_refused_beyond_it(
    part: type[Frozen], field: str, least_or_most: int, beyond: int
) -> None:
    """A policy that a log recorded at a bound has to be read for good."""
    assert getattr(part.model_validate({field: least_or_most}), field) == least_or_most
    with pytest.raises(ValidationError):
        part.model_validate({field: beyond})


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_a_text_that_is_no_policy_is_a_typed_error(text: str) -> None:
    """A damaged value is refused like a wrong one."""
    with pytest.raises(InvalidPolicy):
        Policy.parse(text)


def test_a_policy_is_frozen() -> None:
    """It is hashed and compared, so it does not change."""
    policy = Policy()
    with pytest.raises(ValidationError):
        policy.max_tokens = 9_000  # type: ignore[misc]  # the point of the test


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_is_made_by_its_name(name: str) -> None:
    """The command line's way to the same value, with changes."""
    assert policies.by_name(name, max_tokens=9_000) == PRESETS[name](max_tokens=9_000)
    assert policies.by_name(name).name == name


def test_none_never_compacts() -> None:
    """The switch that turns all of it off."""
    assert not policies.none().automatic
    assert policies.cut_point().automatic


def test_an_unknown_preset_lists_what_there_is() -> None:
    """The cure is in the message."""
    with pytest.raises(InvalidPolicy, match=r"cut_point, economical, gentle, keep_last, keep_ratio, none"):
        policies.by_name("thrifty")


@pytest.mark.parametrize(("changes", "field"), [({"max_tokens": 999}, "max_tokens"), ({"keep": 1}, "keep")])
def test_a_presets_wrong_change_is_named(changes: dict[str, Any], field: str) -> None:
    """A keyword that does not exist, or does not hold, is a typed error."""
    with pytest.raises(InvalidPolicy) as caught:
        policies.cut_point(**changes)
    assert caught.value.field == field


def test_what_is_known_of_the_cache_is_no_part_of_a_stored_text_until_it_is_said() -> None:
    """The hashes in logs of earlier releases stay what they were."""
    plain = json.loads(Policy(hiding=Hiding()).canonical())
    assert "cache" not in plain
    assert "payback" not in plain["hiding"]
    told = Policy(cache="none", hiding=Hiding(payback=20))
    assert Policy.parse(told.canonical()) == told


@pytest.mark.parametrize(
    ("update", "field", "cure"),
    [
        ({"max_token": 5_000}, "max_token", "nearest is 'max_tokens'"),
        ({"max_tokens": "many"}, "max_tokens", "valid integer"),
        ({"max_tokens": 5}, "max_tokens", "greater than or equal to 1000"),
    ],
)
def test_a_copy_with_a_wrong_field_or_value_is_refused(update: dict[str, Any], field: str, cure: str) -> None:
    """It was taken without a word: a mistyped limit did nothing, and a text for a number failed in the first render."""
    with pytest.raises(InvalidPolicy, match=cure) as refused:
        policies.balanced().model_copy(update=update)
    assert refused.value.field == field


def test_a_changed_copy_has_the_checked_values_and_no_preset() -> None:
    """A value that is written short is read as in a new policy; the policy that was copied stays as it is."""
    balanced = policies.balanced()
    changed = balanced.model_copy(update={"trigger": 0.5, "max_tokens": 5_000})
    assert changed.trigger == OverShare(share=0.5)
    assert (changed.max_tokens, changed.origin.preset) == (5_000, "")
    assert (balanced.max_tokens, balanced.origin.preset) == (80_000, "balanced")
    assert balanced.model_copy() == balanced.model_copy(update={}) == balanced


@pytest.mark.parametrize("ratio", [float("nan"), float("inf"), 0, -1.2, True, "1.2", None])
def test_a_ratio_that_is_none_calibrates_no_policy(ratio: Any) -> None:
    """Not a number made a policy that counts twice what there is."""
    with pytest.raises(InvalidArgument, match="above 0"):
        policies.balanced().calibrated(ratio)


@pytest.mark.parametrize(
    "use",
    [
        policies.lean,
        policies.outline,
        lambda name: policies.diff_policies(name, policies.balanced()),
        lambda name: policies.diff_policies(policies.balanced(), name),
    ],
)
def test_a_name_in_place_of_a_policy_is_refused_with_the_cure(use: Any) -> None:
    """It was an AttributeError about a field."""
    with pytest.raises(InvalidArgument, match=r"must be a policy, such as policies\.cut_point\(\), not 'cut_point'"):
        use("cut_point")


@pytest.mark.parametrize("name", [None, 5, ["balanced"]])
def test_what_is_no_name_names_no_policy_and_no_model(name: Any) -> None:
    """It was an error of the search for the nearest name."""
    with pytest.raises(InvalidPolicy, match="policy's name, such as 'balanced'"):
        policies.by_name(name)
    with pytest.raises(InvalidArgument, match="model's name"):
        policies.limits_of(name)
