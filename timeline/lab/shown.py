"""What a replay reads of a context: what is sent of the conversation, and how many tokens it has.

Most calls of a replay need no more. The context itself, a value with an account, a policy and reasons, is made where it
is asked for: by a check, a measure of facts, a summary that is asked for in the cached context.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from timeline.fold.window import Window
    from timeline.planning.account import FixedPart
    from timeline.projection.context import RenderedContext
    from timeline.wire.neutral import CachePoint, Entry


class ShownContext(NamedTuple):
    """What a context shows. A tuple, as all that a replay makes for each call: it takes a third of the time.

    Attributes:
        window: the window that it was projected from.
        entries: of the conversation, in order.
        points: the cache points among them.
        messages: tokens of the conversation that are sent.
        fixed: tokens of all else.
        context: makes the context.
    """

    window: Window
    entries: Sequence[Entry]
    points: Sequence[CachePoint]
    messages: int
    fixed: FixedPart
    context: Callable[[], RenderedContext]

    @property
    def sent(self) -> int:
        """Tokens of the whole request."""
        return self.messages + self.fixed.tokens - self.fixed.reserved


def shown_by(context: RenderedContext) -> ShownContext:
    """Return what a rendered context shows."""
    neutral, account = context.neutral, context.account
    return ShownContext(
        window=context.window,
        entries=neutral.entries,
        points=neutral.cache_points,
        messages=account.messages - account.unsent,
        fixed=account.fixed,
        context=lambda: context,
    )
