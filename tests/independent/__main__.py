"""``python -m tests.independent RECORDING…``: the lab's costs beside those of the calculation, as a table."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from tests.independent.agreement import LIMITS, Tried, agreements, together

KEPT: Final = (None, 0.2, 0.1, 0.4)
"""Shares of the room that cut points keep, the preset's first; None is no policy."""


def main() -> None:
    """Print how the two agree."""
    parser = argparse.ArgumentParser(prog="python -m tests.independent", description=__doc__)
    parser.add_argument("recordings", nargs="+", type=Path, help="sessions of Claude Code")
    found = agreements(parser.parse_args().recordings, [Tried(limit, keep) for keep in KEPT for limit in LIMITS])
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
