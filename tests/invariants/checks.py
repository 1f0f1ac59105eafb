"""Checks that hold for every log: each says in words what is wrong."""

from __future__ import annotations

import math
from dataclasses import astuple
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from tests.invariants import reference, reference_stages, reference_time
from timeline.blocks import BEHIND_KEY
from timeline.events import BlocksHidden, CompactionCompleted, CompactionReverted, ConversationOpened, PolicyChanged
from timeline.events.other_payloads import CompactionFailed
from timeline.fold.fold import Fold
from timeline.fold.groups import atomic_groups
from timeline.fold.reported import HIGHEST, LOWEST
from timeline.fold.states import block_states
from timeline.planning.account import FixedPart, account_of, preview_cap
from timeline.policy.steps import KeepLast, Summarize

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.invariants.reference import LogLine
    from timeline.events import Event, Payload
    from timeline.fold.window import Window
    from timeline.policy.model import Policy

PREVIEWABLE: Final = {
    "react.tool.call",
    "react.tool.result",
    "user.prompt",
    "user.attachment",
    "note",
    "system.message",
    "plan.step",
    "app.memo",
}
"""The types of blocks that are shown as a preview when they are too large: nothing that the model said itself."""
FRAME: Final = 80
"""What a preview's own line may take beyond its cap."""


def check_window(window: Window, lines: Sequence[LogLine]) -> None:
    """Hold a window against the naive fold of the whole log."""
    log = reference.standing(lines)
    states, blocks = reference.states(log), reference.blocks_of(log)
    assert window.version == (log[-1][0] if log else 0)
    assert [item.version for item in window.items] == reference.order(log)
    assert {i.version: i.state for i in window.items} == {v: s for v, s in states.items() if s != "covered"}
    assert window.window_start == reference.window_start(log)
    given = reference.answers(log)
    live = [v for v in reference.order(log) if v in given]
    assert {i.version: i.answers for i in window.items if i.version in given} == {v: given[v] for v in live}
    assert [i.version for i in window.unanswered()] == reference.unanswered(log)
    assert [i.version for i in window.open_calls()] == reference.open_calls(log)
    assert {i.version for i in window.items if i.keeps} == {
        v for v in states if states[v] != "covered" and reference.is_pinned(log, v)
    }
    groups = [{window.items[i].version for i in group.indices} for group in atomic_groups(window.items)]
    assert sorted(groups, key=min) == sorted(reference.groups(log), key=min)
    for item in window.items:
        assert item.replacement == reference.replacement(log, item.version)
        if item.state != "redacted":
            assert item.block == blocks[item.version]
            assert item.revealed == reference.is_revealed(log, item.version)
    _check_running_state(window, lines)


def _check_running_state(window: Window, log: Sequence[LogLine]) -> None:
    """What a window knows besides its blocks: lease, touch, hold, refusal, rounds, the newest context, the policy."""
    mine = (window.lease, window.touch, window.setback, window.rendered)
    lease, touch, setback, rendered = (None if value is None else astuple(value) for value in mine)
    assert lease == reference_time.lease(log)
    assert touch == reference_time.touch(log)
    assert setback == reference_time.setback(log)
    assert rendered == reference_time.rendered(log)
    assert window.hold == reference_time.hold(log)
    assert window.compactions == reference_time.rounds(log)
    assert window.reported == reference_time.reported(log)
    assert window.reported.ratio == 0 or LOWEST <= window.reported.ratio <= HIGHEST
    assert window.policy == reference_time.policy(log)
    assert list(window.overrides) == reference_time.overrides(log)
    assert [(s.stage, s.entered, s.approved) for s in window.stages] == reference_stages.standing_stages(log)


def check_states(events: Sequence[Event], lines: Sequence[LogLine], conversation: str) -> None:
    """Each block is in exactly one state, and each covered one is covered by exactly one live summary."""
    log, gone = reference.standing(lines), reference.reverted(lines)
    _, rows = block_states(events, conversation)
    stood = [row for row in rows if row.version not in gone]
    assert {row.version: row.state for row in stood} == reference.states(log)
    assert {row.version: row.covered_by for row in stood if row.covered_by} == reference.covered_by(log)
    # A summary that was taken back is shown nowhere; a later one may have gone over its place.
    assert {row.state for row in rows if row.version in gone} <= {"omitted", "covered"}


def check_compactions(log: Sequence[LogLine], policy_at: Callable[[int], Policy]) -> None:
    """Hold every compaction against what the design promises of covers, carried blocks, groups and progress.

    Args:
        log: all of it.
        policy_at: the policy that a version was appended under.
    """
    for index, (version, payload, _) in enumerate(log):
        if isinstance(payload, CompactionCompleted):
            policy = policy_at(version)
            before = reference.standing(log[:index])
            _check_covers(before, [*before, log[index]], version, payload)
            if payload.source == "engine":
                _check_groups(before, payload)
            if payload.source == "engine" and not _is_forked_at(log, index):
                previewed = index + 1 < len(log) and _is_with_it(log[index + 1].payload)
                _check_progress(before, log[: index + 1 + previewed], policy)
                _check_carried_share(log[: index + 1 + previewed], policy)


