"""The named policies, as functions: keyword arguments change single fields.

`by_name` is what the command line uses.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import ValidationError

from timeline.blocks import invalid_block
from timeline.errors import InvalidPolicy
from timeline.policy.model import Hiding, Policy


def cut_point(
    *,
    keep_recent: float = 0.2,
    keep_recent_tokens: int | None = None,
    halvings: int = 4,
    on_split: Literal["split", "whole_turn"] = "split",
    **changes: Any,
) -> Policy:
    """Seed 002: hide old content once the cache is cold; above 0.9 of the limit compact into a summary block.

    Args:
        keep_recent: share of (limit - fixed part) that stays verbatim behind the cut.
        keep_recent_tokens: the same in tokens; overrides the share.
        halvings: how often that is halved to meet the target.
        on_split: a cut inside a turn summarises the turn's prefix, or moves to the turn's start.
        changes: fields of the policy.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.
    """
    cut = {
        "kind": "cut_point",
        "keep_recent": keep_recent,
        "keep_recent_tokens": keep_recent_tokens,
        "halvings": halvings,
        "on_split": on_split,
    }
    steps = [{"kind": "summarize", "cut": cut}]
    return _policy({"name": "cut_point", "hiding": Hiding(), "steps": steps, **changes})


def none(**changes: Any) -> Policy:
    """Never compact; a context above the limit is a `ContextOverflow`.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.
    """
    return _policy({"name": "none", "trigger": "never", "steps": (), **changes})


PRESETS: Final = {"cut_point": cut_point, "none": none}


def by_name(name: str, **changes: Any) -> Policy:
    """Make the preset of a name.

    Raises:
        InvalidPolicy: there is no such preset, or a field does not hold.
    """
    preset = PRESETS.get(name)
    if preset is None:
        raise InvalidPolicy("policy", f"there is no preset {name!r}; there are {', '.join(sorted(PRESETS))}")
    return preset(**changes)


def _policy(fields: dict[str, Any]) -> Policy:
    try:
        return Policy.model_validate(fields)
    except ValidationError as error:
        problem = invalid_block(error)
        raise InvalidPolicy(problem.field, problem.problem) from None
