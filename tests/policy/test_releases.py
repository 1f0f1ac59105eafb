"""The releases of presets and published designs: other figures have a higher number."""

from __future__ import annotations

from typing import Final

import pytest

from timeline import policies
from timeline.planning.account import FixedPart, account_of
from timeline.policy.library import designs
from timeline.policy.model import OverThreshold, Policy
from timeline.policy.presets import PRESETS
from timeline.policy.steps import KeepLast, Summarize

RELEASES: Final[dict[str, tuple[int, str]]] = {
    "balanced": (2, "77912cec0e2d"),
    "cut_point": (1, "7bfa05da9d06"),
    "economical": (2, "b782e08cbd47"),
    "gentle": (2, "bf3c0c9ddae6"),
    "keep_last": (1, "f2cd7da8b053"),
    "keep_ratio": (1, "9c54defcf879"),
    "none": (1, "f484bda7978e"),
    "priority_chain": (1, "7a906ed302d7"),
    "prune_then_summarize": (1, "db0cc40a3929"),
    "anthropic-compact": (1, "12859a254950"),
    "claude-code": (1, "c29b1b3bc44b"),
    "clear-tool-uses": (1, "8c2894dc3dc7"),
    "cline": (1, "b01c13f684f0"),
    "crush": (1, "0107d9b76cc9"),
    "deepagents": (1, "fc9ff20dc0c7"),
    "gemini-cli": (1, "33527e8a09c1"),
    "goose": (1, "38c86eb691de"),
    "langchain": (1, "ecf21ca45189"),
    "opencode": (1, "eb6f76319e85"),
    "pi": (1, "f8cc347c23f5"),
    "seed-002-first": (1, "42179f68be84"),
    "strands": (1, "81770626522d"),
}
"""The release of each, and the beginning of the hash that it makes without arguments."""


@pytest.mark.parametrize("name", [*PRESETS, *designs()])
def test_a_preset_with_other_figures_has_another_release(name: str) -> None:
    """Conversations recorded the number with the figures: raise it, then write down the new hash here."""
    made = policies.by_name(name)
    assert (made.origin.preset, made.origin.name) == (name, name)
    assert (made.origin.release, made.hash()[:12]) == RELEASES[name]


def test_a_stored_keep_last_whose_limit_held_its_reserves_back_keeps_its_hash_and_its_line() -> None:
    """Logs name policies by their hash: figures that were added to trigger and step are no part of its text."""
    step = Summarize(cut=KeepLast(), prompt="sections", temperature=0.3)
    earlier = policies.keep_last(output_reserve=4_000, safety_buffer=5_000, trigger=OverThreshold(), steps=[step])
    assert earlier.hash()[:12] == "abb3b864472a"
    assert Policy.parse(earlier.canonical()) == earlier
    fixed = FixedPart(reserved=9_000)
    assert account_of((), fixed, earlier).trigger == 93_599 + 9_000
    assert account_of((), FixedPart(), policies.keep_last()).trigger == 93_599
