"""How old a block is, in rounds or turns: the scale that hiding is measured in (design, section 6, hiding)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.fold.window import Item

AgeUnit: TypeAlias = Literal["rounds", "turns"]


def ages(items: Sequence[Item], unit: AgeUnit) -> list[int]:
    """Return for each item, in timeline order, how many rounds (or turns) of the window are newer than its own.

    A round is one model response with its calls and their results; what belongs to none, such as a prompt, is as old
    as the rounds that came after it say. The newest round has age 0.
    """
    if unit == "turns":
        return _by_turn(items)
    responses = sorted({item.response for item in items if item.response})
    newer = {response: len(responses) - 1 - rank for rank, response in enumerate(responses)}
    found: list[int] = []
    after: set[int] = set()
    for item in reversed(items):
        if item.response:
            after.add(item.response)
        found.append(newer.get(item.response, len(after)))
    return found[::-1]


def _by_turn(items: Sequence[Item]) -> list[int]:
    turns: dict[str, int] = {}
    return [turns.setdefault(item.block.turn_id, len(turns)) for item in reversed(items)][::-1]
