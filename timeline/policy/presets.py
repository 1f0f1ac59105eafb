"""The named policies, as functions: keyword arguments change single fields.

`by_name` is what the command line uses.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic import ValidationError

from timeline.blocks import invalid_block
from timeline.errors import InvalidPolicy
from timeline.policy.model import Hiding, Policy


def cut_point(**changes: Any) -> Policy:
    """Seed 002: hide old content once the cache is cold; above 0.9 of the limit compact into a summary block.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.
    """
    return _policy({"name": "cut_point", "hiding": Hiding(), **changes})


def none(**changes: Any) -> Policy:
    """Never compact; a context above the limit is a `ContextOverflow`.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.
    """
    return _policy({"name": "none", "compacts": "never", **changes})


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
