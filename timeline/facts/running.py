"""A record of facts that continues the one before: a compaction merges what it newly covers, not all of history.

`timeline.facts.record.record_of` is the definition: it gives the same record for the same facts in the order of the
log. Here facts may come in any order, each with its place in the log, and the merged entries are kept ranked.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from timeline.facts.record import BY_USE, MANNERS, MOST_ENTRIES, NAMES, WORK, is_listed, is_meant
from timeline.queries import FACT_KINDS, FactEntry, FactRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from timeline.facts.model import Fact, FactKind

Place: TypeAlias = tuple[int, int]
"""The place of a fact in the log: the version that made it known, and its number among the facts of that version."""


class PlacedFact(NamedTuple):
    """A fact with its place in the log."""

    place: Place
    fact: Fact


class _Merged:
    """The facts of one kind, subject and outcome so far. Its figures do not depend on the order of the facts."""

    __slots__ = ("at_first", "first", "meant", "newest", "times", "versions")

    def __init__(self, placed: PlacedFact) -> None:
        fact = placed.fact
        self.times, self.first, self.newest = 1, fact.version, placed
        self.meant = self.at_first = int(is_meant(fact))
        self.versions = [fact.version] if fact.kind == "request" else []

    def add(self, placed: PlacedFact) -> None:
        """Take one more fact."""
        fact = placed.fact
        self.times += 1
        self.newest = max(self.newest, placed, key=_recency)
        meant = int(is_meant(fact))
        self.meant += meant
        if fact.version < self.first:
            self.first, self.at_first = fact.version, meant
        elif fact.version == self.first:
            self.at_first += meant
        if self.versions:
            insort(self.versions, fact.version)

    @property
    def last(self) -> int:
        """Version of the newest fact."""
        return self.newest.fact.version

    @property
    def repeats(self) -> int:
        """How many calls and prompts name the subject again, behind the block that named it first."""
        return self.meant - self.at_first

    def entry(self) -> FactEntry:
        """Return the entry."""
        kind, subject, path, last, at, tool, status, failed, detail = self.newest.fact
        of_request = tuple(self.versions)
        return FactEntry(
            *(kind, subject, failed, self.times, self.first, last, path, at, tool, status, detail),
            repeats=self.repeats,
            versions=of_request,
        )


def _recency(placed: PlacedFact) -> tuple[int, Place]:
    return (placed.fact.version, placed.place)


_Key: TypeAlias = "tuple[Any, ...]"
"""The sort key of an entry in a ranking; its last part finds the entry again."""


def _remove(keys: list[_Key], key: _Key) -> None:
    del keys[bisect_left(keys, key)]


def _newest(merged: _Merged) -> _Key:
    return (-merged.last, merged.newest.fact.subject)


def _failed(merged: _Merged) -> _Key:
    fact = merged.newest.fact
    return (-merged.last, fact.subject, FACT_KINDS.index(fact.kind), fact.kind)


def _most_used(merged: _Merged) -> _Key:
    return (-merged.times, -merged.last, merged.newest.fact.subject)


def _most_repeated(merged: _Merged) -> _Key:
    return (-merged.repeats, -merged.last, merged.newest.fact.subject)


def _by_manner(merged: _Merged) -> _Key:
    fact = merged.newest.fact
    return (MANNERS.get(fact.detail, len(MANNERS)), -merged.last, fact.subject)


_Ranking: TypeAlias = "Callable[[_Merged], _Key]"
_PLAIN: Final[tuple[_Ranking, ...]] = (_newest,)
_RANKINGS: Final[Mapping[FactKind, tuple[_Ranking, ...]]] = {
    "request": (_by_manner,),
    **dict.fromkeys(NAMES, (_most_repeated,)),
    **dict.fromkeys(BY_USE, (_newest, _most_used)),
}
"""The rankings of a kind's entries; two rankings alternate. Any other kind is ranked by last use."""


