"""`timeline verify`: check every invariant of every conversation, and rebuild every recorded context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import typer

from timeline.audit.verify import verify as verify_conversation
from timeline.cli import output
from timeline.cli.database import reading
from timeline.cli.exits import Exit
from timeline.cli.output import paint, progress, say, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.audit.verify import VerifyReport

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


async def verify(conversation: str | None, db: str, *, as_json: bool) -> int:
    """Verify one conversation or all, and print the report; return exit code 1 if anything does not hold.

    Raises:
        ConversationNotFound: there is no such conversation.
    """
    async with reading(db) as store:
        ids = [conversation] if conversation is not None else [info.id async for info in store.conversations()]
        reports: list[VerifyReport] = []
        with progress("verifying", len(ids)) as advance:
            for id_ in ids:
                reports.append(await verify_conversation(store, id_))
                advance(len(reports))
    ok = all(report.ok for report in reports)
    if as_json and conversation is not None:
        output.write_json(reports[0].model_dump(mode="json"))
    elif as_json:
        output.write_json({"ok": ok, "conversations": [report.model_dump(mode="json") for report in reports]})
    elif conversation is not None:
        print_report(reports[0])
    else:
        _print_reports(reports, db)
    return Exit.OK if ok else Exit.NOT_SO


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
    for problem in report.problems:
        write(paint(f"  {problem}", typer.colors.RED))


def mark(broken: int) -> str:
    """Return "ok" for an invariant that holds, else how often it is broken."""
    return paint("ok", typer.colors.GREEN) if not broken else paint(f"{broken} broken", typer.colors.RED)


def _print_reports(reports: Sequence[VerifyReport], db: str) -> None:
    if not reports:
        write(f"{db} holds no conversation, so nothing is wrong with it.")
        return
    output.table(
        ("", "events", "blocks", "compactions", "contexts", "not rebuilt", "conversation"),
        [
            (
                "ok" if r.ok else "BROKEN",
                r.events,
                r.blocks,
                r.compactions,
                r.renders,
                sum(r.unverifiable.values()) or "",
                r.conversation,
            )
            for r in reports
        ],
        colours=[typer.colors.GREEN if r.ok else typer.colors.RED for r in reports],
    )
    for report in reports:
        if not report.ok:
            write()
            print_report(report)
