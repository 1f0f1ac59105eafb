"""Build the `compaction.completed` event and its summary block from a plan and the summary's texts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.blocks import (
    BEHIND_KEY,
    COLLAPSED_KEY,
    FORM_KEY,
    RangeSummary,
    ToolCall,
    ToolResult,
    instant_text,
    numbered,
    stem,
)
from timeline.events import NOBODY, CompactionCompleted, WrittenBy
from timeline.facts.extracting import facts_of_result
from timeline.facts.of_items import requests_of, said_by_users
from timeline.facts.record import settled, with_asked
from timeline.facts.record_lines import RECORD_HEADING, shown_record, unsaid
from timeline.facts.said import searchable_line
from timeline.fold.window import Item, replaced
from timeline.planning.costs import costs
from timeline.planning.covered_digest import build_digest
from timeline.planning.summary_requests import joined, summary_due, superseded
from timeline.policy.steps import BLOCK_FORM, Summarize
from timeline.usage import total_usage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import datetime

    from pydantic import JsonValue

    from timeline.events import CompactReason, Covers, SummaryParts
    from timeline.facts.model import Fact
    from timeline.fold.window import Window
    from timeline.planning.plans import Plan
    from timeline.policy.model import Policy
    from timeline.policy.steps import SummaryForm
    from timeline.ports import Summary, TokenCounter
    from timeline.queries import FactRecord

HEADING: Final = BLOCK_FORM.heading
"""The first line of a summary in the default form."""
SPLIT_HEADING: Final = "Turn Context (split turn)"
"""The label of the turn prefix in the cut-point design [cut_point]."""
NOTHING: Final = "Nothing was said before this point."
_NEVER_HIDDEN: Final = 40
"""Most tokens of a prompt that no policy of ours hides by itself, since its replacement would be no shorter."""
_SAID: Final = {"role", "question", "answer"}


class WrittenSummary(NamedTuple):
    """A summary before it is a block.

    Attributes:
        parts: its history and its turn prefix.
        author: who wrote them.
        number: the number of its compaction.
    """

    parts: SummaryParts
    author: WrittenBy
    number: int

    @property
    def is_none(self) -> bool:
        """Whether nobody wrote one, since nothing of what is covered was shown."""
        return self.author.summarizer == NOBODY


def compaction_event(
    window: Window,
    plan: Plan,
    summary: WrittenSummary,
    *,
    record: FactRecord,
    reason: CompactReason,
    taken_paths: Collection[str],
    policy: Policy,
    counter: TokenCounter,
    now: datetime,
) -> CompactionCompleted:
    """Build the compaction with its summary block.

    Args:
        window: the window that the plan was made from.
        plan: a plan that covers at least one item.
        summary: of what the plan covers.
        record: what was done and named before the window, the newly covered blocks included.
        reason: why the compaction runs.
        taken_paths: paths in use that begin with the stem of the summary's path.
        policy: the policy of the plan.
        counter: counts the finished block.
        now: time of the block.
    """
    covers = _covers(plan, summary)
    own_form = policy.form if plan.written is None else policy.form.unlabelled
    form, path = formed(own_form, summary.number), free_summary_path(plan.turn_id, taken_paths)
    record = with_asked(record, _half_shown(window, covers))
    in_view = _in_view(window, plan, covers)
    shown = ""
    if form.record:
        record_now = settled(record, _since(window, covers, now))
        said = in_view.said_with(summary.parts.history, summary.parts.turn_prefix)
        shown = _shown(window, plan, record_now, path, said, in_view, policy, counter)
    text = _compose(summary.parts, shown, form)
    tokens = sum(counter.count(summary_text) for summary_text in (form.question, text, form.answer) if summary_text)
    block = RangeSummary(turn_id=plan.turn_id, text=text, at=now, path=path, meta=form_meta(form))
    event = CompactionCompleted(
        block=block,
        tokens=tokens,
        counter=counter.name,
        covers=covers,
        carried=plan.carried,
        parts=summary.parts,
        split_turn_id=plan.split_turn_id,
        round=summary.number,
        reason=reason,
        keep_recent_tokens=plan.keep_recent_tokens,
        target_missed=plan.target_missed,
        before_tokens=plan.account.messages,
        after_tokens=_left(window, plan, covers, _placed(window, covers, block, tokens), policy),
        least_progress=plan.least_progress,
        written_by=summary.author,
        none_due=summary.is_none,
        digest=build_digest(plan.covered),
        unsaid=unsaid(record, in_view.said_with(text), in_view.versions),
        **covered_figures(superseded(window, plan), plan.covered),
    )
    further = {**form_meta(form), **_order_meta(plan), **_stages_meta(superseded(window, plan), plan)}
    return with_meta(event, superseded(window, plan), plan.covered, **further)


def _covers(plan: Plan, summary: WrittenSummary) -> Covers:
    """Return what a plan covers. Check that it covers something, and has a summary if that needs one."""
    if plan.covers is None:
        raise ValueError("the plan covers nothing")
    if summary.is_none and summary_due(plan.covered):
        raise ValueError("nobody wrote a summary of what the plan covers")
    return plan.covers


def form_meta(form: SummaryForm) -> dict[str, JsonValue]:
    """Return the entry of a summary's ``meta`` that records its form; empty for the default form."""
    return {} if form.plain else {FORM_KEY: form.model_dump(include=_SAID, exclude_defaults=True)}


