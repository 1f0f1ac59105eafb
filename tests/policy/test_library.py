from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from timeline.errors import InvalidPolicy
from timeline.policy.files import find_policy
from timeline.policy.library import about, designs

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("limit", [32_000, 100_000, 200_000])
@pytest.mark.parametrize("name", sorted(designs()))
def test_a_published_policy_holds_at_every_limit(name: str, limit: int) -> None:
    """Each is a policy of our steps, under its own name and the limit that it is given."""
    policy = find_policy(name, max_tokens=limit)
    assert (policy.name, policy.max_tokens) == (name, limit)


@pytest.mark.parametrize("name", sorted(designs()))
def test_a_published_policy_says_its_source_and_what_is_approximated(name: str) -> None:
    """Nobody takes our steps for the peer's own code."""
    assert "Approximated: " in about(name)
    assert "Source: " in about(name)


@pytest.mark.shows("R-002-9")
def test_seed_002_as_first_shipped_has_its_figures() -> None:
    """Three hundred seconds less ten, turns, ten and two of them, and 70 percent kept."""
    policy = find_policy("seed-002-first")
    hiding = policy.hiding
    assert hiding is not None
    assert (hiding.unit, hiding.ttl, hiding.grace, hiding.intact, hiding.old) == ("turns", 300, -10, 2, 10)
    assert policy.steps[0].cut.keep_recent == 0.7  # type: ignore[union-attr]  # its only step summarises


def test_a_preset_goes_by_its_name_and_a_file_by_its_ending(tmp_path: Path) -> None:
    """A user's own policy is compared like any other."""
    file = tmp_path / "mine.toml"
    file.write_text('preset = "keep_last"\nmessages = 4\n', encoding="utf-8")
    assert find_policy("keep_last", max_tokens=50_000).max_tokens == 50_000
    assert find_policy(str(file), max_tokens=50_000).steps[0].cut.messages == 4  # type: ignore[union-attr]  # keep_last's


def test_a_name_that_nobody_has_is_refused_with_the_nearest() -> None:
    """A slip of the pen is told."""
    with pytest.raises(InvalidPolicy, match="goose"):
        find_policy("gose")
