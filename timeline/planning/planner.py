"""The planner: a window and a policy in, one decision out. Pure; nothing is summarised or written here.

`plan_compaction` goes through the design's repairs in order: seed 002's cut, a legal cut near it, half of the keep up
to four times, previews inside the newest group; what remains is refused with a typed reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from timeline.blocks import Attachment, UserPrompt
from timeline.fold.groups import Group, atomic_groups
from timeline.planning.budget import (
    Account,
    FixedPart,
    account,
    costs,
    keep_recent,
    least_progress,
    preview_cap,
    scaled,
)
from timeline.planning.cut import choose_cut, is_candidate, is_turn_start, legal_cuts, seed_cut
from timeline.planning.spill import can_spill, spill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.events import Covers, RefusalReason, Replacement
    from timeline.fold.window import Item, Window
    from timeline.policy.model import Policy
    from timeline.ports import TokenCounter

LABEL_TOKENS: Final = 120
"""What a summary's own headings take at the most."""
_LEAST_SUMMARY: Final = 64


@dataclass(frozen=True, slots=True)
class Caps:
    """Token caps of a summary's parts."""

    history: int
    turn_prefix: int
    digest: int

    @property
    def tokens(self) -> int:
        """The whole summary's cap, headings included."""
        return self.history + self.turn_prefix + self.digest + LABEL_TOKENS


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do about a context that is too large.

    Attributes:
        version: the window's version that the plan was made from.
        covers: None when nothing is covered and blocks are only spilled.
        covered: the items that become covered: new ones only, in timeline order, summaries left out.
        carried: versions inside the range that stay visible.
        cut_version: version of the first kept block.
        turn_id: the turn that the summary's path names: the cut block's.
        split_turn_id: the turn that the cut divides, if it divides one.
        spills: previews, recorded together with the compaction.
        caps: of the summary's parts.
        least_progress: what the compaction has to free.
        keep_recent_tokens: the keep that this plan was made with.
        before_tokens: messages before.
        expected_tokens: messages afterwards, with a summary as long as its cap.
        account: the account before.
        target_missed: even so the target is not met.
    """

    version: int
    covers: Covers | None
    covered: tuple[Item, ...]
    carried: tuple[int, ...]
    cut_version: int
    turn_id: str
    split_turn_id: str | None
    spills: tuple[Replacement, ...]
    caps: Caps
    least_progress: int
    keep_recent_tokens: int
    before_tokens: int
    expected_tokens: int
    account: Account
    target_missed: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no compaction is worth doing now (design, invariant 3); ``retry_after`` is the growth to wait for."""

    reason: RefusalReason
    facts: dict[str, int]
    retry_after: int


Decision: TypeAlias = Plan | Refusal


@dataclass(frozen=True, slots=True)
class _Cut:
    """A cut and what follows from it, before any spilling."""

    position: int
    covered: tuple[int, ...]
    carried: tuple[int, ...]
    split_turn_id: str | None
    caps: Caps
    after: int


def plan_compaction(window: Window, fixed: FixedPart, policy: Policy, counter: TokenCounter) -> Decision:
    """Decide how to bring a window below the target."""
    before = account(window.items, fixed, policy)
    planner = _Planner(window, before, policy, counter)
    least = least_progress(policy, before.messages)
    cut = planner.best_cut(keep_recent(policy, fixed))
    decision = planner.plan(cut)
    freed = before.messages - decision.expected_tokens
    if decision.covers is None and not decision.spills:
        return Refusal("nothing_to_cover", {"messages": before.messages, "groups": len(planner.groups)}, least)
    if freed < least:
        return Refusal("no_progress", {"messages": before.messages, "would_free": freed, "least": least}, least)
    return decision


