"""`timeline lab`: replay recordings under several policies, and print what each would have cost."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from timeline.cli import output
from timeline.cli.exits import Exit, UsageProblem
from timeline.cli.lab.calls import MOST_CALLS, in_words, print_differences
from timeline.cli.lab.classes import print_classes
from timeline.cli.lab.recall import print_recall
from timeline.cli.output import note, progress, say, write
from timeline.databases import is_database
from timeline.lab.cache_files import OutcomeFolder
from timeline.lab.comparison import by_lifetime, comparable, standings
from timeline.lab.differences import against_the_first
from timeline.lab.prices import read_prices
from timeline.lab.report.page import page
from timeline.lab.runner import dask_executor, plan, run
from timeline.lab.work import Options
from timeline.policy.files import find_policy
from timeline.policy.text import nearest
from timeline.store.private_files import make_private

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    from timeline.cli.shapes import LabTable
    from timeline.lab.comparison import Standing
    from timeline.lab.results import RunResult
    from timeline.lab.work import Outcome, Work
    from timeline.policy.model import Policy
    from timeline.usage import CacheKind


_LEAST_LIMIT: Final = 1_000
"""Tokens of the smallest limit of a policy."""


class Wanted(NamedTuple):
    """What to compare, and how: the options, before they are checked."""

    policies: Sequence[str]
    limits: Sequence[int]
    prices: Path | None = None
    price_as: str = ""
    fixed: int | None = None
    subagents: bool = True
    recorded_summaries: bool = False
    call: int | None = None
    facts: bool = False
    cache: str | None = None
    reserve: int | None = None

    def tries(self) -> list[tuple[str, Policy]]:
        """Return every policy with every limit, once each.

        Raises:
            UsageProblem: what `--reserve` leaves of a limit is no limit.
        """
        if self.reserve is not None and (narrow := min(self.limits)) - self.reserve < _LEAST_LIMIT:
            raise UsageProblem(f"--reserve {self.reserve:,} leaves less than {_LEAST_LIMIT:,} tokens of {narrow:,}.")
        limits, names = dict.fromkeys(self.limits), dict.fromkeys(self.policies)
        return [(name, find_policy(name, max_tokens=limit)) for limit in limits for name in names]

    def options(self) -> Options:
        """Return the options that all runs share.

        Raises:
            UsageProblem: the model of `--price-as` has no price.
        """
        table = read_prices(self.prices)
        if self.price_as and not table.price_of(self.price_as).known:
            names = {name for price in table.prices for name in price.models}
            close = nearest(self.price_as, names)
            raise UsageProblem(f"No model {self.price_as!r} has a price{close}. Give it one with --prices.")
        return Options(
            prices=None if self.prices is None else table,
            price_as=self.price_as,
            fixed=self.fixed,
            subagents=self.subagents,
            summaries="recorded" if self.recorded_summaries else "extractive",
            call=self.call,
            facts=self.facts,
            cache=cast("CacheKind | None", self.cache),
            reserve=self.reserve,
        )


def compare(
    files: Sequence[Path],
    wanted: Wanted,
    *,
    jobs: int | None,
    cluster: str | None,
    resume: Path | None,
    calls: bool,
    html: Path | None,
    as_json: bool,
) -> int:
    """Replay recordings under policies, and print what each would have cost.

    A file that cannot be read, or that has no model call, is reported, and the others are run.

    Raises:
        UsageProblem: the folder of the page does not exist, the model of `--price-as` has no price, or the cluster does
            not answer.
        OSError: the page or the folder of the kept outcomes cannot be written.
    """
    if html is not None:
        _check_place(html)
    works = plan([str(file) for file in files], wanted.tries(), wanted.options())
    kept = None if resume is None else OutcomeFolder(resume)
    with progress("replaying", len(works)) as advance:
        if cluster is None:
            outcomes = run(works, jobs=jobs, kept=kept, on_done=advance)
        else:
            with ExitStack() as connected:
                outcomes = run(works, executor=_on_cluster(cluster, connected), kept=kept, on_done=advance)
    failures = _failures(works, outcomes)
    stands, classes = standings(works, outcomes), by_lifetime(works, outcomes)
    runs = [one for outcome in outcomes for one in outcome.runs]
    differing = against_the_first(runs) if calls else {}
    if html is not None and runs:  # before the table: its reader may close the pipe
        _write_page(html, page(works, outcomes))
    if as_json:
        listed = [one.model_dump(mode="json") for found in differing.values() for one in found[:MOST_CALLS]]
        found: LabTable = {
            "policies": [stand.dump() for stand in stands],
            "lifetimes": [stand.dump() for stand in classes],
            "runs": [one.dump(calls=calls) for one in runs],
            "differences": listed,
            "failures": failures,
        }
        output.write_json(found)
    elif runs:
        _print(stands, runs)
        _print_unpriced(runs, works[0].options)
        _print_hour(runs, works)
        print_classes(classes)
        if wanted.facts:
            print_recall(stands)
        print_differences(differing, comparable(runs))
    for failure in failures:
        note(failure["message"])
    for file in _without_calls(works, outcomes):
        note(f"{file}: the recording contains no model call, so there is nothing to replay.")
    return Exit.OK if runs and not failures else Exit.USAGE


def _check_place(html: Path) -> None:
    if not html.absolute().parent.is_dir():
        raise UsageProblem(f"{html}: its folder does not exist. Make it first.")
    if is_database(html):
        raise UsageProblem(f"{html}: this is a database, which a report never replaces. Name another file.")


def _write_page(html: Path, text: str) -> None:
    with suppress(FileExistsError):  # who may read a file that is there is not ours to say
        make_private(html)
    html.write_text(text, encoding="utf-8")
    note(f"the report is in {html}")


def _on_cluster(scheduler: str, connected: ExitStack) -> Executor:
    """Connect to a Dask cluster until the stack is left.

    Raises:
        UsageProblem: the address is none, or nothing answers there.
    """
    try:
        return connected.enter_context(dask_executor(scheduler))
    except (OSError, ValueError) as error:
        cure = "Name a scheduler that runs, such as tcp://127.0.0.1:8786; `dask scheduler` starts one."
        raise UsageProblem(f"--dask {scheduler!r}: no cluster is reached ({error}). {cure}") from error


def _failures(works: Sequence[Work], outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return each failure once: a file that is no recording fails under every policy."""
    by_failure = {
        (work.file, outcome.failure.type): {"file": work.file, **outcome.failure.model_dump()}
        for work, outcome in zip(works, outcomes, strict=True)
        if outcome.failure is not None
    }
    return list(by_failure.values())


