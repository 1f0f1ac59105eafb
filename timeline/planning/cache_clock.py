"""Decide whether the provider's prompt cache may still be warm (design: Hiding).

While it is warm, changing the prefix costs more than it saves; once it is cold, the provider writes the prefix anew in
any case. The rule is the TTL of the cut-point design [cut_point].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from timeline.policy.model import Hiding
from timeline.usage import asked_seconds

if TYPE_CHECKING:
    from datetime import datetime

    from timeline.fold.window import Window
    from timeline.policy.model import Policy


@dataclass(frozen=True, slots=True)
class Cold:
    """The figures of a cold cache: seconds that it was idle, and ``ttl + grace`` that had to pass."""

    idle: int
    ttl: int
    grace: int

    def facts(self) -> dict[str, int]:
        """Return the figures under the names that events and explanations use."""
        return {"idle_seconds": self.idle, "ttl_seconds": self.ttl, "grace_seconds": self.grace}


def coldness(window: Window, policy: Policy, now: datetime) -> Cold | None:
    """Return the figures of a cache that is cold at ``now``; None while it may be warm.

    The lifetime is that of the policy's hiding, if set. Otherwise it is the one that the provider's usage reported, but
    no less than the one that the policy asks for, since most usages report how much was written and not for how long.

    The cache counts as warm where the log has no call or render, and where the clock went backwards.
    """
    touch = window.touch
    if touch is None:
        return None
    hiding = policy.hiding or Hiding()  # a policy that never hides may still compact when cold
    ttl = hiding.ttl or max(touch.ttl, asked_seconds(policy.cache_points.kept_long))
    idle = int((now - touch.at).total_seconds())
    if idle < 0 or idle < ttl + hiding.grace:
        return None
    return Cold(idle, ttl, hiding.grace)
