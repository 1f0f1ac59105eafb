"""Triggers: when a render compacts. Each names a line in tokens of the whole account; above it, compaction is due.

Every published design compares something else with something else; written as a line for the account's total (system,
tools and reserves included) they become comparable, and the rest of the engine needs to know none of them.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from timeline.frozen import Frozen


class Reserved(Frozen):
    """What the account holds besides the messages: all of it, and of that the tools and what is kept free."""

    fixed: int = 0
    tools: int = 0
    reserved: int = 0


def _share(share: float, tokens: int) -> int:
    """Return a share of some tokens, rounded down; a product that only binary fractions keep below a whole is whole."""
    return math.floor(round(share * tokens, 6))


class OverShare(Frozen):
    """The total is above a share of the limit (seed 002: 0.9; seed 000: 0.85)."""

    kind: Literal["over_share"] = "over_share"
    share: float = Field(default=0.9, gt=0, le=1)

    def line(self, limit: int, held: Reserved) -> int:
        """Return the largest total that is not due."""
        del held
        return _share(self.share, limit)


class OverThreshold(Frozen):
    """Messages and system prompt reach a share of what the reserves leave of the limit (seed 001).

    The seed reserves room for system prompt and tools and counts the system prompt among the messages as well; its
    figure, ``floor((128,000 - 2,000 - 4,000 - 5,000) * 0.80) = 93,600``, is compared with ``>=``.
    """

    kind: Literal["over_threshold"] = "over_threshold"
    share: float = Field(default=0.8, gt=0, le=1)
    system_reserve: int = Field(default=2_000, ge=0)

    def threshold(self, limit: int, reserved: int) -> int:
        """Return the seed's figure: messages of so many tokens are due."""
        return max(0, _share(self.share, limit - self.system_reserve - reserved))

    def line(self, limit: int, held: Reserved) -> int:
        """Return the largest total that is not due."""
        return min(limit, self.threshold(limit, held.reserved) - 1 + held.tools + held.reserved)


class OverUtilization(Frozen):
    """The messages take more than a share of the room that is left for messages (seed 003: 0.8)."""

    kind: Literal["over_utilization"] = "over_utilization"
    share: float = Field(default=0.8, gt=0, le=1)

    def line(self, limit: int, held: Reserved) -> int:
        """Return the largest total that is not due."""
        return held.fixed + _share(self.share, max(0, limit - held.fixed))


class Overdrawn(Frozen):
    """Nothing is available any more: the total, reserves included, is above the limit (seed 004)."""

    kind: Literal["overdrawn"] = "overdrawn"

    def line(self, limit: int, held: Reserved) -> int:
        """Return the largest total that is not due."""
        del held
        return limit


class Never(Frozen):
    """Nothing is ever due; what does not fit is reported."""

    kind: Literal["never"] = "never"

    def line(self, limit: int, held: Reserved) -> int:
        """Return the limit: above it the context is refused."""
        del held
        return limit


def _written_short(value: Any) -> Any:
    """Take a bare number as a share of the limit, and a bare name as the trigger of that name."""
    if isinstance(value, float | int) and not isinstance(value, bool):
        return {"kind": "over_share", "share": value}
    return {"kind": value} if isinstance(value, str) else value


Trigger: TypeAlias = Annotated[
    Annotated[OverShare | OverThreshold | OverUtilization | Overdrawn | Never, Field(discriminator="kind")],
    BeforeValidator(_written_short),
]
"""Any trigger; a bare number is `OverShare`, a bare name the trigger of that name with its own figures."""
