"""Explain a context: the rule and the figures behind each block, each cache point and each decision, as values.

A rule follows from the window and the projected entries, never from the log, so explaining needs no I/O.
`timeline.projection.explanation_table` writes the explanation for people.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from timeline.blocks import BEHIND_KEY, Attachment, ToolCall, UserPrompt
from timeline.events import ABRIDGED
from timeline.events.addresses import listed_addresses
from timeline.frozen import Frozen
from timeline.projection.project import PROJECTION
from timeline.projection.signatures import signatures_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from timeline.events import CompactionCompleted
    from timeline.fold.window import Item, Window
    from timeline.planning.account import Account
    from timeline.policy.model import CachePointRule
    from timeline.projection.reports import Counts, TakenDecision
    from timeline.usage import KeptLong
    from timeline.wire.neutral import Entry, NeutralContext


Facts: TypeAlias = dict[str, int | str]
"""Figures and names behind a rule, by name."""
Ruling: TypeAlias = tuple[str, Facts]
"""The name of a rule, and its facts."""

RULES: Final = {
    "window": "inside the window",
    "pinned": "pinned",
    "summary": "stands for what it covers",
    "open_call": "no result yet",
    "dead_call": "given up: sent with a result that says interrupted",
    "late_result": "its call is not shown, so it is sent as text with its path",
    "result_omitted": "its result is left out, and it goes with it",
    "in_tail": "shown in the uncached tail, behind the last message",
    "superseded": "a newer stage digest replaces it",
    "empty": "says nothing, so nothing is sent of it",
    "rewritten": "signed for a prefix that was rewritten, so it is not sent back",
    "tool_loop": "signed for a prefix that was rewritten in the same turn, and sent back as far as the model takes it",
    "split_turn": "the prompt of the split turn",
    "first": "the first message, kept in place of a system prompt",
    "group": "kept with its group, of which a part was open or is pinned",
    "redacted": "content erased, a tombstone stays",
    "hidden": "hidden by a decision",
    "cold": "cold cache",
    "pressure": "over the budget",
    "refused": "shown without what the provider refused a request for",
    "manual": "hidden by hand",
    "spill": "too large, shown as a preview",
    "repeated": "what it leaves out is in sight above",
    "numbered": "only every few lines show their number",
    "imported": "cleared by the recorded client",
    "abandoned": "the framework's history went on from before it",
}
"""The rules by name, in words. A hide with another reason is shown with that reason."""

WINDOW: Final[Ruling] = ("window", {})


class Rulings:
    """Finds the rule behind each item of one window, as projected.

    Args:
        window: the projected window.
        entries: the projected entries, by path.
        projection: the number of the rules by which they were projected.
    """

    def __init__(self, window: Window, entries: Mapping[str, Entry], projection: int = PROJECTION) -> None:
        self._window = window
        self._entries = entries
        self._unanswered = {item.version for item in window.unanswered()}
        self._open = {item.version for item in window.open_calls()}
        self._compactions = {compaction.block.path: compaction for compaction in window.summaries}
        self._signatures = signatures_of(projection, window.items)

    def of(self, item: Item) -> Ruling:
        """Return the rule of an item. Call it for each item, in the order of the window."""
        rewritten_at = self._signatures.rewritten_at(item)
        if item.in_tail:
            return ("superseded" if item.superseded else "in_tail"), {}
        match item.state:
            case "redacted":
                return "redacted", {"decided_version": item.changed_at}
            case "hidden" | "abridged" | "omitted":
                return _hidden(item)
            case "carried":
                return self._carried(item)
        compaction = self._compactions.get(item.block.path)
        return self._visible(item, rewritten_at) if compaction is None else ("summary", _covered(compaction))

    def _visible(self, item: Item, rewritten_at: int) -> Ruling:
        entry = self._entries.get(item.block.path)
        if entry is None:
            return ("result_omitted" if isinstance(item.block, ToolCall) else "empty"), {}
        if entry.loose:
            return "late_result", {}
        if entry.rewritten:
            return ("tool_loop" if entry.in_loop else "rewritten"), {"decided_version": rewritten_at}
        if item.version in self._unanswered:
            return ("open_call" if item.version in self._open else "dead_call"), {}
        return ("pinned", {}) if item.keeps else WINDOW

    def _carried(self, item: Item) -> Ruling:
        """Return the rule of a carried item, with the newest live summary whose range it lies in."""
        by = next((c for c in reversed(self._window.summaries) if item.version in c.covers), None)
        facts: Facts = {} if by is None else {"summary_path": by.block.path, "compaction_number": by.round, **_span(by)}
        if item.keeps:
            return "pinned", facts
        asked = isinstance(item.block, UserPrompt | Attachment)
        split = by is not None and by.split_turn_id == item.block.turn_id
        if asked and split:
            return "split_turn", facts
        behind = None if by is None else by.block.meta.get(BEHIND_KEY)
        return ("first" if isinstance(behind, list) and item.version in behind else "group"), facts


def _hidden(item: Item) -> Ruling:
    rule, facts = ("hidden", {}) if item.hide is None else (item.hide.reason, item.hide.facts)
    return rule, {**facts, "decided_version": item.changed_at}


def _span(compaction: CompactionCompleted) -> dict[str, int]:
    ranges = compaction.covers.ranges
    return {"first": ranges[0][0], "last": ranges[-1][1]} if ranges else {}


def _covered(compaction: CompactionCompleted) -> Facts:
    """Return the figures of a live summary's compaction; figures that were not recorded are left out."""
    facts: Facts = {
        "blocks": compaction.covered_blocks,
        "tokens": compaction.covered_tokens,
        **_span(compaction),
        "summaries": len(compaction.covers.summaries),
        "carried": len(compaction.carried),
        "compaction_number": compaction.round,
        "reason": compaction.reason,
        "before_tokens": compaction.before_tokens,
        "after_tokens": compaction.after_tokens,
        "summarizer": compaction.written_by.summarizer,
        "unsaid": listed_addresses(compaction.unsaid),
        "repaired": compaction.written_by.repaired or "",
        "asked_in_cache": int(compaction.written_by.asked == "in_cache"),
        "alone_because": compaction.written_by.alone_because or "",
    }
    return {name: value for name, value in facts.items() if value}


