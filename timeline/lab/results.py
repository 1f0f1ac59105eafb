"""The results of a replay. All models are frozen, and load from their own JSON.

`RunResult` is one recording under one policy: sums, and a `ReplayedCallRow` for each recorded call. `together` sums
several runs. Tokens are the provider's; costs are in base tokens (``units``) and US dollars (``money``).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from pydantic import AwareDatetime

from timeline.frozen import Frozen, blank, unchecked
from timeline.lab.cache import BreakCause

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FORMAT: Final = 7
"""The version of the format and of the figures' meaning: results kept under another version are not used."""
Distance: TypeAlias = Literal["near", "middle", "far"]
"""Of a fact: by the calls since its last mention."""
DISTANCES: Final[tuple[Distance, ...]] = ("near", "middle", "far")


FactState: TypeAlias = Literal["seen", "reachable", "found", "scored"]


class FactCounts(Frozen):
    """The facts that answers need, of one call or summed; all 0 without `Options.facts` (`timeline.lab.facts`).

    Attributes:
        facts_near, facts_middle, facts_far: facts that the answer used and the uncut context held, by the calls since
            their last mention.
        seen_near, seen_middle, seen_far: how many of these are in sight.
        reachable_near, reachable_middle, reachable_far: how many are in sight or one read away.
        found_near, found_middle, found_far: how many are in sight, one read away, or two away: a search for what a
            model could ask has it among its first hits (`timeline.lab.facts.searching`).
        scored_near, scored_middle, scored_far: how many are in sight or one read away; a fact of which only a stale
            value is shown counts as -1, since an agent would use that value and not look further.
        stale: facts out of sight of which the context shows only an earlier state that is wrong by now.
        summary_facts: facts of summarised ranges that the calls after the summaries used.
        summary_held, summary_said: how many of these the summaries hold: with the record behind them, and by what the
            summarizer wrote alone.
        summary_tokens, summary_said_tokens: tokens of the summaries with their records, and of what the summarizer
            wrote alone.
        summary_invented: paths, names, ids and numbers that a summarizer wrote and that are nowhere in the range as a
            whole.
        facts_by: facts, seen and reachable ones by distance, class and origin, such as ``far/name/file``.
        reads: blocks to read, or to find again, for the facts that are out of sight.
        fetch_units, fetch_money: cost of these reads.
    """

    facts_near: int = 0
    facts_middle: int = 0
    facts_far: int = 0
    seen_near: int = 0
    seen_middle: int = 0
    seen_far: int = 0
    reachable_near: int = 0
    reachable_middle: int = 0
    reachable_far: int = 0
    found_near: int = 0
    found_middle: int = 0
    found_far: int = 0
    scored_near: int = 0
    scored_middle: int = 0
    scored_far: int = 0
    stale: int = 0
    summary_facts: int = 0
    summary_held: int = 0
    summary_said: int = 0
    summary_tokens: int = 0
    summary_said_tokens: int = 0
    summary_invented: int = 0
    facts_by: dict[str, tuple[int, int, int]] = {}
    reads: int = 0
    fetch_units: float = 0.0
    fetch_money: float = 0.0


class ReplayedCallRow(FactCounts):
    """One recorded model call under the policy.

    Attributes:
        number: the call's number, from 1.
        at: when it was sent.
        idle_seconds: seconds since the previous answer was complete; 0 for the first.
        model: the called model.
        tokens: tokens of the whole input that the policy sends; 0 if it refused.
        recorded: tokens of the whole input that the recorded client sent; 0 if unknown.
        read, written, uncached: how many of ``tokens`` were read from the cache, written to it, and neither.
        written_long: how many of ``written`` are for the long time.
        units, money: cost of the input.
        lost: tokens that were in the cache and were not read.
        cause: why they were lost.
        collapsed: whether more than half of the cached tokens were lost.
        shown: tokens of the messages, as in the account.
        visible: of these, tokens of blocks that are sent in full, summaries left out (`timeline.lab.visibility`).
        hidden: blocks that were hidden, or reduced to a preview, right before this call.
        compactions: compactions right before this call.
        splits: how many of these cut inside a turn.
        covered_tokens: tokens that these covered.
        summary_read, summary_written: tokens that their summarizer read, and wrote.
        summary_cached: tokens that the summarizer read from the cache, if it was asked after the last context.
        summary_units, summary_money: cost of these.
        needs, hidden_needs: files that the answer's calls name and that were seen before, and how many of them were not
            in sight (`timeline.lab.visibility`).
        refused: the type of the error if the policy had no context to send; empty otherwise.
        over_limit: whether the input was sent although it is above the limit.
        orphans: results without their call, or calls without a result, in the sent context.
    """

    number: int
    at: AwareDatetime
    idle_seconds: float = 0.0
    model: str = ""
    tokens: int = 0
    recorded: int = 0
    read: int = 0
    written: int = 0
    written_long: int = 0
    uncached: int = 0
    units: float = 0.0
    money: float = 0.0
    lost: int = 0
    cause: BreakCause | None = None
    collapsed: bool = False
    shown: int = 0
    visible: int = 0
    hidden: int = 0
    compactions: int = 0
    splits: int = 0
    covered_tokens: int = 0
    summary_read: int = 0
    summary_written: int = 0
    summary_cached: int = 0
    summary_units: float = 0.0
    summary_money: float = 0.0
    needs: int = 0
    hidden_needs: int = 0
    refused: str = ""
    over_limit: bool = False
    orphans: int = 0


