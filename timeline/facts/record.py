"""Merge facts into one record; `timeline.facts.record_lines` chooses the lines of it that the model is shown.

A record has one entry for each subject and outcome. Successes and failures are never counted together, so that a failed
write does not count as a written file. Entries are ranked and capped by kind; the counts include those above the cap.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final, get_args

from timeline.facts.extracting import BY_USER
from timeline.facts.requests import Manner
from timeline.queries import FACT_KINDS, FactEntry, FactRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from timeline.facts.model import Fact, FactKind

MOST_ENTRIES: Final = 200
"""The most entries of each kind in the record that a summary is written from."""
WORK: Final[frozenset[FactKind]] = frozenset({"file_read", "file_written", "file_deleted", "command", "search"})
BY_USE: Final[frozenset[FactKind]] = frozenset({"file_read", "file_written", "file_deleted"})
NAMES: Final[frozenset[FactKind]] = frozenset({"url", "identifier"})
MANNERS: Final[Mapping[str, int]] = {manner: place for place, manner in enumerate(get_args(Manner))}
"""Ranks requests by how they ask: what holds for all that comes is shown first."""
MORE: Final[Manner] = "more"
"""The manner of a prompt's words that are no request: the prompt says more than a record has."""


def record_of(facts: Iterable[Fact], most: int = MOST_ENTRIES) -> FactRecord:
    """Merge facts, in the order of the log, into a record with at most ``most`` entries a kind."""
    return record_from(merged(facts), most)


class _Sum:
    """What is known so far of the facts of one entry."""

    __slots__ = ("first", "newest", "repeats", "times", "versions")

    def __init__(self, fact: Fact) -> None:
        self.times, self.repeats, self.first, self.newest = 1, 0, fact.version, fact
        self.versions = [fact.version] if fact.kind == "request" else []

    def add(self, fact: Fact) -> None:
        """Take one more fact. For a name, later calls and prompts that name it count as its repeats."""
        self.times += 1
        self.repeats += is_meant(fact) and fact.version > self.first
        self.first = min(self.first, fact.version)
        self.newest = fact if fact.version >= self.newest.version else self.newest
        if self.versions:
            self.versions.append(fact.version)

    def entry(self) -> FactEntry:
        """Return the entry."""
        kind, subject, path, last, at, tool, status, failed, detail = self.newest
        return FactEntry(
            kind,
            subject,
            failed,
            self.times,
            self.first,
            last,
            path,
            at,
            tool,
            status,
            detail,
            self.repeats,
            tuple(sorted(self.versions)),
        )


def is_meant(fact: Fact) -> bool:
    """Return whether a call or a prompt names the subject: after the first time, that counts as a repeat."""
    return fact.kind in NAMES and (bool(fact.tool) or fact.detail == BY_USER)


def merged(facts: Iterable[Fact]) -> list[FactEntry]:
    """Merge facts, in the order of the log, by kind, subject and outcome."""
    sums: dict[tuple[FactKind, str, bool], _Sum] = {}
    for fact in facts:
        known = sums.get(key := (fact.kind, fact.subject, fact.failed))
        if known is None:
            sums[key] = _Sum(fact)
        else:
            known.add(fact)
    return [each.entry() for each in sums.values()]


def record_from(entries: Iterable[FactEntry], most: int = MOST_ENTRIES) -> FactRecord:
    """Rank entries that were merged already, one for each kind, subject and outcome, into a record."""
    by_kind: dict[FactKind, list[FactEntry]] = {}
    failed: list[FactEntry] = []
    succeeded: dict[tuple[FactKind, str], int] = {}
    unlisted: list[FactEntry] = []
    for entry in entries:
        if entry.failed:
            failed.append(entry)
        elif not is_listed(entry):
            unlisted.append(entry)
        else:
            by_kind.setdefault(entry.kind, []).append(entry)
            succeeded[entry.kind, entry.subject] = entry.last
    failed.sort(key=lambda entry: (*_newest(entry), FACT_KINDS.index(entry.kind)))
    still_open = [entry for entry in failed if entry.kind in WORK and not _is_closed(entry, succeeded)]
    workers = {entry.tool for entry in failed if entry.kind in WORK}
    errors = [entry for entry in failed if entry.kind == "error" and entry.subject not in workers]
    return FactRecord(
        open_failures=tuple(still_open[:most]),
        done={kind: _ranked(kind, of_kind)[:most] for kind, of_kind in sorted(by_kind.items())},
        errors=tuple(errors[:most]),
        counts={kind: len(of_kind) for kind, of_kind in sorted(by_kind.items())},
        open_count=len(still_open),
        error_count=len(errors),
        asked=Counter(sorted(v for entry in (*by_kind.get("request", ()), *unlisted) for v in entry.versions)),
    )


