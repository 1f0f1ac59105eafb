"""``python -m tests.frontier RECORDING…``: the search that docs/lab.md describes.

It writes docs/lab/frontier.json, and the table in docs/lab.md that sums it up. In the order in which they are given,
every other recording is searched, the first one among them, and the rest is looked at with what was found. Replays are
kept in a folder, so that a search goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.frontier.points import replays
from tests.frontier.settings import DESIGNS_AND_PEERS, LONGER, PRESETS, SETTINGS, named
from tests.frontier.tables import DATA, PAGE, as_json, tables, with_summary
from timeline.lab.cache_files import Kept

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.frontier.points import Replays
    from timeline.policy.model import Policy

LIMITS: Final = (200_000, 100_000, 32_000)


def main() -> None:
    """Search, and write what was found as JSON."""
    options = _options()
    files = options.recordings
    found = tables(_replays(options).points, options.limits, files[0::2], files[1::2])
    DATA.write_text(as_json(found), encoding="utf-8")
    PAGE.write_text(with_summary(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")


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
    makers: dict[str, Callable[[int], Policy]] = {name: named(name) for name in ("none", *DESIGNS_AND_PEERS)}
    makers |= {**SETTINGS, **PRESETS}
    makers |= {name: make for forms in LONGER.values() for name, make in forms.items()}
    whole = len(options.recordings) * len(makers) * len(options.limits)

    def show(done: int) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{done} of {whole} replays")

    kept = Kept(options.kept)
    return replays(options.recordings, makers, options.limits, kept=kept, jobs=options.jobs, on_done=show)


if __name__ == "__main__":
    main()
