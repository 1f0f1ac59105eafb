"""Sizes of blocks in the provider's tokens: docs/lab.md, Method, 1 and 2."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.independent.recordings import Conversation

LEAST, MOST = 0.3, 3.5
"""Tokens of the provider for one of ours; beyond, a growth measured something else."""


@dataclass(frozen=True)
class Sizes:
    """Tokens of each block of a conversation, and of what stands before all of them in a request."""

    blocks: list[float]
    fixed: float


def measured(conversation: Conversation) -> Sizes:
    """Spread the growth of the context from call to call over what was appended in between."""
    own = [block.own for block in conversation.blocks]
    calls = conversation.calls
    ratios: list[float | None] = []
    for call, then in pairwise(calls):
        count = sum(own[call.before : then.before])
        ratio = (then.context - call.context) / count if count else 0.0
        ratios.append(ratio if LEAST <= ratio <= MOST else None)
    usual = median([ratio for ratio in ratios if ratio is not None] or [1.0])
    first = calls[0].before
    sizes = [count * usual for count in own[:first]]
    for (call, then), found in zip(pairwise(calls), ratios, strict=True):
        sizes += [count * (found or usual) for count in own[call.before : then.before]]
    sizes += [count * usual for count in own[calls[-1].before :]]
    return Sizes(sizes, max(0.0, calls[0].context - sum(sizes[:first])))
