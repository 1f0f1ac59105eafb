"""What one model call costs a server: events, bytes of tables, of indexes and of its log, by replaying recordings.

    python -m tests.load_model postgresql://… RECORDING …

Each recording is played once, without pauses, by the agent of `tests.soak`: what a user or a tool said is appended, a
context is rendered before each response, and the response is appended. Prints the figures by model call as JSON, and
what a number of agents comes to. Nobody else may write to the server meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import asyncpg

from tests.postgres import without
from tests.soak import Steps, steps_of
from timeline import Timeline, open_store, policies
from timeline.errors import BudgetError
from timeline.fold.turns import RESPONSE_BLOCKS

if TYPE_CHECKING:
    from collections.abc import Sequence

LIMIT: Final = 100_000
"""Tokens of a window."""
SECONDS: Final = 10
"""Between two model calls of an agent that is at work."""
AGENTS: Final = (1_000, 20_000)
DAY: Final = 86_400


class Sizes(NamedTuple):
    """What a server holds: rows of events, and bytes of tables, of indexes, and of its write-ahead log so far."""

    events: int
    payloads: int
    tables: int
    indexes: int
    wal: int

    def since(self, other: Sizes) -> Sizes:
        """Return what was added to an earlier state."""
        return Sizes(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


SIZES: Final = """
SELECT (SELECT count(*) FROM events), (SELECT coalesce(sum(octet_length(payload)), 0) FROM events)::bigint,
    sum(pg_table_size(oid))::bigint, sum(pg_indexes_size(oid))::bigint,
    pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint
FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
"""


async def measured(url: str, schema: str, talks: Sequence[Steps]) -> dict[str, float]:
    """Play recordings on a store; return what was added for each model call."""
    async with open_store(url) as store:
        plain = await asyncpg.connect(without(url, "schema"), server_settings={"search_path": schema})
        try:
            before = await _sizes(plain)
            calls = 0
            for number, steps in enumerate(talks):
                timeline = await Timeline.open(store, f"load.{number}", policy=policies.balanced(max_tokens=LIMIT))
                calls += await _played(timeline, steps)
            added = (await _sizes(plain)).since(before)
        finally:
            await plain.close()
    return {"calls": calls, **{name: round(value / calls, 1) for name, value in added._asdict().items()}}


async def _sizes(plain: asyncpg.Connection[asyncpg.Record]) -> Sizes:
    row = await plain.fetchrow(SIZES)
    assert row is not None
    return Sizes(*map(int, row))


async def _played(timeline: Timeline, steps: Steps) -> int:
    calls = 0
    for step in steps:
        if type(step[0]) in RESPONSE_BLOCKS:
            try:
                await timeline.render(system="Be brief.")
            except BudgetError:
                break  # a recorded block alone is above the limit
            calls += 1
        await timeline.append(*step)
    return calls


def load(by_call: dict[str, float], agents: int) -> dict[str, float]:
    """Return what agents at work come to: events a second, and a day's gigabytes of tables with indexes and of WAL."""
    calls = agents / SECONDS
    return {
        "agents": agents,
        "events_per_second": round(calls * by_call["events"]),
        "stored_gb_per_day": round(calls * DAY * (by_call["tables"] + by_call["indexes"]) / 1e9, 1),
        "wal_gb_per_day": round(calls * DAY * by_call["wal"] / 1e9, 1),
    }


def main() -> int:
    """Measure from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.load_model", description=__doc__)
    parser.add_argument("url")
    parser.add_argument("recording", nargs="+", type=Path)
    parser.add_argument("--schema", default="timeline")
    asked = parser.parse_args()
    by_call = asyncio.run(measured(asked.url, asked.schema, steps_of(asked.recording)))
    report: dict[str, Any] = {"by_model_call": by_call, "load": [load(by_call, agents) for agents in AGENTS]}
    print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
