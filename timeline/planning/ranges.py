"""Work out what a compaction of a range of the window covers, carries and costs. All cuts share it.

A range is a pair of positions in ``window.items``: the first covered item, and the one behind the last. Pinned groups
inside it, and open calls with their groups, stay visible. Where a [cut_point] cut splits a turn, its prompts stay
visible, too: what the user asked, and the follow-ups since, as far as they fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from timeline.blocks import Attachment, UserPrompt
from timeline.facts.record_lines import record_in
from timeline.fold.groups import Group, atomic_groups
from timeline.planning.account import least_progress, preview_cap
from timeline.planning.costs import as_counted, own_tokens, scaled
from timeline.planning.messages import is_candidate, is_turn_start
from timeline.planning.plans import LEAST_SUMMARY, NO_ROOM, Caps, Plan, Refusal
from timeline.planning.replacements import can_preview, preview_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from timeline.events import CompactionCompleted, Replacement, SummaryParts
    from timeline.fold.window import Item, Window
    from timeline.planning.account import Account
    from timeline.planning.costs import Costs
    from timeline.policy.model import Policy
    from timeline.policy.steps import OnSplit
    from timeline.ports import TokenCounter


@dataclass(frozen=True, slots=True)
class Range:
    """The items that one compaction covers and carries, by position.

    Attributes:
        prefix_turn_id: the split turn's id if its beginning gets a summary part of its own; else None.
        after: the messages' tokens once the compaction is done, without what previews save.
        ahead: those of the carried items that are sent in front of the summary.
    """

    start: int
    end: int
    covered: tuple[int, ...]
    carried: tuple[int, ...]
    split_turn_id: str | None
    prefix_turn_id: str | None
    caps: Caps
    after: int
    ahead: tuple[int, ...] = ()


class Ranges:
    """One planning run on a window. Its groups and costs are computed once for all ranges that are tried."""

    def __init__(self, window: Window, before: Account, costs: Costs, counter: TokenCounter) -> None:
        self.window: Window = window
        self.before: Account = before
        self.policy: Policy = costs.policy
        self.counter: TokenCounter = counter
        self.items: Sequence[Item] = window.items
        self.groups: tuple[Group, ...] = atomic_groups(self.items)
        self.shown: list[int] = costs.tokens
        self.sums: list[int] = [0, *accumulate(self.shown)]
        self.least: int = least_progress(self.policy, before.messages)
        self._group_at = {index: group for group in self.groups for index in group.indices}
        self._open = {item.version for item in window.open_calls()}
        self._counts: dict[str, int] = {}

    def total(self, messages: int) -> int:
        """Return the account's total if the messages had this many tokens."""
        return self.before.fixed.tokens + messages

    def frees_enough(self, after: int) -> bool:
        """Return whether messages of ``after`` tokens mean enough progress (design: Invariants)."""
        return self.before.messages - after >= self.least

    def before_cut(self, end: int, on_split: OnSplit = "split") -> Range:
        """Return the range of all items before a [cut_point] cut.

        If the cut splits a turn, the turn's prompts before the cut stay visible. Where an earlier compaction split the
        same turn, the summary is sent behind the turn's first prompt: prompt, summary, newest steps.
        """
        kept = self.items[end:]
        cut_block = next((item.block for item in kept if is_candidate(item.block)), kept[0].block)
        inside = [] if is_turn_start(cut_block) else self._of_turn(cut_block.turn_id, 0, end)
        split_turn_id = cut_block.turn_id if inside else None
        prompts = [p for p in inside if isinstance(self.items[p].block, UserPrompt)]
        asked = {p for prompt in self._verbatim(prompts) for p in self._asked(prompt)}
        again = split_turn_id is not None and self._splits_again(split_turn_id, end)
        ahead = self._asked(prompts[0]) if prompts and again else set()
        apart = None if on_split == "together" else split_turn_id
        return self._range(0, end, asked, split_turn_id, prefix_turn_id=apart, ahead=ahead)

    def stretch(self, start: int, end: int, *, prompts: Sequence[int] = (), first: int | None = None) -> Range:
        """Return a range that one request summarises, even where the range divides a turn.

        Args:
            start: position of its first item.
            end: position behind its last item.
            prompts: positions of prompts inside it that stay visible, with their attachments.
            first: position of an item that stays visible with its group, in front of the summary.
        """
        turn_id = self.items[end].block.turn_id if end < len(self.items) else ""
        split_turn_id = turn_id if self._of_turn(turn_id, start, end) else None
        ahead = set() if first is None else self._message_at(first)
        kept = {p for prompt in prompts for p in self._asked(prompt)} | ahead
        return self._range(start, end, kept, split_turn_id, ahead=ahead)

    def _message_at(self, first: int) -> set[int]:
        """Return the positions of the message that an item begins; its carried parts are groups of their own."""
        message = {*self._group_at[first].indices}
        last = max(message)
        while last + 1 < len(self.items) and self.items[last + 1].continues(self.items[last]):
            last += 1
            message.add(last)
        return message

    def plan(
        self,
        cut: Range | None,
        previews: Sequence[Replacement],
        *,
        keep: int = 0,
        written: SummaryParts | None = None,
        written_by: str = "",
    ) -> Plan:
        """Return the plan of a range; without a range it plans only previews.

        Args:
            cut: the range to cover.
            previews: to record with it.
            keep: tokens that the cut was to keep.
            written: the summary, where it is known; its size counts instead of the caps.
            written_by: name of its author.
        """
        caps = Caps(0, 0, 0) if cut is None else cut.caps
        after = (cut.after if cut is not None else self.before.messages) - self.saved(previews)
        if cut is not None and written is not None:
            caps = self._size_of(written, cut.caps)
            after += scaled(caps.tokens, self.policy) - scaled(cut.caps.tokens, self.policy)
        return Plan(
            version=self.window.version,
            covers=None if cut is None else self.window.covers_between(cut.start, cut.end),
            covered=() if cut is None else tuple(as_counted(self.items[p], self.policy) for p in cut.covered),
            carried=() if cut is None else tuple(sorted(self.items[p].version for p in cut.carried)),
            ahead=() if cut is None else tuple(sorted(self.items[p].version for p in cut.ahead)),
            cut_version=self.items[cut.end].version if cut is not None and cut.end < len(self.items) else 0,
            turn_id=self._turn_of(cut),
            split_turn_id=None if cut is None else cut.split_turn_id,
            prefix_turn_id=None if cut is None else cut.prefix_turn_id,
            previews=tuple(previews),
            caps=caps,
            least_progress=self.least,
            keep_recent_tokens=keep,
            before_tokens=self.before.messages,
            expected_tokens=after,
            account=self.before,
            target_missed=self.total(after) > self.before.target,
            supersedes=() if cut is None else tuple(c.block.path for c in self._superseded(cut.start, cut.end)),
            written=written,
            written_by=written_by,
        )

    def judged(self, plan: Plan) -> Plan | Refusal:
        """Return the plan; or a refusal, if it covers and previews nothing or frees too little (design: Invariants)."""
        messages, least = self.before.messages, self.least
        freed = messages - plan.expected_tokens
        if not plan.covered and not plan.previews:
            return Refusal("nothing_to_cover", {"messages": messages, "groups": len(self.groups)})
        if freed < least:
            return Refusal("no_progress", {"messages": messages, "would_free": freed, "least": least})
        return plan

    def preview_carried(self, cut: Range | None, *, whole: Collection[int] = ()) -> tuple[Replacement, ...]:
        """Preview the largest carried blocks until all of them are within the carried share (design: Invariants).

        Those at the positions ``whole`` stay as they are, and do not count towards the share.
        """
        carried = () if cut is None else tuple(position for position in cut.carried if position not in whole)
        most = int(self.policy.carried_share * self.before.limit)
        return self.preview(carried, sum(self.shown[p] for p in carried) - most)

    def preview(self, positions: Sequence[int], excess: int) -> tuple[Replacement, ...]:
        """Preview the largest blocks at the positions until ``excess`` tokens are saved."""
        most = preview_cap(self.policy, self.before.limit)
        candidates = [p for p in positions if can_preview(as_counted(self.items[p], self.policy), most)]
        previews: list[Replacement] = []
        for position in sorted(candidates, key=lambda p: (-self.shown[p], p)):
            if excess <= 0:
                break
            item = self.items[position]
            replacement = preview_of(item, most, self.counter, address=self.window.address_of(item))
            saved = self._spares(position, replacement)
            if saved > 0:
                previews.append(replacement)
                excess -= saved
        return tuple(previews)

    def saved(self, previews: Sequence[Replacement]) -> int:
        """Return the tokens that previews save together."""
        positions = {item.version: p for p, item in enumerate(self.items)} if previews else {}
        return sum(self._spares(positions[replacement.version], replacement) for replacement in previews)

    def _range(
        self,
        start: int,
        end: int,
        asked: set[int],
        split_turn_id: str | None,
        *,
        prefix_turn_id: str | None = None,
        ahead: Collection[int] = (),
    ) -> Range:
        carried = self._kept_groups(start, end) | {p for p in asked if start <= p < end}
        kept = tuple(sorted(carried))
        covered = tuple(p for p in range(start, end) if p not in carried and not self.items[p].is_summary)
        caps = self._caps(covered, prefix_turn_id, self._superseded(start, end))
        left = self.sums[-1] - (self.sums[end] - self.sums[start]) + sum(self.shown[p] for p in kept)
        after = left + scaled(caps.tokens, self.policy)
        return Range(start, end, covered, kept, split_turn_id, prefix_turn_id, caps, after, tuple(ahead))

    def _of_turn(self, turn_id: str, start: int, end: int) -> list[int]:
        """Return the positions of a turn's items in a range, without summaries."""
        items = enumerate(self.items[start:end], start)
        return [p for p, item in items if item.block.turn_id == turn_id and not item.is_summary]

    def _kept_groups(self, start: int, end: int) -> set[int]:
        """Return the positions that stay visible inside a range: pins and open calls, with their groups."""
        kept: set[int] = set()
        for group in self.groups:
            if group.first >= end:
                break
            before = [p for p in group.indices if start <= p < end]
            if before and self._keeps(group, end):
                kept.update(before)
        return kept

    def _keeps(self, group: Group, end: int) -> bool:
        members = [self.items[p] for p in group.indices]
        if any(item.keeps for item in members) or any(item.version in self._open for item in members):
            return True
        return group.pending and group.last >= end

    def _splits_again(self, turn_id: str, end: int) -> bool:
        """Return whether the newest compaction whose summary a range integrates split this turn, too."""
        earlier = self._superseded(0, end)
        return bool(earlier) and earlier[-1].split_turn_id == turn_id

    def _verbatim(self, prompts: Sequence[int]) -> list[int]:
        """Return the prompts of a split turn that stay: the first, the newest, and those before it that fit.

        The others fit as long as all prompts are within the share of carried blocks (design: Invariants). Otherwise a
        turn that never ends would fill the context with what was once asked.
        """
        kept = [*prompts[:1], *prompts[1:][-1:]]
        room = int(self.policy.carried_share * self.before.limit) - sum(self._cost_of(prompt) for prompt in kept)
        for prompt in reversed(prompts[1:-1]):
            cost = self._cost_of(prompt)
            if cost <= room:
                kept.append(prompt)
                room -= cost
        return kept

    def _cost_of(self, prompt: int) -> int:
        return sum(self.shown[p] for p in self._asked(prompt))

    def _asked(self, prompt: int) -> set[int]:
        """Return the positions of a prompt's opening: its prompts, and the attachments beside them."""
        asked = {p for p in self._group_at[prompt].indices if isinstance(self.items[p].block, UserPrompt | Attachment)}
        if self.items[prompt].carried:
            # A prompt carried by an earlier compaction is a group of its own; its attachments are still next to it.
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

    def _superseded(self, start: int, end: int) -> list[CompactionCompleted]:
        """Return the compactions whose live summaries are in a range, oldest first."""
        if not self.window.summaries:
            return []
        paths = {item.block.path for item in self.items[start:end] if item.is_summary}
        return [compaction for compaction in self.window.summaries if compaction.block.path in paths]

    def _caps(self, covered: Sequence[int], prefix_turn_id: str | None, earlier: list[CompactionCompleted]) -> Caps:
        """Return the caps of the summary's parts.

        The cap of ``history`` or ``turn_prefix`` is the least of three: the policy's cap; a share of the room; and the
        old text plus half of the new messages, but at least `LEAST_SUMMARY`. A part without new messages keeps its
        text verbatim, and its cap is the length of that text.

        The cap of ``digest`` is the least of the policy's cap, a share of the room, and the old lines plus a quarter of
        the new messages; 0 if the policy's form has no record. The old lines count in full, since the record is of all
        that came before, however little a compaction covers.

        After a refusal by the model, the fixed part alone may be above the figure to come down to. That figure cannot
        be reached then, but what the compaction frees may be enough. So a part's cap is `LEAST_SUMMARY` there, instead
        of a share of no room.
        """
        policy, room = self.policy, max(0, self.before.limit - self.before.fixed.tokens)
        eighth, sixteenth = (room // 8, room // 16) if room >= NO_ROOM else (LEAST_SUMMARY, LEAST_SUMMARY)
        new_prefix = sum(self.shown[p] for p in covered if self.items[p].block.turn_id == prefix_turn_id)
        new_history = sum(self.shown[p] for p in covered) - new_prefix
        same_turn = prefix_turn_id is not None and bool(earlier) and prefix_turn_id == earlier[-1].split_turn_id
        was_prefix = sum(self._count(c.parts.turn_prefix) for c in earlier)
        old_history = sum(self._count(c.parts.history) for c in earlier) + (0 if same_turn else was_prefix)
        history = min(policy.summary_tokens, eighth, max(LEAST_SUMMARY, old_history + new_history // 2))
        old_prefix = was_prefix if same_turn else 0
        prefix = min(policy.turn_prefix_tokens, sixteenth, max(LEAST_SUMMARY, old_prefix + new_prefix // 2))
        old_record = sum(self._count(record_in(c.block.text)) for c in earlier)
        new = new_history + new_prefix
        return Caps(
            history=history if new_history else old_history,
            turn_prefix=0 if prefix_turn_id is None else prefix if new_prefix else old_prefix,
            digest=min(policy.digest_tokens, room // 16, old_record + new // 4) if policy.form.record else 0,
        )

    def _size_of(self, written: SummaryParts, caps: Caps) -> Caps:
        """Return the size of a summary that planning writes itself."""
        form = self.policy.form.unlabelled
        around = sum(self._count(text) for text in (form.heading, form.question, form.answer) if text)
        return Caps(self._count(written.history), self._count(written.turn_prefix), caps.digest, around)

    def _count(self, text: str) -> int:
        if text not in self._counts:
            self._counts[text] = self.counter.count(text)
        return self._counts[text]

    def _turn_of(self, cut: Range | None) -> str:
        """Return the turn for the summary's path: that of the block at the cut."""
        if cut is None or cut.end >= len(self.items):
            return self.window.turn_id
        return self.items[cut.end].block.turn_id

    def _spares(self, position: int, replacement: Replacement) -> int:
        """Return by how many tokens the block's text shrinks; what the wire adds to the block does not change."""
        own = own_tokens(self.items[position], self.policy)
        return scaled(own, self.policy) - scaled(replacement.tokens, self.policy)
