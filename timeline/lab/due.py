"""Whether a policy might decide anything at a call: most calls of a replay need no render to know that it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.planning.abridge import abridgeable
from timeline.planning.cache_clock import coldness

if TYPE_CHECKING:
    from datetime import datetime

    from timeline.fold.window import Window
    from timeline.policy.model import Policy


def is_full(window: Window, total: int, line: int) -> bool:
    """Return whether a render may compact, cold or not: for staged work, or a context at its line.

    Args:
        window: the window as it is.
        total: tokens of the context, the policy's reserves included.
        line: the policy's trigger or limit, whichever is lower.
    """
    return bool(window.stages) or total >= line


def may_be_cold(window: Window, policy: Policy, now: datetime) -> bool:
    """Return whether the cache is cold, under a policy that does something then."""
    acts = policy.hiding is not None or policy.compact_when_cold is not None
    return acts and coldness(window, policy, now) is not None


def may_decide(window: Window, policy: Policy, now: datetime) -> bool:
    """Return whether a decision is not ruled out, however small the context is: a new result, or a cold cache.

    Where none is due, and the context is not full (`is_full`), it is within its limit, too, so that no render would
    refuse it. An owed notice is the caller's to ask for.

    Args:
        window: the window as it is.
        policy: as it is replayed, which counts with one counter.
        now: time of the call.
    """
    return bool(abridgeable(window, policy)) or may_be_cold(window, policy, now)
