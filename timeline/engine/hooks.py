"""What the application is told around a compaction: its hooks, and the boundary event (seeds 002 and 003)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from timeline.errors import described
from timeline.events.other_payloads import CompactionBoundary, HookFailed
from timeline.projection.reports import Taken

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from timeline.events import CompactionCompleted
    from timeline.log.protocol import Log
    from timeline.ports import Hook, Hooks

BEFORE: Final = "on_before_compaction"
"""The hook that may forbid a compaction, or write its summary."""


async def call_hook(hook: Hook | None, name: str, facts: Mapping[str, Any], log: Log, now: datetime) -> object:
    """Await a hook of the application; an error in it is recorded, never fatal (seed 002, hooks).

    Args:
        hook: what the application gave, if anything.
        name: of the hook.
        facts: what it is told; a copy, which it may keep and change.
        log: of the conversation.
        now: its time.
    """
    if hook is None:
        return None
    try:
        return await hook(dict(facts))
    except Exception as error:  # noqa: BLE001 - an application's hook may raise anything
        failed = HookFailed(hook=name, error=described(error))
        await log.commit([failed], at=now)
        return None


@dataclass(frozen=True, slots=True)
class Announced:
    """A compaction that is in the log, and is told: hooks first, then the boundary (seed 003).

    Attributes:
        done: its event.
        version: of that event.
        log: that it stands in.
        now: the time of what is appended for it.
    """

    done: CompactionCompleted
    version: int
    log: Log
    now: datetime

    async def tell(self, hooks: Hooks) -> None:
        """Tell the hooks that come after a compaction."""
        done, sizes = self.done, self._sizes()
        after = {**sizes, "compacted_tokens": done.compacted_tokens}
        await call_hook(hooks.on_after_compaction, "on_after_compaction", after, self.log, self.now)
        session = {
            "source": "compact",
            "conversation": self.log.fold.conversation,
            "summary": done.block.path,
            "round": done.round,
            **sizes,
        }
        await call_hook(hooks.on_session_start, "on_session_start", session, self.log, self.now)

    async def mark(self) -> int:
        """Append the boundary; return its version."""
        boundary = CompactionBoundary(
            compaction=self.version,
            before_tokens=self.done.before_tokens,
            after_tokens=self.done.after_tokens,
            messages=self.done.messages,
        )
        return await self.log.commit([boundary], at=self.now)

    def taken(self, boundary: int | None) -> Taken:
        """Return the decision as a render reports it; ``boundary`` is the version of that event, if there is one."""
        done = self.done
        detail: dict[str, int | str] = {"round": done.round, **self._sizes(), "compacted_tokens": done.compacted_tokens}
        detail |= {"messages": done.messages, "summary": done.block.path}
        if done.split_turn_id is not None:
            detail["split_turn_id"] = done.split_turn_id
        if boundary is not None:
            detail["boundary"] = boundary
        return Taken(kind="compacted", reason=done.reason, facts=detail)

    def _sizes(self) -> dict[str, int]:
        return {"before_tokens": self.done.before_tokens, "after_tokens": self.done.after_tokens}