def is_listed(entry: Fact | FactEntry) -> bool:
    """Return whether a record has this entry: it has none for what a prompt says besides its requests."""
    return entry.kind != "request" or entry.detail != MORE


def _is_closed(failure: FactEntry, succeeded: Mapping[tuple[FactKind, str], int]) -> bool:
    kinds: tuple[FactKind, ...] = (failure.kind, "file_written") if failure.kind == "file_read" else (failure.kind,)
    return any(succeeded.get((kind, failure.subject), 0) > failure.last for kind in kinds)


def settled(record: FactRecord, later: Iterable[Fact]) -> FactRecord:
    """Return a record without what later facts overtook: failures that are no longer open, commands that ran again.

    A record covers what lies before the window, and a failure may have been mended in the window.

    Args:
        record: the record.
        later: the facts behind it, in the order of the log.
    """
    last_failed = {(fact.kind, fact.subject): fact.failed for fact in later}
    succeeded = {key: sys.maxsize for key, failed in last_failed.items() if not failed}
    still_open = tuple(entry for entry in record.open_failures if not _is_closed(entry, succeeded))
    ran = tuple(e for e in record.done.get("command", ()) if (e.kind, e.subject) not in last_failed)
    return replace(
        record,
        open_failures=still_open,
        open_count=record.open_count - len(record.open_failures) + len(still_open),
        done={**record.done, "command": ran} if ran else {k: v for k, v in record.done.items() if k != "command"},
    )


def _newest(entry: FactEntry) -> tuple[int, str]:
    return (-entry.last, entry.subject)


def _ranked(kind: FactKind, entries: Sequence[FactEntry]) -> tuple[FactEntry, ...]:
    """Rank entries of one kind. Files alternate between the one used last and the one used most."""
    newest = sorted(entries, key=_newest)
    if kind == "request":
        return tuple(sorted(newest, key=lambda entry: MANNERS.get(entry.detail, len(MANNERS))))
    if kind in NAMES:
        return tuple(sorted(newest, key=lambda entry: -entry.repeats))
    if kind not in BY_USE:
        return tuple(newest)
    most_used = sorted(newest, key=lambda entry: -entry.times)
    both = chain.from_iterable(zip(newest, most_used, strict=True))
    return tuple({entry.subject: entry for entry in both}.values())


def with_asked(record: FactRecord, facts: Iterable[Fact]) -> FactRecord:
    """Return a record with what further prompts ask for, of which the model is shown only the beginning.

    Args:
        record: the record.
        facts: requests of prompts that it does not cover.
    """
    every = merged(fact for fact in facts if fact.kind == "request")
    if not every:
        return record
    further = [entry for entry in every if is_listed(entry)]
    known = {entry.subject: entry for entry in record.done.get("request", ())}
    new = sum(entry.subject not in known for entry in further)
    for entry in further:
        before = known.get(entry.subject, entry)
        versions = tuple(sorted({*before.versions, *entry.versions}))
        newest = max(before, entry, key=lambda each: each.last)
        known[entry.subject] = replace(newest, times=len(versions), first=versions[0], versions=versions)
    return replace(
        record,
        done={**record.done, "request": _ranked("request", list(known.values()))[:MOST_ENTRIES]},
        counts={**record.counts, "request": record.counts.get("request", 0) + new},
        asked={**record.asked, **Counter(version for entry in every for version in entry.versions)},
    )
