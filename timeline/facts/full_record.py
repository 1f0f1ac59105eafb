"""Write a merged record of facts out in full: a line for each entry, by kind, with the address to read.

A summary shows only a part of the record, within a cap. Its line "Full record" leads to the text that is made here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from timeline.blocks import RangeSummary
    from timeline.digest import Digest
    from timeline.facts.model import FactKind
    from timeline.queries import FactEntry, FactRecord

MOST: Final = 100_000
"""Most entries of a kind in a full record."""
RECORD_KEY: Final = "full_record"
"""Key of these lines in the ``meta`` of a summary that is read back."""
_TITLES: Final[dict[FactKind, str]] = {
    "request": "Asked by the user, constraints first",
    "file_written": "Files written",
    "file_deleted": "Files deleted",
    "command": "Commands that worked",
    "file_read": "Files read",
    "search": "Searches",
    "identifier": "Identifiers",
    "url": "URLs",
    "error": "Errors",
}


_NAMED: Final[frozenset[FactKind]] = frozenset({"identifier", "url", "request"})
"""Kinds whose ``detail`` is how something was said, and not what."""


def full_record(record: FactRecord) -> str:
    """Return the lines of a record, open failures first; empty for a record without entries."""
    return "\n".join(_lines(record))


def read_back(summary: RangeSummary, digest: Digest, record: FactRecord) -> RangeSummary:
    """Return a summary as it is read back: with the digest and the full record of what it covers in its ``meta``."""
    origins = {"compaction_digest": digest.dump(), RECORD_KEY: full_record(record)}
    return summary.model_copy(update={"meta": {**summary.meta, **origins}})


def _lines(record: FactRecord) -> Iterator[str]:
    yield from _section("Failed, and not done since", record.open_failures, record.open_count)
    yield from _section("Failed calls of other tools", record.errors, record.error_count)
    for kind, title in _TITLES.items():
        yield from _section(title, record.done.get(kind, ()), record.counts.get(kind, 0))


def _section(title: str, entries: Sequence[FactEntry], count: int) -> Iterator[str]:
    if not entries:
        return
    yield f"{title} ({count:,}):"
    for entry in entries:
        yield f"- {entry_line(entry)}"
    if count > len(entries):
        yield f"- and {count - len(entries):,} more: narrow the question"


def entry_line(entry: FactEntry) -> str:
    """Return an entry as one line: its subject, how often, how it ended, what it said, and the newest address."""
    subject = " ".join(entry.subject.split())
    if entry.failed and entry.kind not in {"command", "error"}:
        subject = f"{entry.tool} {subject}"
    times = f" x{entry.times}" if entry.times > 1 else ""
    ended = f" (exit {entry.exit_status})" if entry.exit_status is not None else ""
    detail = f": {entry.detail}" if entry.detail and entry.kind not in _NAMED else ""
    return f"{subject}{times}{ended}{detail} (@{entry.last})"
