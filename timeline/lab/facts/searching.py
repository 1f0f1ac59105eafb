"""Search the log for a fact as a model could that does not have it: the fact itself is never asked for.

A model knows the beginning or the end of a name, what it is about to write beside it, and the other names that it is
about to use. So at most three queries are tried, in this order: the last piece of the fact, between slashes, that the
request shows; the words on either side of it in the answer; the other fact of the answer that is nearest to it and in
sight. What one of them has among its first `RANKS` hits is searched at once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from timeline.frozen import compact_json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from timeline.blocks import Block
    from timeline.lab.facts.needs import Need

RANKS: Final = 5
"""The hits that a model looks at."""
_WORD: Final = re.compile(r"[^\W\d_]{4,}")
_SHORTEST: Final = 4
"""Characters of a piece that is worth a query."""


def words_beside(fact: str, text: str, others: Iterable[str]) -> str:
    """Return the last word before a fact and the first one behind it, on its line; no part of another fact."""
    at = text.find(fact)
    start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
    before, behind = text[start:at], text[at + len(fact) : len(text) if end < 0 else end]
    for other in sorted(others, key=len, reverse=True):
        before, behind = before.replace(other, "|"), behind.replace(other, "|")
    return " ".join([*_WORD.findall(before)[-1:], *_WORD.findall(behind)[:1]])


def queries(need: Need, needs: Sequence[Need], missing: Collection[str], shown: Sequence[str]) -> Iterator[str]:
    """Yield the queries for a fact, the first one first.

    Args:
        need: the fact.
        needs: all of the answer, in its order.
        missing: the facts that are not in sight.
        shown: the texts of the request.
    """
    pieces = [piece for piece in need.fact.split("/") if len(piece) >= _SHORTEST and piece != need.fact]
    known = next((piece for piece in reversed(pieces) if any(piece in text for text in shown)), "")
    if _WORD.search(known):
        yield known
    if need.beside:
        yield need.beside
    place = needs.index(need)
    seen = [(abs(at - place), one.fact) for at, one in enumerate(needs) if one.fact not in missing]
    if seen:
        yield min(seen)[1]


def searchable(block: Block) -> str:
    """Return a block as a store's search reads it: as the event that appended it."""
    return compact_json({"block": block.dump()})