class _Planner:
    """One planning run: the window's groups and legal cuts are worked out once and asked several times."""

    def __init__(self, window: Window, before: Account, policy: Policy, counter: TokenCounter) -> None:
        self.window, self.before, self.policy, self.counter = window, before, policy, counter
        self.items = window.items
        self.groups = atomic_groups(self.items)
        self.legal = legal_cuts(self.items, self.groups, whole_turns=policy.on_split == "whole_turn")
        self.shown = costs(self.items, policy)
        self.suffix = [0] * (len(self.items) + 1)
        for position in range(len(self.items) - 1, -1, -1):
            self.suffix[position] = self.suffix[position + 1] + self.shown[position]
        self.group_at = {index: group for group in self.groups for index in group.indices}
        self.open_versions = {item.version for item in window.open_calls()}
        self.tried: dict[int, _Cut] = {}
        old = window.compaction
        self.split_before = None if old is None else old.split_turn_id
        self.old_history = 0 if old is None else counter.count(old.parts.history)
        self.old_prefix = 0 if old is None else counter.count(old.parts.turn_prefix)

    def best_cut(self, keep: int) -> tuple[_Cut | None, int]:
        """Find the cut that meets the target, halving the keep where needed; else the one that keeps least."""
        best: _Cut | None = None
        best_keep = keep
        for halving in range(self.policy.halvings + 1):
            tokens = max(1, keep >> halving)
            seed = seed_cut(self.items, tokens)
            position = choose_cut(seed, self.legal, len(self.items), self._fits)
            if position is None:
                continue
            cut = self._cut(position)
            if cut.covered and (best is None or cut.after < best.after):
                best, best_keep = cut, tokens
            if cut.covered and self._total(cut.after) <= self.before.target and self._frees_enough(cut.after):
                return cut, tokens
        if self.legal and (best is None or self._total(best.after) > self.before.trigger):
            newest = self._cut(self.legal[-1])
            if newest.covered and (best is None or newest.after < best.after):
                best = newest
        return best, best_keep

    def plan(self, best: tuple[_Cut | None, int]) -> Plan:
        """Write a cut out as a plan, with the previews that it needs."""
        cut, keep = best
        carried_positions = cut.carried if cut is not None else ()
        after = cut.after if cut is not None else self.before.messages
        spills = self._spill_carried(carried_positions)
        after -= self._saved(spills)
        vain = self.before.over_trigger and not self._frees_enough(after)
        if vain or self._total(after) > self.before.trigger:
            newest = self._spill_kept(cut.position if cut is not None else 0, after)
            spills += newest
            after -= self._saved(newest)
        kept = self.items[cut.position] if cut is not None else None
        return Plan(
            version=self.window.version,
            covers=self.window.covers_before(kept.place - 1) if kept is not None else None,
            covered=tuple(self.items[p] for p in (cut.covered if cut is not None else ())),
            carried=tuple(sorted(self.items[p].version for p in carried_positions)),
            cut_version=kept.version if kept is not None else 0,
            turn_id=kept.block.turn_id if kept is not None else self.window.turn_id,
            split_turn_id=cut.split_turn_id if cut is not None else None,
            spills=spills,
            caps=cut.caps if cut is not None else Caps(0, 0, 0),
            least_progress=least_progress(self.policy, self.before.messages),
            keep_recent_tokens=keep,
            before_tokens=self.before.messages,
            expected_tokens=after,
            account=self.before,
            target_missed=self._total(after) > self.before.target,
        )

    def _total(self, messages: int) -> int:
        return self.before.fixed.tokens + messages

    def _frees_enough(self, after: int) -> bool:
        return self.before.messages - after >= least_progress(self.policy, self.before.messages)

    def _fits(self, position: int) -> bool:
        return self._total(self._cut(position).after) <= self.before.target

    def _cut(self, position: int) -> _Cut:
        """Work out what a cut covers, carries and leaves; each position once."""
        if position not in self.tried:
            carried, split_turn_id = self._carried(position)
            left_out = set(carried)
            covered = tuple(p for p in range(position) if p not in left_out and not self.items[p].is_summary)
            caps = self._caps(covered, split_turn_id)
            after = self.suffix[position] + sum(self.shown[p] for p in carried) + scaled(caps.tokens, self.policy)
            self.tried[position] = _Cut(position, covered, carried, split_turn_id, caps, after)
        return self.tried[position]

    def _carried(self, position: int) -> tuple[tuple[int, ...], str | None]:
        """Find what stays visible before a cut: pins, open calls with their groups, the split turn's own prompts."""
        carried: set[int] = set()
        for group in self.groups:
            if group.first >= position:
                break
            before = [p for p in group.indices if p < position]
            if self._keeps(group, position):
                carried.update(before)
        kept = self.items[position:]
        cut_block = next((item.block for item in kept if is_candidate(item.block)), kept[0].block)
        turn_id = cut_block.turn_id
        if is_turn_start(cut_block):
            return tuple(sorted(carried)), None
        inside = [p for p in range(position) if self.items[p].block.turn_id == turn_id and not self.items[p].is_summary]
        if not inside:
            return tuple(sorted(carried)), None
        prompts = [p for p in inside if isinstance(self.items[p].block, UserPrompt)]
        if prompts:
            asked = self._asked(prompts[0]) | self._asked(prompts[-1])
            carried |= {p for p in asked if p < position}
        return tuple(sorted(carried)), turn_id

    def _asked(self, prompt: int) -> set[int]:
        """Find what was asked with a prompt: the prompts of its opening, and the attachments at their side."""
        asked = {p for p in self.group_at[prompt].indices if isinstance(self.items[p].block, UserPrompt | Attachment)}
        if self.items[prompt].carried:
            # Carried before, a prompt is a group of its own; its attachments still stand next to it.
            for step in (-1, 1):
                beside = prompt + step
                while self._is_carried_attachment(beside, self.items[prompt].block.turn_id):
                    asked.add(beside)
                    beside += step
        return asked

    def _is_carried_attachment(self, position: int, turn_id: str) -> bool:
        if not 0 <= position < len(self.items):
            return False
        item = self.items[position]
        return item.carried and isinstance(item.block, Attachment) and item.block.turn_id == turn_id

    def _keeps(self, group: Group, position: int) -> bool:
        members = [self.items[p] for p in group.indices]
        if any(item.keeps for item in members) or any(item.version in self.open_versions for item in members):
            return True
        return group.pending and group.last >= position

    def _caps(self, covered: Sequence[int], split_turn_id: str | None) -> Caps:
        """Size the summary: the policy's caps, a share of the room, at most what it had and half of what is new.

        A part that is kept verbatim is charged with what it is.
        """
        policy, room = self.policy, max(0, self.before.limit - self.before.fixed.tokens)
        new_prefix = sum(self.shown[p] for p in covered if self.items[p].block.turn_id == split_turn_id)
        new_history = sum(self.shown[p] for p in covered) - new_prefix
        same_turn = split_turn_id is not None and split_turn_id == self.split_before
        old_history = self.old_history if same_turn else self.old_history + self.old_prefix
        history = min(policy.summary_tokens, room // 8, max(_LEAST_SUMMARY, old_history + new_history // 2))
        old_prefix = self.old_prefix if same_turn else 0
        prefix = min(policy.turn_prefix_tokens, room // 16, max(_LEAST_SUMMARY, old_prefix + new_prefix // 2))
        return Caps(
            history=history if new_history else old_history,
            turn_prefix=0 if split_turn_id is None else prefix if new_prefix else old_prefix,
            digest=min(policy.digest_tokens, room // 16, (new_history + new_prefix) // 4),
        )

    def _saved(self, spills: Sequence[Replacement]) -> int:
        positions = {item.version: p for p, item in enumerate(self.items)} if spills else {}
        return sum(self._spares(positions[stand_in.version], stand_in) for stand_in in spills)

    def _spares(self, position: int, stand_in: Replacement) -> int:
        """Return what a preview spares; what the wire adds beside the block's text stays."""
        own = self.items[position].shown_tokens
        return scaled(own, self.policy) - scaled(stand_in.tokens, self.policy)

    def _spill_carried(self, carried: Sequence[int]) -> tuple[Replacement, ...]:
        """Preview the largest carried blocks until the carried share is met (design, invariant 1)."""
        most = int(self.policy.carried_share * self.before.limit)
        return self._spill(carried, sum(self.shown[p] for p in carried) - most)

    def _spill_kept(self, position: int, after: int) -> tuple[Replacement, ...]:
        """Preview the largest blocks of what is kept until the target is met and enough is freed."""
        least = least_progress(self.policy, self.before.messages)
        excess = max(self._total(after) - self.before.target, least - (self.before.messages - after))
        return self._spill(range(position, len(self.items)), excess)

    def _spill(self, positions: Sequence[int], excess: int) -> tuple[Replacement, ...]:
        most = preview_cap(self.policy)
        candidates = [p for p in positions if can_spill(self.items[p], most)]
        spills: list[Replacement] = []
        for position in sorted(candidates, key=lambda p: (-self.shown[p], p)):
            if excess <= 0:
                break
            stand_in = spill(self.items[position], most, self.counter)
            saved = self._spares(position, stand_in)
            if saved > 0:
                spills.append(stand_in)
                excess -= saved
        return tuple(spills)
