"""Policies that take every decision of another one, and send less: ``lean-pi`` shows what ``pi`` shows, for less.

Whoever is used to a published design keeps what it keeps in sight, and pays less for it (ADR 0105).
"""

from __future__ import annotations

from typing import Final

from timeline.policy.model import LineNumbers, Policy, Repeats
from timeline.policy.steps import Summarize

PREFIX: Final = "lean-"
"""How the name of such a policy begins."""
RELEASE: Final = 1
"""Number of what makes a policy lean: raise it whenever the same policy becomes another lean one."""


def lean(policy: Policy) -> Policy:
    """Return a policy that takes every decision of another one, and sends less.

    Passages in sight and most numbers of lines are left out of new results, and counted as if they were sent, so that
    the same blocks are in sight. A model writes its summaries as the next turn of the context that the provider has
    cached. System prompt and tools are cached for an hour. What the policy says about these itself stays.

    Args:
        policy: a preset's, a published design's or one of your own.

    Example:
        ```python
        from timeline import policies

        pi = policies.by_name("pi", max_tokens=100_000)
        lean = policies.lean(pi)
        assert lean == policies.by_name("lean-pi", max_tokens=100_000)
        assert lean.trigger == pi.trigger
        ```
    """
    points = policy.cache_points
    return policy.model_copy(
        update={
            "name": f"{PREFIX}{policy.name}",
            "repeats": policy.repeats or Repeats(),
            "line_numbers": policy.line_numbers or LineNumbers(),
            "abridged_counted_as": "whole",
            "steps": tuple(_in_cache(step) if isinstance(step, Summarize) else step for step in policy.steps),
            "cache_points": points.model_copy(update={"kept_long": "fixed_part"})
            if points.kept_long == "nothing"
            else points,
        }
    )


def _in_cache(step: Summarize) -> Summarize:
    return step.model_copy(update={"asked": "in_cache"})
