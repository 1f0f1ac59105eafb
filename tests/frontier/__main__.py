"""``python -m tests.frontier RECORDING…``: the search that docs/lab.md tells of, and its tables.

In the order that they are given in, every other recording is searched, the first one among them, and the rest is looked
at with what was found. Replays are kept in a folder, so that a search goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.frontier.carrying import carried, halves, held, share
from tests.frontier.points import answers, frontier, replays
from tests.frontier.settings import DESIGNS, EVERYTHING, FIXED_PART, LONGER, PRESETS, PUBLISHED, SETTINGS, longer, named
from timeline.lab.cache_files import Kept

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from tests.frontier.points import Answer, Point, Replays
    from timeline.policy.model import Policy

LIMITS: Final = (200_000, 100_000, 32_000)
BAR: Final = 0.95
"""What a setting of ours may cost of a published default, to count as better."""
_FIGURES: Final = "cost · in sight · needs out of sight"
_SETTINGS: Final = ("setting", _FIGURES)
_PRESETS: Final = ("preset", _FIGURES, "cheapest of the five designs", _FIGURES, "ratio")
_ANSWERS: Final = ("published", _FIGURES, "ours, no less in sight", _FIGURES, "ratio")
_CARRIED: Final = ("limit", "searched", "settings found", "answered by one of them", "by its own figures for an hour")
_HELD: Final = ("limit", "a setting of the lattice", "their own figures for an hour, too")
_HALVES: Final = ("limit", "ways", "answered by a setting found", "by its own figures for an hour")
_LONGER: Final = ("published", "fixed part, searched", "not searched", "everything, searched", "not searched")


def main() -> None:
    """Search, and print what was found as Markdown."""
    options = _options()
    found, files, limits = _replays(options), options.recordings, options.limits
    searched, others = files[0::2], files[1::2]
    best = {limit: frontier(_of(found.points(limit, searched), SETTINGS)) for limit in limits}
    sys.stdout.write(f"\n## Recordings that were searched ({len(searched)})\n")
    for limit, points in best.items():
        title = f"Settings at {limit:,} that no other betters: {len(points)} of {len(SETTINGS)}"
        _table(title, _SETTINGS, [_row(point) for point in points])
        _told(limit, found.points(limit, searched), SETTINGS)
    sys.stdout.write(f"\n## Recordings that were not searched ({len(others)}), and those settings\n")
    for limit, points in best.items():
        _told(limit, found.points(limit, others), [point.policy for point in points])
    sys.stdout.write("\n## How far a search carries\n")
    _table("One half searched, the other looked at", _CARRIED, _both_ways(found, limits, searched, others))
    _table("Any half searched", _HALVES, [_any_half(found, limit, files) for limit in limits])
    _table("One setting on both halves", _HELD, [_held(found, limit, searched, others) for limit in limits])
    sys.stdout.write("\n## Published defaults that ask for an hour\n")
    for limit in limits:
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
    if len(set(options.recordings)) < 2:
        parser.error("two recordings at the least: one is searched, and one is looked at")
    options.limits = options.limits or list(LIMITS)
    return options


def _replays(options: argparse.Namespace) -> Replays:
    makers: dict[str, Callable[[int], Policy]] = {name: named(name) for name in ("none", *PUBLISHED)}
    makers |= {**SETTINGS, **PRESETS}
    makers |= {name: make for forms in LONGER.values() for name, make in forms.items()}
    whole = len(options.recordings) * len(makers) * len(options.limits)

    def told(done: int) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{done} of {whole} replays")

    kept = Kept(options.kept)
    return replays(options.recordings, makers, options.limits, kept=kept, jobs=options.jobs, on_done=told)


def _of(points: Iterable[Point], names: Collection[str]) -> list[Point]:
    return [point for point in points if point.policy in names]


def _told(limit: int, points: Sequence[Point], settings: Collection[str]) -> None:
    """Tell how the presets stand beside the designs, and what answers each published default."""
    designs = [point for point in _of(points, DESIGNS) if point.sound]
    cheapest = min(designs, key=lambda point: point.cost)
    _table(f"The presets at {limit:,}", _PRESETS, [_beside(point, cheapest) for point in _of(points, PRESETS)])
    found = answers(_of(points, PUBLISHED), _of(points, settings))
    met = sum(answer.ratio is not None and answer.ratio <= BAR for answer in found)
    title = f"Published defaults at {limit:,}: {met} of {len(found)} at most {BAR} of their cost"
    _table(title, _ANSWERS, [_answer(answer) for answer in found])


def _both_ways(found: Replays, limits: Iterable[int], searched: Sequence[str], others: Sequence[str]) -> list[str]:
    rows = []
    for limit in limits:
        for words, one, other in (("as above", searched, others), ("the other half", others, searched)):
            got = carried(found.points(limit, one), found.points(limit, other), SETTINGS, LONGER, BAR)
            counts = (f"{count} of {got.published}" for count in (got.by_found, got.by_own))
            rows.append(_cells([f"{limit:,}", words, str(got.found), *counts]))
    return rows


def _any_half(found: Replays, limit: int, files: Sequence[str]) -> str:
    sides = ((found.points(limit, one), found.points(limit, other)) for one, other in halves(files))
    ways = [carried(one, other, SETTINGS, LONGER, BAR) for one, other in sides]
    shares = share((way.by_found, way.published) for way in ways), share((way.by_own, way.published) for way in ways)
    return _cells([f"{limit:,}", str(len(ways)), *(f"{one.share:.0%}, all in {one.whole}" for one in shares)])


def _held(found: Replays, limit: int, searched: Sequence[str], others: Sequence[str]) -> str:
    sides = found.points(limit, searched), found.points(limit, others)
    longer_too = [*SETTINGS, *(form for forms in LONGER.values() for form in forms)]
    ratios = (held(*sides, ours, PUBLISHED) for ours in (SETTINGS, longer_too))
    told = (f"{sum(ratio <= BAR for ratio in one)} of {len(one)}" for one in ratios)
    return _cells([f"{limit:,}", *told])


def _longer(name: str, sides: Sequence[dict[str, Point]]) -> str:
    ratios = [side[longer(name, kept)].cost / side[name].cost for kept in (FIXED_PART, EVERYTHING) for side in sides]
    return _cells([f"`{name}`", *(f"{ratio:.3f}" for ratio in ratios)])


def _table(title: str, columns: Sequence[str], rows: Sequence[str]) -> None:
    head = [_cells(columns), _cells(["---"] * len(columns))]
    sys.stdout.write(f"\n### {title}\n\n" + "\n".join([*head, *rows]) + "\n")


def _row(point: Point) -> str:
    return _cells([f"`{point.policy}`", _figures(point)])


def _beside(ours: Point, theirs: Point) -> str:
    ratio = f"{ours.cost / theirs.cost:.3f}"
    return _cells([f"`{ours.policy}`", _figures(ours), f"`{theirs.policy}`", _figures(theirs), ratio])


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
