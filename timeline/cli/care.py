"""`timeline backup`, `restore` and `doctor`: care for the database."""

from __future__ import annotations

from datetime import timedelta
from shlex import quote
from typing import TYPE_CHECKING, Final

from timeline import open_store
from timeline.cli import output
from timeline.cli.database import check_there, db_option
from timeline.cli.exits import Exit
from timeline.cli.output import say, write
from timeline.errors import StoreTooOld
from timeline.ports import SystemClock
from timeline.projection.explain import counted
from timeline.retention import freeable
from timeline.store import backup
from timeline.store import restore as restore_store
from timeline.store.addresses import is_server
from timeline.store.opening import file_of
from timeline.store.sqlite.examining import examine

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.cli.shapes import BackupRow, DoctorRow, RestoreRow
    from timeline.ports import EventStore
    from timeline.store import Restored
    from timeline.store.sqlite.examining import Examined

_IDLE: Final = timedelta(days=90)
_LEADS: Final = 10
"""Conversations that a dry run lists."""


async def back_up(db: str, to: Path | None, *, force: bool, as_json: bool) -> None:
    """Copy the database, and print what the copy holds."""
    check_there(db)
    with output.working("copying"):
        made = await backup(db, to, force=force)
    row: BackupRow = {
        "file": str(made.file),
        "bytes": made.holds.size,
        "conversations": len(made.holds.versions),
        "events": made.holds.events,
        "schema": made.holds.schema,
    }
    if as_json:
        output.write_json(row)
        return
    say(f"{made.file}: {_held(row['conversations'], row['events'])}, {row['bytes']:,} bytes, read to the end")


async def restore(source: Path, db: str, *, yes: bool, as_json: bool) -> None:
    """Put a backup in the place of the database, or print what that would come to."""
    with output.working("reading the backup"):
        done = await restore_store(source, db, yes=yes)
    if as_json:
        output.write_json(_restored(source, done))
    else:
        _print_restored(source, db, done)


def _restored(source: Path, done: Restored) -> RestoreRow:
    return {
        "dry_run": not done.done,
        "from": str(source),
        "file": str(done.file),
        "conversations": len(done.holds.versions),
        "events": done.holds.events,
        "before_events": None if done.before is None else done.before.events,
        "problem": done.problem or None,
        "loses": [{"id": id_, "version": was, "restored": left} for id_, (was, left) in done.loses.items()],
        "kept": [str(kept) for kept in done.kept],
        "returns": [{"id": id_, "what": what} for id_, what in done.returns.items()],
    }


def _print_restored(source: Path, db: str, done: Restored) -> None:
    say(f"{source}: {_held(len(done.holds.versions), done.holds.events)}, read to the end")
    if done.problem:
        say(f"the database cannot be read: {done.problem}")
    elif done.before is None:
        say(f"{done.file}: there is no database yet")
    else:
        say(f"{done.file}: {_held(len(done.before.versions), done.before.events)}")
    if done.loses:
        write()
        rows = [(id_, was, left or "") for id_, (was, left) in done.loses.items()]
        output.table(("conversation", "version", "in the backup"), rows[:_LEADS])
        if len(rows) > _LEADS:
            say(f"and {len(rows) - _LEADS} more")
        write()
    for what, again in (("erased", "erase"), ("redacted", "redact")):
        if ids := [id_ for id_, why in done.returns.items() if why == what]:
            held = f"the backup still holds what was {what} since it was made: {_some(ids)}"
            say(f"{held}. After the restore, {again} it again.")
    if not done.done:
        say(f"This was a dry run. Do it with: timeline restore {quote(str(source))} --yes{db_option(db)}")
        return
    say(f"restored: {done.file}")
    for kept in done.kept:
        say(f"the replaced files are kept as {kept}; delete them when you no longer need them")


def _some(ids: list[str]) -> str:
    more = f" and {len(ids) - _LEADS} more" if len(ids) > _LEADS else ""
    return ", ".join(ids[:_LEADS]) + more


def _held(conversations: int, events: int) -> str:
    return f"{counted(conversations, 'conversation', 'conversations')}, {counted(events, 'event', 'events')}"


async def doctor(db: str, *, as_json: bool) -> int:
    """Print sizes, what retention would free, and what is to be mended."""
    check_there(db)
    if is_server(db):
        row = await _examined_server(db)
    else:
        found = await examine(file_of(db))
        row = _examined(found, await _freeable_of_file(db))
    if as_json:
        output.write_json(row)
    else:
        _print_examined(row)
    return Exit.NOT_SO if any(remark["level"] == "warning" for remark in row["remarks"]) else Exit.OK


async def _freeable_of_file(db: str) -> tuple[int, int] | None:
    try:
        store = await open_store(db, readonly=True)
    except StoreTooOld:
        return None  # to find out, it would have to be brought up to date
    try:
        return await _freeable(store)
    finally:
        await store.aclose()


async def _freeable(store: EventStore) -> tuple[int, int]:
    """Return what would be freed by the retention ``window`` everywhere, and where nothing was appended for 90 days."""
    now = SystemClock().now()
    return await freeable(store, now), await freeable(store, now, idle=_IDLE)


async def _examined_server(db: str) -> DoctorRow:
    async with open_store(db, readonly=True) as store:
        from timeline.store.postgres import examining  # noqa: PLC0415 - it needs an extra, which the store has found
        from timeline.store.postgres.store import PostgresStore  # noqa: PLC0415 - as above

        if not isinstance(store, PostgresStore):
            raise TypeError(f"{type(store).__name__} is no store on a server")
        found = await examining.examine(store.database)
        freed = await _freeable(store)
    return {
        "file": found.where,
        "bytes": sum(found.sizes.values()),
        "schema": found.schema,
        "sqlite": "",
        "server": found.server,
        "conversations": found.conversations,
        "events": found.events,
        "sizes": found.sizes,
        "would_free": {"window": freed[0], "window_90_days_idle": freed[1]},
        "remarks": [{"code": code, "level": level, "text": text} for code, level, text in found.findings],
    }


def _examined(found: Examined, freed: tuple[int, int] | None) -> DoctorRow:
    return {
        "file": str(found.file),
        "bytes": found.size,
        "schema": found.schema,
        "sqlite": found.sqlite,
        "server": "",
        "conversations": found.conversations,
        "events": found.events,
        "sizes": found.sizes,
        "would_free": None if freed is None else {"window": freed[0], "window_90_days_idle": freed[1]},
        "remarks": [{"code": code, "level": level, "text": text} for code, level, text in found.findings],
    }


def _print_examined(row: DoctorRow) -> None:
    say(f"{row['file']}: {_held(row['conversations'], row['events'])}, {row['bytes']:,} bytes, schema {row['schema']}")
    write()
    whole = sum(row["sizes"].values())
    output.table(
        ("room for", "bytes", "share"),
        [(name, f"{size:,}", f"{size / whole:.1%}") for name, size in row["sizes"].items()],
    )
    write()
    if (freed := row["would_free"]) is not None:
        say(f"retention window everywhere would free {freed['window']:,} bytes")
        say(f"and where nothing was appended for 90 days {freed['window_90_days_idle']:,} bytes")
    for remark in row["remarks"]:
        say(f"{remark['level']}: {remark['text']}.", hang=2)
