"""Show results whole again that leave out a passage of a block which is now out of sight (ADR 0090)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from timeline.errors import VersionConflict
from timeline.events import BlocksRevealed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from timeline.engine.pressure import Pressure
    from timeline.events import Payload
    from timeline.planning.repeats import References


async def restore(pressure: Pressure, references: References) -> bool:
    """Show results whole again that leave out what is no longer in sight; return whether there are any.

    Args:
        pressure: has the log and the time of the decision.
        references: finds the results.
    """
    # Check before taking the log's lock: a render with nothing to decide never takes it.
    if not references.lost(pressure.window):
        return False

    async def choose(_: datetime) -> Sequence[Payload]:
        versions = references.lost(pressure.window)
        return [BlocksRevealed(versions=versions, reason="restored")] if versions else ()

    with suppress(VersionConflict):  # then it is left to the next render
        return bool(await pressure.log.decide(choose, at=pressure.at))
    return False
