"""Events of a tool's results, of about 1 KB each, as benchmarks of appends append them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from timeline.blocks import ToolResult
from timeline.events import BlockAppended, NewEvent, event_id

TEXT: Final = "".join(f'{n:3} |     def line_{n}(self) -> str:  # "quoted"\n' for n in range(22))
_START: Final = datetime(2026, 1, 1, tzinfo=UTC)


def event(number: int, text: str = TEXT) -> NewEvent:
    """Make the event of a tool's result."""
    at = _START + timedelta(milliseconds=137 * number)
    call = f"toolu_{number:020}"
    block = ToolResult(
        call_id=call,
        name="Read",
        text=text,
        path=f"tc:turn_1.{call}.result",
        turn_id="turn_1",
        at=at,
        response_id="r_1",
    )
    return NewEvent(id=event_id(at), at=at, payload=BlockAppended(block=block, tokens=300, counter="o200k_base"))