class RunningRecord:
    """The record of facts that are merged one by one."""

    def __init__(self) -> None:
        self._known: dict[tuple[FactKind, str, bool], _Merged] = {}
        self._done: dict[FactKind, tuple[list[_Key], ...]] = {}
        self._open: list[_Key] = []
        self._errors: list[_Key] = []
        self._unlisted: list[_Key] = []
        self._workers: Counter[str] = Counter()

    def __len__(self) -> int:
        """Return how many entries there are, those that the record leaves out included."""
        return len(self._known)

    def take(self, placed: PlacedFact) -> None:
        """Merge one more fact, wherever it comes in the log."""
        fact = placed.fact
        key = (fact.kind, fact.subject, fact.failed)
        before = self._known.get(key)
        self._rank(fact.kind, fact.subject, _remove)
        if before is None:
            self._known[key] = _Merged(placed)
        else:
            before.add(placed)
        self._rank(fact.kind, fact.subject, insort)

    def _rank(self, kind: FactKind, subject: str, change: Callable[[list[_Key], _Key], None]) -> None:
        """Take all entries of a subject out of the rankings, or put them in.

        They go together, since one entry may change another: a file that could not be read is no open failure once it
        was written.
        """
        if (done := self._known.get((kind, subject, False))) is not None:
            listed = is_listed(done.newest.fact)
            rankings = _RANKINGS.get(kind, _PLAIN)
            ranks = self._done.setdefault(kind, tuple([] for _ in rankings)) if listed else (self._unlisted,)
            for ranked, ranking in zip(ranks, rankings, strict=True):
                change(ranked, ranking(done))
        for failed in self._failures(kind, subject):
            if failed.newest.fact.kind == "error":
                change(self._errors, _failed(failed))
            elif not self._is_closed(failed):
                change(self._open, _failed(failed))
        own = self._known.get((kind, subject, True))
        if own is not None and kind in WORK:
            self._workers[own.newest.fact.tool] += 1 if change is insort else -1

    def _failures(self, kind: FactKind, subject: str) -> Iterator[_Merged]:
        """Yield the failures that the entries of a subject open or close."""
        kinds: tuple[FactKind, ...] = (kind, "file_read") if kind == "file_written" else (kind,)
        for each in kinds:
            failed = self._known.get((each, subject, True))
            if failed is not None and (each in WORK or each == "error"):
                yield failed

    def _is_closed(self, failed: _Merged) -> bool:
        fact = failed.newest.fact
        kinds: tuple[FactKind, ...] = (fact.kind, "file_written") if fact.kind == "file_read" else (fact.kind,)
        done = (self._known.get((kind, fact.subject, False)) for kind in kinds)
        return any(each is not None and each.last > failed.last for each in done)

    def record(self, most: int = MOST_ENTRIES) -> FactRecord:
        """Return the record of all that was taken, with at most ``most`` entries a kind."""
        kinds = sorted(kind for kind, ranks in self._done.items() if ranks[0])
        requests = [*(self._done["request"][0] if "request" in self._done else ()), *self._unlisted]
        errors = [key for key in self._errors if not self._workers[key[1]]]
        asked = [v for key in requests for v in self._known["request", key[-1], False].versions]
        return FactRecord(
            open_failures=tuple(self._failure(key) for key in self._open[:most]),
            done={kind: self._best(kind, most) for kind in kinds},
            errors=tuple(self._failure(key) for key in errors[:most]),
            counts={kind: len(self._done[kind][0]) for kind in kinds},
            open_count=len(self._open),
            error_count=len(errors),
            asked=Counter(sorted(asked)),
        )

    def _failure(self, key: _Key) -> FactEntry:
        _, subject, _, kind = key
        return self._known[kind, subject, True].entry()

    def _best(self, kind: FactKind, most: int) -> tuple[FactEntry, ...]:
        """Return the first entries of a kind; those of two rankings alternate."""
        first = [ranks[:most] for ranks in self._done[kind]]
        subjects = dict.fromkeys(key[-1] for keys in zip(*first, strict=True) for key in keys)
        return tuple(self._known[kind, subject, False].entry() for subject in [*subjects][:most])
