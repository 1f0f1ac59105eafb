"""Hiding many results in one batch: the plan and its commit, through `Timeline.render` with a cold cache."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from tests.bench.logs import POLICY, START
from tests.bench.rows import against
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.events import ModelCalled, event_id
from timeline.log.protocol import Draft
from timeline.store.sqlite.store import SQLiteStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.rows import Row
    from timeline.blocks import Block
    from timeline.ports import EventStore

BAR: Final = 2.5
PAIRS: Final = 15
BATCH: Final = 2_000
COLD: Final = START + timedelta(hours=2)
OUTPUT: Final = "lorem ipsum dolor sit amet " * 20


def rows() -> Iterator[Row]:
    """Measure one row: hiding 8,000 results against hiding 4,000."""
    with TemporaryDirectory() as folder, asyncio.Runner() as runner:
        store = runner.run(SQLiteStore.open(Path(folder) / "bench.db"))
        large = runner.run(_conversation(store, "large", 8_000))
        small = runner.run(_conversation(store, "small", 4_000))
        of_8_000, of_4_000 = partial(_hide, runner, large, 8_000), partial(_hide, runner, small, 4_000)
        yield against("Decisions", "hiding 8,000 blocks", "hiding 4,000", (of_8_000, of_4_000), BAR, most=PAIRS)
        runner.run(store.aclose())


def _hide(runner: asyncio.Runner, timeline: Timeline, count: int) -> float:
    """Hide all of a conversation's results, in a fork of it: each run finds them visible."""

    async def hide() -> float:
        branch = await timeline.fork(now=START)
        start = perf_counter()
        context = await branch.render(now=COLD)
        taken = perf_counter() - start
        hidden = [decision.facts["blocks"] for decision in context.decisions if decision.kind == "hidden"]
        if hidden != [count]:
            raise AssertionError(context.decisions)
        return taken

    return runner.run(hide())


async def _conversation(store: EventStore, id_: str, count: int) -> Timeline:
    """Make a conversation with so many results that are old enough to be hidden, and a call long ago."""
    timeline = await Timeline.open(store, id_, policy=POLICY, now=START)
    hiding = POLICY.hiding
    rounds = count + (hiding.intact if hiding is not None else 0)
    made: list[Block] = [UserPrompt(text="Do all of it.")]
    for number in range(rounds):
        call = f"call_{number}"
        asked: Any = {"command": f"make part-{number}"}
        made.append(ToolCall(call_id=call, name="bash", arguments=asked, response_id=f"r{number}"))
        made.append(ToolResult(call_id=call, name="bash", text=f"{number} {OUTPUT}"))
    for first in range(0, len(made), BATCH):
        part = made[first : first + BATCH]
        sizes = await timeline.count(part)
        await timeline.extend(
            [Draft(event_id(START), START, block, size) for block, size in zip(part, sizes, strict=True)]
        )
    await timeline.decide([ModelCalled(started_at=START)], at=START, ids=[event_id(START)])
    return timeline
