"""The data of the report page: a comparison as compact arrays, one column for each figure of the calls.

A column that is zero at most calls is written as pairs, `[call, value, call, value, …]`; calls count from 0 here. The
page contains only as much of a file's path as distinguishes it from the others.
"""

from __future__ import annotations

from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_args

import timeline
from timeline.lab.cache import BreakCause
from timeline.lab.comparison import cheapest, cost_of, standings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from timeline.lab.comparison import CostIn, Standing
    from timeline.lab.prices import Price
    from timeline.lab.results import ReplayedCallRow, RunResult
    from timeline.lab.work import Outcome, Work

PriceOf: TypeAlias = "Callable[[str], Price]"

CAUSES: Final = tuple(get_args(BreakCause))
"""The page refers to a cause by its place here."""
PARTS: Final = ("read", "written", "uncached", "summaries")
"""Of a cost, in the order of the page's bars."""
_MILLION: Final = 1_000_000

_DENSE: Final = ("read", "written", "uncached", "visible")
_SPARSE: Final = ("lost", "collapsed", "hidden", "compactions", "splits", "covered_tokens", "needs", "hidden_needs")
_TOTALS: Final = ("calls", "units", "money", "compactions", "splits", "hides", "needs", "hidden_needs", "over_limit")
_FACTS: Final = ("facts_near", "facts_middle", "facts_far", "reachable_near", "reachable_middle", "reachable_far")
_TOTALS_TOO: Final = ("orphans", "priced", "seconds", "write_share", "mean_visible", "mean_visible_at_end")