def call_row(figures: dict[str, Any]) -> ReplayedCallRow:
    """Make the row of a call from figures of the right types: a comparison makes tens of thousands of them."""
    fields = blank(ReplayedCallRow).copy()
    fields.update(figures)
    fields["facts_by"] = figures.get("facts_by", {})
    return unchecked(ReplayedCallRow, fields, _ROW)


_ROW: Final = set(ReplayedCallRow.model_fields)


class Totals(FactCounts):
    """The sums of one or several runs; shares and means are derived from them.

    Attributes:
        calls: recorded model calls; ``refused`` ones among them, by type of error.
        units, money: cost of all input and of the summaries.
        summary_units, summary_money: of that, the summaries.
        read, written, written_long, uncached: tokens of all input, as in `ReplayedCallRow`.
        collapses: calls that lost more than half of the cached prefix, by cause.
        lost: tokens lost at any call, by cause.
        compactions, splits: compactions, and how many of them cut inside a turn.
        hides: hidden blocks.
        visible: sum over the calls of the tokens shown in full; `mean_visible` is the mean.
        visible_at_end: sum over the runs of the tokens that the last call showed in full.
        needs, hidden_needs: see `ReplayedCallRow`.
        largest: tokens of the largest input; the rest of the limit is the room for the answer.
        over_limit, orphans: both 0 in a sound run, except for the calls above the limit of a policy that never
            compacts.
        priced: False if a model is in no price table: then ``money`` means nothing.
        seconds: duration of the replay; not a part of its result.
    """

    runs: int = 0
    calls: int = 0
    refused: dict[str, int] = {}
    units: float = 0.0
    money: float = 0.0
    summary_units: float = 0.0
    summary_money: float = 0.0
    read: int = 0
    written: int = 0
    written_long: int = 0
    uncached: int = 0
    collapses: dict[str, int] = {}
    lost: dict[str, int] = {}
    compactions: int = 0
    splits: int = 0
    hides: int = 0
    visible: int = 0
    visible_at_end: int = 0
    largest: int = 0
    needs: int = 0
    hidden_needs: int = 0
    over_limit: int = 0
    orphans: int = 0
    priced: bool = True
    seconds: float = 0.0

    @property
    def refusals(self) -> int:
        """Calls for which the policy had no context: they cost nothing here, so that the costs are not comparable."""
        return sum(self.refused.values())

    @property
    def write_share(self) -> float:
        """Share of the input that was written to the cache."""
        return _share(self.written, self.read + self.written + self.uncached)

    @property
    def mean_visible(self) -> float:
        """Tokens shown in full, mean over the sent calls."""
        return _share(self.visible, self.calls - self.refusals)

    @property
    def mean_visible_at_end(self) -> float:
        """Tokens that the last call showed in full, mean over the runs."""
        return _share(self.visible_at_end, self.runs)

    @property
    def hidden_need_share(self) -> float:
        """Share of the needed files that were not in sight."""
        return _share(self.hidden_needs, self.needs)

    def recall(self, state: FactState, distance: Distance) -> float | None:
        """Share of the facts of a distance in a state, each one with those before it; None where there is no fact.

        In sight, one read away, two away; and one read away with stale values as -1, which may be below 0.
        """
        needed = getattr(self, f"facts_{distance}")
        return getattr(self, f"{state}_{distance}") / needed if needed else None

    @property
    def held_per_100(self) -> float | None:
        """Facts that later calls used and that summaries hold, for each 100 tokens of them; None without a summary."""
        return 100 * self.summary_held / self.summary_tokens if self.summary_tokens else None

    @property
    def said_per_100(self) -> float | None:
        """The same of what summarizers wrote, without the records."""
        return 100 * self.summary_said / self.summary_said_tokens if self.summary_said_tokens else None

    @property
    def adjusted_units(self) -> float:
        """Cost with that of fetching the facts that were out of sight, in base tokens."""
        return self.units + self.fetch_units

    @property
    def adjusted_money(self) -> float:
        """The same in dollars."""
        return self.money + self.fetch_money

    def dump(self) -> dict[str, Any]:
        """Return the stable JSON shape: the sums, and the shares and means derived from them."""
        shares = ("write_share", "mean_visible", "mean_visible_at_end", "hidden_need_share")
        derived = (*shares, "adjusted_units", "adjusted_money")
        return {**self.model_dump(mode="json"), **{name: round(getattr(self, name), 6) for name in derived}}


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


