"""Plan a `collapse_stages` step: replace the messages of approved stages by a line that names them.

The rule is that of the priority-chain design [priority_chain], P2 and P4. A compaction covers one run of adjacent
stages. Where other messages or an earlier summary lie between two stages, the second begins another run and another
compaction. So no message is covered without a decision that replaces it, and the earlier summary stays as it is, with
the cached prefix up to it.

The summary only names the stages. Their decisions are in the memory digest, which every context has. A rewind
supersedes a decision there; the text of the summary never changes, and so the cached prefix stays.

This module also writes the two texts about approved stages that are in the uncached tail of a context. The memory
digest lists their decisions. Stage data shows the newest stages in detail and the others in short; once P4 took one of
the newest, it shows all in short. Both follow from the window alone: the same window gives the same text.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from timeline.blocks import COLLAPSED_KEY, StageDigest, SystemMessage, UserPrompt
from timeline.events import SummaryParts
from timeline.fold.groups import boundaries
from timeline.planning.costs import scaled
from timeline.planning.plans import Plan
from timeline.planning.replacements import cut_to

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from timeline.events.other_payloads import StageApproved
    from timeline.fold.stages import Stage
    from timeline.fold.window import Item, Window
    from timeline.planning.plans import Refusal
    from timeline.planning.ranges import Ranges
    from timeline.policy.steps import CollapseStages, MemoryDigest, StageData


COLLAPSED_BY: Final = "stage_digest"
"""Name of the author of collapsed stages' summaries, as recorded in `WrittenBy`."""
_ENTRY: Final = "\n- "
"""How an entry of the memory digest begins."""
_COLLAPSED: Final = (
    "[The messages of these stages are out of view: {}. What was decided in them is in the memory digest, as far as it "
    "still holds.]"
)
"""The text of collapsed stages. It must stay true when a stage is reopened, and when no decision is left."""


def approvals(stages: Iterable[Stage]) -> list[StageApproved]:
    """Return the approvals of the stages, oldest first."""
    return [stage.approval for stage in stages if stage.approval is not None]


def memory_digest(approved: Sequence[StageApproved], words: MemoryDigest) -> str:
    """Write the memory digest of the approvals in force: a heading, and a line for each stage; empty without any."""
    return "\n".join([words.heading, *(_entry(each) for each in approved)]) if approved else ""


def digest_in_view(window: Window, words: MemoryDigest) -> str:
    """Return the memory digest of a window: the newest stage digest that is shown in the tail, under the heading.

    The heading is that of the policy that renders, whatever policy was in force when the stage was approved.
    """
    if not window.stages:
        return ""
    newest = next((item for item in reversed(window.items) if item.in_tail), None)
    if newest is None or newest.redacted:
        return ""
    _, begun, entries = newest.block.text.partition(_ENTRY)
    return f"{words.heading}{begun}{entries}" if begun else newest.block.text


def is_out_of_view(window: Window, approval: StageApproved) -> bool:
    """Return whether a summary replaced the messages of an approved stage; never for a stage without messages."""
    return approval.count > 0 and not any(_is_of(item, approval) and _is_said(item) for item in window.items)


def plan_collapse(ranges: Ranges, step: CollapseStages) -> Plan | Refusal | None:
    """Plan to cover the oldest run of stages that frees enough; None where no stage can be collapsed.

    Where no run frees enough, the result is the refusal of the oldest one.
    """
    refusal: Refusal | None = None
    for run in _Collapse(ranges).runs(step):
        decision = run.plan()
        if isinstance(decision, Plan):
            return decision
        refusal = refusal or decision
    return refusal


class _Run:
    """Adjacent approved stages, and the positions of their messages."""

    def __init__(self, ranges: Ranges, step: CollapseStages, legal: Sequence[bool], prompt: int) -> None:
        self.ranges, self.step, self.legal, self.prompt = ranges, step, legal, prompt
        self.stages: list[StageApproved] = []

    def plan(self) -> Plan | Refusal:
        """Plan to cover the first stages of the run: one, and one more until the target is met and enough is freed.

        A first stage that costs less than the line may meet the target by its stage data alone; it goes with the next.
        """
        ranges = self.ranges
        plan = self._plan(1)
        for number in range(2, len(self.stages) + 1):
            meets_target = ranges.total(plan.expected_tokens) - self._data_freed(plan) <= ranges.before.target
            if meets_target and ranges.frees_enough(plan.expected_tokens):
                break
            plan = self._plan(number)
        return ranges.judged(plan)

    def _plan(self, number: int) -> Plan:
        ranges, taken = self.ranges, self.stages[:number]
        start, end = _span(ranges.items, taken[0].first, taken[-1].last, self.legal)
        prompts = (self.prompt,) if start <= self.prompt < end else ()
        parts = SummaryParts(history=_COLLAPSED.format("; ".join(_name(each) for each in taken)))
        cut = ranges.stretch(start, end, prompts=prompts)
        plan = ranges.plan(cut, ranges.preview_carried(cut), written=parts, written_by=COLLAPSED_BY)
        return plan if self.step.which == "oldest" else replace(plan, collapsed=tuple(each.stage for each in taken))

    def _data_freed(self, plan: Plan) -> int:
        """Return the tokens by which the stage data in the tail shrinks with a plan."""
        ranges = self.ranges
        if not plan.collapsed or ranges.policy.stage_data is None:
            return 0
        left = stage_data(ranges.window, ranges.policy.stage_data, collapsed=plan.collapsed)
        return max(0, ranges.before.fixed.stage_data - scaled(ranges.counter.count(left), ranges.policy))


