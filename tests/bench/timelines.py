"""Benchmarks of `Timeline`: what grows with the window, and what must not grow with the history."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tests.bench.logs import POLICY, START, blocks, conversation, recorded_text, sized_blocks
from tests.bench.pairs import median_ratio
from timeline import policies
from timeline.store.sqlite.store import SQLiteStore
from timeline.timeline import Timeline
from timeline.tokens import get_counter
from timeline.tokens.counter import TiktokenCounter, load_encoding
from timeline.tokens.vocabulary import VOCABULARIES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from timeline.ports import EventStore, TokenCounter

PAIRS = 7
_TEXT = 200_000
"""Characters that blocks of recorded sizes are cut from."""


def row(name: str, ratio: float, bar: float, *, least: bool = False) -> dict[str, Any]:
    """Make one line of the report; with ``least`` the bar is a floor, else a ceiling."""
    return {"name": name, "ratio": round(ratio, 3), "bar": bar, "ok": ratio >= bar if least else ratio <= bar}


def run() -> list[dict[str, Any]]:
    """Return the rows of all benchmarks here."""
    with TemporaryDirectory() as folder, asyncio.Runner() as runner:
        store = runner.run(SQLiteStore.open(Path(folder) / "bench.db"))
        rows = [*_history(runner, store), *_window(runner, store), *_append(runner, store), *_verify(runner, store)]
        runner.run(store.aclose())
    return [*rows, _help()]


def _history(runner: asyncio.Runner, store: EventStore) -> list[dict[str, Any]]:
    """Rendering and opening behind a long history against behind a short one, with the same window."""
    long = runner.run(conversation(store, "long", history=200_000, window=400))
    short = runner.run(conversation(store, "short", history=2_000, window=400))
    render = median_ratio(partial(_step, runner, long), partial(_step, runner, short), PAIRS)
    opening = median_ratio(partial(_open, runner, store, "long"), partial(_open, runner, store, "short"), PAIRS)
    return [
        row("render after one more block: 200,000 events of history / 2,000", render, 1.5),
        row("opening: 200,000 events before the window / 2,000", opening, 1.5),
    ]


def _window(runner: asyncio.Runner, store: EventStore) -> list[dict[str, Any]]:
    large = runner.run(conversation(store, "large", history=0, window=10_000))
    small = runner.run(conversation(store, "small", history=0, window=1_000))
    ratio = median_ratio(partial(_step, runner, large), partial(_step, runner, small), PAIRS)
    return [row("render after one more block: window of 10,000 blocks / 1,000", ratio, 15)]


def _append(runner: asyncio.Runner, store: EventStore) -> list[dict[str, Any]]:
    """`Timeline.append`, counting included, against tiktoken alone: `Encoding.encode` of the same texts, nothing else.

    The blocks have the sizes of recorded ones, and are appended a hundred at a time. Once with the counter that is
    installed here (the extra ``fast``), once with the one that needs no extra.
    """
    return [
        _appended(runner, store, get_counter("o200k_base")),
        _appended(runner, store, TiktokenCounter("o200k_base")),
    ]


def _appended(runner: asyncio.Runner, store: EventStore, counter: TokenCounter) -> dict[str, Any]:
    tiktoken = load_encoding("o200k_base", pattern=VOCABULARIES["o200k_base"].pattern)
    name = f"{type(counter).__name__}, blocks of recorded sizes"
    policy = policies.cut_point(max_tokens=10_000_000)
    timeline = runner.run(Timeline.open(store, f"append {name}", policy=policy, counter=counter, now=START))
    text = recorded_text(_TEXT)
    made = [sized_blocks(100, first=100 * n, text=text) for n in range(4 * PAIRS + 2)]
    appended, counted = iter(made), iter(made)

    def ours() -> float:
        return _timed(runner, lambda: timeline.append(*next(appended)))

    def alone() -> float:
        texts = [block.countable() for block in next(counted)]
        start = perf_counter()
        for each in texts:
            tiktoken.encode(each)
        return perf_counter() - start

    return row(f"Timeline.append ({name}) / tiktoken alone", 1 / median_ratio(ours, alone, 4 * PAIRS), 0.7, least=True)


def _verify(runner: asyncio.Runner, store: EventStore) -> list[dict[str, Any]]:
    for id_, rounds in (("verify-small", 40), ("verify-large", 400)):
        runner.run(_recorded(store, id_, rounds))
    large = partial(_timed, runner, partial(_verified, store, "verify-large"))
    small = partial(_timed, runner, partial(_verified, store, "verify-small"))
    return [row("verify: 10 times the events", median_ratio(large, small, PAIRS), 15)]


async def _recorded(store: EventStore, id_: str, rounds: int) -> None:
    policy = policies.cut_point(max_tokens=16_000, counter="chars4")
    timeline = await Timeline.open(store, id_, policy=policy, now=START)
    for number in range(rounds):
        await timeline.append(*blocks(10, first=10 * number), now=START)
        await timeline.render(now=START)


async def _verified(store: EventStore, id_: str) -> None:
    timeline = await Timeline.open(store, id_, policy=POLICY)
    report = await timeline.verify()
    if not report.ok:
        raise AssertionError(report.problems)


def _step(runner: asyncio.Runner, timeline: Timeline) -> float:
    async def step() -> None:
        await timeline.append(*blocks(1, first=2 * timeline.version + 1), now=START)
        await timeline.render(system="You are an agent.", now=START)

    return _timed(runner, step)


def _open(runner: asyncio.Runner, store: EventStore, id_: str) -> float:
    return _timed(runner, lambda: Timeline.open(store, id_, policy=POLICY))


def _timed(runner: asyncio.Runner, work: Callable[[], Awaitable[object]]) -> float:
    async def timed() -> float:
        start = perf_counter()
        await work()
        return perf_counter() - start

    return runner.run(timed())


def _help() -> dict[str, Any]:
    """Seconds of `timeline --help`, the best of seven: what the machine does besides only adds."""
    times = []
    for _ in range(PAIRS):
        start = perf_counter()
        subprocess.run([sys.executable, "-m", "timeline.cli", "--help"], check=True, capture_output=True)
        times.append(perf_counter() - start)
    return row("timeline --help, seconds", min(times), 0.3)
