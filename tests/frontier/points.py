"""Policies at limits over some recordings: what they cost, what they show, and what the model can still know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.lab.results import DISTANCES, together
from timeline.lab.runner import plan, run
from timeline.lab.work import Options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from timeline.lab.cache_files import OutcomeFolder
    from timeline.lab.work import Outcome, Work
    from timeline.policy.model import Policy


class Known(NamedTuple):
    """Shares of the needed facts: all of them, and by the calls since their last mention. 1.0 where there is none."""

    whole: float
    near: float
    middle: float
    far: float


class Point(NamedTuple):
    """A policy at a limit over a set of recordings.

    Attributes:
        units: cost of all input and summaries, in base tokens.
        cost: the same as a share of what the first policy costs there.
        adjusted: the share with what it takes to get at the facts that are out of sight.
        visible: tokens that are shown in full, mean over the calls.
        seen: facts that are in sight.
        one_read: facts that are in sight or one read away.
        found: these, and those that a search of the log finds.
        summaries: of the facts that calls behind a summary used, the share that it holds with its record; the facts for
            each 100 tokens of it, and of what the summarizer wrote alone.
        names: identifiers that answers used and that were out of sight.
        need: share of the files that a call names again which are out of sight.
        sound: nothing was refused, over the limit or orphaned; what is not sound compares with nothing.
    """

    policy: str
    limit: int
    units: float
    cost: float
    adjusted: float
    visible: float
    seen: Known
    one_read: Known
    found: Known
    summaries: tuple[float, float, float]
    names: int
    need: float
    sound: bool

    def betters(self, other: Point, *, slack: float = 0.0) -> bool:
        """Return whether this one is sound, with no less in sight and no fewer facts one read away than another.

        Args:
            other: the point to hold it against.
            slack: share by which more tokens have to be in sight, and fewer facts out of sight, than it takes.
        """
        shown = self.visible >= (1 + slack) * other.visible
        missed = ((1 - ours.whole, 1 - theirs.whole) for ours, theirs in _pairs(self, other))
        return self.sound and shown and all(ours <= (1 - slack) * theirs for ours, theirs in missed)


def _pairs(one: Point, other: Point) -> tuple[tuple[Known, Known], ...]:
    return (one.seen, other.seen), (one.one_read, other.one_read)


class _Sums(NamedTuple):
    """A policy on one recording: what points are made from, so that any set of recordings is a sum."""

    units: float
    fetched: float
    visible: int
    sent: int
    hidden: int
    needs: int
    names: int
    faults: int
    rewrites: int
    facts: tuple[int, ...]
    seen: tuple[int, ...]
    one_read: tuple[int, ...]
    found: tuple[int, ...]
    summaries: tuple[int, ...]


class Replays:
    """All policies at all limits on all recordings, to be summed up over any of the recordings.

    Args:
        works: the units that were planned; costs are shares of what the first policy costs.
        outcomes: of each.

    Attributes:
        files: the recordings.

    Raises:
        ValueError: a recording could not be replayed.
    """

    def __init__(self, works: Sequence[Work], outcomes: Sequence[Outcome]) -> None:
        self.files = [*dict.fromkeys(work.file for work in works)]
        self._lifetimes: dict[str, str] = {}
        self._sums: dict[int, dict[str, dict[str, _Sums]]] = {}
        for work, outcome in zip(works, outcomes, strict=True):
            if outcome.failure is not None:
                raise ValueError(f"{work.file}, {work.name}: {outcome.failure.message}")
            self._lifetimes[work.file] = outcome.runs[0].lifetime
            at_limit = self._sums.setdefault(work.policy.max_tokens, {})
            at_limit.setdefault(work.name, {})[work.file] = _sums(outcome)

    @property
    def limits(self) -> list[int]:
        """The limits of the policies, in tokens, in the order in which they were planned."""
        return [*self._sums]

    def lifetime(self, file: str) -> str:
        """Return how the provider kept what a recording sent: see `RunResult.lifetime`."""
        return self._lifetimes[file]

    def names(self, limit: int) -> list[str]:
        """Return the names of the policies at a limit, in the order in which they were planned."""
        return [*self._sums[limit]]

    def point(self, limit: int, policy: str, files: Sequence[str]) -> Point:
        """Return a policy's point over some of the recordings; a recording that is given twice counts twice."""
        first = next(iter(self._sums[limit]))
        return _point(policy, limit, self._whole(limit, policy, files), self._whole(limit, first, files).units)

    def rewritten(self, limit: int, policy: str, files: Sequence[str]) -> list[str]:
        """Return the recordings of which a policy hides or compacts something: elsewhere all policies are one."""
        return [file for file in files if self._sums[limit][policy][file].rewrites]

    def _whole(self, limit: int, policy: str, files: Sequence[str]) -> _Sums:
        sums = [self._sums[limit][policy][file] for file in files]
        return _Sums(*(_added(column) for column in zip(*sums, strict=True)))


