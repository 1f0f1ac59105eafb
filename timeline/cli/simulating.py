"""`timeline simulate`: try policies on recordings and stored conversations, each run in a new conversation."""

from __future__ import annotations

import time
from collections import Counter
from math import isfinite
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.cli import output
from timeline.cli.database import adding, db_option, lasts
from timeline.cli.exits import Exit, UsageProblem, exit_code, one_line
from timeline.cli.output import note, paint, progress, say, write
from timeline.cli.sources import Logged, Recorded, find_sources
from timeline.errors import TimelineError
from timeline.lab.simulate import simulate, simulate_from

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager

    from timeline.cli.contexts import Wish
    from timeline.cli.shapes import SimulatedRow
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


class Options(NamedTuple):
    """What all runs of a command share: the database, what is written to it, and from where and how fast they go."""

    db: str
    keep: bool = False
    call: int | None = None
    pauses: float = 1.0

    def check(self) -> None:
        """Check the options that do not depend on what is run.

        Raises:
            UsageProblem: an option has no meaning.
        """
        if not isfinite(self.pauses) or self.pauses < 0:
            raise UsageProblem(f"--pauses {self.pauses} is not a factor. Write 0 for no pauses, 2 for twice as long.")


async def simulate_files(named: Sequence[str], wishes: Sequence[Wish], options: Options, *, as_json: bool) -> int:
    """Run recordings and stored conversations under policies; each conversation and subagent becomes a new one.

    One run is printed in full, several runs as a table with a row each. If one of several files cannot be read, it is
    reported and the others are run.

    Raises:
        UsageProblem: an option does not fit.
    """
    options.check()
    tries = [Try(wish, wish.make_policy()) for wish in wishes]
    worst = Exit.OK
    sources: list[Recorded | Logged] = []
    for one in named:
        try:
            sources += [_fitting(source, options) for source in await find_sources(one, options.db)]
        except TimelineError as error:
            if len(named) == 1:
                raise
            note(one_line(error))
            worst = max(worst, exit_code(error))
    if len(sources) == len(tries) == 1 and len(named) == 1:
        await _one(sources[0], tries[0], options, as_json=as_json)
        return Exit.OK
    return max(worst, await _several(sources, tries, options, as_json=as_json))


def _fitting(source: Recorded | Logged, options: Options) -> Recorded | Logged:
    """Return a source that the options fit.

    Raises:
        UsageProblem: a recording is not a log.
    """
    if isinstance(source, Logged):
        if options.call is not None:
            source.stored.before_call(options.call)
    elif options.call is not None or options.keep:
        raise UsageProblem(
            f"{source.name}: this is a recording, which always runs from its beginning and is kept in the database. "
            "Use --call and --keep with a conversation of the database, or with a file of `timeline export`."
        )
    return source


async def _one(source: Recorded | Logged, tried: Try, options: Options, *, as_json: bool) -> None:
    async with _store(source, options) as store:
        main = await _run(store, source, tried, options, "")
    if as_json:
        output.write_json(main)
    else:
        _print_simulation(main, tried, _kept_in(source, options))


async def _several(
    sources: Sequence[Recorded | Logged], tries: Sequence[Try], options: Options, *, as_json: bool
) -> int:
    rows: list[SimulatedRow] = []
    for source in sources:
        async with _store(source, options) as store:
            for tried in tries:
                of = f" ({len(rows) + 1} of {len(sources) * len(tries)})"
                rows.append(await _row(store, source, tried, options, of))
    if as_json:
        with output.JsonList() as written:
            for row in rows:
                written.add(row)
    elif rows:
        _print_rows(rows, _kept_in(sources[0], options))
    return Exit.OK


def _kept_in(source: Recorded | Logged, options: Options) -> str:
    """Return the database that the new conversation is in."""
    return options.db if isinstance(source, Recorded) or options.keep else "memory://"


def _store(source: Recorded | Logged, options: Options) -> AbstractAsyncContextManager[EventStore]:
    return adding(options.db) if isinstance(source, Recorded) else source.store(options.db, keep=options.keep)


async def _run(store: EventStore, source: Recorded | Logged, tried: Try, options: Options, of: str) -> dict[str, Any]:
    """Simulate a main conversation and its subagents; return the main report, with the others under ``subagents``."""
    results: list[dict[str, Any]] = []
    for recording in [source.stored.recording] if isinstance(source, Logged) else source.recordings:
        given: dict[str, Any] = {"system": tried.wish.system_text(), "pauses": options.pauses}
        with progress(f"simulating {recording.id}, {tried.name}{of}", len(recording.events)) as advance:
            if isinstance(source, Logged) and options.call is not None:
                result = await simulate_from(
                    store, source.stored, tried.policy, call=options.call, **given, on_progress=advance
                )
            else:
                result = await simulate(store, recording, tried.policy, **given, on_progress=advance)
        results.append(result.dump())
    return {**results[0], "subagents": results[1:]}


async def _row(store: EventStore, source: Recorded | Logged, tried: Try, options: Options, of: str) -> SimulatedRow:
    began = time.perf_counter()
    main = await _run(store, source, tried, options, of)
    refusals = Counter(error["type"] for run in _runs(main) for error in run["errors"])
    return {
        "file": source.name,
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
                ", ".join(f"{first}-{last}" for first, last in step["covers"]["ranges"]),
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
        write(f"       timeline read {id_} {quote(main['steps'][-1]['summary_path'])}{db_option(db)}")
    write(f"       timeline verify {id_}{db_option(db)}")