def _order_meta(plan: Plan) -> dict[str, JsonValue]:
    """Return the entry of a summary's ``meta`` that names the blocks sent in front of it; empty where it is first."""
    return {BEHIND_KEY: list(plan.ahead)} if plan.ahead else {}


def _stages_meta(earlier: Sequence[CompactionCompleted], plan: Plan) -> dict[str, JsonValue]:
    """Return the entry of a summary's ``meta`` that names the collapsed stages, those of superseded summaries first."""
    known = (compaction.block.meta.get(COLLAPSED_KEY) for compaction in earlier)
    names = [str(name) for before in known if isinstance(before, list) for name in before]
    every = list(dict.fromkeys([*names, *plan.collapsed]))
    return {COLLAPSED_KEY: [*every]} if every else {}


def _placed(window: Window, covers: Covers, summary: RangeSummary, tokens: int) -> Item:
    """Return the item that a summary will be, in the place of the blocks that it covers."""
    return Item(window.version + 1, covers.ranges[0][0], summary, tokens)


def _left(window: Window, plan: Plan, covers: Covers, summary: Item, policy: Policy) -> int:
    """Return the messages' tokens after a compaction, as the account of the plan's window will then count them."""
    carried = set(plan.carried)
    replacements = {replacement.version: replacement for replacement in plan.previews}
    kept = (
        i._replace(carried=i.carried or i.version in carried)
        for i in window.items
        if i.version <= plan.version and (i.version in carried or i.version not in covers)  # the plan has no later ones
    )
    left = [replaced(i, replacements[i.version]) if i.version in replacements else i for i in kept]
    return sum(costs(sorted([*left, summary], key=lambda item: item.order), policy))


def formed(form: SummaryForm, number: int) -> SummaryForm:
    """Return a form with the number of its compaction filled in."""
    return form.model_copy(update={"heading": form.heading.replace("{round}", str(number))})


def unheaded(text: str, form: SummaryForm) -> str:
    """Remove the form's heading, if the author began the summary with it: the form adds it again."""
    label = re.split(r"[({]", form.heading, maxsplit=1)[0].strip("# \n[]")
    if not label:
        return text.strip()
    return re.sub(rf"\A\s*[#*\[]+\s*{re.escape(label)}[^\n\]]*\]?", "", text, count=1).strip()


def covered_figures(earlier: Sequence[CompactionCompleted], covered: Sequence[Item]) -> dict[str, Any]:
    """Return the figures of the covered blocks: the new ones, and all with those of superseded summaries."""
    return {
        "compacted_tokens": sum(item.shown_tokens for item in covered),
        "covered_blocks": sum(c.covered_blocks for c in earlier) + len(covered),
        "covered_tokens": sum(c.covered_tokens for c in earlier) + sum(item.tokens for item in covered),
    }


def free_summary_path(turn_id: str, taken: Collection[str]) -> str:
    """Return the first unused path of a summary in a turn."""
    own_stem, n = stem(RangeSummary(turn_id=turn_id)), 1
    while (path := numbered(own_stem, n)) in taken:
        n += 1
    return path


def with_meta(
    event: CompactionCompleted, earlier: Sequence[CompactionCompleted], covered: Sequence[Item], **more: JsonValue
) -> CompactionCompleted:
    """Return the event with the ``meta`` of its summary block filled in, and ``more`` beside it.

    ``meta`` holds the covered and carried versions, the times of the covered blocks and the author of the summary. It
    has ``split_turn_id`` only when the cut divided a turn, as in the cut-point design [cut_point].
    """
    times = [i.block.at for i in covered if i.block.at is not None]
    meta = {
        "covered_turn_ids": covered_turns(earlier, covered, event.split_turn_id),
        "split_turn_id": event.split_turn_id,
        "covers": event.covers.model_dump(mode="json"),
        "carried": list(event.carried),
        "first_at": instant_text(min(times)) if times else None,
        "last_at": instant_text(max(times)) if times else None,
        "round": event.round,
        "before_tokens": event.before_tokens,
        "after_tokens": event.after_tokens,
        "written_by": event.written_by.model_dump(exclude_defaults=True),
        "parts": event.parts.model_dump(),
    }
    known = {name: value for name, value in meta.items() if value is not None} | more
    return event.model_copy(update={"block": event.block.model_copy(update={"meta": known})})


