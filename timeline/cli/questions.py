"""`timeline digests` and `search`: find compactions by what they covered, and blocks by their words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from timeline.answers.digests import digest_rows
from timeline.answers.found import found_rows
from timeline.blocks import KNOWN_TYPES, parse_instant
from timeline.cli import output
from timeline.cli.database import changing, reading
from timeline.cli.exits import UsageProblem
from timeline.cli.output import paint, say, write, write_rows
from timeline.display.brief import brief
from timeline.events.addresses import listed_addresses
from timeline.log.stopwatch import with_duration
from timeline.queries import selects_entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from timeline.answers.digests import DigestRow
    from timeline.answers.found import FoundRow
    from timeline.ports import EventStore

_MOST_LINES: Final = 8
"""The most items of each list of a digest in the printed form; JSON has all."""
_MOST_FOUND: Final = 20
"""The most blocks in the printed form, without --limit."""
_NUMBERS: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_MARKED: Final = re.compile("«(.*?)»")


@dataclass(frozen=True, slots=True)
class Span:
    """The filters that `digests` and `search` share, as typed."""

    conversation: str | None = None
    since: str | None = None
    until: str | None = None

    def filters(self) -> dict[str, Any]:
        """Return the filters in the form that the store takes.

        Raises:
            UsageProblem: a time cannot be read.
        """
        return {
            "conversation": self.conversation,
            "since": moment("--since", self.since),
            "until": moment("--until", self.until),
        }


@dataclass(frozen=True, slots=True)
class Wanted:
    """The filters of `digests`, as typed."""

    span: Span
    tool: str | None = None
    path: str | None = None
    command: str | None = None
    failed: bool = False
    error_text: str | None = None
    compaction_number: str | None = None
    reverted: bool = False

    def filters(self) -> dict[str, Any]:
        """Return the filters in the form that the store takes.

        Raises:
            UsageProblem: a time or the numbers of compactions cannot be read.
        """
        return {
            **self.span.filters(),
            "tool": self.tool,
            "path_glob": self.path,
            "command": self.command,
            "error": self.error_text if self.error_text is not None else self.failed or None,
            "compaction_number": None if self.compaction_number is None else _numbers(self.compaction_number),
            "reverted": self.reverted,
        }


def moment(option: str, text: str | None) -> datetime | None:
    """Return the time that an option names.

    Raises:
        UsageProblem: it is not a time with a zone.
    """
    try:
        return None if text is None else parse_instant(text)
    except ValueError:
        raise UsageProblem(f"{option} {text!r} is not a time with a zone. Write 2026-01-31T12:00:00Z.") from None


def _numbers(text: str) -> range:
    match = _NUMBERS.fullmatch(text)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if first > last:
        raise UsageProblem(f"--compaction {text!r} is not the number of a compaction. Write 3, or 2-4 for a range.")
    return range(first, last + 1)


async def digests(wanted: Wanted, db: str, *, as_json: bool) -> None:
    """Print the digests of compactions, oldest first: all of them, or those that meet every filter.

    Raises:
        UsageProblem: a filter cannot be read.
    """
    filters = wanted.filters()
    async with reading(db) as store:
        rows = digest_rows(store, filters)
        if as_json:
            await write_rows(rows)
            return
        found = 0
        async for row in rows:
            found += 1
            _print_digest(row, row.matched if selects_entries(filters) else row.digest)
        if not found:
            write(await _nothing(wanted, store))


async def _nothing(wanted: Wanted, store: EventStore) -> str:
    if wanted == Wanted(Span(conversation=wanted.span.conversation)):
        async for _ in store.digests(conversation=wanted.span.conversation, reverted=True):
            return "No compaction is in force. Those that were undone: timeline digests --reverted"
        return "No compaction yet. Try one: timeline compact ID, or timeline simulate FILE"
    if wanted.path is not None and not wanted.path.startswith(("/", "**")):
        return f"No compaction meets these filters. A glob matches whole paths: try --path '**/{wanted.path}'"
    return "No compaction meets these filters. Try fewer filters."


def _print_digest(row: DigestRow, digest: dict[str, Any]) -> None:
    ranges = ", ".join(f"{first}-{last}" for first, last in row.covers["ranges"])
    heading = with_duration(f"compaction {row.compaction_number}, {row.at[:16]}", row.duration)
    say(paint(row.address, bold=True) + f"  {heading}{_undone(row)}")
    write(f"  {row.path} covers versions {ranges}")
    if row.unsaid:
        write(f"  unsaid of what was asked in {listed_addresses(row.unsaid)}")
    _list("given", (a["path"] for a in digest.get("artifacts", ())))
    _list("wrote", (f"{f['file']}{_times(f)}" for f in digest.get("files_written", ())))
    _list("read", (f"{f['file']}{_times(f)}" for f in digest.get("files_read", ())))
    _list("deleted", (f"{f['file']}{_times(f)}" for f in digest.get("files_deleted", ())))
    _list("ran", (f"{c['command']}{_outcome(c)}" for c in digest.get("commands", ())))
    _list("searched", (f"{s['query']} ({s['tool']})" for s in digest.get("searches", ())))
    _list("errors", (f"{e['tool']}: {e['message']}" for e in digest.get("errors", ())))
    tools = (f"{t['tool']} {t['count']}x, {t['tokens']:,} tokens" for t in digest.get("tool_outputs", ()))
    _list("tools", [", ".join(tools)])
    write()


def _undone(row: DigestRow | FoundRow) -> str:
    return "" if row.reverted_by is None else f", undone at version {row.reverted_by}"


def _times(use: dict[str, int]) -> str:
    times = use.get("times", 1)
    return f" ({times} times)" if times > 1 else ""


def _outcome(command: dict[str, object]) -> str:
    if not command.get("failed"):
        return ""
    status = command.get("exit_status")
    return " - failed" + (f" with status {status}" if status is not None else "")


def _list(label: str, items: Iterable[str]) -> None:
    texts = [text for text in items if text]
    for number, text in enumerate(texts[:_MOST_LINES]):
        write(f"  {'' if number else label:<9} {brief(text, max(output.width() - 13, 20))}")
    if len(texts) > _MOST_LINES:
        write(f"  {'':<9} … and {len(texts) - _MOST_LINES} more: see --json")


async def search(text: str, span: Span, types: Sequence[str], limit: int | None, db: str, *, as_json: bool) -> None:
    """Print the blocks that contain all words of a text, the best first.

    Raises:
        UsageProblem: a time cannot be read.
    """
    filters = {**span.filters(), "types": types or None}
    async with changing(db) as store:
        if as_json:
            await write_rows(found_rows(store, text, filters, limit))
            return
        most = _MOST_FOUND if limit is None else limit
        shown = 0
        async for row in found_rows(store, text, filters, most + 1):
            if shown == most:
                write(f"… and more: raise --limit to {most * 5}, or search for more words.")
                return
            shown += 1
            _print_found(row)
    if not shown:
        _print_nothing_found(types, narrowed=span != Span() or bool(types))


def _print_nothing_found(types: Sequence[str], *, narrowed: bool) -> None:
    """Report that nothing was found, and list our types where the given one is none: it may be mistyped."""
    within = ", where ID, --type, --since and --until let it look" if narrowed else ""
    write(f'No block contains all of these words{within}. Try fewer, or the start of one: "log*"')
    if others := sorted(set(types) - KNOWN_TYPES.keys()):
        write(f"Unless your application makes blocks of the type {', '.join(others)}, the types are:")
        write(f"  {', '.join(KNOWN_TYPES)}")


def _print_found(row: FoundRow) -> None:
    said_by = "" if row.call is None else f", said in call {row.call}"
    say(paint(row.path, bold=True) + f"  {row.address}, {row.at[:16]}{said_by}{_undone(row)}")
    line = brief(row.snippet, max(output.width() - 4, 20))
    write("  " + (_MARKED.sub(lambda hit: paint(hit[1], bold=True), line) if output.coloured() else line))
