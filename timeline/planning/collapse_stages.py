"""Collapsing stages: approved stages give way to what they decided (seed 000, P2 and P4).

A compaction covers one run of stages that are next to each other. Where something else lies in between (messages of no
stage, an earlier summary), the next run is another compaction: nothing is covered that no decision speaks for, and the
summary that is there, with the cached prefix up to it, stays as it is.

The memory digest says what was decided. Stage data says it in the uncached tail of a context (formatStageData): the
newest stages in detail, the others in short; all in short once the messages of one of the newest gave way to a summary.
It follows from the window alone, so that the same window always gives the same text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.blocks import StageDigest, SystemMessage, UserPrompt
from timeline.events import SummaryParts
from timeline.fold.groups import boundaries
from timeline.planning.plans import Plan
from timeline.planning.replacements import cut_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from timeline.events.other_payloads import StageApproved
    from timeline.fold.stages import Stage
    from timeline.fold.window import Item, Window
    from timeline.planning.plans import Refusal
    from timeline.planning.ranges import Ranges
    from timeline.policy.steps import CollapseStages, MemoryDigest, StageData


COLLAPSED_BY: Final = "stage_digest"
"""Who wrote what stands for collapsed stages."""


def approvals(stages: Iterable[Stage]) -> list[StageApproved]:
    """Return what was approved, oldest first."""
    return [stage.approval for stage in stages if stage.approval is not None]


def memory_digest(approved: Sequence[StageApproved], words: MemoryDigest, *, earlier: bool) -> str:
    """Write the memory digest: a heading and a line a stage.

    Args:
        approved: what holds, oldest first.
        words: of the policy.
        earlier: an earlier digest may be in view.
    """
    lines = [words.heading, *([_entry(each) for each in approved] or [words.nothing])]
    return "\n".join([*lines, words.replaces] if earlier and words.replaces else lines)


def is_out_of_view(window: Window, approval: StageApproved) -> bool:
    """Say whether the messages of an approved stage gave way to a summary; a stage without any never does."""
    return approval.count > 0 and not any(_is_of(item, approval) and _is_said(item) for item in window.items)


def plan_collapse(ranges: Ranges, step: CollapseStages) -> Plan | Refusal | None:
    """Plan to cover the oldest run of stages that is worth it, one stage more until the target is met."""
    refusal: Refusal | None = None
    for run in _Collapse(ranges).runs(step):
        decision = run.plan()
        if isinstance(decision, Plan):
            return decision
        refusal = refusal or decision
    return refusal


class _Run:
    """Approved stages that stand next to each other, and their messages' positions."""

    def __init__(self, ranges: Ranges, legal: Sequence[bool], prompt: int) -> None:
        self.ranges, self.legal, self.prompt = ranges, legal, prompt
        self.stages: list[StageApproved] = []

    def plan(self) -> Plan | Refusal:
        """Take one stage more until the target is met."""
        ranges = self.ranges
        plan = self._plan(1)
        for number in range(2, len(self.stages) + 1):
            if ranges.total(plan.expected_tokens) <= ranges.before.target:
                break
            plan = self._plan(number)
        return ranges.judged(plan)

    def _plan(self, number: int) -> Plan:
        ranges, taken = self.ranges, self.stages[:number]
        start, end = _span(ranges.items, taken[0].first, taken[-1].last, self.legal)
        prompts = (self.prompt,) if start <= self.prompt < end else ()
        parts = SummaryParts(history="\n".join(_entry(each) for each in taken))
        cut = ranges.stretch(start, end, prompts=prompts)
        return ranges.plan(cut, ranges.spill_carried(cut), written=parts, written_by=COLLAPSED_BY)


