"""What every importer yields: recordings, made of the log's own payloads, and a report of what was met on the way."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from datetime import datetime

    from timeline.events import ParentLink, Payload

FindingKind: TypeAlias = Literal[
    "glued",  # two records on one line, both read
    "torn",  # the last line ends in mid-record
    "quarantined",  # a line that holds no record that can be read; kept aside in the report
    "encoding",  # bytes that are no UTF-8, read with replacement characters
    "unknown_record",  # a record type that is not conversation
    "duplicate_call",
    "orphan_result",
    "unanswered_call",
    "clock_back",
    "missing_time",
    "invalid",  # a record of a known type whose fields do not hold
]

MOST_FINDINGS: Final = 50


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """One event of a recording. ``key`` is stable: reading the same file again gives the same key.

    Blocks come without a path; their turn ids are the importer's (``turn_1`` …) and their response ids the provider's.
    """

    payload: Payload
    at: datetime
    key: str


@dataclass(slots=True)
class Report:
    """What was met while reading: counts by kind, and the first findings with their line numbers."""

    format: str = ""
    lines: int = 0
    records: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[dict[str, Any]] = field(default_factory=list)

    def note(self, kind: FindingKind, line: int, detail: str = "") -> None:
        """Count a finding, and keep it while there are few."""
        self.counts[kind] += 1
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append({"kind": kind, "line": line, "detail": detail[:200]})

    def dump(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "format": self.format,
            "lines": self.lines,
            "records": self.records,
            "counts": dict(sorted(self.counts.items())),
            "findings": self.findings,
        }


@dataclass(frozen=True, slots=True)
class Recording:
    """One conversation of a file. A file gives its main conversation first, then its subagents' own."""

    id: str
    events: tuple[RecordedEvent, ...]
    report: Report
    title: str = ""
    parent: ParentLink | None = None
