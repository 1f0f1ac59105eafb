"""``python -m tests.frontier.trial RECORDING… --policy NAME``: try policies where a search may look, and nowhere else.

A policy is a preset, a published default, a setting of the lattice by its name, or a TOML file. ``--against`` holds
them against a published default instead, on the recordings of which it rewrites anything. A recording of the half that
no search looked at is refused: whoever tries something on it has nothing left to say what holds.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.frontier.answers import answer
from tests.frontier.halves import by_lifetime, spread
from tests.frontier.points import replays
from tests.frontier.replayed import kept_of
from tests.frontier.settings import DESIGNS_AND_PEERS, FIRST, SETTINGS, at_limits, named
from tests.frontier.split import NotThere, read_split

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.frontier.points import Replays

HEAD: Final = "limit  lifetime  policy  cost  with reads  in sight  middle  far (decile)  names out  tokens  sound"
AGAINST: Final = "limit  lifetime  policy  cost of it  keeps as much  tokens in sight of it  in sight  one read away"


def main() -> None:
    """Print a line for each policy, limit and lifetime."""
    parser = argparse.ArgumentParser(prog="python -m tests.frontier.trial", description=__doc__)
    parser.add_argument("recordings", nargs="+")
    parser.add_argument("--policy", dest="policies", action="append", required=True)
    parser.add_argument("--against", choices=DESIGNS_AND_PEERS, help="the published default to answer")
    parser.add_argument("--limit", dest="limits", type=int, action="append", required=True)
    parser.add_argument("--kept", type=Path, default=Path(".frontier-trial"), help="folder of the replays")
    parser.add_argument("--jobs", type=int, help="processes; one a core")
    options = parser.parse_args()
    try:
        half = read_split().searchable(options.recordings)
    except NotThere as error:
        parser.error(str(error))
    wanted = dict.fromkeys((FIRST, *([options.against] if options.against else []), *options.policies))
    makers = {name: SETTINGS.get(name) or named(name) for name in wanted}
    files = [file for alike in half.values() for file in alike]
    found = replays(files, at_limits(makers, options.limits), kept=kept_of(options.kept), jobs=options.jobs)
    print(AGAINST if options.against else HEAD)
    for limit in options.limits:
        for kept, alike in by_lifetime(half):
            held = against(found, limit, options.against, alike) if options.against else lines(found, limit, alike)
            for line in held:
                print(f"{limit:,}  {kept}  {line}")


def lines(found: Replays, limit: int, files: Sequence[str]) -> Iterator[str]:
    """Yield what each policy but the first comes to over some recordings."""
    for name in found.names(limit):
        if name == FIRST:
            continue
        point = found.point(limit, name, files)
        far = spread(partial(_far, found, limit, name), files, best=max)
        yield (
            f"{name}  {point.cost:.3f}  {point.adjusted:.3f}  {point.seen.middle:.3f}/{point.seen.far:.3f}  "
            f"{point.one_read.middle:.3f}  {far.measured:.3f} ({far.decile:.3f})  {point.names}  {point.visible:,.0f}  "
            f"{'yes' if point.sound else 'no'}"
        )


def against(found: Replays, limit: int, published: str, files: Sequence[str]) -> Iterator[str]:
    """Yield what each other policy comes to beside a published default, over those recordings that it rewrites."""
    for name in found.names(limit):
        held = None if name in {FIRST, published} else answer(found, limit, published, name, files)
        if held is not None:
            changed = found.rewritten(limit, published, files)
            theirs, ours = (found.point(limit, each, changed) for each in (published, name))
            keeps = "surely" if held.surely else "yes" if held.keeps else "no"
            yield (
                f"{name}  {held.ratio:.3f}  {keeps}  {ours.visible / theirs.visible:.3f}  "
                f"{ours.seen.whole:.4f}/{theirs.seen.whole:.4f}  {ours.one_read.whole:.4f}/{theirs.one_read.whole:.4f}"
            )


def _far(found: Replays, limit: int, name: str, files: Sequence[str]) -> float:
    return found.point(limit, name, files).one_read.far


if __name__ == "__main__":
    main()
