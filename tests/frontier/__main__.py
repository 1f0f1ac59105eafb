"""``python -m tests.frontier RECORDING…``: the search that docs/lab.md tells of, and its tables.

In the order that they are given in, every other recording is searched with, the first one among them, and the rest is
looked at with what was found. Replays are kept in a folder, so that a search goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.frontier.points import answers, carried, frontier, points
from tests.frontier.settings import PUBLISHED, SETTINGS, named
from timeline.lab.keeping import Kept

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.frontier.points import Answer, Point
    from timeline.policy.model import Policy

LIMITS: Final = (200_000, 100_000, 32_000)
BAR: Final = 0.95
"""What a setting of ours may cost of a published default, to count as better."""
_SETTINGS: Final = ("setting", "cost · in sight · needs out of sight")
_CARRIED: Final = ("limit", "found on those searched, answer on the others", "the other way round")
_ANSWERS: Final = ("published", "cost · in sight · needs out of sight", "ours, no less in sight", "the same", "ratio")


def main() -> None:
    """Search, and print what was found as Markdown."""
    options = _options()
    files = options.recordings
    halves = []
    for title, chosen in (("searched", files[0::2]), ("not searched", files[1::2])):
        found = _points(chosen, options)
        halves.append(found)
        sys.stdout.write(f"\n## Recordings that were {title} ({len(chosen)})\n")
        for limit in options.limits:
            at = [point for point in found if point.limit == limit]
            _tell(limit, [p for p in at if p.policy in SETTINGS], [p for p in at if p.policy in PUBLISHED])
    rows = _carried(halves[0], halves[1], options.limits)
    _table("Settings that were found on one half, on the other", _CARRIED, rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.frontier", description=__doc__)
    parser.add_argument("recordings", nargs="+")
    parser.add_argument("--limit", dest="limits", type=int, action="append", help="tokens; 200k, 100k and 32k")
    parser.add_argument("--kept", type=Path, default=Path(".frontier"), help="folder of the replays")
    parser.add_argument("--jobs", type=int, help="processes; one a core")
    options = parser.parse_args()
    options.limits = options.limits or list(LIMITS)
    return options


def _points(files: Sequence[str], options: argparse.Namespace) -> list[Point]:
    makers: dict[str, Callable[[int], Policy]] = {name: named(name) for name in ("none", *PUBLISHED)}
    makers |= SETTINGS
    whole = len(files) * len(makers) * len(options.limits)

    def told(done: int) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{done} of {whole} replays")

    return points(files, makers, options.limits, kept=Kept(options.kept), jobs=options.jobs, on_done=told)


def _tell(limit: int, ours: Sequence[Point], published: Sequence[Point]) -> None:
    found = answers(published, ours)
    met = sum(answer.ratio is not None and answer.ratio <= BAR for answer in found)
    _table(f"Our settings at {limit:,} that no other betters", _SETTINGS, [_row(point) for point in frontier(ours)])
    title = f"Published defaults at {limit:,}: {met} of {len(found)} at most {BAR} of their cost"
    _table(title, _ANSWERS, [_answer(answer) for answer in found])


def _carried(searched: Sequence[Point], others: Sequence[Point], limits: Sequence[int]) -> list[str]:
    rows = []
    for limit in limits:
        one, other = ([p for p in half if p.limit == limit and p.policy != "none"] for half in (searched, others))
        there, back = carried(one, other, SETTINGS, BAR), carried(other, one, SETTINGS, BAR)
        rows.append(_cells([f"{limit:,}", "{} of {}".format(*there), "{} of {}".format(*back)]))
    return rows


def _table(title: str, columns: Sequence[str], rows: Sequence[str]) -> None:
    head = [_cells(columns), _cells(["---"] * len(columns))]
    sys.stdout.write(f"\n### {title}\n\n" + "\n".join([*head, *rows]) + "\n")


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
