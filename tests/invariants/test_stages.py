"""Work in stages keeps the invariants, whenever they begin, are approved or gone back to (seed 000)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hypothesis import given
from hypothesis import strategies as st

from tests.invariants.checks import check_figures
from tests.invariants.places import new_store
from tests.invariants.playing import AT, read_log, run, search
from tests.invariants.reference_stages import check_stages
from tests.invariants.strategies import LONG_RUNS, ORDERLY_LOGS, POLICIES, STAGED, Decide, Import, Staged, Step, Undo
from tests.invariants.watched import Watched
from timeline import policies
from timeline.planning.collapse_stages import approvals, memory_digest, stage_data
from timeline.projection.context import RenderedContext
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from timeline.policy.model import Policy

CHAINS: Final[st.SearchStrategy[Policy]] = st.builds(
    lambda limit, recent, oldest, data: policies.priority_chain(
        max_tokens=limit, output_reserve=100, recent_stages=recent, oldest_messages=oldest, keep_last=6, stage_data=data
    ),
    st.sampled_from([1_000, 2_000, 6_000]),
    st.integers(0, 2),
    st.integers(2, 6),
    st.sampled_from([None, {"detailed": 1, "detailed_chars": 60, "short_chars": 20}]),
)
"""Seed 000's policy, with figures that a short conversation meets."""


@st.composite
def _staged(draw: st.DrawFn) -> list[Step]:
    """Draw a conversation with something said of its stages behind every step or two."""
    steps: list[Step] = [Staged("enter", "idea")]
    for step in draw(st.one_of(ORDERLY_LOGS, LONG_RUNS)):
        steps.append(step)
        steps += draw(st.lists(STAGED, max_size=2))
    return steps


async def watch(steps: list[Step], policy: Policy) -> None:
    """Play steps, render after each of them, and look for the decisions that hold."""
    store = await new_store()
    watched = Watched(store, await Timeline.open(store, "c", policy=policy, now=AT))
    watched.alone = False  # what is told of the stages changes the fixed part, which some checks take for given
    for step in steps:
        await watched.play(step)
        context = await watched.render()
        if isinstance(context, RenderedContext) and not any(isinstance(s, Decide | Import | Undo) for s in steps):
            digest = memory_digest(approvals(context.window.stages), policy.memory_digest)
            told = stage_data(context.window, policy.stage_data)
            assert [entry.text for entry in context.neutral.ephemeral] == [text for text in (digest, told) if text]
    log = await read_log(store, "c")
    check_stages(log)
    check_figures(log, policy)
    await watched.check_everything()


@search(15)
@given(_staged(), st.one_of(CHAINS, CHAINS, POLICIES))
def test_every_render_of_staged_work_keeps_the_invariants(steps: list[Step], policy: Policy) -> None:
    """Coverage, pairing, recall, order, replay and progress hold; every decision that stands is in view."""
    run(watch(steps, policy))