def covered_turns(
    earlier: Sequence[CompactionCompleted], covered: Sequence[Item], split_turn_id: str | None
) -> list[str]:
    """Return all turns that a summary covers, those of superseded summaries included, without the split turn."""
    turns: dict[str, None] = {}
    for compaction in earlier:
        known = compaction.block.meta.get("covered_turn_ids")
        turns.update(dict.fromkeys(str(t) for t in known) if isinstance(known, list) else {})
        if compaction.split_turn_id is not None:
            turns[compaction.split_turn_id] = None
    turns.update(dict.fromkeys(i.block.turn_id for i in covered))
    turns.pop(split_turn_id or "", None)
    return list(turns)


def _compose(parts: SummaryParts, shown: str, form: SummaryForm) -> str:
    sections = [parts.history or (NOTHING if not parts.turn_prefix else "")]
    if parts.turn_prefix:
        sections.append(f"## {SPLIT_HEADING}\n\n{parts.turn_prefix}")
    if shown:
        sections.append(f"## {RECORD_HEADING}\n\n{shown}")
    text = joined(*sections)
    return form.heading + text if form.heading.endswith("\n") else joined(form.heading, text)


class _InView(NamedTuple):
    """What users say that the model is still shown whole once a plan is carried out.

    Only a lasting text may stand for a covered prompt that said the same. A later hide may shorten a long text, and
    then reports that text alone: it knows nothing of the covered prompts.

    Attributes:
        versions: of all these blocks.
        lasting: the texts that no hide shortens.
    """

    versions: frozenset[int]
    lasting: tuple[str, ...]

    def said_with(self, *texts: str) -> str:
        """Return what certainly stays in view, together with some texts of a summary, by `searchable_line`."""
        return searchable_line((*self.lasting, *texts))


def _in_view(window: Window, plan: Plan, covers: Covers) -> _InView:
    carried = set(plan.carried)
    previewed = {replacement.version for replacement in plan.previews}

    def is_shown_whole(item: Item) -> bool:
        stays = item.version in carried or item.version not in covers
        return stays and item.is_in_sight and item.version not in previewed

    shown = [item for item, _ in said_by_users(window.items, is_shown_whole)]
    lasting = tuple(item.block.text for item in shown if item.tokens <= _NEVER_HIDDEN)
    return _InView(frozenset(item.version for item in shown), lasting)


def _half_shown(window: Window, covers: Covers) -> Iterator[Fact]:
    """Yield what users ask for in blocks outside a plan's range that the model is shown only in part."""

    def is_half_shown(item: Item) -> bool:
        return item.replacement is not None and not item.is_in_sight and item.version not in covers

    return (fact for _, fact in requests_of(window.items, is_half_shown))


def _shown(  # noqa: PLR0917 - the parts of a summary
    window: Window,
    plan: Plan,
    record: FactRecord,
    path: str,
    said: str,
    in_view: _InView,
    policy: Policy,
    counter: TokenCounter,
) -> str:
    carried = set(plan.carried)
    return shown_record(
        record,
        open_calls=[i.block.path for i in window.open_calls()],
        pins=[i.block.path for i in window.items if i.version in carried and i.keeps],
        most_tokens=plan.caps.digest,
        counter=counter,
        address=path,
        summary=said,
        whole=in_view.versions,
        lists=_lists(policy),
    )


def _lists(policy: Policy) -> bool:
    return any(isinstance(step, Summarize) and step.names == "listed" for step in policy.steps)


def _since(window: Window, covers: Covers, now: datetime) -> Iterator[Fact]:
    """Yield the facts of the results that stay in view behind a plan's range."""
    calls = {item.version: item.block for item in window.items if isinstance(item.block, ToolCall)}
    for item in window.items:
        call, result = calls.get(item.answers or 0), item.block
        if call is not None and isinstance(result, ToolResult) and item.version not in covers:
            yield from facts_of_result(call, item.answers or 0, result, item.version, result.at or now)


def written_by(summaries: Sequence[Summary]) -> WrittenBy:
    """Return the author of the parts and the usage of all of them; of two authors, the one that fell back is named."""
    if not summaries:
        return WrittenBy(summarizer=NOBODY)
    chief = next((s for s in summaries if s.fallback_reason), summaries[0])
    return WrittenBy(
        summarizer=chief.summarizer,
        model=chief.model,
        prompt_version=chief.prompt_version,
        fallback_reason=chief.fallback_reason,
        usage=total_usage(summary.usage for summary in summaries),
        repaired="; ".join(summary.repaired for summary in summaries if summary.repaired) or None,
        asked="in_cache" if any(summary.asked == "in_cache" for summary in summaries) else "alone",
        alone_because="; ".join(dict.fromkeys(s.alone_because for s in summaries if s.alone_because)) or None,
    )
