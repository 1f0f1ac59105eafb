"""Call the application's hooks around a compaction, and mark its place in the log with a boundary event.

The hooks are those of the cut-point design [cut_point] (002). The boundary, and its place behind the hooks, are those
of keep-ratio (003).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from timeline.checks import awaitable
from timeline.display.logs import logger_of
from timeline.errors import described
from timeline.events.addresses import listed_addresses
from timeline.events.other_payloads import CompactionBoundary, HookFailed
from timeline.log.apart import Unanswered, run_apart
from timeline.projection.reports import TakenDecision

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from timeline.events import CompactionCompleted
    from timeline.log.protocol import Log
    from timeline.ports import Hook, Hooks

_LOGGER: Final = logger_of("timeline")
BEFORE: Final = "on_before_compaction"
"""The hook that may forbid a compaction, or write its summary."""


async def call_hook(hook: Hook | None, name: str, facts: Mapping[str, Any], log: Log, at: datetime | None) -> object:
    """Await a hook and return its answer. An error in it is recorded and logged, and never raised (002, hooks).

    Args:
        hook: the application's function; None answers None.
        name: the hook's name, for the record of an error.
        facts: passed to the hook as a copy, which it may keep and change.
        log: gets the record of an error.
        at: the time of that record; None for the time of its append.
    """
    if hook is None:
        return None
    answer = await run_apart(lambda: awaitable(hook(dict(facts))))
    if not isinstance(answer, Unanswered):
        return answer
    failed = HookFailed(hook=name, error=described(answer.error))
    _LOGGER.warning("conversation %s: the hook %s failed: %s", log.fold.conversation, name, failed.error)
    await log.commit([failed], at=at)
    return None


@dataclass(frozen=True, slots=True)
class CompactionHooks:
    """A committed compaction to announce: to the hooks first, then by the boundary in the log (003).

    With this order, all that a hook appends comes before the boundary, which ends the compaction.

    Attributes:
        done: the compaction's event.
        version: that event's version.
        log: the log that holds it.
        at: the time of the events appended for it; None for the time of each append.
    """

    done: CompactionCompleted
    version: int
    log: Log
    at: datetime | None

    async def call(self, hooks: Hooks) -> None:
        """Call ``on_after_compaction``, then ``on_session_start``."""
        done, sizes = self.done, self._sizes()
        after = {**sizes, "compacted_tokens": done.compacted_tokens}
        await call_hook(hooks.on_after_compaction, "on_after_compaction", after, self.log, self.at)
        session = {
            "source": "compact",
            "conversation": self.log.fold.conversation,
            "summary_path": done.block.path,
            "compaction_number": done.round,
            **sizes,
        }
        await call_hook(hooks.on_session_start, "on_session_start", session, self.log, self.at)

    async def append_boundary(self) -> int:
        """Append the boundary; return its version."""
        boundary = CompactionBoundary(
            compaction=self.version,
            before_tokens=self.done.before_tokens,
            after_tokens=self.done.after_tokens,
            messages=self.done.messages,
        )
        return await self.log.commit([boundary], at=self.at)

    def decision(self, boundary: int | None) -> TakenDecision:
        """Return the decision for a render's report; ``boundary`` is the boundary event's version, if any."""
        done = self.done
        detail: dict[str, int | str] = {
            "compaction_number": done.round,
            **self._sizes(),
            "compacted_tokens": done.compacted_tokens,
        }
        detail |= {"messages": done.messages, "summary_path": done.block.path}
        if done.split_turn_id is not None:
            detail["split_turn_id"] = done.split_turn_id
        if boundary is not None:
            detail["boundary"] = boundary
        if done.unsaid:
            detail["unsaid"] = listed_addresses(done.unsaid)
        return TakenDecision(kind="compacted", reason=done.reason, facts=detail)

    def _sizes(self) -> dict[str, int]:
        return {"before_tokens": self.done.before_tokens, "after_tokens": self.done.after_tokens}
