"""Benchmarks of `timeline lab` as a whole: a comparison of policies, against that of the revision that the bar names.

Both sides are processes of their own, with all processes that they begin: their CPU time counts, imports and the start
of the tokenizer included. Both find their modules compiled. A recording is of one prompt after the other; all of them
outgrow the lower limit, the longest one both.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from tests.bench.against import ROOT, checkout
from tests.bench.rows import LEAST_PAIRS, against
from tests.bench.starting import finding_compiled
from tests.project.recording import write_recording

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.bench.rows import Row

REVISION: Final = "d518f55"
BAR: Final = 2
CALLS: Final = (240, 360, 480)
"""Of each recording."""
POLICIES: Final = ("none", "balanced", "pi", "cline", "opencode", "gemini-cli", "goose", "crush")
LIMITS: Final = ("200000", "100000")
_TURN: Final = 40
_LAB: Final = "from timeline.cli import main; main()"


def rows() -> Iterator[Row]:
    """Measure the lab with eight policies at two limits, and as it is without options."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        files = [_recording(folder / f"{calls}", calls) for calls in CALLS]
        earlier = checkout(REVISION, folder / "earlier")
        many = [word for name in POLICIES for word in ("--policy", name)]
        many += [word for limit in LIMITS for word in ("--max-tokens", limit)]
        for asked, options in ((f", {len(POLICIES)} policies at two limits", many), (" as it is", [])):
            works = (partial(_lab, folder, ROOT, options, files), partial(_lab, folder, earlier, options, files))
            what = f"`timeline lab`{asked}, {len(files)} recordings, speed"
            yield against("The lab", what, f"`{REVISION}`", works, BAR, least=True, most=LEAST_PAIRS)


def _recording(folder: Path, calls: int) -> str:
    folder.mkdir()
    turns = {f"Now do part {turn} of {calls}.": _TURN for turn in range(calls // _TURN)}
    return str(write_recording(folder, turns, idle=timedelta(minutes=3)))


def _lab(folder: Path, code: Path, options: Sequence[str], files: Sequence[str]) -> float:
    """Return the CPU time of a run of a checkout's lab and of the processes that it begins."""
    before = _spent()
    environment = {**finding_compiled(code, str(folder / "compiled")), "PYTHONSAFEPATH": "1"}
    command = [sys.executable, "-c", _LAB, "lab", *options, *files]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    return _spent() - before


def _spent() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime
