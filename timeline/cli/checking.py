"""`timeline verify` and `timeline repair`: prove the log, compare what is derived from it, and make that anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import typer

from timeline.audit import deep
from timeline.audit.verify import verify as verify_conversation
from timeline.cli import output
from timeline.cli.database import changing, db_option, reading
from timeline.cli.exits import Exit, UsageProblem
from timeline.cli.output import paint, progress, say, write
from timeline.events.chain import SIZE, START
from timeline.log.listed import listed
from timeline.projection.explain import counted
from timeline.store.addresses import is_server, without_password

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.audit.verify import VerifyReport

_UNPROVED: Final = (
    "no link covers them. They were scavenged before the database kept a chain, or a program of an earlier version "
    "appended them; the next append links the latter, and so does `timeline repair --yes`"
)
_MOST_NAMED: Final = 20
"""Versions that a line names."""
_OF_SERVER: Final = "Restore the database with the tools of its server."
INVARIANTS: Final = {
    "checksum": "every event is as it was written",
    "chain": "every event follows from the one before it",
    "coverage": "every block is in exactly one state",
    "pairing": "no result is shown without its call, no call without its result",
    "progress": "every compaction made the context smaller",
    "replay": "every recorded context and body is rebuilt byte for byte",
    "recall": "every path in a summary or a replacement can be read",
    "order": "the snapshot gives the same window as the whole log",
    "prefix": "no render changed what was sent before without a decision",
}
"""The counts of a `VerifyReport`, and the invariant that holds where the count is 0."""


async def verify(conversation: str | None, db: str, head: str | None, *, as_json: bool) -> int:
    """Verify one conversation or all, and print the report; return exit code 1 if anything does not hold.

    Raises:
        UsageProblem: the head is no link.
    """
    kept = None if head is None else _link(head)
    async with reading(db) as store:
        infos, unlisted = ([], None) if conversation is not None else await listed(store)
        ids = [info.id for info in infos] if conversation is None else [conversation]
        problems = [] if unlisted is None else [str(unlisted)]
        reports: list[VerifyReport] = []
        with progress("verifying", len(ids)) as advance:
            for id_ in ids:
                reports.append(await verify_conversation(store, id_, head=kept))
                advance(len(reports))
    ok = not problems and all(report.ok for report in reports)
    if as_json and conversation is not None:
        output.write_json(reports[0].model_dump(mode="json"))
    elif as_json:
        rows = [report.model_dump(mode="json") for report in reports]
        output.write_json({"ok": ok, "conversations": rows, "problems": problems})
    elif conversation is not None:
        print_report(reports[0])
    else:
        _print_reports(reports, db, problems)
    return Exit.OK if ok else Exit.NOT_SO


async def verify_deep(db: str, *, as_json: bool) -> int:
    """Verify the whole store in depth, and print what differs; return exit code 1 if anything does."""
    async with reading(db) as store:
        count = await store.conversation_count()
        with progress("verifying", count) as advance:
            report = await deep.verify_deep(store, on_progress=advance)
    if as_json:
        output.write_json(report.model_dump(mode="json"))
        return Exit.OK if report.ok else Exit.NOT_SO
    _print_reports(report.conversations, db)
    write()
    if not report.differences:
        write("Everything that is derived from the log agrees with it.")
    _print_differences(report.differences)
    if any(each.derivable for each in report.differences):
        say(f"To rebuild what is marked `repair`: timeline repair --yes{db_option(db)}")
    return Exit.OK if report.ok else Exit.NOT_SO


async def repair(db: str, *, yes: bool, as_json: bool) -> int:
    """Print what is made anew, or would be; with ``yes``, do it; return exit code 1 if other damage is left."""
    async with changing(db) if yes else reading(db) as store:
        report = await deep.repair(store, dry_run=not yes)
    if as_json:
        output.write_json(report.model_dump(mode="json"))
        return Exit.NOT_SO if report.left else Exit.OK
    _print_differences((*report.mended, *report.left))
    if not report.mended:
        write("Nothing that is derived from the log has to be rebuilt.")
    elif yes:
        say(f"rebuilt: {counted(len(report.mended), 'difference', 'differences')}; no event was changed")
    else:
        say(f"This was a dry run. To rebuild it: timeline repair --yes{db_option(db)}")
    if any(each.what == "unknown" for each in report.left):
        say("What is marked `unknown` can only be checked once the indexes are rebuilt.")
    if any(each.what != "unknown" for each in report.left):
        put = f"Put one in place: timeline restore FILE --yes{db_option(db)}"
        say(f"What is marked `backup` can only come from a backup. {_OF_SERVER if is_server(db) else put}")
        say(f"Or export what can still be read: timeline export --all{db_option(db)}")
    return Exit.NOT_SO if report.left else Exit.OK


def _print_differences(differences: Sequence[deep.Difference]) -> None:
    if differences:
        output.table(
            ("what", "cure", "problem"),
            [(each.what, _cure(each), each.problem) for each in differences],
            colours=[typer.colors.YELLOW if each.derivable else typer.colors.RED for each in differences],
        )


def _cure(each: deep.Difference) -> str:
    if each.what == "unknown":
        return "unknown"
    return "repair" if each.derivable else "backup"


def _link(head: str) -> bytes:
    try:
        kept = bytes.fromhex(head)
    except ValueError:
        kept = b""
    if len(kept) != SIZE:
        raise UsageProblem(f"{head!r} is not a head: `timeline verify ID` prints one, {2 * SIZE} hexadecimal digits.")
    return kept


def print_report(report: VerifyReport) -> None:
    """Print one conversation's report, one invariant a line."""
    say(
        paint(report.conversation, bold=True)
        + f"  {report.events:,} events, {report.blocks:,} blocks, {report.compactions} compactions"
    )
    for name, meaning in INVARIANTS.items():
        write(f"  {mark(getattr(report, name))}  {name:<9} {meaning}")
    recorded = report.renders + report.calls
    rebuilt = recorded - sum(report.unverifiable.values())
    what = "recorded contexts and bodies of calls" if report.calls else "recorded contexts"
    write(f"  {rebuilt:,} of {recorded:,} {what} were rebuilt")
    for reason, count in report.unverifiable.items():
        write(f"  {count} cannot be rebuilt: {reason.replace('_', ' ')}")
    if report.scavenged:
        write(f"  {report.scavenged:,} events were scavenged; the check begins at the snapshot that was kept then")
    if report.unproved:
        write(f"  {report.unproved:,} events are not proved: {_UNPROVED}")
    if report.rewritten:
        write(f"  {counted(report.rewritten, 'event has', 'events have')} another content, by what redactions say")
    if report.proved_until is not None:
        write(f"  the given head proves everything up to version {report.proved_until}{_but(report.rewritten_behind)}")
    if report.head != START.hex():
        write(f"  head {report.head}")
    for problem in report.problems:
        write(paint(f"  {problem}", typer.colors.RED))


