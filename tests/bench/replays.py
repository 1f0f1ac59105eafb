"""A replay in the lab: it takes twice as long for a recording of twice as many calls."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from tests.bench.rows import against, cpu
from tests.project.recording import write_recording
from timeline.lab.prices import packaged_prices
from timeline.lab.replay import replay
from timeline.lab.work import measured_file
from timeline.policy.files import find_policy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.rows import Row
    from timeline.lab.sizes import Measured
    from timeline.policy.model import Policy

BAR: Final = 3.0
"""A replay that walks its window at each call comes to 4; single ratios are off by a fifth on a busy machine."""
CALLS: Final = 240
LIMIT: Final = 20_000
"""Small, so that `balanced` hides from early on. It compacts the longer recording alone, twice."""
TIGHT: Final = 8_000
"""So small that `balanced` compacts at every tenth call: what a compaction costs may not grow with what came before."""
PAIRS: Final = 15
POLICIES: Final = (("none", LIMIT), ("balanced", LIMIT), ("balanced", TIGHT), ("pi", LIMIT))
"""Each with its limit. The first never compacts: its window is all of the recording."""
_TURN: Final = 40


def rows() -> Iterator[Row]:
    """Measure a row for each policy: a replay of 480 calls against one of 240."""
    with TemporaryDirectory() as folder, asyncio.Runner() as runner:
        small, large = (_recording(Path(folder), calls) for calls in (CALLS, 2 * CALLS))
        for name, limit in POLICIES:
            yield _row(runner, find_policy(name, max_tokens=limit), large, small)


def _row(runner: asyncio.Runner, policy: Policy, large: Measured, small: Measured) -> Row:
    long, short = partial(_replay, runner, policy, large), partial(_replay, runner, policy, small)
    tight = f" at {TIGHT:,} tokens" if policy.max_tokens == TIGHT else ""
    what = f"replay of {2 * CALLS} calls under `{policy.name}`{tight}"
    return against("The lab", what, f"of {CALLS} calls", (long, short), BAR, most=PAIRS)


def _recording(folder: Path, calls: int) -> Measured:
    turns = {f"Now do part {turn}.": _TURN for turn in range(calls // _TURN)}
    (measured,) = measured_file(str(write_recording(folder, turns, idle=timedelta(minutes=3))))
    return measured


def _replay(runner: asyncio.Runner, policy: Policy, measured: Measured) -> float:
    async def replayed() -> None:  # no result: where a task has one, a runner that ends writes all of it as a text
        await replay(measured, policy, packaged_prices().price_of)

    return cpu(lambda: runner.run(replayed()))
