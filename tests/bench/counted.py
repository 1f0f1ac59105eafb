"""Benchmarks of `Timeline.append` with counting, against tiktoken alone.

They are a part of their own: behind a window of 10,000 blocks in the same process, both sides take longer, and not by
the same share.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tests.bench.logs import START, recorded_text, sized_blocks
from tests.bench.rows import MOST_PAIRS, against, cpu
from timeline import policies
from timeline.store.sqlite.store import SQLiteStore
from timeline.timeline import Timeline
from timeline.tokens import get_counter
from timeline.tokens.counter import TiktokenCounter, load_encoding
from timeline.tokens.vocabulary import VOCABULARIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.rows import Row
    from timeline.ports import EventStore, TokenCounter

_BLOCKS = 100
"""Blocks of an append."""
_TEXT = 200_000
"""Characters that the blocks are cut from."""


def rows() -> Iterator[Row]:
    """Measure with the counter that is installed here (the extra ``fast``), and with the one that needs no extra."""
    with TemporaryDirectory() as folder, asyncio.Runner() as runner:
        store = runner.run(SQLiteStore.open(Path(folder) / "bench.db"))
        for counter in (get_counter("o200k_base"), TiktokenCounter("o200k_base")):
            yield _appended(runner, store, counter)
        runner.run(store.aclose())


def _appended(runner: asyncio.Runner, store: EventStore, counter: TokenCounter) -> Row:
    """Append blocks of recorded sizes, against `Encoding.encode` of the same texts and nothing else."""
    tiktoken = load_encoding("o200k_base", pattern=VOCABULARIES["o200k_base"].pattern)
    name = type(counter).__name__
    policy = policies.cut_point(max_tokens=10_000_000)
    timeline = runner.run(Timeline.open(store, f"append {name}", policy=policy, counter=counter, now=START))
    text = recorded_text(_TEXT)
    made = [sized_blocks(_BLOCKS, first=_BLOCKS * n, text=text) for n in range(MOST_PAIRS + 1)]
    appended, counted = iter(made), iter(made)

    def ours() -> float:
        blocks = next(appended)

        async def append() -> None:
            await timeline.append(*blocks)

        return cpu(lambda: runner.run(append()))

    def alone() -> float:
        texts = [block.countable() for block in next(counted)]
        return cpu(lambda: [tiktoken.encode(each) for each in texts])

    what = f"`Timeline.append` of {_BLOCKS} with `{name}`, blocks of recorded sizes, speed"
    return against("Appends", what, "tiktoken alone", (ours, alone), 0.7, least=True)