class RunResult(Frozen):
    """One conversation of a recording under one policy.

    Attributes:
        file: the file of the recording.
        conversation: its id; a file may contain several.
        subagent: whether it is a subagent's.
        policy: the policy's name.
        policy_hash: the policy's hash.
        max_tokens: the limit.
        fixed: tokens of system prompt and tools, as sent.
        measured_fixed: the same as measured; more than ``fixed`` if that would not leave room in the limit.
        unrecorded: tokens of history that the file does not hold (`timeline.lab.unrecorded`).
        ratio: the provider's tokens for one of ours.
        lifetime: how the provider keeps the messages, as recorded or asked for: ``5m``, ``1h``, or another time of its
            rule; ``automatic`` for one that finds prefixes by itself; ``none`` for one without a cache.
        totals: the sums.
        rows: one for each recorded model call.
    """

    file: str
    conversation: str
    subagent: bool = False
    policy: str
    policy_hash: str
    max_tokens: int
    fixed: int
    measured_fixed: int
    unrecorded: int = 0
    ratio: float
    lifetime: str = ""
    totals: Totals
    rows: tuple[ReplayedCallRow, ...] = ()

    def dump(self, *, calls: bool = False) -> dict[str, Any]:
        """Return the stable JSON shape: its own fields and those of its totals, and with ``calls`` its rows."""
        head = self.model_dump(mode="json", exclude={"totals", "rows"})
        rows = {"rows": [row.model_dump(mode="json") for row in self.rows]} if calls else {}
        return {**head, **self.totals.dump(), **rows}


def totals_of(rows: Sequence[ReplayedCallRow], *, priced: bool, seconds: float) -> Totals:
    """Sum the calls of one run."""
    sent = [row for row in rows if not row.refused]
    lost: Counter[str] = Counter()
    for row in sent:
        if row.cause is not None:
            lost[row.cause] += row.lost
    return Totals(
        runs=1,
        calls=len(rows),
        refused=_sorted(Counter(row.refused for row in rows if row.refused)),
        units=sum(row.units + row.summary_units for row in rows),
        money=sum(row.money + row.summary_money for row in rows),
        summary_units=sum(row.summary_units for row in rows),
        summary_money=sum(row.summary_money for row in rows),
        read=sum(row.read for row in sent),
        written=sum(row.written for row in sent),
        written_long=sum(row.written_long for row in sent),
        uncached=sum(row.uncached for row in sent),
        collapses=_sorted(Counter(str(row.cause) for row in sent if row.collapsed)),
        lost=_sorted(lost),
        compactions=sum(row.compactions for row in rows),
        splits=sum(row.splits for row in rows),
        hides=sum(row.hidden for row in rows),
        visible=sum(row.visible for row in sent),
        visible_at_end=sent[-1].visible if sent else 0,
        largest=max((row.tokens for row in sent), default=0),
        needs=sum(row.needs for row in sent),
        hidden_needs=sum(row.hidden_needs for row in sent),
        over_limit=sum(row.over_limit for row in sent),
        orphans=sum(row.orphans for row in sent),
        **{name: sum(getattr(row, name) for row in rows) for name in _OF_FACTS},
        facts_by=_by_class(row.facts_by for row in rows),
        priced=priced,
        seconds=seconds,
    )


_OF_FACTS: Final = tuple(name for name in FactCounts.model_fields if name != "facts_by")


def _by_class(counts: Iterable[dict[str, tuple[int, int, int]]]) -> dict[str, tuple[int, int, int]]:
    """Sum the facts of several calls or runs by class."""
    sums: dict[str, tuple[int, int, int]] = {}
    for one in counts:
        for name, (needed, seen, reachable) in one.items():
            before = sums.get(name, (0, 0, 0))
            sums[name] = (before[0] + needed, before[1] + seen, before[2] + reachable)
    return dict(sorted(sums.items()))


_BY_NAME: Final = ("refused", "collapses", "lost")


def together(runs: Iterable[Totals]) -> Totals:
    """Sum several runs."""
    all_runs = list(runs)
    sums: dict[str, Any] = {}
    for name in Totals.model_fields:
        values = [getattr(run, name) for run in all_runs]
        if name in _BY_NAME:
            counted: Counter[str] = Counter()
            for value in values:
                counted.update(value)
            sums[name] = _sorted(counted)
        elif name == "facts_by":
            sums[name] = _by_class(values)
        elif name == "largest":
            sums[name] = max(values, default=0)
        else:
            sums[name] = all(values) if name == "priced" else sum(values)
    return Totals(**sums)


def _sorted(counted: Counter[str]) -> dict[str, int]:
    return dict(sorted(counted.items()))
