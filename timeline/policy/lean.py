"""Policies that take every decision of another one, and send less: ``lean-pi`` shows what ``pi`` shows, for less.

A user of a published design keeps what it keeps in sight, and pays less for it (ADR 0105).
"""

from __future__ import annotations

from typing import Any, Final

from timeline.policy.model import LineNumbers, Policy, Repeats, check_policy
from timeline.policy.steps import Summarize

PREFIX: Final = "lean-"
"""How the name of such a policy begins."""
RELEASE: Final = 1
"""Number of the rules of `lean`. Raise it whenever the same policy gives another lean policy."""

FIELDS: Final[tuple[str, ...]] = ("name", "repeats", "line_numbers", "abridged_counted_as", "cache_points")
"""The fields that `lean` sets: a change of one of these applies to the lean policy, and not to its original."""
_ABRIDGING: Final[dict[str, Any]] = {
    "repeats": Repeats(),
    "line_numbers": LineNumbers(),
    "abridged_counted_as": "whole",
}


def lean(policy: Policy) -> Policy:
    """Return a policy that takes every decision of another one, and sends less.

    It leaves passages that are in sight already and most line numbers out of new results, but counts them as if they
    were sent, so that the same blocks stay in sight. A model writes the summaries as the next turn of the context that
    the provider has cached. System prompt and tools are cached for an hour.

    What the given policy itself says about these stays. If it abridges results already, it goes on to abridge and count
    them in its own way; otherwise it would decide differently.

    Args:
        policy: a preset's, a published design's or one of your own.

    Raises:
        InvalidArgument: it is not a policy.

    Example:
        ```python
        from timeline import policies

        pi = policies.by_name("pi", max_tokens=100_000)
        lean = policies.lean(pi)
        assert lean == policies.by_name("lean-pi", max_tokens=100_000)
        assert lean.trigger == pi.trigger
        ```
    """
    check_policy("policy", policy)
    points = policy.cache_points
    return policy.model_copy(
        update={
            "name": policy.name if policy.name.startswith(PREFIX) else f"{PREFIX}{policy.name}",
            **({} if policy.abridges else _ABRIDGING),
            "steps": tuple(_in_cache(step) if isinstance(step, Summarize) else step for step in policy.steps),
            "cache_points": points.model_copy(update={"kept_long": "fixed_part"})
            if points.kept_long == "nothing"
            else points,
        }
    )


def _in_cache(step: Summarize) -> Summarize:
    return step.model_copy(update={"asked": "in_cache"})
