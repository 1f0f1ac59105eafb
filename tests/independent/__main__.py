"""``python -m tests.independent RECORDING…``: the lab's costs beside those of the calculation, as a table.

``--cache`` asks both what the provider would charge if it kept prompts in another way than it was recorded to. Under
``none`` only the rows without a policy compare: there the lab hides at once what is old, the calculation in pauses.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final, get_args

from tests.independent.agreement import LIMITS, Tried, agreements, together
from timeline.usage import CacheKind

KEPT: Final = (None, 0.2, 0.1, 0.4)
"""Shares of the room that cut points keep, the preset's first; None is no policy."""


def main() -> None:
    """Print how the two agree."""
    parser = argparse.ArgumentParser(prog="python -m tests.independent", description=__doc__)
    parser.add_argument("recordings", nargs="+", type=Path, help="sessions of Claude Code")
    parser.add_argument("--cache", choices=get_args(CacheKind), help="how prompts are kept; as recorded unless given")
    options = parser.parse_args()
    found = agreements(options.recordings, [Tried(limit, keep, options.cache) for keep in KEPT for limit in LIMITS])
    rows = [
        (
            one.tried.name,
            f"{one.tried.limit:,}",
            one.recording,
            f"{one.lab:,.0f}",
            f"{one.calculated:,.0f}",
            f"{one.off:+.2%}",
        )
        for one in (*found, *together(found))
    ]
    head = ("policy", "limit", "recording", "lab", "calculation", "difference")
    sys.stdout.writelines(f"| {' | '.join(cells)} |\n" for cells in (head, ["---"] * len(head), *rows))


if __name__ == "__main__":
    main()
