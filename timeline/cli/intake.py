"""`timeline import` and `simulate`: recorded conversations into the log."""

from __future__ import annotations

from contextlib import AsyncExitStack
from shlex import quote
from typing import TYPE_CHECKING, Any

from timeline.cli import output
from timeline.cli.contexts import Wish
from timeline.cli.database import adding, lasts
from timeline.cli.exits import Exit, exit_code, one_line
from timeline.cli.output import JsonList, note, paint, progress, write
from timeline.errors import StoreError, TimelineError
from timeline.importers import read_recording
from timeline.recorded import import_recording
from timeline.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from timeline.importers import Recording
    from timeline.ports import EventStore
    from timeline.recorded import Imported


async def import_files(files: Sequence[Path], db: str, *, as_json: bool) -> int:
    """Import files; report a bad one and go on with the others.

    The database is opened when the first file has been read: a wrong file makes no empty database. An error of the
    database ends the import; what was imported until then is reported, and stays.
    """
    worst = Exit.OK
    done: list[Imported] = []
    async with AsyncExitStack() as stack:
        store: EventStore | None = None
        for file in files:
            try:
                recordings = read_recording(file)
                if store is None:
                    store = await stack.enter_async_context(adding(db))
                for recording in recordings:
                    done.append(await _import(store, recording, file))  # noqa: PERF401 - kept when a later one fails
            except TimelineError as error:
                note(one_line(error))
                worst = max(worst, exit_code(error))
                if isinstance(error, StoreError):
                    break
    if as_json:
        with JsonList() as rows:
            for imported in done:
                rows.add(imported.dump())
    elif done:
        _print_imports(done, db)
    return worst


async def _import(store: EventStore, recording: Recording, file: Path) -> Imported:
    with progress(f"importing {file.name}", len(recording.events)) as advance:
        return await import_recording(store, recording, on_progress=advance)


def _print_imports(done: Sequence[Imported], db: str) -> None:
    rows = []
    for imported in done:
        counts = imported.report.get("counts", {})
        met = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in counts.items())
        rows.append((imported.id, imported.events, imported.known, imported.report.get("format", ""), met))
    output.table(("id", "added", "known", "format", "met on the way"), rows)
    if lasts(db):
        write()
        write(paint("Next:", bold=True) + f"  timeline show {quote(done[0].id)}{_option(db)}")


def _option(db: str) -> str:
    return f" --db {quote(db)}"


async def simulate_file(
    file: Path, db: str, policy_name: str, max_tokens: int | None, system: str | None, *, as_json: bool
) -> None:
    """Run a recording under a policy, the main conversation and its subagents, each into a new conversation.

    Raises:
        ImportFailed: the file is no recording.
        InvalidPolicy: there is no such preset, or it cannot have this limit.
        StoreError: the database cannot be written.
    """
    wish = Wish(policy=policy_name, max_tokens=max_tokens, system=system)
    policy, prompt = wish.make_policy(), wish.system_text()
    recordings = read_recording(file)
    results: list[dict[str, Any]] = []
    async with adding(db) as store:
        for recording in recordings:
            with progress(f"simulating {recording.id}", len(recording.events)) as advance:
                result = await simulate(store, recording, policy, system=prompt, on_progress=advance)
            results.append(result.dump())
    main = {**results[0], "subagents": results[1:]}
    if as_json:
        output.write_json(main)
    else:
        _print_simulation(main, wish, policy.max_tokens, db)


def _print_simulation(main: dict[str, Any], wish: Wish, max_tokens: int, db: str) -> None:
    runs = [main, *main["subagents"]]
    write(f"{wish.policy} at {max_tokens:,} tokens: " + paint(output.plain(main["id"]), bold=True))
    write()
    if main["steps"]:
        _print_steps(main["steps"])
        write()
    _print_totals(runs)
    for error in main["errors"][:3]:
        write(f"  version {error['version']}: {output.plain(error['message'])}")
    if lasts(db):
        _print_next(main, wish, max_tokens, db)


def _print_steps(steps: Sequence[dict[str, Any]]) -> None:
    output.table(
        ("version", "why", "before", "after", "covers versions", "split turn", "carried"),
        [
            (
                step["version"],
                step["reason"].replace("_", " "),
                step["before_tokens"],
                step["after_tokens"],
                ", ".join(f"{first}-{last}" for first, last in step["covers"]),
                step["split_turn_id"] or "-",
                step["carried"],
            )
            for step in steps
        ],
    )


def _print_totals(runs: Sequence[dict[str, Any]]) -> None:
    rows = [
        (
            "main" if number == 0 else f"subagent {number}",
            run["renders"],
            run["compactions"],
            run["largest"],
            run["orphans"],
            run["uncovered"],
            run["no_progress"],
            run["over_limit"],
            run["typed_errors"],
        )
        for number, run in enumerate(runs)
    ]
    output.table(
        (
            "",
            "renders",
            "compactions",
            "largest",
            "orphans",
            "uncovered",
            "no progress",
            "over limit",
            "refused",
        ),
        rows,
    )


def _print_next(main: dict[str, Any], wish: Wish, max_tokens: int, db: str) -> None:
    id_ = quote(main["id"])
    limits = f"--policy {wish.policy} --max-tokens {max_tokens}"
    write()
    write(paint("Next:", bold=True) + f"  timeline render {id_} {limits}{_option(db)}")
    if main["steps"]:
        write(f"       timeline read {id_} {quote(main['steps'][-1]['summary'])}{_option(db)}")
    write(f"       timeline verify {id_}{_option(db)}")
