"""``python -m tests.frontier.trial RECORDING… --policy NAME``: try policies where a search may look, and nowhere else.

A policy is a preset, a published default or a TOML file. A recording of the half that no search looked at is refused:
whoever tries something on it has nothing left to say what holds.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.frontier.halves import by_lifetime, spread
from tests.frontier.points import replays
from tests.frontier.settings import FIRST, named
from tests.frontier.split import NotThere, read_split
from timeline.lab.cache_files import Kept

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.frontier.points import Replays

HEAD: Final = "limit  lifetime  policy  cost  with reads  in sight  middle  far (decile)  names out  tokens  sound"


def main() -> None:
    """Print a line for each policy, limit and lifetime."""
    parser = argparse.ArgumentParser(prog="python -m tests.frontier.trial", description=__doc__)
    parser.add_argument("recordings", nargs="+")
    parser.add_argument("--policy", dest="policies", action="append", required=True)
    parser.add_argument("--limit", dest="limits", type=int, action="append", required=True)
    parser.add_argument("--kept", type=Path, default=Path(".frontier-trial"), help="folder of the replays")
    parser.add_argument("--jobs", type=int, help="processes; one a core")
    options = parser.parse_args()
    try:
        half = read_split().searchable(options.recordings)
    except NotThere as error:
        parser.error(str(error))
    makers = {name: named(name) for name in dict.fromkeys((FIRST, *options.policies))}
    files = [file for alike in half.values() for file in alike]
    found = replays(files, makers, options.limits, kept=Kept(options.kept), jobs=options.jobs)
    print(HEAD)
    for limit in options.limits:
        for kept, alike in by_lifetime(half):
            for line in lines(found, limit, alike):
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


def _far(found: Replays, limit: int, name: str, files: Sequence[str]) -> float:
    return found.point(limit, name, files).one_read.far


if __name__ == "__main__":
    main()
