# ruff: noqa: S608 - the texts are put together from constants, never from input
"""Full-text search of a PostgreSQL store: the server finds, and ranks are made here.

The server finds the vectors that hold the words (`store.postgres.vectors`); ranks are bm25 as in every store, of the
places of the asked lexemes and the number of texts that hold each phrase. The server's own ranks know neither.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import asyncpg

from timeline.errors import StoreCorrupt, StoreError

from ..aside import at_its_size
from ..column_numbers import LARGEST
from ..frequent_types import RARE_WHERE
from ..search.querying import DatabaseSearch
from ..search.scanning import TAGS, Hit, Scan, SearchFilter, text_of
from ..search.words import Query, Term
from . import vectors
from .catching_up import progress_of
from .escaping import unescaped
from .rows import event_row
from .search_index import REDACTED, ROWS, TEXTS
from .statements import EVENT, OWN

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from ..codec import Row
    from ..search.words import Phrase

_Counts: TypeAlias = dict[int, tuple[int, list[int]]]
"""By the position of a text: the number of its words, and the count of each phrase."""

MOST_RANKED: Final = 10_000
"""The newest hits, of which the best are found: each one's vector is read."""
_READ_AT_ONCE: Final = 50
"""Events whose texts are read once more in one go."""
_TOTALS: Final = f"SELECT count(*), coalesce(sum(words), 0)::bigint FROM search_index WHERE {OWN} AND part = 0"
_WITH_PHRASE: Final = "SELECT count(DISTINCT position) FROM search_found($1::tsquery)"
_MAY_HOLD: Final = "SELECT DISTINCT position FROM search_found($1::tsquery) WHERE several = $2"
_NO_FUNCTION: Final = (
    "the function search_found, by which searches look, is missing. Run `timeline repair --yes` as the owner of the"
    " tables; then GRANT EXECUTE on it to the roles that search."
)
_REDACTED_SINCE: Final = (
    f"SELECT conversation, payload FROM events WHERE {OWN} AND type = '{REDACTED}' AND {RARE_WHERE} AND position > $1"
)
_EVENTS_AT: Final = (
    f"SELECT (SELECT d.reverted_by FROM compactions AS d WHERE d.{OWN} AND d.position = e.position),"
    f" c.id, e.conversation, {EVENT} FROM events AS e JOIN conversations AS c ON c.key = e.conversation"
    f" WHERE e.{OWN} AND e.position = ANY($1::bigint[])"
)


