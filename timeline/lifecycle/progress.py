"""What an interface shows of compactions: the state that follows from the lifecycle stream (seed 004)."""

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
    from timeline.lifecycle.events import LifecycleEvent

Phase: TypeAlias = Literal["idle", "pruning", "summarizing", "complete"]


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a conversation stands. Begin with `Progress()`, and take in each event of its stream with `after`.

    Attributes:
        phase: ``idle`` before the first compaction and after one that failed, ``complete`` after one that did not.
        tokens_before: of the newest compaction, in tokens of the messages; None before there was one.
        tokens_after: the same, of what it left so far.
        percent_saved: of the tokens before, 0 to 100, so far.
        error: what the newest compaction met; None once another one begins.
        usage: of the newest context.
        overflow: the newest context was refused; None once one was rendered again.
        compactions: how many were completed in what was taken in.
    """

    phase: Phase = "idle"
    tokens_before: int | None = None
    tokens_after: int | None = None
    percent_saved: float | None = None
    error: CompactionErrorEvent | None = None
    usage: ContextUsageEvent | None = None
    overflow: ContextOverflowEvent | None = None
    compactions: int = 0

    @property
    def status(self) -> Literal["compacting"] | None:
        """What the agent is doing, as far as its context tells: compacting, or something that is not known here."""
        return "compacting" if self.phase in {"pruning", "summarizing"} else None

    def after(self, event: LifecycleEvent) -> Progress:
        """Return where the conversation stands after an event."""
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
                return replace(self, phase="summarizing")
            case CompactionCompleteEvent():
                return replace(
                    self,
                    phase="complete",
                    tokens_before=event.tokens_before,
                    tokens_after=event.tokens_after,
                    percent_saved=event.percent_saved,
                    compactions=self.compactions + 1,
                )
            case CompactionErrorEvent():
                return replace(self, phase="idle", error=event)
            case ContextOverflowEvent():
                return replace(self, overflow=event)
            case ContextUsageEvent():
                # A pass that hid something and could do no more says so by rendering.
                over = self.phase == "pruning"
                return replace(self, phase="complete" if over else self.phase, usage=event, overflow=None)