def in_words(rule: str, facts: Facts, *, shown: int, whole: int) -> str:
    """Return a rule with its figures in words.

    Args:
        rule: its name.
        facts: its figures.
        shown: tokens of the block as shown.
        whole: tokens of the whole block.
    """
    sentence = RULES.get(rule, spaced(rule))
    if rule == "summary":
        return _summary_in_words(facts)
    if "summary_path" in facts:
        inside = f"{sentence}; inside versions {_range(facts)}"
        return f"{inside}, which {facts['summary_path']} covers (compaction {facts['compaction_number']})"
    if "decided_version" not in facts:
        return sentence
    decided = f"decided at version {facts['decided_version']}"
    if rule in {"redacted", "rewritten", "tool_loop"}:
        return f"{sentence}; {decided}"
    because = ", ".join(
        [sentence, *figures({name: value for name, value in facts.items() if name != "decided_version"})]
    )
    if rule in ABRIDGED:
        became = f"abridged {whole:,} tokens to {shown:,}"
    else:
        became = f"replaced {whole:,} tokens by {shown:,}" if shown else f"left out {whole:,} tokens"
    return f"{because}; {became}, {decided}"


def figures(facts: Facts) -> list[str]:
    """Return the figures of a decision in words. Figures that were compared with each other share a phrase."""
    rest = dict(facts)
    phrases: list[str] = []
    if {"before_tokens", "after_tokens"} <= rest.keys():
        phrases.append(f"{rest.pop('before_tokens'):,} -> {rest.pop('after_tokens'):,} tokens")
    if {"idle_seconds", "ttl_seconds"} <= rest.keys():
        idle, ttl, grace = rest.pop("idle_seconds"), rest.pop("ttl_seconds"), rest.pop("grace_seconds", 0)
        phrases.append(f"{idle:,} s idle >= {ttl:,} + {grace:,}")
    if {"blocks", "freed_tokens", "least_tokens"} <= rest.keys():
        blocks = counted(int(rest.pop("blocks")), "block", "blocks")
        phrases.append(f"{blocks} freed {rest.pop('freed_tokens'):,} >= {rest.pop('least_tokens'):,} tokens")
    return [*phrases, *listed(rest)]