def _check_covers(
    before: Sequence[LogLine], after: Sequence[LogLine], version: int, payload: CompactionCompleted
) -> None:
    ranges = payload.covers.ranges
    assert all(first <= last < version for first, last in ranges)
    assert all(a[1] < b[0] for a, b in pairwise(ranges))
    live = {v: state for v, state in reference.states(before).items() if state != "covered"}
    assert all(v in payload.covers and v in live for v in payload.carried)
    now = reference.states(after)
    for v in live:
        assert (now[v] == "covered") == (v in payload.covers and v not in payload.carried)
    taken = [by for v, by in reference.covered_by(after).items() if v in payload.covers]
    assert all(by == version for by in taken), "an older summary is live inside of what the new one covers"


def _check_groups(before: Sequence[LogLine], payload: CompactionCompleted) -> None:
    """No group is divided, save that an opening's header may be covered without the prompt that is carried."""
    blocks = reference.blocks_of(before)
    taken = {v for v in reference.order(before) if v in payload.covers and v not in payload.carried}
    for group in reference.groups(before):
        members = {v for v in group if blocks[v].type != "turn.header"}
        assert not members & taken or members <= taken, f"group {sorted(group)} is divided"
    for v in taken:
        assert not reference.is_pinned(before, v), f"version {v} is pinned and covered"
    assert not taken & set(reference.open_calls(before)), "an open call is covered"


def _check_progress(before: Sequence[LogLine], after: Sequence[LogLine], policy: Policy) -> None:
    """A compaction with its previews freed the least that is due."""
    had, has = messages(before, policy), messages(after, policy)
    least = max(math.ceil(policy.min_progress * had), policy.min_progress_tokens)
    assert had - has >= least, f"freed {had - has} of {had} tokens, at least {least} is due"


def _check_carried_share(after: Sequence[LogLine], policy: Policy) -> None:
    """Beyond their share of the limit, carried blocks are shown as previews; small ones and the model's own stay.

    The first message that `keep_last` keeps, which the summary is sent behind, may be whole.
    """
    window = folded(after).window
    keeps_first = any(isinstance(step, Summarize) and isinstance(step.cut, KeepLast) for step in policy.steps)
    behind = [item.block.meta.get(BEHIND_KEY) for item in window.items if item.is_summary]
    first = {version for versions in behind if isinstance(versions, list) for version in versions}
    carried = [item for item in window.items if item.carried and not (keeps_first and item.version in first)]
    whole = [item for item in carried if item.state == "carried" and item.block.type in PREVIEWABLE]
    if sum(item.shown_tokens for item in carried) > policy.carried_share * policy.max_tokens:
        assert all(item.shown_tokens <= preview_cap(policy, policy.max_tokens) + FRAME for item in whole)


def _is_forked_at(log: Sequence[LogLine], index: int) -> bool:
    """Say whether a fork begins right behind a line: the rest of its append is the parent's alone."""
    return any(isinstance(line.payload, ConversationOpened) for line in log[index + 1 : index + 2])


def _is_preview(payload: Payload) -> bool:
    return isinstance(payload, BlocksHidden) and payload.reason == "spill"


def _is_with_it(payload: Payload) -> bool:
    """Say whether previews behind a compaction were made along with it; previews alone tell what they cleared."""
    return _is_preview(payload) and isinstance(payload, BlocksHidden) and payload.pruned is None


def messages(log: Sequence[LogLine], policy: Policy) -> int:
    """Count what a log shows, by the context's own account."""
    return account_of(folded(log).window.items, FixedPart(), policy).messages


def folded(log: Sequence[LogLine]) -> Fold:
    """Fold a log from its beginning."""
    fold = Fold("c", reference.reverted(log))
    for version, payload, at in log:
        fold.apply(version, at, payload)
    return fold


def check_figures(log: Sequence[LogLine], policy: Policy) -> None:
    """The sizes that a compaction records are what the context's account says before and after it."""
    for index, (_version, payload, _at) in enumerate(log):
        if isinstance(payload, CompactionCompleted) and payload.source == "engine" and not _is_forked_at(log, index):
            previewed = [line.payload for line in log[index + 1 : index + 2] if _is_with_it(line.payload)]
            assert payload.before_tokens == messages(log[:index], policy)
            after = messages(log[: index + 1 + len(previewed)], policy)
            # A margin is rounded up block by block, with the wire's label or without it: one token a preview.
            previews = sum(len(hidden.blocks) for hidden in previewed if isinstance(hidden, BlocksHidden))
            tolerance = previews if policy.margin else 0
            assert abs(payload.after_tokens - after) <= tolerance, (
                f"{payload.after_tokens} is recorded, {after} are left"
            )


def check_refusals(log: Sequence[LogLine], policy: Policy, fixed: int) -> None:
    """After a refusal or failure nothing is tried until the window grew by what was asked, or is above the limit."""
    wait_until: int | None = None
    for index, (version, payload, _) in enumerate(log):
        automatic = (
            isinstance(payload, CompactionFailed)
            or _is_preview(payload)  # previews alone are a try, too
            or (isinstance(payload, CompactionCompleted) and payload.reason in {"over_trigger", "cold"})
        )
        if automatic and wait_until is not None:
            tokens = folded(log[:index]).window.tokens
            over = messages(log[:index], policy) + fixed > policy.max_tokens
            assert over or tokens >= wait_until, f"version {version}: tried again at {tokens}, before {wait_until}"
        if isinstance(payload, CompactionFailed):
            wait_until = payload.visible_tokens + payload.retry_after
        elif _is_preview(payload) or isinstance(payload, CompactionCompleted | CompactionReverted | PolicyChanged):
            wait_until = None
