"""The named policies by name; the command line and TOML files look them up with `by_name`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.errors import InvalidPolicy
from timeline.policy.ours import balanced, economical, gentle, none
from timeline.policy.published import cut_point, keep_last, keep_ratio, priority_chain, prune_then_summarize
from timeline.policy.text import nearest

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.policy.model import Policy

PRESETS: Final[dict[str, Callable[..., Policy]]] = {
    preset.__name__: preset
    for preset in (
        balanced,
        cut_point,
        economical,
        gentle,
        keep_last,
        keep_ratio,
        none,
        priority_chain,
        prune_then_summarize,
    )
}
PUBLISHED: Final = {
    "cut_point": "002",
    "keep_last": "001",
    "keep_ratio": "003",
    "priority_chain": "000",
    "prune_then_summarize": "004",
}
"""The presets that are published designs."""


def by_name(name: str, /, **changes: Any) -> Policy:
    """Build the preset of a name.

    Raises:
        InvalidPolicy: there is no such preset, or a field does not hold.
    """
    preset = PRESETS.get(name)
    if preset is None:
        raise InvalidPolicy("preset", f"there is no preset {name!r}" + nearest(name, PRESETS))
    return preset(**changes)
