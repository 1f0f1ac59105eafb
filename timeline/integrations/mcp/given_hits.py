"""The hits of a search that its pages gave: what others append between two pages ranks all hits anew."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection

    from timeline.integrations.mcp.arguments import SearchArguments

_MOST: Final = 256
"""Pages that are remembered; each has at most as many positions as a search has hits."""
_Place: TypeAlias = tuple["SearchArguments", str]


class GivenHits:
    """Remembers behind each cursor the positions of the hits that came before it.

    A rank counts every text of the store, so a hit may stand elsewhere by the next page: in the new order the last one
    has others in front of it that were never given, and others behind it that were. A cursor cannot hold them all, for
    a model has to repeat it.
    """

    def __init__(self) -> None:
        self._behind: OrderedDict[_Place, frozenset[int]] = OrderedDict()

    def before(self, asked: SearchArguments) -> frozenset[int] | None:
        """Return the hits that came before a page; None where its cursor is not remembered."""
        return frozenset() if asked.cursor is None else self._behind.get(_place(asked, asked.cursor))

    def remember(self, asked: SearchArguments, cursor: str, positions: Collection[int]) -> None:
        """Remember the hits of a page, and those before it, behind the cursor that the page ended with."""
        self._behind[_place(asked, cursor)] = (self.before(asked) or frozenset()).union(positions)
        if len(self._behind) > _MOST:
            self._behind.popitem(last=False)


def _place(asked: SearchArguments, cursor: str) -> _Place:
    return asked.model_copy(update={"cursor": None, "limit": 1}), cursor