def _but(rewritten: Sequence[int]) -> str:
    """Return what a head does not prove: versions that were written anew by redactions behind it."""
    if not rewritten:
        return ""
    named = ", ".join(map(str, rewritten[:_MOST_NAMED])) + (", …" if len(rewritten) > _MOST_NAMED else "")
    return f", but not what redactions behind it wrote anew: {named}"


def mark(broken: int) -> str:
    """Return "ok" for an invariant that holds, else how often it is broken."""
    return paint("ok", typer.colors.GREEN) if not broken else paint(f"{broken} broken", typer.colors.RED)


def _print_reports(reports: Sequence[VerifyReport], db: str, problems: Sequence[str] = ()) -> None:
    if not reports and not problems:
        write(f"{without_password(db)} holds no conversation, so nothing is wrong with it.")
        return
    output.table(
        ("", "events", "blocks", "compactions", "contexts", "calls", "not rebuilt", "conversation"),
        [
            (
                "ok" if r.ok else "BROKEN",
                r.events,
                r.blocks,
                r.compactions,
                r.renders,
                r.calls,
                sum(r.unverifiable.values()) or "",
                r.conversation,
            )
            for r in reports
        ],
        colours=[typer.colors.GREEN if r.ok else typer.colors.RED for r in reports],
    )
    for problem in problems:
        write(paint(problem, typer.colors.RED))
    for report in reports:
        if not report.ok:
            write()
            print_report(report)
