"""Watching a timeline at work: a port whose default looks away. Tracing is a composition with it, not part of the core.

A hook of the application is asked something, or told that something is over. An observer stands around the work: what
it enters before is left after, by whatever way, so that a tracer's span holds what happens inside.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.events import CompactionCompleted, CompactReason, Pruned
    from timeline.fold.window import Window
    from timeline.policy.steps import CoveringStep
    from timeline.ports import Summarizer
    from timeline.projection.context import RenderedContext


class Observer:
    """Sees what a timeline does, and changes nothing. Override what is of interest; nothing here may raise.

    Dry runs, and renders of a past, are not observed; what they ask a summarizer is.
    """

    def rendering(self, conversation: str) -> AbstractContextManager[Callable[[RenderedContext], None]]:
        """Stand around a recorded render, from before its decisions until it is recorded.

        What is entered is called with the context; not where the render is refused.
        """
        del conversation
        return nullcontext(_look_away)

    def compacting(
        self, conversation: str, reason: CompactReason, step: CoveringStep
    ) -> AbstractContextManager[Callable[[CompactionCompleted, Window, Window], None]]:
        """Stand around one step of a policy that covers something, from planning to the last hook.

        What is entered is called with the compaction, once it is in the log, and the windows right before and behind
        it; not where it was refused, failed, or made previews only.
        """
        del conversation, reason, step
        return nullcontext(_look_away)

    def pruned(self, conversation: str, pruned: Pruned) -> None:
        """Learn that blocks were hidden: by the cache clock, under pressure, or by a step of the policy."""

    def asking(self, summarizer: Summarizer) -> Summarizer:
        """Return what is asked in place of the application's summarizer: itself, or something around it."""
        return summarizer


def _look_away(*what: object) -> None:
    del what
