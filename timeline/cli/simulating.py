"""`timeline simulate`: try policies on recordings, each run in a new conversation."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.cli import output
from timeline.cli.database import adding, db_option, lasts
from timeline.cli.exits import Exit, exit_code, one_line
from timeline.cli.output import note, paint, progress, say, write
from timeline.errors import ImportFailed
from timeline.importers import read_recording
from timeline.lab.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.cli.contexts import Wish
    from timeline.cli.shapes import SimulatedRow
    from timeline.importers import Recording
    from timeline.policy.model import Policy
    from timeline.ports import EventStore


class Try(NamedTuple):
    """A policy to try, with the options that it was made from."""

    wish: Wish
    policy: Policy

    @property
    def name(self) -> str:
        """The name of the preset, or the file."""
        return self.wish.name


async def simulate_files(files: Sequence[Path], db: str, wishes: Sequence[Wish], *, as_json: bool) -> int:
    """Run recordings under policies. Each main conversation and each of its subagents becomes a new conversation.

    One run is printed in full, several runs as a table with a row each. If one of several files cannot be read, it is
    reported and the others are run.

    Raises:
        ImportFailed: the only file is not a recording.
        InvalidPolicy: there is no such policy, or it cannot have this limit.
        StoreError: the database cannot be written.
    """
    tries = [Try(wish, wish.make_policy()) for wish in wishes]
    if len(files) == len(tries) == 1:
        await _one(files[0], db, tries[0], as_json=as_json)
        return Exit.OK
    return await _several(files, db, tries, as_json=as_json)


async def _one(file: Path, db: str, tried: Try, *, as_json: bool) -> None:
    recordings = read_recording(file)
    async with adding(db) as store:
        main = await _run(store, recordings, tried, "")
    if as_json:
        output.write_json(main)
    else:
        _print_simulation(main, tried, db)


async def _several(files: Sequence[Path], db: str, tries: Sequence[Try], *, as_json: bool) -> int:
    worst = Exit.OK
    read: list[tuple[Path, list[Recording]]] = []
    for file in files:
        try:
            read.append((file, list(read_recording(file))))
        except ImportFailed as error:
            note(one_line(error))
            worst = max(worst, exit_code(error))
    rows: list[SimulatedRow] = []
    if read:
        async with adding(db) as store:
            for file, recordings in read:
                for tried in tries:
                    of = f" ({len(rows) + 1} of {len(read) * len(tries)})"
                    rows.append(await _row(store, file, recordings, tried, of))
    if as_json:
        with output.JsonList() as written:
            for row in rows:
                written.add(row)
    elif rows:
        _print_rows(rows, db)
    return worst


async def _run(store: EventStore, recordings: Sequence[Recording], tried: Try, of: str) -> dict[str, Any]:
    """Simulate a main conversation and its subagents; return the main report, with the others under ``subagents``."""
    system = tried.wish.system_text()
    results: list[dict[str, Any]] = []
    for recording in recordings:
        with progress(f"simulating {recording.id}, {tried.name}{of}", len(recording.events)) as advance:
            result = await simulate(store, recording, tried.policy, system=system, on_progress=advance)
        results.append(result.dump())
    return {**results[0], "subagents": results[1:]}


async def _row(store: EventStore, file: Path, recordings: Sequence[Recording], tried: Try, of: str) -> SimulatedRow:
    began = time.perf_counter()
    main = await _run(store, recordings, tried, of)
    refusals = Counter(error["type"] for run in _runs(main) for error in run["errors"])
    return {
        "file": str(file),
        "policy": tried.name,
        "max_tokens": tried.policy.max_tokens,
        "seconds": round(time.perf_counter() - began, 3),
        "refusals": dict(refusals),
        **main,  # type: ignore[typeddict-item]  # `Simulation.dump()` with `subagents`
    }


def _runs(main: Any) -> list[dict[str, Any]]:
    return [main, *main["subagents"]]


_SOUND: Final = "orphans, uncovered, no progress and over limit count broken invariants: all are 0 in a sound run."
_SUMMED: Final = ("renders", "compactions", "hides", "orphans", "uncovered", "no_progress", "over_limit")


def _print_rows(rows: Sequence[SimulatedRow], db: str) -> None:
    """Print a row for each run, then for several files the sums of each policy and limit."""
    named = {row["file"]: Path(row["file"]).name for row in rows}
    short = named if len(set(named.values())) == len(named) else {file: file for file in named}
    heads = ("policy", "limit", *(name.replace("_", " ") for name in _SUMMED), "largest", "seconds", "refused")
    output.table(("file", *heads), [(short[row["file"]], *_cells([row])) for row in rows], keys=3)
    if len(named) > 1:
        together: dict[tuple[str, int], list[SimulatedRow]] = {}
        for row in rows:
            together.setdefault((row["policy"], row["max_tokens"]), []).append(row)
        write()
        write(paint(f"All {len(named)} files", bold=True))
        output.table(heads, [_cells(runs) for runs in together.values()], keys=2)
    say(_SOUND)
    if lasts(db):
        write()
        write(paint("Next:", bold=True) + f"  timeline ls{db_option(db)}")


def _cells(rows: Sequence[SimulatedRow]) -> tuple[object, ...]:
    """Return the summed cells of the runs of one policy and limit, subagents included."""
    runs = [run for row in rows for run in _runs(row)]
    refusals: Counter[str] = Counter()
    for row in rows:
        refusals.update(row["refusals"])
    return (
        rows[0]["policy"],
        rows[0]["max_tokens"],
        *(sum(run[name] for run in runs) for name in _SUMMED),
        max(run["largest"] for run in runs),
        f"{sum(row['seconds'] for row in rows):.1f}",
        ", ".join(f"{kind} {count:,}" for kind, count in refusals.items()) or "-",
    )


def _print_simulation(main: dict[str, Any], tried: Try, db: str) -> None:
    write(f"{tried.name} at {tried.policy.max_tokens:,} tokens: " + paint(main["id"], bold=True))
    write()
    if main["steps"]:
        _print_steps(main["steps"])
        write()
    _print_totals(_runs(main))
    for error in main["errors"][:3]:
        write(f"  version {error['version']}: {error['message']}")
    if lasts(db):
        _print_next(main, db)


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
    say(_SOUND)


def _print_next(main: dict[str, Any], db: str) -> None:
    id_ = quote(main["id"])
    write()
    write(paint("Next:", bold=True) + f"  timeline render {id_}{db_option(db)}")
    if main["steps"]:
        write(f"       timeline read {id_} {quote(main['steps'][-1]['summary'])}{db_option(db)}")
    write(f"       timeline verify {id_}{db_option(db)}")
