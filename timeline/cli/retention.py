"""`timeline retention` and `scavenge`: show and set how much is kept, and remove what lies before the windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from timeline.cli import output
from timeline.cli.database import changing, db_option, reading
from timeline.cli.exits import UsageProblem
from timeline.cli.output import say, write
from timeline.projection.explain import counted
from timeline.retention import Budget, kept, rehearse
from timeline.retention import scavenge as run_scavenge
from timeline.retention.plan import REASONS
from timeline.retention.setting import RETENTIONS
from timeline.store.addresses import without_password
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from timeline.cli.shapes import RetentionRow, ScavengedRow, ScavengeRow
    from timeline.events.other_payloads import Retention
    from timeline.ports import EventStore
    from timeline.retention import ScavengedConversation, ScavengeReport

_STORE = "store"


class Bounds(NamedTuple):
    """The most events to remove, and the seconds after which no further step begins."""

    events: int | None
    seconds: float | None


async def retention(first: str | None, second: str | None, db: str, *, hold: bool | None, as_json: bool) -> None:
    """Print the retention of a conversation, or of the database and all its conversations; set it first, if asked to.

    Raises:
        UsageProblem: there is no such retention.
    """
    conversation, wanted = (None, first) if second is None and first in RETENTIONS else (first, second)
    if wanted is not None and wanted not in (*RETENTIONS, *([_STORE] if conversation is not None else [])):
        raise UsageProblem(f"There is no retention {wanted!r}. Give keep or window, or for a conversation also store.")
    if hold is not None and conversation is None:
        raise UsageProblem("A legal hold is put on one conversation. Give its id: timeline retention ID --hold")
    if wanted is not None or hold is not None:
        async with changing(db) as store:
            await _set(store, conversation, wanted, hold=hold)
    async with reading(db) as store:
        ids = [conversation] if conversation is not None else [info.id async for info in store.conversations()]
        rows = [await _retention_row(store, id_) for id_ in ids]
        of_store = await store.retention()
    if as_json:
        output.write_json(rows[0] if conversation is not None else {"store": of_store, "conversations": rows})
        return
    if conversation is None:
        write(f"the database: {of_store}")
    if rows:
        output.table(("conversation", "retention", "set for", "hold"), [_shown(row) for row in rows])


def _shown(row: RetentionRow) -> tuple[str, str, str, str]:
    set_for = "the database" if row["own"] is None else "itself"
    return row["id"], row["retention"], set_for, "legal hold" if row["legal_hold"] else ""


async def _set(store: EventStore, conversation: str | None, wanted: str | None, *, hold: bool | None) -> None:
    setting: Retention | None = "window" if wanted == "window" else "keep" if wanted == "keep" else None
    if conversation is None:
        await store.set_retention(setting or "keep")
        return
    timeline = await Timeline.open(store, conversation, create=False)
    if wanted is not None:
        await timeline.set_retention(setting)
    if hold is not None:
        await timeline.set_legal_hold(on=hold)


async def _retention_row(store: EventStore, conversation: str) -> RetentionRow:
    found = await kept(store, conversation)
    return {
        "id": conversation,
        "retention": found.retention,
        "own": found.own,
        "legal_hold": found.legal_hold,
        "first_version": (await store.info(conversation)).first_version,
    }


async def scavenge(ids: list[str], db: str, bounds: Bounds, *, yes: bool, as_json: bool) -> None:
    """Print what goes or would go, and what stays and why; with ``yes``, remove it.

    Raises:
        UsageProblem: a dry run got a bound.
    """
    if not yes and bounds != Bounds(None, None):
        raise UsageProblem("A dry run always goes to the end. Give --events and --seconds together with --yes.")
    wanted = ids or None
    if yes:
        async with changing(db) as store:
            with output.working("scavenging"):
                report = await run_scavenge(store, wanted, budget=Budget(bounds.events, bounds.seconds))
    else:
        async with reading(db) as store:
            with output.working("scavenging a copy"):
                report = await rehearse(store, wanted)
    if as_json:
        output.write_json(_row(report, dry_run=not yes))
    else:
        _print(report, db, yes=yes)


def _row(report: ScavengeReport, *, dry_run: bool) -> ScavengeRow:
    return {
        "dry_run": dry_run,
        "done": report.done,
        "events": report.events,
        "payload_bytes": report.size,
        "values": report.values,
        "value_bytes": report.value_size,
        "before_bytes": report.before,
        "after_bytes": report.after,
        "conversations": [_scavenged_row(found) for found in report.conversations],
    }


def _scavenged_row(found: ScavengedConversation) -> ScavengedRow:
    return {
        "id": found.conversation,
        "stays": found.stays or None,
        "events": found.events,
        "payload_bytes": found.size,
        "first": found.first,
        "last": found.last,
        "fork": found.fork,
    }


def _print(report: ScavengeReport, db: str, *, yes: bool) -> None:
    if not report.conversations:
        write(f"{without_password(db)} holds no conversation.")
        return
    output.table(
        ("conversation", "events", "bytes", "versions", "why"),
        [
            (
                found.conversation,
                found.events,
                found.size,
                f"{found.first}-{found.last}" if found.events else "",
                _why(found),
            )
            for found in report.conversations
        ],
    )
    write()
    values = counted(report.values, "text that nothing names", "texts that nothing names")
    going = (
        f"{counted(report.events, 'event', 'events')} with {report.size:,} bytes, {values} with {report.value_size:,}"
    )
    say(f"{'removed' if yes else 'would go'}: {going}")
    if report.before:
        freed = report.before - report.after
        sizes = f"{report.before:,} to {report.after:,} bytes, {abs(freed):,} {'less' if freed >= 0 else 'more'}"
        say(f"the file {'went' if yes else 'would go'} from {sizes}")
    if not report.done:
        say("It stopped at --events or --seconds before the end: run it again to go on.")
    elif not yes and (report.events or report.values):
        say(f"This was a dry run. To do it, which cannot be undone: timeline scavenge --yes{db_option(db)}")


def _why(found: ScavengedConversation) -> str:
    why = REASONS[found.stays]
    if found.fork is None or found.stays not in {"", "fork"}:
        return why
    return f"{why}: {found.fork}" if found.stays else f"{why}; the fork {found.fork} shares what is before that"
