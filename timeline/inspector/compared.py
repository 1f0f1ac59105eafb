"""How far a comparison of policies on a log is, and what it came to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.inspector.shapes import Lab
from timeline.lab.comparison import standings

if TYPE_CHECKING:
    from timeline.inspector.asked import AskedLab
    from timeline.inspector.reader import Reader


async def show_lab(reader: Reader, asked: AskedLab) -> Lab:
    """Return how far a comparison of policies is, and what it came to; the first question begins it."""
    run = await reader.laboratory.run(asked)
    stands = standings(run.works, run.outcomes) if run.ended and run.outcomes else []
    return Lab(
        conversation=asked.id,
        policies=asked.names,
        limits=asked.numbers,
        done=run.done,
        of=run.of,
        ended=run.ended,
        rows=tuple(stand.dump() for stand in stands),
        failures=tuple(outcome.failure.message for outcome in run.outcomes if outcome.failure is not None),
    )
