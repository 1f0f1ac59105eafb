"""Whether a plan still holds once its summary is written: what came since left its range alone (design, section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.events import BlockAppended, ContextRendered, ModelCalled
from timeline.events.attempt_events import CompactionFailed, CompactionStarted
from timeline.events.notice_events import CompactionBoundary, ContextOverflowed, HookFailed, PrefixChanged, ToolsChanged

if TYPE_CHECKING:
    from timeline.log.protocol import Log
    from timeline.planning.plans import Plan

_HARMLESS: Final = (
    BlockAppended,
    CompactionBoundary,
    CompactionFailed,
    CompactionStarted,
    ContextOverflowed,
    ContextRendered,
    HookFailed,
    ModelCalled,
    PrefixChanged,
    ToolsChanged,
)
"""Events that leave a plan valid: they stand behind its range, or change nothing in it."""


async def still_valid(log: Log, plan: Plan) -> bool:
    """Say whether everything since the plan stands behind its range: appends do, unless they answer a covered call."""
    if log.fold.version == plan.version:
        return True
    if any(not isinstance(event.payload, _HARMLESS) for event in await log.since(plan.version)):
        return False
    covered = {item.version for item in plan.covered}
    return not any(item.answers in covered for item in log.fold.window.items if item.version > plan.version)
