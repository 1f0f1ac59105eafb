from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hypothesis import given
from hypothesis import strategies as st

from tests.invariants import reference, seed_rules
from tests.invariants.checks import FRAME, PREVIEWABLE
from tests.invariants.places import new_store
from tests.invariants.playing import AT, play, read_log, run, search
from tests.invariants.strategies import LOGS, Step, small
from timeline.blocks import UserPrompt
from timeline.errors import ContextOverflow
from timeline.planning.account import least_progress, preview_cap
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from tests.invariants.reference import LogLine
    from timeline.policy.model import Policy

LABEL: Final = 30
"""What the wire may say of a dead call or a late result."""


def least_context(timeline: Timeline, log: list[LogLine], policy: Policy) -> int:
    """Work out the smallest context that cut and previews allow, the summary at its cap.

    Behind the newest legal cut everything stays, before it only what is pinned, open, pending, or the split turn's
    prompts with their attachments; each block at its preview's size at the most.
    """
    items, blocks = timeline.window.items, reference.blocks_of(log)
    cuts = seed_rules.legal_cuts(log)
    newest = cuts[-1] if cuts else 0
    cut_turn = items[newest].block.turn_id if items else ""
    open_calls = set(reference.open_calls(log))
    kept = {item.version for item in items[newest:]}
    for group in reference.groups(log):
        waits = any(getattr(blocks[v], "pending", False) for v in group)
        if waits or group & open_calls or any(reference.is_pinned(log, v) for v in group):
            kept |= group
    total = 0
    for item in items:
        own = item.block.turn_id == cut_turn and item.block.type in {"user.prompt", "user.attachment"}
        if item.version not in kept and not own:
            continue
        cap = preview_cap(policy, policy.max_tokens) + FRAME
        total += LABEL + min(item.shown_tokens, cap if item.block.type in PREVIEWABLE else item.shown_tokens)
    return total + policy.max_tokens // 4 + 120


async def _overflow(timeline: Timeline) -> ContextOverflow | None:
    """Render; return the overflow, if it is one."""
    try:
        await timeline.render(now=AT)
    except ContextOverflow as error:
        return error
    return None


@search(40)
@given(LOGS, st.sampled_from([1_000, 3_000]))
def test_a_context_overflows_only_when_no_cut_and_no_preview_can_help(steps: list[Step], limit: int) -> None:
    """An overflow means that what has to stay, at its smallest, is above what progress would need."""

    async def story() -> None:
        store = await new_store()
        policy = small(limit)
        timeline = await Timeline.open(store, "c", policy=policy, now=AT)
        for step in steps:
            await play(timeline, store, [step])
            error = await _overflow(timeline)
            if error is None:
                continue
            log = reference.standing(await read_log(store, "c"))
            assert error.account["total"] > limit
            assert least_context(timeline, log, policy) > limit - least_progress(policy, timeline.window.tokens)
            assert len(dict(error.largest_blocks)) == len(error.largest_blocks), "a block is named twice"

    run(story())


@search(30)
@given(LOGS, st.sampled_from([0.3, 0.7]))
def test_a_context_between_trigger_and_limit_is_accepted_and_reported(steps: list[Step], target: float) -> None:
    """Above the trigger, within the limit, and nothing more to gain: the context says so itself."""

    async def story() -> None:
        store = await new_store()
        timeline = await Timeline.open(store, "c", policy=small(2_000, target=target), now=AT)
        await timeline.append(UserPrompt(text="begin"), now=AT)
        for step in steps:
            await play(timeline, store, [step])
            try:
                context = await timeline.render(now=AT)
            except ContextOverflow:
                continue
            assert context.overflow == (context.account.total > context.account.trigger)
            assert not context.overflow or context.decisions, "above the trigger without a word about it"

    run(story())
