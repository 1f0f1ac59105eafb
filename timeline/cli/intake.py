"""`timeline import`: append recorded conversations to a database."""

from __future__ import annotations

from contextlib import AsyncExitStack
from shlex import quote
from typing import TYPE_CHECKING, Final

from timeline.cli import output
from timeline.cli.database import adding, db_option, lasts
from timeline.cli.exits import Exit, UsageProblem, exit_code, one_line
from timeline.cli.options import BLANK_ID
from timeline.cli.output import JsonList, note, paint, progress, write
from timeline.errors import ImportFailed, StoreError, TimelineError
from timeline.forgetting import mask_credentials
from timeline.importers import read_recording
from timeline.portable import LogCopy, import_copy, read_copies
from timeline.portable.copying import OF_ONE
from timeline.portable.recordings import import_recording
from timeline.ports import Hooks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from timeline.importers import Recording
    from timeline.portable.recordings import Imported
    from timeline.ports import EventStore


_OTHERWISE: Final = ("left_out", "rewritten")
"""The findings about what the log has, and the file has not or otherwise."""
_MOST_PLACES: Final = 5
"""How many of such blocks a message names."""


async def import_files(files: Sequence[Path], db: str, *, mask: bool, new_id: str | None, as_json: bool) -> int:
    """Import files, with common credentials masked if that is asked for; report a bad one and go on with the others.

    A conversation of a file that is refused keeps none of the others out, either. With a new id there is one file of
    `timeline export`, whose one conversation is imported under it.
    An error of the database ends the import. The conversations imported until then are reported, and stay.

    Raises:
        UsageProblem: the new id is empty.
    """
    if new_id == "":
        raise UsageProblem(BLANK_ID)
    worst = Exit.OK
    done: list[Imported] = []
    async with AsyncExitStack() as stack:
        store: EventStore | None = None
        for file in files:
            try:
                found = _read(file, mask=mask)
                found = _renamed(files, found, new_id) if new_id else found
                if store is None:  # opened only now, so that a wrong file makes no empty database
                    store = await stack.enter_async_context(adding(db))
                worst = max(worst, await _import_all(store, found, file, done, mask=mask))
            except TimelineError as error:
                note(one_line(error))
                worst = max(worst, exit_code(error))
                if isinstance(error, StoreError):
                    break
    _note_kept(done, db)
    for gap in _gaps(done):
        note(gap)
        worst = max(worst, Exit.USAGE)
    if as_json:
        with JsonList() as rows:
            for imported in done:
                rows.add(imported.dump())
    elif done:
        _print_imports(done, db)
    return worst


def _read(file: Path, *, mask: bool) -> Sequence[Recording | LogCopy]:
    """Return the conversations of a file.

    Raises:
        ImportFailed: it cannot be read; or it is an export, which has no hook.
    """
    copies = read_copies(file)
    if copies and mask:
        why = "is a file of `timeline export`, whose events prove themselves and are imported as they are"
        raise ImportFailed(str(file), f"it {why}. Import it without --mask, and redact what is to go.")
    return copies or read_recording(file)


def _renamed(files: Sequence[Path], found: Sequence[Recording | LogCopy], new_id: str) -> list[LogCopy]:
    """Return the one conversation of the one file, under another id.

    Raises:
        ImportFailed: there are several, or the file is no export.
    """
    if len(files) == 1 and len(found) == 1 and isinstance(copy := found[0], LogCopy):
        return [copy.under(new_id)]
    why = "--as names one conversation: give one file of `timeline export` that holds one"
    raise ImportFailed(str(files[0]), f"{why}. A fork's file holds its parent too; import that one without --as.")


async def _import_all(
    store: EventStore, found: Sequence[Recording | LogCopy], file: Path, done: list[Imported], *, mask: bool
) -> Exit:
    """Import the conversations of a file, each for itself; report those that cannot be, and return the exit code."""
    worst = Exit.OK
    for one in found:
        try:
            done.append(await _import(store, one, file, mask=mask))
        except TimelineError as error:
            if isinstance(error, StoreError) and not isinstance(error, OF_ONE):
                raise
            note(one_line(error))
            worst = max(worst, exit_code(error))
    return worst


async def _import(store: EventStore, found: Recording | LogCopy, file: Path, *, mask: bool) -> Imported:
    with progress(f"importing {file.name}", len(found.events)) as advance:
        if not isinstance(found, LogCopy):
            hooks = Hooks(on_append=mask_credentials) if mask else None
            return await import_recording(store, found, hooks=hooks, on_progress=advance)
        return await import_copy(store, found, on_progress=advance)


def _gaps(done: Sequence[Imported]) -> list[str]:
    """Return a message for each log with a missing event; the events after it were not imported."""
    findings = (finding for imported in done for finding in imported.report["findings"])
    return [finding["detail"] for finding in findings if finding["kind"] == "gap"]


def _note_kept(done: Sequence[Imported], db: str) -> None:
    """List the conversations of which the log keeps what a newer file lacks, or has otherwise."""
    for imported in done:
        places = [f["detail"].split()[0] for f in imported.report["findings"] if f["kind"] in _OTHERWISE]
        if not places:
            continue
        number = sum(imported.report["counts"].get(kind, 0) for kind in _OTHERWISE)
        some = f"{', '.join(places[:_MOST_PLACES])}{', …' if number > _MOST_PLACES else ''}"
        note(
            f"{imported.id}: the file no longer has {number} of the log's blocks, or has them in other words ({some});"
            f" the log keeps them. To leave one out of contexts: timeline hide {quote(imported.id)} {places[0]} --omit"
            f"{db_option(db)}"
        )


def _print_imports(done: Sequence[Imported], db: str) -> None:
    rows = []
    for imported in done:
        counts = imported.report.get("counts", {})
        met = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in counts.items())
        rows.append((imported.id, imported.events, imported.known, imported.report.get("format", ""), met))
    output.table(("id", "added", "known", "format", "found in it"), rows)
    if lasts(db):
        write()
        write(paint("Next:", bold=True) + f"  timeline show {quote(done[0].id)}{db_option(db)}")
