"""Observer of a timeline at work: tracing connects here, so that the core knows no tracer.

Hooks run before and after a compaction, and may change it. An observer's context managers run around the work: they are
entered before and left after it, also by an error, so that a tracer's span holds everything that happens inside.
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
    """Sees what a timeline does, and changes nothing: override the methods of interest. None of them may raise.

    Dry runs and renders of the past are not observed, but their requests to a summarizer are.
    """

    def rendering(self, conversation: str) -> AbstractContextManager[Callable[[RenderedContext], None]]:
        """Enter a recorded render: from before its decisions until it is recorded.

        Returns:
            A context manager. Entering it gives a function, which is called with the context unless the render is
            refused.
        """
        del conversation
        return nullcontext(_look_away)

    def compacting(
        self, conversation: str, reason: CompactReason, step: CoveringStep
    ) -> AbstractContextManager[Callable[[CompactionCompleted, Window, Window], None]]:
        """Enter one covering step of a policy: from its planning to the last hook.

        Returns:
            A context manager. Entering it gives a function, which is called with the committed compaction and the
            windows right before and after it; not if the compaction was refused, failed, or made previews only.
        """
        del conversation, reason, step
        return nullcontext(_look_away)

    def pruned(self, conversation: str, pruned: Pruned) -> None:
        """Take note of hidden blocks: by the cache clock, under pressure, or by a step of the policy."""

    def asking(self, summarizer: Summarizer) -> Summarizer:
        """Return the summarizer to use for the application's: itself, or a wrapper around it."""
        return summarizer


def _look_away(*what: object) -> None:
    del what
