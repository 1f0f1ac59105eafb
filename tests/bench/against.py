"""``python -m tests.bench.against REVISION``: the speed of an append of 100 events, as a share of a revision's.

Both checkouts have a process of their own, and answer in turn with the CPU time that the same appends took: on a
machine that does other work, that is what repeats. Prints the median and the quartiles of the pairs, for each kind.
"""

from __future__ import annotations

import argparse
import io
import os
import statistics
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Self

from tests.archives import unpack
from tests.bench.kinds import KINDS

ROOT: Final = Path(__file__).resolve().parents[2]
BAR: Final = 0.8


class Answering:
    """A process that times work in a checkout: a script of this folder, which answers each line with seconds."""

    def __init__(self, script: str, checkout: Path, databases: Path) -> None:
        databases.mkdir()
        command = [sys.executable, str(ROOT / "tests" / "bench" / script), str(databases)]
        environment = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=checkout
        )

    def seconds(self, asked: str = "") -> float:
        """Return the CPU time of the work that a line asks for."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{asked}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


def checkout(revision: str, folder: Path) -> Path:
    """Write the packages of a revision into a folder; return it."""
    archive = subprocess.run(
        ["git", "archive", revision, "timeline", "store", "summarizers"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    unpack(io.BytesIO(archive), folder)
    return folder


def measured(revision: str, kinds: list[str], pairs: int) -> dict[str, list[float]]:
    """Return the speed here as a share of the revision's, of each pair, in order; two pairs more warm up."""
    speeds: dict[str, list[float]] = {kind: [] for kind in kinds}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        earlier = checkout(revision, folder / "earlier")
        ours = stack.enter_context(Answering("kinds.py", ROOT, folder / "ours"))
        theirs = stack.enter_context(Answering("kinds.py", earlier, folder / "theirs"))
        for number in range(pairs + 2):
            for kind in kinds:
                first, second = (ours, theirs) if number % 2 else (theirs, ours)
                taken = {first: first.seconds(kind), second: second.seconds(kind)}
                if number > 1:
                    speeds[kind].append(taken[theirs] / taken[ours])
    return {kind: sorted(each) for kind, each in speeds.items()}


def main() -> int:
    """Print a line for each kind, and return how many are slower than the bar."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.against", description=__doc__)
    parser.add_argument("revision")
    parser.add_argument("--pairs", type=int, default=25)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=KINDS)
    asked = parser.parse_args()
    slow = 0
    for kind, speeds in measured(asked.revision, asked.kinds, asked.pairs).items():
        low, median, high = statistics.quantiles(speeds, n=4)
        slow += median < BAR
        sys.stdout.write(f"{kind}: {median:.3f} ({low:.3f} to {high:.3f}) of {asked.revision}\n")
    return slow


if __name__ == "__main__":
    sys.exit(main())
