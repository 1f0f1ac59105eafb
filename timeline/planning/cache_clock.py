"""The cache clock: whether the provider's prompt cache may still be warm (design, section 6, hiding; seed 002, TTL).

While it is warm, changing what was sent costs more than it saves; once it is cold, the prefix is written anew anyway.
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
    """The cache has gone cold: idle for so many seconds, where ``ttl + grace`` had to pass."""

    idle: int
    ttl: int
    grace: int

    def facts(self) -> dict[str, int]:
        """Return the figures under the names that events and explanations use."""
        return {"idle_seconds": self.idle, "ttl_seconds": self.ttl, "grace_seconds": self.grace}


def coldness(window: Window, policy: Policy, now: datetime) -> Cold | None:
    """Say whether the cache is cold at ``now``, and by which figures; None while it may be warm.

    Its lifetime is what the policy's hiding says; else what the provider's usage said, and no less than what the policy
    asks for: most usages tell how much was written, and not for how long.

    Without any call or render on record nothing is known, and after a clock that went back neither: both count as warm.
    """
    touch = window.touch
    if touch is None:
        return None
    hiding = policy.hiding or Hiding()  # a policy that never hides may still fold when cold
    ttl = hiding.ttl or max(touch.ttl, asked_seconds(policy.cache_points.kept_long))
    idle = int((now - touch.at).total_seconds())
    if idle < 0 or idle < ttl + hiding.grace:
        return None
    return Cold(idle, ttl, hiding.grace)
