"""What a replay comes to: the lab's result model. All of it is frozen, and reads back from its own JSON.

`RunResult` is one recording under one policy: the sums, and a `CallRow` for each recorded model call. Sums over several
runs are `together`'s. Tokens are the provider's; costs are in base tokens (``units``) and US dollars (``money``).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from pydantic import AwareDatetime

from timeline.frozen import Frozen
from timeline.lab.cache import BreakCause

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FORMAT: Final = 2
"""Number of the result's format and of what the figures mean: results that were kept under another one are not used."""


class CallRow(Frozen):
    """One recorded model call under the policy.

    Attributes:
        number: of the call, counted from 1.
        at: when it was sent.
        idle: seconds since the answer before it was complete; 0 for the first.
        model: that was called.
        tokens: of the whole input that the policy sends; 0 where it refused.
        recorded: of the whole input that the recorded client sent; 0 where the recording does not say.
        read, written, uncached: of those ``tokens``, what the cache answered, took in, and neither.
        written_long: of those ``written``, what it is to keep for its long time.
        units, money: cost of the input.
        lost: tokens that were in the cache and were not read, and
        cause: why.
        collapsed: more than half of what was in the cache was lost.
        shown: tokens of the messages, as the account has them.
        visible: of these, tokens of blocks that are sent in full, summaries left out (`timeline.lab.visibility`).
        hidden: blocks that were hidden, or spilled to a preview, right before this call.
        compactions: that were made right before it, and
        splits: how many of them cut inside a turn.
        folded: tokens that they covered.
        summary_read, summary_written: tokens that their summarizer was given, and wrote.
        summary_units, summary_money: what that costs.
        needs, hidden_needs: files that the answer's calls name and that were seen before, and how many of them were not
            in sight (`timeline.lab.visibility`).
        refused: the type of the error where the policy had no context to send; empty otherwise.
        over_limit: the input is above the limit, and was sent all the same.
        orphans: results without their call, or calls without a result, in what is sent.
    """

    number: int
    at: AwareDatetime
    idle: float = 0.0
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
    folded: int = 0
    summary_read: int = 0
    summary_written: int = 0
    summary_units: float = 0.0
    summary_money: float = 0.0
    needs: int = 0
    hidden_needs: int = 0
    refused: str = ""
    over_limit: bool = False
    orphans: int = 0


class Totals(Frozen):
    """The sums of one or several runs; shares and means are told from them.

    Attributes:
        calls: recorded model calls; ``refused`` ones among them, by type of error.
        units, money: cost of all input and of the summaries.
        summary_units, summary_money: of that, the summaries.
        read, written, written_long, uncached: tokens of all input, as in `CallRow`.
        collapses: calls at which more than half of the cached prefix was lost, by cause.
        lost: tokens that were lost, by cause, at any call.
        compactions, splits: summaries that were written, and how many of them cut inside a turn.
        hides: blocks that were hidden.
        visible: sum over the calls of what was shown in full; `mean_visible` is the mean.
        visible_at_end: sum over the runs of what their last call showed in full.
        needs, hidden_needs: see `CallRow`.
        over_limit, orphans: both 0 in a sound run; a policy that never compacts has its calls above the limit here.
        priced: False where a model is in no table of prices: then ``money`` says nothing.
        seconds: that the replay took; no part of what it found.
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
    needs: int = 0
    hidden_needs: int = 0
    over_limit: int = 0
    orphans: int = 0
    priced: bool = True
    seconds: float = 0.0

    @property
    def refusals(self) -> int:
        """Calls that the policy had no context for: they cost nothing here, so that the costs are not comparable."""
        return sum(self.refused.values())

    @property
    def write_share(self) -> float:
        """Share of the input that the cache took in."""
        return _share(self.written, self.read + self.written + self.uncached)

    @property
    def mean_visible(self) -> float:
        """Tokens shown in full, in the mean over the calls that were sent."""
        return _share(self.visible, self.calls - self.refusals)

    @property
    def mean_visible_at_end(self) -> float:
        """Tokens that the last call showed in full, in the mean over the runs."""
        return _share(self.visible_at_end, self.runs)

    @property
    def hidden_need_share(self) -> float:
        """Share of the files that were needed again which were not in sight."""
        return _share(self.hidden_needs, self.needs)

    def dump(self) -> dict[str, Any]:
        """Return the stable JSON shape: the sums, and what is told from them."""
        told = ("write_share", "mean_visible", "mean_visible_at_end", "hidden_need_share")
        return {**self.model_dump(mode="json"), **{name: round(getattr(self, name), 6) for name in told}}


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


class RunResult(Frozen):
    """One conversation of a recording under one policy.

    Attributes:
        file: where it was recorded.
        conversation: its id; a file may hold several.
        subagent: whether it is a subagent's.
        policy: what the policy was called by.
        digest: hash of the policy.
        max_tokens: the limit.
        fixed: tokens of system prompt and tools, as sent.
        measured_fixed: the same as measured: more than ``fixed`` where that would not leave room in the limit.
        ratio: the provider's tokens for one of ours.
        totals: the sums.
        rows: one for each recorded model call.
    """

    file: str
    conversation: str
    subagent: bool = False
    policy: str
    digest: str
    max_tokens: int
    fixed: int
    measured_fixed: int
    ratio: float
    totals: Totals
    rows: tuple[CallRow, ...] = ()

    def dump(self, *, calls: bool = False) -> dict[str, Any]:
        """Return the stable JSON shape: its own fields and those of its totals, with the rows where asked for."""
        head = self.model_dump(mode="json", exclude={"totals", "rows"})
        rows = {"rows": [row.model_dump(mode="json") for row in self.rows]} if calls else {}
        return {**head, **self.totals.dump(), **rows}


def totals_of(rows: Sequence[CallRow], *, priced: bool, seconds: float) -> Totals:
    """Sum the calls of one run up."""
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
        needs=sum(row.needs for row in sent),
        hidden_needs=sum(row.hidden_needs for row in sent),
        over_limit=sum(row.over_limit for row in sent),
        orphans=sum(row.orphans for row in sent),
        priced=priced,
        seconds=seconds,
    )


_BY_NAME: Final = ("refused", "collapses", "lost")


def together(runs: Iterable[Totals]) -> Totals:
    """Sum several runs up."""
    all_runs = list(runs)
    sums: dict[str, Any] = {}
    for name in Totals.model_fields:
        values = [getattr(run, name) for run in all_runs]
        if name in _BY_NAME:
            counted: Counter[str] = Counter()
            for value in values:
                counted.update(value)
            sums[name] = _sorted(counted)
        else:
            sums[name] = all(values) if name == "priced" else sum(values)
    return Totals(**sums)


def _sorted(counted: Counter[str]) -> dict[str, int]:
    return dict(sorted(counted.items()))
