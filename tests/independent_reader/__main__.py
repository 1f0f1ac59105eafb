"""``python -m tests.independent_reader FILE…``: replay recordings under every preset, and print what was not so.

With ``--together 10`` ten files at a time are one conversation, so that large limits, too, are compacted many times.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from dataclasses import fields
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.independent_reader.playing import Played, play
from timeline import policies
from timeline.policy.presets import PRESETS

LIMITS: Final = (16_000, 32_000, 64_000, 100_000)
COMPACTING: Final = tuple(sorted(PRESETS.keys() - {"none"}))


async def main() -> int:
    """Play all that was asked for; return how many things were not so."""
    parser = argparse.ArgumentParser(prog="python -m tests.independent_reader", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="recordings")
    parser.add_argument("--presets", nargs="*", default=COMPACTING)
    parser.add_argument("--limits", nargs="*", type=int, default=LIMITS)
    parser.add_argument("--together", type=int, default=1, help="files that are one conversation")
    parser.add_argument("--turn", type=int, help="each file under one preset and limit, the next with each number")
    asked = parser.parse_args()
    groups = [asked.files[n : n + asked.together] for n in range(0, len(asked.files), asked.together)]
    ways = list(product(asked.limits, asked.presets))
    every = list(product(groups, ways))
    one_each = [(group, ways[(n + (asked.turn or 0)) % len(ways)]) for n, group in enumerate(groups)]
    cases = every if asked.turn is None else one_each
    total, wrong = Counter[str](), 0
    for group, (limit, preset) in cases:
        with TemporaryDirectory() as folder:
            played = await play(Path(folder), group, policies.by_name(preset, max_tokens=limit))
        wrong += len(played.wrong)
        total.update(figures(played) | {"conversations": 1, "ten or more compactions": played.compactions >= 10})
        sys.stdout.write(f"{preset} {limit:,} {' '.join(file.stem for file in group)}: {said(figures(played))}\n")
        sys.stdout.writelines(f"    {line}\n" for line in played.wrong)
        sys.stdout.flush()
    sys.stdout.write(f"{said(total)}, {wrong:,} wrong\n")
    return wrong


def figures(played: Played) -> Counter[str]:
    """Return the figures of a replay by name."""
    return Counter({f.name: getattr(played, f.name) for f in fields(played) if f.name != "wrong"})


def said(counts: Counter[str]) -> str:
    """Return figures as one line."""
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


if __name__ == "__main__":
    sys.exit(min(asyncio.run(main()), 1))
