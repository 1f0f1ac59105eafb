"""The result of every importer: recordings, made of the log's own payloads, and a report of the findings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from datetime import datetime

    from timeline.events import ParentLink, Payload

FindingKind: TypeAlias = Literal[
    "glued",  # two records on one line, both read
    "split",  # one record on several lines (a raw line break inside a string), put together again
    "torn",  # the last line ends in mid-record
    "quarantined",  # a line without a readable record; its beginning is kept in the report
    "encoding",  # bytes that are not UTF-8, read with replacement characters
    "unknown_record",  # a record type that is not conversation
    "duplicate_record",  # a record written twice under one id; read once
    "duplicate_call",  # a call id, or a call's result, for the second time
    "orphan_result",
    "unanswered_call",
    "clock_back",
    "missing_time",
    "missing_usage",  # usage of the whole run only, not of its single model calls
    "invalid",  # a record of a known type with invalid fields
    "second_conversation",  # records of another conversation in the same file, kept in file order
    "branch",  # the conversation was continued from an earlier place, too: a conversation of its own, or left out
    "aborted_turn",  # the user or an error ended it before its end
    "rolled_back",  # turns that the client stopped sending; they stay in the log
    "gap",  # an event of an exported log is missing; the events after it are not imported
    "chain",  # the links of an exported log do not go on here; the events got a chain of this database
    "left_out",  # a block of the log that a newer snapshot of the conversation no longer has; the log keeps it
    "rewritten",  # a block that a newer snapshot has with other content; the log keeps what it has
    "lost_parent",  # a record whose parent is not in the file; it follows the record before it
]

MOST_FINDINGS: Final = 50
"""How many findings of a kind a report keeps; it counts all."""
TITLE_LENGTH: Final = 80


@dataclass(frozen=True, slots=True)
class ImportedCompaction:
    """A compaction of the recorded client: its summary covers everything before it but the kept blocks.

    The importer knows no versions, so the shell makes the `CompactionCompleted` event.

    Attributes:
        summary: the client's summary.
        trigger: the client's own word (``auto``, ``manual``).
        pre_tokens: the size that the client measured before; 0 if unknown.
        kept_blocks: how many of the blocks right before it the client continued to send word for word.
    """

    summary: str
    trigger: str = ""
    pre_tokens: int = 0
    kept_blocks: int = 0


@dataclass(frozen=True, slots=True)
class ImportedHide:
    """Tool results that the recorded client stopped sending; the shell makes the `BlocksHidden` event."""

    call_ids: tuple[str, ...]
    trigger: str = ""
    pre_tokens: int = 0
    tokens_saved: int = 0


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """One event of a recording. ``key`` is stable: reading the same file again gives the same key.

    Blocks come without a path; their turn ids are the importer's (``turn_1`` …) and their response ids the provider's.
    A `BlockAppended` comes uncounted: 0 tokens under the counter ``""``.
    """

    payload: Payload | ImportedCompaction | ImportedHide
    at: datetime
    key: str


@dataclass(slots=True)
class Report:
    """The findings of a reading: counts by kind, and the first findings of each kind with their line numbers.

    ``counts["skipped"]`` is the number of records that are a client's own bookkeeping, not conversation.
    """

    format: str = ""
    lines: int = 0
    records: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[dict[str, Any]] = field(default_factory=list, repr=False)

    def note(self, kind: FindingKind, line: int, detail: str = "") -> None:
        """Count a finding, and keep it if the report has less than `MOST_FINDINGS` of its kind."""
        self.counts[kind] += 1
        if self.counts[kind] <= MOST_FINDINGS:
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
    """One conversation of a file: the main one comes first, then its subagents' or its other branches.

    The shell makes the `ConversationOpened` event, from ``title``, ``parent`` and ``report.format``.

    ``is_snapshot``: its client writes the file anew as a whole, so that what an earlier one said may be gone from it.
    """

    id: str
    events: tuple[RecordedEvent, ...] = field(repr=False)
    report: Report
    title: str = ""
    parent: ParentLink | None = None
    is_snapshot: bool = False


def short_title(text: str) -> str:
    """Return the title for a text: its first line, cut if it is long."""
    first = next(iter(text.strip().splitlines()), "")
    return first if len(first) <= TITLE_LENGTH else first[: TITLE_LENGTH - 1].rstrip() + "…"
