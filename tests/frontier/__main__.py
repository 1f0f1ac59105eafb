"""``python -m tests.frontier RECORDING…``: the search that docs/lab.md tells of, and its tables.

In the order that they are given in, every other recording is searched, the first one among them, and the rest is looked
at with what was found. Replays are kept in a folder, so that a search goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.frontier.carrying import carried, halves, over_halves
from tests.frontier.points import answers, frontier, replays
from tests.frontier.settings import EVERYTHING, FIXED_PART, LONGER, PUBLISHED, SETTINGS, longer, named
from timeline.lab.keeping import Kept

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from tests.frontier.points import Answer, Point, Replays
    from timeline.policy.model import Policy

LIMITS: Final = (200_000, 100_000, 32_000)
BAR: Final = 0.95
"""What a setting of ours may cost of a published default, to count as better."""
_SETTINGS: Final = ("setting", "cost · in sight · needs out of sight")
_ANSWERS: Final = ("published", "cost · in sight · needs out of sight", "ours, no less in sight", "the same", "ratio")
_CARRIED: Final = ("limit", "searched", "by the frontier found", "by one setting on both", "with defaults for an hour")
_HALVES: Final = ("limit", "ways", "by the frontier found", "by one setting on both", "with defaults for an hour")
_LONGER: Final = ("published", "fixed part, searched", "not searched", "everything, searched", "not searched")


def main() -> None:
    """Search, and print what was found as Markdown."""
    options = _options()
    found = _replays(options)
    searched, others = options.recordings[0::2], options.recordings[1::2]
    _tell(f"\n## Recordings that were searched ({len(searched)})\n")
    best = {limit: frontier(_of(found.points(limit, searched), SETTINGS)) for limit in options.limits}
    for limit, points in best.items():
        title = f"Our settings at {limit:,} that no other betters: {len(points)} of {len(SETTINGS)}"
        _table(title, _SETTINGS, [_row(point) for point in points])
        _answers_at(limit, found.points(limit, searched), SETTINGS)
    _tell(f"\n## Recordings that were not searched ({len(others)}), answered by those settings\n")
    for limit, points in best.items():
        _answers_at(limit, found.points(limit, others), [point.policy for point in points])
    _tell("\n## How far a search carries\n")
    _table("One half searched, the other looked at", _CARRIED, _both_ways(found, options.limits, searched, others))
    _table("Any half searched", _HALVES, [_any_half(found, limit, options.recordings) for limit in options.limits])
    _tell("\n## Published defaults that ask for an hour\n")
    for limit in options.limits:
        sides = [{point.policy: point for point in found.points(limit, half)} for half in (searched, others)]
        told = [_longer(name, sides) for name in PUBLISHED if all(side[name].sound for side in sides)]
        _table(f"Their cost at {limit:,} as a share of their own", _LONGER, told)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.frontier", description=__doc__)
    parser.add_argument("recordings", nargs="+")
    parser.add_argument("--limit", dest="limits", type=int, action="append", help="tokens; 200k, 100k and 32k")
    parser.add_argument("--kept", type=Path, default=Path(".frontier"), help="folder of the replays")
    parser.add_argument("--jobs", type=int, help="processes; one a core")
    options = parser.parse_args()
    options.limits = options.limits or list(LIMITS)
    return options


def _replays(options: argparse.Namespace) -> Replays:
    makers: dict[str, Callable[[int], Policy]] = {name: named(name) for name in ("none", *PUBLISHED)}
    makers |= {**SETTINGS, **LONGER}
    whole = len(options.recordings) * len(makers) * len(options.limits)

    def told(done: int) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{done} of {whole} replays")

    kept = Kept(options.kept)
    return replays(options.recordings, makers, options.limits, kept=kept, jobs=options.jobs, on_done=told)


def _of(points: Iterable[Point], names: Collection[str]) -> list[Point]:
    return [point for point in points if point.policy in names]


def _answers_at(limit: int, points: Sequence[Point], ours: Collection[str]) -> None:
    found = answers(_of(points, PUBLISHED), _of(points, ours))
    met = sum(answer.ratio is not None and answer.ratio <= BAR for answer in found)
    title = f"Published defaults at {limit:,}: {met} of {len(found)} at most {BAR} of their cost"
    _table(title, _ANSWERS, [_answer(answer) for answer in found])


def _both_ways(found: Replays, limits: Iterable[int], searched: Sequence[str], others: Sequence[str]) -> list[str]:
    rows = []
    for limit in limits:
        for words, one, other in (("the first half", searched, others), ("the second", others, searched)):
            points, there = found.points(limit, one), found.points(limit, other)
            lattice = carried(_but(points, LONGER), there, SETTINGS, BAR)
            longer_too = carried(_but(points, ()), there, {*SETTINGS, *LONGER}, BAR)
            counts = (lattice.frontier, lattice.same, longer_too.same)
            rows.append(_cells([f"{limit:,}", words, *(f"{count} of {lattice.published}" for count in counts)]))
    return rows


def _any_half(found: Replays, limit: int, files: Sequence[str]) -> str:
    sides = [(found.points(limit, one), found.points(limit, other)) for one, other in halves(files)]
    lattice = over_halves([carried(_but(one, LONGER), other, SETTINGS, BAR) for one, other in sides])
    longer_too = over_halves([carried(_but(one, ()), other, {*SETTINGS, *LONGER}, BAR) for one, other in sides])
    shares = (
        (lattice.frontier, lattice.all_by_frontier),
        (lattice.same, lattice.all_by_same),
        (longer_too.same, longer_too.all_by_same),
    )
    return _cells([f"{limit:,}", f"{lattice.ways}", *(f"{share:.0%}, all in {times}" for share, times in shares)])


def _but(points: Iterable[Point], names: Collection[str]) -> list[Point]:
    """Leave out what has one of these names, and what costs are told by."""
    return [point for point in points if point.policy not in names and point.policy != "none"]


def _longer(name: str, sides: Sequence[dict[str, Point]]) -> str:
    ratios = [side[longer(name, kept)].cost / side[name].cost for kept in (FIXED_PART, EVERYTHING) for side in sides]
    return _cells([f"`{name}`", *(f"{ratio:.3f}" for ratio in ratios)])


def _tell(text: str) -> None:
    sys.stdout.write(text)


def _table(title: str, columns: Sequence[str], rows: Sequence[str]) -> None:
    head = [_cells(columns), _cells(["---"] * len(columns))]
    _tell(f"\n### {title}\n\n" + "\n".join([*head, *rows]) + "\n")


def _row(point: Point) -> str:
    return _cells([f"`{point.policy}`", _figures(point)])


def _answer(answer: Answer) -> str:
    ours, theirs = answer.ours, answer.published
    told = ["-", "-"] if ours is None else [f"`{ours.policy}`", _figures(ours)]
    ratio = "-" if answer.ratio is None else f"{answer.ratio:.3f}"
    return _cells([f"`{theirs.policy}`", _figures(theirs), *told, ratio])


def _cells(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _figures(point: Point) -> str:
    return f"{point.cost:.3f} · {point.visible / 1000:.0f}k · {point.need:.0%}"


if __name__ == "__main__":
    main()
