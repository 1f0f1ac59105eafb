"""Hiding behind a cold cache: docs/concepts.md, Hiding.

Simpler than the engine: what stands for a block has one length, and nothing tells the model that content is hidden.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tests.independent.items import newest_response, total, without_old_thoughts

if TYPE_CHECKING:
    from tests.independent.items import Item

GRACE: Final = 60.0
"""Seconds beyond the cache's lifetime, since the newest call was sent, until it counts as cold."""
INTACT, OLD, FILES = 8, 24, 40
"""Rounds that stay: of tool output and bulky arguments; of calls, texts and thoughts; of a file's newest content."""
BULKY: Final = 60.0
"""Tokens of a call from which its arguments are bulky: more than may stand for them."""
REPLACEMENT: Final = 33.0
"""Tokens that stand for a hidden block: at most 60, and mostly less."""
LEAST: Final = 0.01
"""Share of the limit that a batch frees, or it is not made."""


def hide(items: list[Item], limit: int) -> list[Item]:
    """Return what is shown when the cache has gone cold."""
    newest = newest_response(items)
    contents: set[tuple[str, ...]] = set()
    shown: list[Item] = []
    for item in reversed(items):
        stays = _rounds(item, newest=_is_newest(item, contents))
        shown.append(item if newest - item.block.response < stays else _replaced(item))
    shown.reverse()
    if total(items) - total(shown) < LEAST * limit:
        return items
    rewritten = next(at for at, (was, now) in enumerate(zip(items, shown, strict=True)) if was != now)
    return without_old_thoughts([item for item in shown if item.size or item.form == "full"], rewritten)


def _is_newest(item: Item, contents: set[tuple[str, ...]]) -> bool:
    """Say whether no later block has this content of a file, or all of the file; and note that this one has it."""
    file = item.block.file
    newest = bool(file) and not contents & {file, file[:1]}
    contents.add(file)
    return newest


def _rounds(item: Item, *, newest: bool) -> float:
    if newest:
        return FILES
    match item.block.kind:
        case "result":
            return INTACT
        case "call":
            return INTACT if item.size > BULKY else OLD
        case "text" | "thought":
            return OLD
        case _:
            return float("inf")


def _replaced(item: Item) -> Item:
    if item.block.kind == "thought":
        return replace(item, size=0.0, form="hidden")
    return replace(item, size=REPLACEMENT, form="hidden") if item.size > REPLACEMENT else item