def _summary_in_words(facts: Facts) -> str:
    blocks = ""
    if "blocks" in facts:
        blocks = f"{counted(int(facts['blocks']), 'block', 'blocks')} of {facts.get('tokens', 0):,} tokens, "
    span = f"versions {_range(facts)}" if "first" in facts else "no version"
    parts = [f"stands for {blocks}{span}"]
    if "summaries" in facts:
        parts.append(f"{counted(int(facts['summaries']), 'earlier summary', 'earlier summaries')} in it")
    sizes = f"{facts.get('before_tokens', 0):,} -> {facts.get('after_tokens', 0):,} tokens"
    parts.append(f"compaction {facts.get('compaction_number', 1)} ({spaced(str(facts.get('reason', '')))}): {sizes}")
    if "summarizer" in facts:
        parts.append(f"by {facts['summarizer']}")
    if "unsaid" in facts:
        parts.append(f"unsaid of what was asked: {facts['unsaid']}")
    if "asked_in_cache" in facts:
        parts.append("asked in the cached context")
    if "alone_because" in facts:
        parts.append(f"asked alone: {facts['alone_because']}")
    if "repaired" in facts:
        parts.append(f"repaired: {facts['repaired']}")
    return "; ".join(parts)


def _range(facts: Facts) -> str:
    return f"{facts['first']} to {facts['last']}"


def listed(facts: Mapping[str, int | str]) -> list[str]:
    """Return figures with their names in words."""
    return [
        f"{spaced(n)} {value:,}" if isinstance(value, int) else f"{spaced(n)} {value}" for n, value in facts.items()
    ]


def spaced(name: str) -> str:
    """Return an identifier as words."""
    return name.replace("_", " ")


def counted(number: int, one: str, several: str) -> str:
    """Return a number with the noun in singular or plural."""
    return f"{number:,} {one if number == 1 else several}"


class ContextBlock(Frozen):
    """A live block in this context: ``tokens`` are its own, ``shown_tokens`` what is sent of it.

    ``rule`` is the name of the rule behind its state and ``facts`` are its figures; ``reason`` is both in words.
    """

    version: int
    path: str
    type: str
    turn_id: str
    state: Literal["visible", "abridged", "hidden", "carried", "omitted", "redacted"]
    reason: str
    tokens: int
    shown_tokens: int
    rule: str
    facts: dict[str, int | str] = {}


def context_block(item: Item, rule: str, facts: Facts) -> ContextBlock:
    """Return a live item as a block of a context, with the rule behind its state."""
    tokens = 0 if rule == "result_omitted" else item.shown_tokens
    return ContextBlock(
        version=item.version,
        path=item.block.path,
        type=item.block.type,
        turn_id=item.block.turn_id,
        state=item.state,  # type: ignore[arg-type]  # a live item is never covered or deleted
        reason=in_words(rule, facts, shown=tokens, whole=item.tokens),
        tokens=item.tokens,
        shown_tokens=tokens,
        rule=rule,
        facts=facts,
    )


