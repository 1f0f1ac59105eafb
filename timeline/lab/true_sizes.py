"""What the provider would have counted for a context that no recording has, by the sizes that its usage gives blocks.

A simulated call is sent another context than the recorded one. So it must not report the recorded figures: a policy
that learns from usage how the provider counts would learn from figures that do not follow its own decisions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.events import BlockAppended
from timeline.fold.counts import Recount
from timeline.lab.sizes import USUAL, VOCABULARY
from timeline.tokens import get_counter

if TYPE_CHECKING:
    from timeline.lab.sizes import Measured
    from timeline.projection.context import RenderedContext
    from timeline.usage import Usage

_INPUT: Final = ("input_tokens", "cache_read_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens")


class TrueSizes:
    """The provider's sizes of contexts.

    A block that is shown in full has the size that was measured; what a policy writes, and the fixed part, cost the
    provider as much for each of our tokens as the whole recording does.

    Args:
        ratio: that share, see `overall_ratio`.
        fixed: the provider's tokens of the fixed part, where they are known.

    Attributes:
        of_block: the measured size of each block, by its version.
    """

    def __init__(self, ratio: float, fixed: int | None = None) -> None:
        self.of_block: dict[int, int] = {}
        self._ratio, self._fixed = ratio, fixed
        self._recount = Recount(get_counter(VOCABULARY))

    def of(self, context: RenderedContext) -> int:
        """Return the tokens that the provider would have counted for a context."""
        sizes = (
            self.of_block[item.version]
            if item.replacement is None and item.version in self.of_block
            else round(item.shown_tokens * self._ratio)
            for item in self._recount.items(context.window.items)
            if not item.unsent
        )
        return max(1, self._fixed_of(context) + sum(sizes))

    def _fixed_of(self, context: RenderedContext) -> int:
        if self._fixed is not None:
            return self._fixed
        fixed = context.account.fixed
        return round((fixed.system + fixed.tools + fixed.tail) / context.counts.ratio * self._ratio)


def overall_ratio(measured: Measured) -> float:
    """Return the provider's tokens for one of ours, over all blocks of a recording."""
    sizes = [
        (event.payload.block.countable(), tokens)
        for event, tokens in zip(measured.recording.events, measured.tokens, strict=True)
        if isinstance(event.payload, BlockAppended)
    ]
    own = sum(get_counter(VOCABULARY).count_many([text for text, _ in sizes]))
    return sum(tokens for _, tokens in sizes) / own if own else USUAL


def rescaled(usage: Usage, total: int) -> Usage:
    """Return a usage with ``total`` input tokens, of the same kinds in the same shares."""
    before = usage.sent_tokens
    if not before:
        return usage
    shares: dict[str, Any] = {name: getattr(usage, name) * total // before for name in _INPUT}
    shares[max(_INPUT, key=lambda name: shares[name])] += total - sum(shares.values())
    return usage.model_copy(update=shares)
