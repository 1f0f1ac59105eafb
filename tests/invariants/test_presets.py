"""The published designs keep the invariants too, on any log; what differs is what they keep, not what holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.invariants.designs import DESIGNS
from tests.invariants.playing import run, search
from tests.invariants.strategies import LOGS, LONG_RUNS, ORDERLY_LOGS, Step
from tests.invariants.test_render import watch

if TYPE_CHECKING:
    from timeline.policy.model import Policy

PROMPTS: Final[st.SearchStrategy[dict[str, Any]]] = st.sampled_from([{}, {"system": "Be brief."}])


@search(25)
@given(ORDERLY_LOGS, DESIGNS, PROMPTS)
def test_every_render_of_an_orderly_conversation_keeps_the_invariants_under_a_published_design(
    steps: list[Step], policy: Policy, prompt: dict[str, Any]
) -> None:
    """Limit, pairing, stable prefix, recall, order, replay and progress hold after every append."""
    run(watch(steps, policy, prompt))


@pytest.mark.shows("003-29", "004-54", "004-97", "R-001-9")
@search(25)
@given(LOGS, DESIGNS, PROMPTS)
def test_every_render_of_a_hostile_log_keeps_the_invariants_under_a_published_design(
    steps: list[Step], policy: Policy, prompt: dict[str, Any]
) -> None:
    """The same holds for any log at all."""
    run(watch(steps, policy, prompt))


@search(25)
@given(LONG_RUNS, DESIGNS, PROMPTS)
def test_every_render_of_a_long_running_agent_keeps_the_invariants_under_a_published_design(
    steps: list[Step], policy: Policy, prompt: dict[str, Any]
) -> None:
    """The same holds while the application compacts, takes back, hides, pins and redacts."""
    run(watch(steps, policy, prompt))
