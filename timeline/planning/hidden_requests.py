"""Find the prompts of which a hide leaves something asked unsaid: it reports them, as a compaction does (ADR 0077)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.facts.of_items import said_by_users
from timeline.facts.said import says_all, searchable_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from timeline.events import Replacement
    from timeline.fold.window import Item


def left_unsaid(items: Iterable[Item], replacements: Iterable[Replacement]) -> tuple[int, ...]:
    """Return the versions of the prompts whose replacement does not say everything, in order.

    A user's reason for refusing a call counts as a prompt, and so do answers to a call's questions and attached texts.

    Args:
        items: of the window that the hide is planned for.
        replacements: what is shown from now on.
    """
    shown = {replacement.version: replacement.text for replacement in replacements}
    said = said_by_users(items, lambda item: item.version in shown)
    lost = (
        item.version for item, call in said if not says_all(searchable_line([shown[item.version]]), item.block, call)
    )
    return tuple(sorted(lost))
