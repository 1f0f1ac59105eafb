"""What a request shows of a conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.independent.recordings import Block


class Settings(NamedTuple):
    """Figures of a cut-point policy; the defaults are those of the preset ``cut_point``.

    Attributes:
        limit: tokens of a whole request.
        keep: share of the room, which is the limit less the fixed part, that stays behind the cut.
        trigger, target: shares of the limit: above the one a cut is due, down to the other it goes.
    """

    limit: int
    keep: float = 0.2
    trigger: float = 0.9
    target: float = 0.7


@dataclass(frozen=True)
class Item:
    """A block as it is shown, in the provider's tokens; of a summary the block is made up."""

    number: int
    block: Block
    size: float
    form: str = "full"

    @property
    def group(self) -> tuple[str, int]:
        """What no cut divides: a response with its results, or anything else by itself."""
        beside = self.block.kind in {"prompt", "note", "summary"}
        return ("alone", self.number) if beside else ("response", self.block.response)


def total(items: Sequence[Item]) -> float:
    """Return the tokens of some items."""
    return sum(item.size for item in items)


def newest_response(items: Sequence[Item]) -> int:
    """Return the number of the newest response that is shown."""
    return max((item.block.response for item in items), default=-1)


def without_old_thoughts(items: Sequence[Item], rewritten: int) -> list[Item]:
    """Leave thoughts out that the provider is not sent again (ADR 0013).

    Args:
        items: of a request.
        rewritten: place of the first item that says something else than before. Thoughts behind it stay only where they
            are of the turn of the newest response.
    """
    answering = max((item.block.turn for item in items if item.group[0] == "response"), default=-1)
    return [
        item
        for at, item in enumerate(items)
        if item.block.kind != "thought" or at < rewritten or item.block.turn == answering
    ]