@dataclass(frozen=True, slots=True)
class PostgresSearch(DatabaseSearch):
    """The search on PostgreSQL.

    Attributes:
        rows: runs a statement that reads, and returns all rows.
        where: names the store in errors.
    """

    rows: Callable[..., Awaitable[list[Row]]]
    where: str

    async def progress(self) -> tuple[int, int]:
        """Return the position that the index has reached, and that of the newest event."""
        return await progress_of(self.rows, ROWS)

    async def indexed(self, query: Query, key: int | None, wanted: SearchFilter) -> list[Hit]:
        """Return the best hits in the index."""
        if wanted.types is not None and not wanted.types:
            return []
        found: _Counts = {}
        for several in (False, True):
            found |= await self._found(query, key, wanted, several=several)
        hits = [(position, size + TAGS, counts) for position, (size, counts) in found.items() if query.met(counts)]
        if not hits:
            return []
        ((texts, size),) = await self.rows(_TOTALS)
        holding = [
            await self._holding(phrase, {place: found[place][1][number] for place in found})
            for number, phrase in enumerate(query.phrases)
        ]
        # Each is of a moment of its own. In between others index texts and remove some, and there are no fewer in all
        # than hold a phrase, of no fewer words than the hits.
        texts, size = max(texts, *holding), max(size + TAGS * texts, sum(of_hit for _, of_hit, _ in hits))
        return Scan(query, None, wanted, texts, size, holding, hits).best()

    async def _found(self, query: Query, key: int | None, wanted: SearchFilter, *, several: bool) -> _Counts:
        """Return the texts of one vector, or of several, that may be hits."""
        asked = vectors.any_term(query) if several else vectors.every_term(query)
        statement, parameters = _matching(asked, key, wanted, several=several)
        phrases = query.phrases
        found: _Counts = {}
        for position, part, size, listed in await self._asked(statement, *vectors.lexemes(query), *parameters):
            places = dict(json.loads(listed or "[]"))
            counts = [vectors.count(phrase, places, first=not part) for phrase in phrases]
            before = found.get(position, (size, [0] * len(phrases)))[1]
            found[position] = (size, [a + b for a, b in zip(before, counts, strict=True)])
        if any(vectors.is_long(phrase, several=several) for phrase in phrases):
            counted = await self._read_again(phrases, list(found))
            found = {position: (found[position][0], counts) for position, counts in counted.items()}
        return found

    async def _holding(self, phrase: Phrase, known: Mapping[int, int]) -> int:
        """Return how many texts of the index hold a phrase, given its counts in those that may be hits."""
        if not vectors.is_long(phrase, several=True):
            ((holding,),) = await self._asked(_WITH_PHRASE, vectors.phrase_query(phrase, several=True))
            return int(holding)
        total = 0
        for several in (False, True):
            asked = vectors.phrase_query(phrase, several=several)
            positions = [position for (position,) in await self._asked(_MAY_HOLD, asked, several)]
            if vectors.is_long(phrase, several=several):
                unread = await self._read_again([phrase], [each for each in positions if each not in known])
                counts = {**known, **{position: count for position, (count,) in unread.items()}}
                positions = [position for position in positions if counts.get(position)]
            total += len(positions)
        return total

    async def _asked(self, statement: str, *parameters: Any) -> list[Row]:
        """Run a statement that calls the function of searches.

        Raises:
            StoreCorrupt: the function is missing.
            StoreError: the database failed.
        """
        try:
            return await self.rows(statement, *parameters)
        except StoreError as error:
            if isinstance(error.__cause__, asyncpg.UndefinedFunctionError):
                raise StoreCorrupt(f"{self.where}: {_NO_FUNCTION}") from error
            raise

    async def _read_again(self, phrases: Sequence[Phrase], positions: Sequence[int]) -> dict[int, list[int]]:
        """Count phrases in the texts themselves: the vectors do not hold a long phrase as a whole."""
        query = Query((Term(tuple(phrases)),))
        counted: dict[int, list[int]] = {}
        for start in range(0, len(positions), _READ_AT_ONCE):
            rows = await self.events_at(positions[start : start + _READ_AT_ONCE])
            counted |= await at_its_size(partial(_counted, query, rows), rows)
        return counted

    async def redacted_since(self, position: int) -> list[Row]:
        """Return conversation's key and payload of the redactions behind a position."""
        return await self.rows(_REDACTED_SINCE, position)

    async def texts_behind(self, position: int, most: int) -> list[Row]:
        """Return the next events behind a position that may hold a text."""
        return await self.rows(TEXTS, position, LARGEST, most)

    async def events_at(self, positions: Sequence[int]) -> list[Row]:
        """Return the events at some positions; see `DatabaseSearch.events_at`."""
        rows = await self.rows(_EVENTS_AT, list(positions))
        return [(reverted_by, unescaped(id_), key, *event_row(tuple(row))) for reverted_by, id_, key, *row in rows]


def _counted(query: Query, rows: Sequence[Row]) -> dict[int, list[int]]:
    """Return the counts of each phrase in the texts of some events, by position."""
    texts = ((position, text_of(event[5])) for _, _, _, position, *event in rows)
    return {position: query.counted(text.text)[1] for position, text in texts if text is not None}


def _matching(asked: str, key: int | None, wanted: SearchFilter, *, several: bool) -> tuple[str, list[Any]]:
    """Write the statement for the vectors of a query, with its parameters from the third on."""
    if wanted.types is not None:
        asked = f"({asked}) & ({vectors.any_type(wanted.types)})"
    parameters: list[Any] = [asked]
    found, conditions = "search_found($3::tsquery) AS f WHERE", "f.several" if several else "NOT f.several"
    if key is not None:
        # Its own index: the words of one conversation are fewer than the places of a word.
        parameters.append(key)
        found = f"search_index AS f WHERE f.{OWN} AND f.conversation = $4 AND f.found @@ $3::tsquery AND"
    if wanted.bounded:
        parameters += [wanted.since, wanted.until]
        bounds = f"t.at >= ${len(parameters) + 1} AND t.at <= ${len(parameters) + 2}"
        conditions += f" AND EXISTS (SELECT 1 FROM events AS t WHERE t.{OWN} AND t.position = f.position AND {bounds})"
    statement = (
        "SELECT i.position, i.part, i.words, (SELECT json_agg(json_build_array(u.lexeme, u.positions))"
        " FROM unnest(i.found) AS u WHERE u.lexeme = ANY($1::text[]) OR u.lexeme ^@ ANY($2::text[]))"
        f" FROM (SELECT f.position, f.part FROM {found} {conditions} ORDER BY f.position DESC LIMIT {MOST_RANKED}) AS f"
        " CROSS JOIN LATERAL (SELECT * FROM search_index"
        f" WHERE {OWN} AND position = f.position AND part = f.part OFFSET 0) AS i"
    )
    return statement, parameters
