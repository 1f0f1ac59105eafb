"""The tokens of a window by kind of block."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from timeline.planning.costs import category_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from timeline.fold.window import Item


def by_role(items: Iterable[Item]) -> dict[str, int]:
    """Return the tokens of items as shown, by kind of block."""
    found: Counter[str] = Counter()
    for item in items:
        found[category_of(item)] += item.shown_tokens
    return {kind: tokens for kind, tokens in found.items() if tokens}