def _point(policy: str, limit: int, sums: _Sums, whole: float) -> Point:
    return Point(
        policy=policy,
        limit=limit,
        units=sums.units,
        cost=sums.units / whole,
        adjusted=(sums.units + sums.fetched) / whole,
        visible=sums.visible / max(1, sums.sent),
        seen=_known(sums.seen, sums.facts),
        one_read=_known(sums.one_read, sums.facts),
        found=_known(sums.found, sums.facts),
        summaries=_judged(*sums.summaries),
        names=sums.names,
        need=sums.hidden / max(1, sums.needs),
        sound=not sums.faults,
    )


def _added(column: Sequence[Any]) -> Any:
    """Add figures, and tuples of figures place by place."""
    return tuple(map(sum, zip(*column, strict=True))) if isinstance(column[0], tuple) else sum(column)


def _known(found: Sequence[int], facts: Sequence[int]) -> Known:
    near, middle, far = (have / of if of else 1.0 for have, of in zip(found, facts, strict=True))
    return Known(sum(found) / sum(facts) if sum(facts) else 1.0, near, middle, far)


def _judged(facts: int, held: int, said: int, tokens: int, said_tokens: int) -> tuple[float, float, float]:
    return held / max(1, facts), 100 * held / max(1, tokens), 100 * said / max(1, said_tokens)


def _sums(outcome: Outcome) -> _Sums:
    totals = together(run.totals for run in outcome.runs)
    facts, seen, one_read, found = (
        tuple(getattr(totals, f"{state}_{distance}") for distance in DISTANCES)
        for state in ("facts", "seen", "reachable", "found")
    )
    judged = ("facts", "held", "said", "tokens", "said_tokens")
    of_names = (counts for key, counts in totals.facts_by.items() if key.split("/")[1] == "name")
    return _Sums(
        units=totals.units,
        fetched=totals.fetch_units,
        visible=totals.visible,
        sent=totals.calls - totals.refusals,
        hidden=totals.hidden_needs,
        needs=totals.needs,
        names=sum(needed - in_sight for needed, in_sight, _ in of_names),
        faults=totals.refusals + totals.over_limit + totals.orphans,
        rewrites=totals.hides + totals.compactions,
        facts=facts,
        seen=seen,
        one_read=one_read,
        found=found,
        summaries=tuple(getattr(totals, f"summary_{name}") for name in judged),
    )


WITH_FACTS: Final = Options(facts=True)


def replays(
    files: Sequence[str],
    tried: Sequence[tuple[str, Policy]],
    *,
    kept: OutcomeFolder,
    options: Options = WITH_FACTS,
    jobs: int | None = None,
    on_done: Callable[[int], None] = lambda _: None,
) -> Replays:
    """Replay recordings under policies. Costs are shares of what the first policy at the same limit costs.

    Args:
        files: recordings.
        tried: policies by name, each at its limit.
        kept: outcomes of earlier runs, which are not carried out again.
        options: of all replays; as recorded, with the facts, unless given.
        jobs: processes at a time; one a core unless given.
        on_done: called with the number of replays that are done.
    """
    works = plan(files, tried, options)
    return Replays(works, run(works, jobs=jobs, kept=kept, on_done=on_done))