def page_data(works: Sequence[Work], outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the data of a comparison's page, ready for JSON.

    Args:
        works: the planned units.
        outcomes: the outcome of each.
    """
    runs = [run for outcome in outcomes for run in outcome.runs]
    stands = standings(works, outcomes)
    policies = list(dict.fromkeys(stand.policy for stand in stands))
    cost_in, price_of = stands[0].cost_in, cache(works[0].options.price_of())
    recordings = list({(run.file, run.conversation): run for run in runs}.values())
    all_files = list(dict.fromkeys(work.file for work in works))
    names = dict(zip(all_files, _short(all_files), strict=True))
    called = _called(policies)
    places = {(run.file, run.conversation): place for place, run in enumerate(recordings)}
    limits = []
    for limit in dict.fromkeys(stand.max_tokens for stand in stands):
        here = [run for run in runs if run.max_tokens == limit]
        at = _limit(limit, [stand for stand in stands if stand.max_tokens == limit], here, price_of, called)
        at["runs"] = [
            {
                "policy": policies.index(run.policy),
                "recording": places[run.file, run.conversation],
                **_run(run, cost_in),
            }
            for run in here
        ]
        limits.append(at)
    failed = [
        outcome.failure.message.replace(work.file, names[work.file])
        for work, outcome in zip(works, outcomes, strict=True)
        if outcome.failure
    ]
    return {
        "version": timeline.__version__,
        "causes": CAUSES,
        "parts": PARTS,
        "policies": list(called.values()),
        "cost_in": cost_in,
        "unpriced": sorted({row.model for run in recordings for row in run.rows if not price_of(row.model).known}),
        "recordings": [
            {
                **_recording(run, names[run.file], recordings),
                "rates": [_rate(price_of(m), cost_in) for m in _models(run)],
            }
            for run in recordings
        ],
        "limits": limits,
        "failures": list(dict.fromkeys(failed)),
    }


def _limit(
    limit: int,
    stands: Sequence[Standing],
    runs: Sequence[RunResult],
    price_of: PriceOf,
    called: Mapping[str, str],
) -> dict[str, Any]:
    best = cheapest(stands)
    return {
        "limit": limit,
        "cheapest": None if best is None else stands.index(best),
        "capped": any(run.fixed < run.measured_fixed for run in runs),
        "rows": [
            {
                "policy": called[stand.policy],
                **_row(stand, [run for run in runs if run.policy == stand.policy], price_of),
            }
            for stand in stands
        ],
    }


def _row(stand: Standing, runs: Iterable[RunResult], price_of: PriceOf) -> dict[str, Any]:
    """Return the figures of a policy's line of the tables."""
    totals = stand.totals
    figures = {name: _rounded(getattr(totals, name)) for name in (*_TOTALS, *_TOTALS_TOO, *_FACTS)}
    parts = [0.0] * len(PARTS)
    for run in runs:
        for row in run.rows:
            price = price_of(row.model)
            rate = _rate(price, stand.cost_in)
            parts = [total + part * rate for total, part in zip(parts, _parts(row, price), strict=True)]
    return {
        "cost": _rounded(stand.cost),
        "relative": stand.relative,
        "adjusted": _rounded(stand.adjusted),
        "failed": stand.failed_recordings,
        "keeps": stand.keeps_to_the_limit,
        **figures,
        "collapses": totals.collapses,
        "lost": totals.lost,
        "refused": totals.refused,
        "parts": [_rounded(part) for part in parts],
    }


def _parts(row: ReplayedCallRow, price: Price) -> tuple[float, float, float, float]:
    """Return the parts of a call's cost in base tokens; the written part is the rest of the input's cost."""
    model = price.model
    dearer = model.tier_input if model.tier is not None and row.tokens > model.tier else 1.0
    read, uncached = row.read * model.read / model.input * dearer, row.uncached * dearer
    return read, max(0.0, row.units - read - uncached), uncached, row.summary_units


def _rate(price: Price, cost_in: CostIn) -> float:
    """Return the cost of a model's base token, in the unit of the comparison."""
    return price.model.input / _MILLION if cost_in == "money" else 1.0


def _models(run: RunResult) -> list[str]:
    """Return the models that a recording's calls went to, the first one first."""
    return list(dict.fromkeys(row.model for row in run.rows))


def _recording(run: RunResult, name: str, recordings: Sequence[RunResult]) -> dict[str, Any]:
    """Return the data of a recording that is the same under every policy: its name, times and models."""
    of_file = [other.conversation for other in recordings if other.file == run.file]
    seconds = [int(row.at.timestamp()) for row in run.rows]
    models = _models(run)
    return {
        "name": name,
        "conversation": run.conversation,
        "part": "" if run.conversation == of_file[0] else run.conversation.removeprefix(of_file[0]).lstrip("./:-"),
        "subagent": run.subagent,
        "start": seconds[0],
        "at": [second - seconds[0] for second in seconds],
        "models": models,
        "model": _pairs([models.index(row.model) for row in run.rows]),
    }


def _run(run: RunResult, cost_in: CostIn) -> dict[str, Any]:
    """Return the columns of a run's calls; ``units`` are base tokens of the input, ``cost`` is the whole run's."""
    columns: dict[str, Any] = {name: [getattr(row, name) for row in run.rows] for name in _DENSE}
    columns["units"] = [round(row.units) for row in run.rows]
    sparse = {name: [int(getattr(row, name)) for row in run.rows] for name in _SPARSE}
    sparse["cause"] = [0 if row.cause is None else 1 + CAUSES.index(row.cause) for row in run.rows]
    sparse["summary"] = [round(row.summary_units) for row in run.rows]
    sparse["over_limit"] = [int(row.over_limit) for row in run.rows]
    refused: Mapping[int, str] = {place: row.refused for place, row in enumerate(run.rows) if row.refused}
    return {
        "cost": _rounded(cost_of(run.totals, cost_in)),
        **columns,
        **{name: _pairs(values) for name, values in sparse.items()},
        "refused": [fact for pair in refused.items() for fact in pair],
    }


def _pairs(values: Sequence[int]) -> list[int]:
    """Return a mostly zero column as pairs: the place and the value of each entry that is not zero."""
    return [fact for place, value in enumerate(values) if value for fact in (place, value)]


def _rounded(value: float) -> float:
    return value if isinstance(value, int) else float(f"{value:.10g}")


def _called(policies: Sequence[str]) -> dict[str, str]:
    """Return the page's name of each policy; a file is named by as little of its path as distinguishes it."""
    files = [name for name in policies if name.endswith(".toml")]
    return {name: name for name in policies} | dict(zip(files, _short(files), strict=True))


def _short(files: Sequence[str]) -> list[str]:
    """Shorten each path to the end that distinguishes it from the others; the paths must be unique."""
    parts = [PurePath(file).parts for file in files]
    for length in range(1, max(map(len, parts), default=1)):
        ends = ["/".join(part[-length:]) for part in parts]
        if len(set(ends)) == len(files):
            return ends
    return list(files)
