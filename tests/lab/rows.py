"""Runs with figures that are written by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.scenes import AT
from timeline.lab.results import ReplayedCallRow, RunResult, totals_of


def row(number: int, units: float, **facts: Any) -> ReplayedCallRow:
    """Return a call; what is not said of it is nothing, its tokens are uncached, and cost a dollar a million."""
    tokens = facts.pop("tokens", round(units))
    facts.setdefault("money", units / 1_000_000)
    facts.setdefault("summary_money", facts.get("summary_units", 0.0) / 1_000_000)
    facts.setdefault("uncached", tokens - facts.get("read", 0) - facts.get("written", 0))
    return ReplayedCallRow(number=number, at=AT + timedelta(minutes=number), units=units, tokens=tokens, **facts)


def run_of(
    policy: str,
    *rows: ReplayedCallRow,
    limit: int = 1000,
    file: str = "a.jsonl",
    conversation: str = "a",
    priced: bool = True,
) -> RunResult:
    """Return a run of these calls."""
    return RunResult(
        file=file,
        conversation=conversation,
        policy=policy,
        policy_hash=policy,
        max_tokens=limit,
        fixed=0,
        measured_fixed=0,
        ratio=1.0,
        totals=totals_of(rows, priced=priced, seconds=0.0),
        rows=rows,
    )
