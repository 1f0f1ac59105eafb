"""Decide whether the provider's prompt cache may still be warm (design: Hiding).

While it is warm, changing the prefix costs more than it saves; once it is cold, the provider writes the prefix anew in
any case. The rule is the TTL of the cut-point design [cut_point].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from timeline.policy.model import Hiding
from timeline.usage import CACHE_SECONDS, TERMS, asked_seconds

if TYPE_CHECKING:
    from datetime import datetime

    from timeline.fold.window import Window
    from timeline.policy.model import Policy
    from timeline.usage import CacheTerms


@dataclass(frozen=True, slots=True)
class Cold:
    """The figures of a cold cache: seconds that it was idle, and ``ttl + grace`` that had to pass."""

    idle: int
    ttl: int
    grace: int

    def facts(self) -> dict[str, int]:
        """Return the figures under the names that events and explanations use."""
        return {"idle_seconds": self.idle, "ttl_seconds": self.ttl, "grace_seconds": self.grace}


def terms_in_force(window: Window, policy: Policy) -> CacheTerms:
    """Return what the provider's cache does for the messages.

    The policy's own terms come first. Else the lifetime is the one that the provider's usage reported, and at least the
    one that the policy asks for, since most usages report how much was written, and not for how long.
    """
    if policy.cache is not None:
        return TERMS[policy.cache]
    reported = CACHE_SECONDS if window.touch is None else window.touch.ttl
    asked = asked_seconds(policy.cache_points.kept_long)
    return TERMS["1h" if max(reported, asked) > CACHE_SECONDS else "5m"]


def coldness(window: Window, policy: Policy, now: datetime) -> Cold | None:
    """Return the figures of a cache that is cold at ``now``; None while it may be warm.

    The lifetime is that of the policy's hiding, if set, else the one in force. A provider without a cache counts as
    cold at any time. A cache counts as warm where the log has no call or render, and where the clock went backwards.
    """
    touch = window.touch
    if touch is None:
        return None
    hiding = policy.hiding or Hiding()  # a policy that never hides may still compact when cold
    ttl = hiding.ttl or terms_in_force(window, policy).seconds
    idle = int((now - touch.at).total_seconds())
    if not ttl:
        return Cold(max(0, idle), 0, 0)
    if idle < 0 or idle < ttl + hiding.grace:
        return None
    return Cold(idle, ttl, hiding.grace)


def pays_back(freed: int, behind: int, terms: CacheTerms, calls: int) -> bool:
    """Return whether a change of the prefix, while the cache is warm, saves what it costs within so many calls.

    Args:
        freed: tokens that the change frees.
        behind: tokens from the first changed block on, as they are sent afterwards.
        terms: what the cache does.
        calls: how many calls share the cost.
    """
    return behind * terms.rewrite <= calls * freed * terms.read