class _Collapse:
    """One search for runs of stages that may be collapsed."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges, self.items = ranges, ranges.items
        self.legal = [*boundaries(self.items, ranges.groups), True]
        positions = [p for p, item in enumerate(self.items) if _is_said(item)]
        self.newest = positions[-1] if positions else -1
        self.prompt = max((p for p, item in enumerate(self.items) if type(item.block) is UserPrompt), default=-1)

    def runs(self, step: CollapseStages) -> list[_Run]:
        """Return the stages that a step may collapse as runs, oldest first."""
        approved = approvals(self.ranges.window.stages)
        eligible = approved[: max(0, len(approved) - step.recent)] if step.which == "oldest" else approved
        runs: list[_Run] = []
        for stage in eligible:
            if not self._may_take(stage):
                continue
            if not runs or not self._adjacent(runs[-1].stages[-1], stage):
                runs.append(_Run(self.ranges, step, self.legal, self.prompt))
            runs[-1].stages.append(stage)
        return runs

    def _may_take(self, stage: StageApproved) -> bool:
        """Return whether a stage has messages in view, and a later message from which the model continues.

        The stage's decision also replaces a summary inside the stage, but not one that covers later messages, too.
        """
        if stage.count == 0 or is_out_of_view(self.ranges.window, stage):
            return False
        start, end = _span(self.items, stage.first, stage.last, self.legal)
        if start >= end or end > self.newest:
            return False
        inside = {item.block.path for item in self.items[start:end] if item.is_summary}
        return all(c.covers.ranges[-1][1] <= stage.last for c in self.ranges.window.summaries if c.block.path in inside)

    def _adjacent(self, before: StageApproved, stage: StageApproved) -> bool:
        """Return whether nothing lies between two stages except pins and blocks of the runtime."""
        between = (item for item in self.items if before.last < item.place < stage.first)
        return not any(item.is_summary or _is_said(item) for item in between)


def _entry(approval: StageApproved) -> str:
    """Return the line of one stage."""
    return f"- {_name(approval)}: {' '.join(approval.decision.split())}"


def _name(approval: StageApproved) -> str:
    """Return the name of a stage as it is shown, on one line."""
    return " ".join((approval.label or approval.stage).split())


def _is_said(item: Item) -> bool:
    """Return whether a compaction may cover an item as a message: not a summary, pinned, carried or the runtime's."""
    spoken = not item.is_summary and not isinstance(item.block, StageDigest | SystemMessage)
    return spoken and not item.carried and not item.keeps


def _is_of(item: Item, approval: StageApproved) -> bool:
    return approval.first <= item.place <= approval.last


def _span(items: Sequence[Item], first: int, last: int, legal: Sequence[bool]) -> tuple[int, int]:
    """Return the position of the first item from version ``first`` to ``last``, and the one behind the last item.

    Both move inwards until they divide no group. The start also moves behind items that an earlier summary carries,
    since they lie inside that summary's range.
    """
    inside = [p for p, item in enumerate(items) if first <= item.place <= last]
    start, end = inside[0], inside[-1] + 1
    while start < end and (not legal[start] or items[start].carried):
        start += 1
    while end > start and not legal[end]:
        end -= 1
    return start, end


def stage_data(window: Window, settings: StageData | None, *, collapsed: Collection[str] = ()) -> str:
    """Return the stage data of a policy: the text about approved stages; empty without the setting or an approval.

    Args:
        window: has the stages, and the summaries that name the stages collapsed by P4.
        settings: the policy's figures.
        collapsed: further stages that count as collapsed, by a plan that is not carried out yet.
    """
    approved = approvals(window.stages)
    if settings is None or not approved:
        return ""
    newest = approved[max(0, len(approved) - settings.detailed) :]
    gone = _collapsed(window)
    short = any(each.stage in collapsed or (each.stage in gone and is_out_of_view(window, each)) for each in newest)
    detailed = 0 if short else len(newest)
    sections: list[str] = []
    room = settings.artifacts
    for age, each in enumerate(reversed(approved)):
        shown = each.artifacts[:room]
        room -= len(shown)
        sections.append(_section(each, settings, in_detail=age < detailed, artifacts=shown))
    return "\n\n".join([settings.heading, *reversed(sections)])


def _collapsed(window: Window) -> set[str]:
    """Return the stages that the live summaries name as collapsed by a step that may take the newest ones, too."""
    named = (compaction.block.meta.get(COLLAPSED_KEY) for compaction in window.summaries)
    return {str(stage) for stages in named if isinstance(stages, list) for stage in stages}


def _section(each: StageApproved, settings: StageData, *, in_detail: bool, artifacts: Sequence[str]) -> str:
    """Return the section of one stage; the next shorter text takes the place of a missing one."""
    short = cut_to(each.short or each.decision, settings.short_chars)
    text = cut_to(each.detailed, settings.detailed_chars) if in_detail and each.detailed else short
    lines = [
        " ".join(f"## {each.label or each.stage}".split()),
        text,
        *_list("References", each.references[: settings.references], len(each.references)),
        *_list("Citations", each.citations[: settings.citations], len(each.citations)),
        *_list("Artifacts", [cut_to(artifact, settings.artifact_chars) for artifact in artifacts], len(each.artifacts)),
    ]
    return "\n".join(lines)


def _list(title: str, shown: Sequence[str], every: int) -> list[str]:
    """Return the lines of a list under its title, and how many entries are left out."""
    if not shown:
        return []
    left = every - len(shown)
    return [f"{title}:", *(f"- {one}" for one in shown), *([f"- and {left} more"] if left else [])]