class _Collapse:
    """One search for what may be collapsed."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges, self.items = ranges, ranges.items
        self.legal = [*boundaries(self.items, ranges.groups), True]
        said = [p for p, item in enumerate(self.items) if _is_said(item)]
        self.newest = said[-1] if said else -1
        self.prompt = max((p for p, item in enumerate(self.items) if type(item.block) is UserPrompt), default=-1)

    def runs(self, step: CollapseStages) -> list[_Run]:
        """Part the stages that a step may take into runs, oldest first."""
        approved = approvals(self.ranges.window.stages)
        eligible = approved[: max(0, len(approved) - step.recent)] if step.which == "oldest" else approved
        runs: list[_Run] = []
        for stage in eligible:
            if not self._may_take(stage):
                continue
            if not runs or not self._adjacent(runs[-1].stages[-1], stage):
                runs.append(_Run(self.ranges, self.legal, self.prompt))
            runs[-1].stages.append(stage)
        return runs

    def _may_take(self, stage: StageApproved) -> bool:
        """Say whether anything of a stage is in view, and the model goes on from something behind it.

        A summary inside it gives way to the stage's decision; one that speaks for later messages too does not.
        """
        if stage.count == 0 or is_out_of_view(self.ranges.window, stage):
            return False
        start, end = _span(self.items, stage.first, stage.last, self.legal)
        if start >= end or end > self.newest:
            return False
        inside = {item.block.path for item in self.items[start:end] if item.is_summary}
        return all(c.covers.ranges[-1][1] <= stage.last for c in self.ranges.window.summaries if c.block.path in inside)

    def _adjacent(self, before: StageApproved, stage: StageApproved) -> bool:
        """Say whether nothing stands between two stages but what stays visible, or has no say of its own."""
        between = (item for item in self.items if before.last < item.place < stage.first)
        return not any(item.is_summary or _is_said(item) for item in between)


def _entry(approval: StageApproved) -> str:
    """Write the line of one stage."""
    return " ".join(f"- {approval.label or approval.stage}: {approval.decision}".split())


def _is_said(item: Item) -> bool:
    """Say whether an item is part of the conversation, and a cover may take it: no summary, pin or runtime's word."""
    spoken = not item.is_summary and not isinstance(item.block, StageDigest | SystemMessage)
    return spoken and not item.carried and not item.keeps


def _is_of(item: Item, approval: StageApproved) -> bool:
    return approval.first <= item.place <= approval.last


def _span(items: Sequence[Item], first: int, last: int, legal: Sequence[bool]) -> tuple[int, int]:
    """Return the positions from the first item of some versions up to the one behind the last.

    They are drawn in until no group is divided, and behind what an earlier summary carries, which stands inside of what
    that one covers.
    """
    inside = [p for p, item in enumerate(items) if first <= item.place <= last]
    start, end = inside[0], inside[-1] + 1
    while start < end and (not legal[start] or items[start].carried):
        start += 1
    while end > start and not legal[end]:
        end -= 1
    return start, end


def stage_data(window: Window, told: StageData | None) -> str:
    """Write what a policy tells of the approved stages; nothing where it tells nothing, or none is approved."""
    approved = approvals(window.stages)
    if told is None or not approved:
        return ""
    newest = approved[max(0, len(approved) - told.detailed) :]
    detailed = 0 if any(is_out_of_view(window, each) for each in newest) else len(newest)
    sections: list[str] = []
    room = told.artifacts
    for age, each in enumerate(reversed(approved)):
        shown = each.artifacts[:room]
        room -= len(shown)
        sections.append(_section(each, told, in_detail=age < detailed, artifacts=shown))
    return "\n\n".join([told.heading, *reversed(sections)])


def _section(each: StageApproved, told: StageData, *, in_detail: bool, artifacts: Sequence[str]) -> str:
    """Write one stage; a text that was not given is told by the next shorter one."""
    short = cut_to(each.short or each.decision, told.short_chars)
    text = cut_to(each.detailed, told.detailed_chars) if in_detail and each.detailed else short
    lines = [
        " ".join(f"## {each.label or each.stage}".split()),
        text,
        *_list("References", each.references[: told.references], len(each.references)),
        *_list("Citations", each.citations[: told.citations], len(each.citations)),
        *_list("Artifacts", [cut_to(artifact, told.artifact_chars) for artifact in artifacts], len(each.artifacts)),
    ]
    return "\n".join(lines)


def _list(title: str, shown: Sequence[str], every: int) -> list[str]:
    """Write a list under its title, and how many are left out."""
    if not shown:
        return []
    left = every - len(shown)
    return [f"{title}:", *(f"- {one}" for one in shown), *([f"- and {left} more"] if left else [])]
