"""``python -m tests.frontier RECORDING…``: the search that docs/lab.md describes.

It writes docs/lab/frontier.json, and the tables of the docs that sum it up. Of the recordings of each cache lifetime
every other one is searched, in the order in which they are given; the rest is replayed with what was found alone.
Replays are kept in a folder, so that a search goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.frontier.answers import chosen
from tests.frontier.halves import halves
from tests.frontier.pages import write_pages
from tests.frontier.points import replays
from tests.frontier.settings import FIRST, NAMED, SETTINGS
from tests.frontier.tables import DATA, as_json, tables
from timeline.lab.cache_files import Kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tests.frontier.points import Replays
    from timeline.policy.model import Policy

LIMITS: Final = (200_000, 100_000, 32_000)


def main() -> None:
    """Search, and write what was found as JSON and into the docs."""
    options = _options()
    as_recorded = _replays(options, [options.recordings], {FIRST: NAMED[FIRST]})
    split = halves(options.recordings, as_recorded.lifetime)
    searched = _replays(options, split.searched.values(), {**NAMED, **SETTINGS})
    found = {limit: chosen(searched, limit) for limit in options.limits}
    settings = {name: SETTINGS[name] for answers in found.values() for name in answers.values() if name in SETTINGS}
    unseen = _replays(options, split.unseen.values(), {**NAMED, **settings})
    data = tables(split, searched, unseen, found)
    DATA.write_text(as_json(data), encoding="utf-8")
    write_pages(data)


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


def _replays(
    options: argparse.Namespace, half: Iterable[list[str]], makers: Mapping[str, Callable[[int], Policy]]
) -> Replays:
    files = [file for alike in half for file in alike]
    whole = len(files) * len(makers) * len(options.limits)

    def show(done: int) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{done} of {whole} replays")

    kept = Kept(options.kept)
    return replays(files, makers, options.limits, kept=kept, jobs=options.jobs, on_done=show)


if __name__ == "__main__":
    main()
