"""Search the log for a fact as a model could that does not have it: the fact itself is never asked for.

A model knows the beginning or the end of a name, what it is about to write beside it, and the other names that it is
about to use. So at most three queries are tried, in this order: the last piece of the fact, between slashes, that the
request shows; the words on either side of it in the answer; the other fact of the answer that is nearest to it and in
sight. What one of them has among its first `RANKS` hits is searched at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from timeline.frozen import compact_json
from timeline.lab.facts.strings import has_word
from timeline.queries import LONGEST_QUERY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from timeline.blocks import Block
    from timeline.lab.facts.needs import Need

RANKS: Final = 5
"""The hits that a model looks at."""
_SHORTEST: Final = 4
"""Characters of a piece that is worth a query."""


class Ranked(Protocol):
    """Texts that are searched as a store searches them: `timeline.store.Ranking`."""

    def add(self, key: str, payload: str) -> None:
        """Add the text of an event, given as its JSON."""
        ...

    def best(self, query: str, most: int) -> list[str]:
        """Return the keys of the best texts that hold all words of a query, best first."""
        ...


def queries(need: Need, needs: Sequence[Need], missing: Collection[str], shown: Sequence[str]) -> Iterator[str]:
    """Yield the queries for a fact, the first one first; what is longer than a search takes is none.

    Args:
        need: the fact.
        needs: all of the answer, in its order.
        missing: the facts that are not in sight.
        shown: the texts of the request.
    """
    pieces = [piece for piece in need.fact.split("/") if len(piece) >= _SHORTEST and piece != need.fact]
    known = next((piece for piece in reversed(pieces) if any(piece in text for text in shown)), "")
    place = needs.index(need)
    seen = [(abs(at - place), one.fact) for at, one in enumerate(needs) if one.fact not in missing]
    texts = (known if has_word(known) else "", need.beside, min(seen)[1] if seen else "")
    yield from (text for text in texts if 0 < len(text) <= LONGEST_QUERY)


def searchable(block: Block) -> str:
    """Return a block as a store's search reads it: as the event that appended it."""
    return compact_json({"block": block.dump()})
