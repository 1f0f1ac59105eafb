"""Write a merged record of facts out in full: a line for each entry, by kind, with the address to read.

What a summary shows of it is a choice within a cap; this is what the line "Full record" of a summary leads to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from timeline.facts.model import FactKind
    from timeline.queries import FactEntry, FactRecord

MOST: Final = 100_000
"""Entries of a kind that a full record has at the most."""
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
"""Kinds whose ``detail`` is how they were said, not what they said."""


def full_record(record: FactRecord) -> str:
    """Return the lines of a record, what failed and was not done since first; empty for a record without entries."""
    return "\n".join(_lines(record))


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
    """Return an entry on one line: what it is about, how often, how it ended, what it said, and the newest address."""
    subject = " ".join(entry.subject.split())
    if entry.failed and entry.kind not in {"command", "error"}:
        subject = f"{entry.tool} {subject}"
    times = f" x{entry.times}" if entry.times > 1 else ""
    ended = f" (exit {entry.exit_status})" if entry.exit_status is not None else ""
    detail = f": {entry.detail}" if entry.detail and entry.kind not in _NAMED else ""
    return f"{subject}{times}{ended}{detail} (@{entry.last})"