def _without_calls(works: Sequence[Work], outcomes: Sequence[Outcome]) -> list[str]:
    """Return the files that could be read but contain no model call."""
    pairs = zip(works, outcomes, strict=True)
    return list(dict.fromkeys(work.file for work, outcome in pairs if outcome.failure is None and not outcome.runs))


def _print(stands: Sequence[Standing], runs: Sequence[RunResult]) -> None:
    read = {one.file for one in runs}
    conversations = {(one.file, one.conversation) for one in runs}
    counted = ((len(read), "file"), (len(conversations), "conversation"), (stands[0].totals.calls, "model call"))
    write(", ".join(f"{count:,} {name}{'' if count == 1 else 's'}" for count, name in counted))
    write()
    output.table(_HEADS, [_cells(stand) for stand in stands], keys=2)
    write()
    unit = _UNITS[stands[0].cost_in]
    first = stands[0].policy
    say(f"cost: of all input and the summaries, as a share of the cost of {first}, in {unit}.")
    if any(stand.totals.collapses for stand in stands):
        say("cache broke: calls that lost more than half of the cached prefix, by cause.")
    if any(stand.totals.refused for stand in stands):
        say(f"refused: a refused call costs nothing, so the share compares only the other calls with {first}.")
    if any(stand.totals.refused for stand in stands if stand.policy == first):
        say(f"{first} itself refuses calls: no share includes what the others pay for these.")
    for stand in stands:
        if stand.same_as:
            say(f"{stand.policy} at {stand.max_tokens:,} sends the same as {stand.same_as} at every call.")
        if stand.failed_recordings:
            name, count = stand.policy, stand.failed_recordings
            failed = f"{count:,} file{'' if count == 1 else 's'} could not be replayed under {name}"
            say(f"{failed} at {stand.max_tokens:,}, so its cost cannot be compared with others.")
    capped = {one.max_tokens for one in runs if one.fixed < one.measured_fixed}
    if resumed := {(one.file, one.conversation) for one in runs if one.unrecorded}:
        named = f"{len(resumed):,} conversation{'' if len(resumed) == 1 else 's'}"
        say(f"{named} went on from another file: of the history before that, only the size is replayed.")
    for limit in sorted(capped):
        say(f"At {limit:,} the system prompt and tools would leave no room: they are counted as smaller than they are.")


def _print_unpriced(runs: Sequence[RunResult], options: Options) -> None:
    """Name the models without a price, and say what is taken for their provider's cache: a local model has none."""
    price_of = options.price_of()
    models = {model for model in {row.model for one in runs for row in one.rows} if not price_of(model).known}
    if models and options.cache is None:
        names = ", ".join(sorted(model or "a model that the recording does not name" for model in models))
        say(f"No price is known of {names}: the calls count as if Anthropic's cache kept them, at its ratios.")
        say("For a local model use --cache none; --prices takes a file with your own prices and rules.")


def _print_hour(runs: Sequence[RunResult], works: Sequence[Work]) -> None:
    """Say that recordings of an hour do not show what policies ask the hour for, where they ask differently."""
    differ = len({work.policy.cache_points.kept_long for work in works}) > 1
    if differ and works[0].options.cache is None and any(one.lifetime == "1h" for one in runs):
        say("What was kept for an hour is so under every policy; --cache 5m lets each policy decide.")


_UNITS: Final = {"money": "dollars", "units": "base tokens, as a model has no price"}
_HEADS: Final = (
    "policy",
    "limit",
    "cost",
    "dollars",
    "base tokens",
    "written",
    "cache broke",
    "compactions",
    "split",
    "hides",
    "visible",
    "at end",
    "room left",
    "needs hidden",
    "over limit",
    "orphans",
    "refused",
    "seconds",
)


def _cells(stand: Standing) -> tuple[object, ...]:
    totals = stand.totals
    return (
        stand.policy,
        stand.max_tokens,
        "-" if stand.relative is None else f"{stand.relative:.3f}",
        f"{totals.money:.2f}" if totals.priced else "-",
        round(totals.units),
        f"{totals.write_share:.1%}",
        ", ".join(f"{count:,}x {in_words(cause)}" for cause, count in totals.collapses.items()) or "-",
        totals.compactions,
        totals.splits,
        totals.hides,
        round(totals.mean_visible),
        round(totals.mean_visible_at_end),
        stand.max_tokens - totals.largest,
        f"{totals.hidden_needs} of {totals.needs}",
        totals.over_limit,
        totals.orphans,
        ", ".join(f"{kind} {count:,}" for kind, count in totals.refused.items()) or "-",
        f"{totals.seconds:.1f}",
    )
