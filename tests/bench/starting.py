"""Benchmarks of the first use in a process: seconds of CPU above bare Python that builds tiktoken's tables.

Each run is a fresh interpreter that imports the library, opens a conversation in memory under the default policy,
appends a prompt and renders it. Beside it runs one that only makes `CoreBPE` of the vocabulary's ranks; reading these
is not counted.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING

from tests.bench.rows import figure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.rows import Row

PAIRS = 9
HELPS = 7
ROOT = Path(__file__).resolve().parents[2]
WITHOUT_FAST = "import sys\nsys.modules['toktok'] = None\n"
FIRST_USE = """
import asyncio, time
import timeline
from timeline.blocks import UserPrompt

async def main():
    async with timeline.open_store("memory://") as store:
        first = await timeline.Timeline.open(store, "first")
        await first.append(UserPrompt(text={prompt!r}))
        await first.render()

asyncio.run(main())
print(time.process_time())
"""
BARE = """
import time
bare = time.process_time()
from timeline.tokens.vocabulary import O200K_BASE
ranks = O200K_BASE.ranks()
ready = time.process_time()
from tiktoken._tiktoken import CoreBPE
CoreBPE(ranks, dict(O200K_BASE.special_tokens), O200K_BASE.quick_pattern)
print(bare + time.process_time() - ready)
"""
PROMPT = "Find out why the scheduler's tests fail \u2013 d\u00e9j\u00e0 vu \u2013 and fix it."


def rows() -> Iterator[Row]:
    """Measure all rows here."""
    for name, program in (
        ("with `fast`", FIRST_USE.format(prompt=PROMPT)),
        ("without `fast`", WITHOUT_FAST + FIRST_USE.format(prompt=PROMPT)),
    ):
        what = f"import and first render, above bare Python and `CoreBPE` of ready ranks, {name}"
        yield figure("Starting", what, "s", _above(program), 0.35)
    # The best of several: what the machine does besides only adds.
    yield figure("Starting", "`timeline --help`, wall time", "s", [min(_help() for _ in range(HELPS))], 0.3)


def _above(program: str) -> list[float]:
    with TemporaryDirectory() as compiled:
        for warm_up in (program, BARE):
            _seconds(warm_up, compiled)
        return [_seconds(program, compiled) - _seconds(BARE, compiled) for _ in range(PAIRS)]


def _help() -> float:
    start = perf_counter()
    subprocess.run([sys.executable, "-m", "timeline.cli", "--help"], check=True, capture_output=True)
    return perf_counter() - start


def finding_compiled(code: Path, compiled: str) -> dict[str, str]:
    """Return the environment of an interpreter that finds the modules of a checkout compiled, from its second run on.

    Args:
        code: the checkout.
        compiled: a folder for the compiled modules.
    """
    environment = {**os.environ, "PYTHONPATH": str(code), "PYTHONPYCACHEPREFIX": compiled}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def _seconds(program: str, compiled: str) -> float:
    """Run a program in a fresh interpreter, which finds its modules compiled."""
    environment = finding_compiled(ROOT, compiled)
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    return float(done.stdout)
