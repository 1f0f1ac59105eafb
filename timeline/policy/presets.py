"""The presets by name, and those that are published designs; `timeline.policy.files.by_name` builds one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.policy.ours import balanced, economical, gentle, none
from timeline.policy.published import cut_point, keep_last, keep_ratio, priority_chain, prune_then_summarize

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
