"""`timeline facts`: what was done and named, entry by entry, or as one record of a conversation."""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from timeline.answers.facts import fact_rows
from timeline.blocks import instant_text
from timeline.cli import output
from timeline.cli.database import changing
from timeline.cli.exits import UsageProblem
from timeline.cli.output import paint, say, write, write_rows
from timeline.cli.questions import moment
from timeline.events.addresses import Address
from timeline.facts.full_record import MOST, full_record
from timeline.queries import FACT_KINDS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from timeline.answers.facts import FactRow
    from timeline.cli.shapes import FactRecordRow, ReachRow
    from timeline.queries import FactEntry, FactRecord

_MOST_SHOWN: Final = 50
"""The most facts in the printed form, without --limit: the newest."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The conditions of `facts`, as typed."""

    conversations: Sequence[str] = ()
    kinds: Sequence[str] = ()
    subject: str | None = None
    glob: str | None = None
    tool: str | None = None
    exit_status: int | None = None
    failed: bool | None = None
    since: str | None = None
    until: str | None = None
    covered: bool | None = None
    query: str | None = None

    @property
    def conditions(self) -> dict[str, Any]:
        """The conditions besides the conversations, as typed."""
        names = ("subject", "glob", "tool", "exit_status", "failed", "since", "until", "covered", "query")
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value is not None} | (
            {"kind": self.kinds} if self.kinds else {}
        )

    def filters(self) -> dict[str, Any]:
        """Return the conditions in the form that the store takes.

        Raises:
            UsageProblem: a kind or a time cannot be read.
        """
        for kind in self.kinds:
            if kind not in FACT_KINDS:
                raise UsageProblem(f"--kind {kind!r} is not a kind of fact. Use one of: {', '.join(FACT_KINDS)}.")
        filters = {**self.conditions, "conversation": [*self.conversations] or None}
        times = {"since": moment("--since", self.since), "until": moment("--until", self.until)}
        return filters | {name: at for name, at in times.items() if at is not None}


async def facts(wanted: Wanted, limit: int | None, db: str, *, as_json: bool) -> None:
    """Print the facts that meet every condition, oldest first: all as JSON, as text or under a limit the newest.

    Raises:
        UsageProblem: a condition cannot be read.
    """
    filters = wanted.filters()
    async with changing(db) as store:
        if as_json and limit is None:
            await write_rows(fact_rows(store, filters))
            return
        most = _MOST_SHOWN if limit is None else limit
        total = 0
        newest: deque[FactRow] = deque(maxlen=min(most, sys.maxsize))
        async for row in fact_rows(store, filters):
            total += 1
            newest.append(row)
    if as_json:
        with output.JsonList() as written:
            for row in newest:
                written.add(row)
        return
    _print_facts(newest, one=len(wanted.conversations) == 1)
    if total > len(newest):
        say(f"These are the newest of {total:,}: raise --limit, add conditions, or use --json to get all.")
    elif not total:
        write(_nothing(wanted))


def _print_facts(rows: Collection[FactRow], *, one: bool) -> None:
    if not rows:
        return
    output.table(
        ("address", "at", "kind", "tool", "outcome", "subject"),
        [
            (
                f"@{row.version}" if one else row.address,
                row.at[:16],
                row.kind.replace("_", " "),
                row.tool or "-",
                _outcome(row),
                " ".join(row.subject.split()),
            )
            for row in rows
        ],
    )


def _outcome(row: FactRow) -> str:
    status = "" if row.exit_status is None else f"exit {row.exit_status}"
    return " ".join(word for word in ("failed" if row.failed else "", status) if word) or "-"


def _nothing(wanted: Wanted) -> str:
    if not wanted.conditions:
        return "No facts yet: nothing was asked, no tool was called, and no URL or identifier was named."
    if wanted.glob is not None and not wanted.glob.startswith(("/", "*")):
        return f"No fact meets all conditions. A glob matches whole subjects: try --glob '**/{wanted.glob}'"
    return "No fact meets all conditions. Try fewer."


async def records(conversations: Sequence[str], db: str, *, as_json: bool) -> None:
    """Print one merged record of each conversation."""
    async with changing(db) as store:
        ids = [*conversations] or [info.id async for info in store.conversations()]
        if as_json:
            with output.JsonList() as written:
                for id_ in ids:
                    written.add(_record_row(id_, await store.fact_record(id_, most=MOST)))
            return
        for id_ in ids:
            record = await store.fact_record(id_, most=MOST)
            say(paint(id_, bold=True))
            write(full_record(record) or "Nothing was done or named yet.")
            write()


def _record_row(conversation: str, record: FactRecord) -> FactRecordRow:
    return {
        "conversation": conversation,
        "open_failures": [_entry(conversation, entry) for entry in record.open_failures],
        "errors": [_entry(conversation, entry) for entry in record.errors],
        "done": {kind: [_entry(conversation, entry) for entry in entries] for kind, entries in record.done.items()},
        "counts": {str(kind): count for kind, count in record.counts.items()},
    }


def _entry(conversation: str, entry: FactEntry) -> dict[str, Any]:
    return {
        "subject": entry.subject,
        "tool": entry.tool,
        "times": entry.times,
        "exit_status": entry.exit_status,
        "failed": entry.failed,
        "at": instant_text(entry.at),
        "path": entry.path,
        "address": str(Address(entry.last, conversation)),
        "first_address": str(Address(entry.first, conversation)),
        "detail": entry.detail,
    }


async def reach(db: str, *, as_json: bool) -> None:
    """Print how far the index of facts reaches, after bringing nothing up to date."""
    async with changing(db) as store:
        found = await store.fact_reach()
    row: ReachRow = {
        "position": found.position,
        "newest_position": found.newest_position,
        "rules": found.rules,
    }
    if as_json:
        output.write_json(row)
        return
    write(f"Facts are indexed up to event {found.position:,} of {found.newest_position:,}; a query indexes the rest.")
