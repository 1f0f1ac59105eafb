"""Progress of compactions, for an interface: a state that each event of the lifecycle stream moves on (004)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from timeline.lifecycle.events import (
    CompactionCompleteEvent,
    CompactionErrorEvent,
    CompactionPruneEvent,
    CompactionStartEvent,
    CompactionSummarizeEvent,
    ContextOverflowEvent,
    ContextUsageEvent,
)

if TYPE_CHECKING:
    from datetime import datetime

    from timeline.lifecycle.events import LifecycleEvent

Phase: TypeAlias = Literal["idle", "pruning", "summarizing", "complete"]


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a conversation's compactions. Begin with `Progress()`, and move on with `after` at each event.

    Attributes:
        phase: ``idle`` before the first compaction and after a failed one, ``complete`` after a successful one.
        tokens_before: the messages' tokens before the newest compaction; None before the first one.
        tokens_after: the messages' tokens after it, so far.
        percent_saved: share of the tokens before that it saved so far, 0 to 100.
        error: the newest compaction's refusal or failure; None once another one begins.
        usage: the usage of the newest context.
        overflow: the refusal of the newest context; None once one is rendered again.
        compactions: how many compactions were completed in the events so far.
        expires_at: when a summary that is being written counts as given up; None otherwise.
    """

    phase: Phase = "idle"
    tokens_before: int | None = None
    tokens_after: int | None = None
    percent_saved: float | None = None
    error: CompactionErrorEvent | None = None
    usage: ContextUsageEvent | None = None
    overflow: ContextOverflowEvent | None = None
    compactions: int = 0
    expires_at: datetime | None = None

    @property
    def status(self) -> Literal["compacting"] | None:
        """``compacting`` while a compaction runs; None otherwise: the stream reports nothing else of the agent."""
        return "compacting" if self.phase in {"pruning", "summarizing"} else None

    def after(self, event: LifecycleEvent) -> Progress:
        """Return the state after an event."""
        match event:
            case CompactionStartEvent():
                return replace(
                    self,
                    phase="pruning",
                    tokens_before=event.tokens_before,
                    tokens_after=None,
                    percent_saved=None,
                    error=None,
                )
            case CompactionPruneEvent():
                before = self.tokens_before or 0
                after = max(0, (before if self.tokens_after is None else self.tokens_after) - event.tokens_saved)
                saved = 100 * (1 - after / before) if before else None
                return replace(self, phase="pruning", tokens_after=after, percent_saved=saved)
            case CompactionSummarizeEvent():
                return replace(self, phase="summarizing", expires_at=event.expires_at)
            case CompactionCompleteEvent():
                return replace(
                    self,
                    phase="complete",
                    tokens_before=event.tokens_before,
                    tokens_after=event.tokens_after,
                    percent_saved=event.percent_saved,
                    compactions=self.compactions + 1,
                    expires_at=None,
                )
            case CompactionErrorEvent():
                return replace(self, phase="idle", error=event, expires_at=None)
            case ContextOverflowEvent():
                return replace(self, overflow=event)
            case ContextUsageEvent(estimated=True):
                return replace(self, usage=event)
            case ContextUsageEvent():
                # After hiding, a refused summary may leave no event: the render ends the compaction.
                over = self.phase == "pruning"
                return replace(self, phase="complete" if over else self.phase, usage=event, overflow=None)