def shown_sizes(items: Iterable[Item], shown: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield path and tokens of each live item, as `context_block` has them.

    Args:
        items: of a window.
        shown: paths of its entries: a call is left out where its result is.
    """
    for item in items:
        left_out = isinstance(item.block, ToolCall) and item.state == "visible" and item.block.path not in shown
        yield item.block.path, 0 if left_out else item.shown_tokens


_POINTS: Final = {
    "previous_turn": "the last block before the current turn {turn_id}",
    "pre_tail": "the last block of round {round} of {rounds}, {offset_rounds} before the newest; from {min_rounds} on",
    "tail": "the last block",
    "lagging": "{lookback_blocks} blocks before the tail: a provider looks back no further to the point before",
}
"""The rule that placed a cache point, by kind, in words."""


@dataclass(frozen=True, slots=True)
class ExplainedPoint:
    """A cache point: its kind, the path of the block before it, and the rule that placed it."""

    kind: str
    path: str
    facts: Facts
    reason: str

    def dump(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"kind": self.kind, "path": self.path, "facts": self.facts, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a context.

    Attributes:
        conversation, version: the log and the version that the context was projected from.
        fingerprint: of the context.
        policy: the policy's name.
        blocks: every live block in order, with its state, its rule and the figures behind it.
        kept_long: the part of the prefix that the provider is asked to keep for its long lifetime.
        cache_points: in order, each with the rule that placed it.
        ephemeral: number of texts in the uncached tail; the account has their tokens.
        account: tokens by category against limit, trigger and target.
        counts: the unit of all these tokens.
        decisions: of the render, refusals included, with their figures.
        overflow: whether the total is still above the trigger.
    """

    conversation: str
    version: int
    fingerprint: str
    policy: str
    blocks: tuple[ContextBlock, ...] = field(repr=False)
    kept_long: KeptLong
    cache_points: tuple[ExplainedPoint, ...]
    ephemeral: int
    account: Account
    counts: Counts
    decisions: tuple[TakenDecision, ...] = field(repr=False)
    overflow: bool

    def dump(self) -> dict[str, Any]:
        """Return the stable JSON shape of `timeline render --explain --json`."""
        return {
            "conversation": self.conversation,
            "version": self.version,
            "fingerprint": self.fingerprint,
            "policy": self.policy,
            "blocks": [block.model_dump() for block in self.blocks],
            "kept_long": self.kept_long,
            "cache_points": [point.dump() for point in self.cache_points],
            "ephemeral": self.ephemeral,
            "account": self.account.facts(),
            "counts": self.counts.model_dump(),
            "decisions": [taken.model_dump() for taken in self.decisions],
            "overflow": self.overflow,
        }


def explained_points(
    neutral: NeutralContext, blocks: Sequence[ContextBlock], rule: CachePointRule
) -> tuple[ExplainedPoint, ...]:
    """Return each cache point of a context with the rule that placed it.

    Args:
        neutral: the context.
        blocks: its live blocks.
        rule: the policy's figures for cache points.
    """
    return tuple(
        ExplainedPoint(point.kind, neutral.entries[point.index].path, facts, _POINTS[point.kind].format(**facts))
        for point in neutral.cache_points
        for facts in [_point_facts(neutral.entries, blocks, rule, point.kind)]
    )


def _point_facts(entries: Sequence[Entry], blocks: Sequence[ContextBlock], rule: CachePointRule, kind: str) -> Facts:
    """Return the figures of the rule that placed a point; only shown rounds count."""
    if kind == "previous_turn":
        turns = {block.path: block.turn_id for block in blocks}
        return {"turn_id": turns[entries[-1].path]}
    if kind == "pre_tail":
        rounds = len({entry.group for entry in entries if entry.group})
        back = {"offset_rounds": rule.offset_rounds, "min_rounds": rule.min_rounds}
        return {"round": rounds - rule.offset_rounds, "rounds": rounds, **back}
    return {"lookback_blocks": rule.lookback_blocks} if kind == "lagging" else {}
