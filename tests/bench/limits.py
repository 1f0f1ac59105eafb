"""Benchmarks against physical limits: what writing the same body as JSON, or hashing its text, takes in CPU time.

The work is one step of an agent: a call and its result are appended, the context is rendered and recorded, and its
request is encoded. The texts have the sizes of recorded ones; 1,100 blocks are a million characters.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tests.bench.logs import POLICY, START, recorded_text, sized_blocks
from tests.bench.rows import against, cpu
from timeline.projection.project import Projector
from timeline.store.sqlite.store import SQLiteStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.rows import Row
    from timeline.ports import EventStore

_SYSTEM = "You are an agent. " * 400


def rows() -> Iterator[Row]:
    """Measure all rows here."""
    with TemporaryDirectory() as folder, asyncio.Runner() as runner:
        store = runner.run(SQLiteStore.open(Path(folder) / "bench.db"))
        small, large = (_Agent(runner, store, count) for count in (400, 5_000))
        yield against("A step", "a step at 5,000 blocks", "at 400", (large.step, small.step), 2)
        short, long = _Agent(runner, store, 5_001), _Agent(runner, store, 50_000)
        yield against("A step", "recorded render and wire, 50,000 blocks", "5,000", (long.sent, short.sent), 2)
        yield from _of_10_000(_Agent(runner, store, 10_000))
        runner.run(store.aclose())


def _of_10_000(agent: _Agent) -> Iterator[Row]:
    sent = "recorded render and wire after one append, 10,000 blocks"
    yield against("A step", sent, "`json.dumps` of the body", (agent.sent, agent.json), 0.1)
    made = "`context.request()` after one append, 10,000 blocks"
    yield against("A step", made, "`json.dumps` of the body", (agent.request, agent.json), 0.1)
    hashed = "fingerprint after one append, 10,000 blocks"
    yield against("A step", hashed, "sha256 of their texts", (agent.fingerprint, agent.hashed), 0.1)


class _Agent:
    """A conversation of some blocks, and what is timed of it: each method returns seconds of CPU time."""

    def __init__(self, runner: asyncio.Runner, store: EventStore, count: int) -> None:
        self._runner, self._count = runner, count
        self._text = recorded_text(100_000)
        self._timeline = runner.run(Timeline.open(store, f"limits {count}", policy=POLICY, now=START))
        for first in range(0, count, 1_000):
            self._append(min(1_000, count - first), first)
        self._next = count
        self._projector = Projector()
        self.sent()

    def step(self) -> float:
        """Append, render, record, encode."""
        return cpu(self._more) + cpu(self._send)

    def sent(self) -> float:
        """Render, record and encode after an append that is not timed."""
        self._more()
        return cpu(self._send)

    def request(self) -> float:
        """Make the request of the context after an append and a render that are not timed."""
        self._more()
        context = self._runner.run(self._timeline.render(system=_SYSTEM, now=START))
        return cpu(partial(context.request, "anthropic", model="claude-opus-5", max_tokens=1_000))

    def json(self) -> float:
        """Write the newest body as JSON."""
        return cpu(partial(json.dumps, self._body))

    def fingerprint(self) -> float:
        """Project and hash after an append that is not timed."""
        self._more()
        window = self._timeline.window
        neutral = self._projector.project(window, POLICY.cache_points, system=_SYSTEM)
        return cpu(partial(self._projector.fingerprint, neutral))

    def hashed(self) -> float:
        """Hash the texts of the window."""
        texts = "".join(item.block.countable() for item in self._timeline.window.items)
        return cpu(lambda: hashlib.sha256(texts.encode()).hexdigest())

    def _more(self) -> None:
        self._append(2, self._next)
        self._next += 2

    def _append(self, count: int, first: int) -> None:
        self._runner.run(self._timeline.append(*sized_blocks(count, first=first, text=self._text), now=START))

    def _send(self) -> None:
        context = self._runner.run(self._timeline.render(system=_SYSTEM, now=START))
        self._body = context.to_anthropic(model="claude-opus-5")
