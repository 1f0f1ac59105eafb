# ruff: noqa: S608 - the texts are put together from constants, never from input
"""Full-text search of a PostgreSQL store: an index that searches fill, and ranks that are made here.

The server finds the vectors that hold the words (`store.postgres.vectors`); ranks are bm25 as in every store, of the
places of the asked lexemes and the number of texts that hold each phrase. The server's own ranks know neither.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..search.querying import DatabaseSearch
from ..search.scanning import TAGS, Hit, Scan, SearchFilter, redacted_version, text_of
from . import vectors
from .escaping import unescaped
from .facts import LAST_BELOW, LAST_OF_ALL, LOCK
from .rows import event_row
from .statements import EVENT, OWN, RARE_WHERE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from ..codec import Row
    from ..search.words import Query
    from .connections import Connection

FORM: Final = 2
"""Number of the rules by which texts are cut and indexed. An index of another form is made anew."""
SLICE: Final = 1024 * 1024
"""Bytes of payloads after which a transaction ends."""
_MOST_EVENTS: Final = 500
_AT_ONCE: Final = 256
"""Rows of the index in one statement: a long text has many, of some hundred kilobytes each."""
MOST_RANKED: Final = 10_000
"""The newest hits, of which the best are found: each one's vector is read."""
_REDACTED: Final = "block.redacted"
_PROGRESS: Final = f"SELECT position FROM search_progress WHERE form = $1 AND {OWN}"
_FORGET_PROGRESS: Final = f"DELETE FROM search_progress WHERE {OWN}"
_FORGET_ALL: Final = f"DELETE FROM search_index WHERE {OWN}"
_SET_PROGRESS: Final = (
    "INSERT INTO search_progress (form, position) VALUES ($1, $2)"
    " ON CONFLICT (form, tenant) DO UPDATE SET position = excluded.position"
)
_TEXTS: Final = (
    "SELECT position, conversation, version, type, at, payload, checksum FROM events"
    f" WHERE {OWN} AND position > $1 AND position <= $2 AND type NOT IN ('context.rendered', 'model.called')"
    " AND checksum <> '' ORDER BY position LIMIT $3"
)
_SLICE: Final = (
    "SELECT position, conversation, version, type, payload, most FROM (SELECT *, count(*) OVER () AS most,"
    " sum(octet_length(payload)) OVER (ORDER BY position) - octet_length(payload) AS before"
    f" FROM ({_TEXTS}) AS e) AS e WHERE before < $4 ORDER BY position"
)
_INSERT: Final = (
    "INSERT INTO search_index (position, part, conversation, words, several, found)"
    " SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::boolean[], $6::tsvector[])"
    " ON CONFLICT (tenant, position, part) DO NOTHING"
)
_FORGET: Final = (
    f"DELETE FROM search_index WHERE {OWN} AND position ="
    " (SELECT position FROM events WHERE conversation = $1 AND version = $2)"
)
_TOTALS: Final = f"SELECT count(*), coalesce(sum(words), 0)::bigint FROM search_index WHERE {OWN} AND part = 0"
_WITH_PHRASE: Final = f"SELECT count(DISTINCT position) FROM search_index WHERE {OWN} AND found @@ $1::tsquery"
_REDACTED_SINCE: Final = (
    f"SELECT conversation, payload FROM events WHERE {OWN} AND type = '{_REDACTED}' AND {RARE_WHERE} AND position > $1"
)
_EVENTS_AT: Final = (
    f"SELECT c.id, e.conversation, {EVENT} FROM events AS e JOIN conversations AS c ON c.key = e.conversation"
    f" WHERE e.{OWN} AND e.position = ANY($1::bigint[])"
)


async def catch_up(connection: Connection) -> bool:
    """Index one slice of the events below the horizon, in the open transaction; return whether there are more."""
    await connection.execute(LOCK)
    until = await connection.fetchval(LAST_BELOW)
    progress = await connection.fetchval(_PROGRESS, FORM)
    if progress is None:
        await connection.execute(_FORGET_ALL)
        await connection.execute(_FORGET_PROGRESS)
    after = progress or 0
    rows = [tuple(row) for row in await connection.fetch(_SLICE, after, until, _MOST_EVENTS, SLICE)]
    cut = bool(rows) and (len(rows) < rows[0][5] or len(rows) == _MOST_EVENTS)
    reached = rows[-1][0] if cut else max(after, until)
    if reached != progress:
        made = await asyncio.to_thread(_indexed, rows)
        await _insert(connection, made)
        for _, key, by, type_, payload, _ in rows:
            version = redacted_version(payload) if type_ == _REDACTED else None
            if version is not None and version < by:
                await connection.execute(_FORGET, key, version)
        await connection.execute(_SET_PROGRESS, FORM, reached)
    return bool(reached < until)


async def index_again(connection: Connection, key: int, position: int, payload: str) -> None:
    """Index the new text of an event that was overwritten, if the index has reached it."""
    await connection.execute(LOCK)
    reached = await connection.fetchval(_PROGRESS, FORM)
    if reached is not None and position <= reached:
        await connection.execute(f"{_FORGET_ALL} AND position = $1", position)
        await _insert(connection, _indexed([(position, key, 0, "", payload, 1)]))


async def _insert(connection: Connection, made: Sequence[Row]) -> None:
    for start in range(0, len(made), _AT_ONCE):
        await connection.execute(_INSERT, *map(list, zip(*made[start : start + _AT_ONCE], strict=True)))


def _indexed(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the index for some events."""
    made: list[Row] = []
    for position, key, _, type_, payload, _ in rows:
        text = None if type_ == _REDACTED else text_of(payload)
        if text is not None:
            size, parts = vectors.vectors(text)
            made += [(position, part, key, size, len(parts) > 1, vector) for part, vector in enumerate(parts)]
    return made


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
        rows = await self.rows(_PROGRESS, FORM)
        ((last,),) = await self.rows(LAST_OF_ALL)
        return (int(rows[0][0]) if rows else 0), last

    async def indexed(self, query: Query, key: int | None, wanted: SearchFilter) -> list[Hit]:
        """Return the best hits in the index."""
        if wanted.types is not None and not wanted.types:
            return []
        found = await self._found(query, key, wanted)
        if any(map(vectors.is_long, query.phrases)):
            found = await self._read_again(query, found)
        hits = [(position, size + TAGS, counts) for position, (size, counts) in found.items() if query.met(counts)]
        if not hits:
            return []
        ((texts, size),) = await self.rows(_TOTALS)
        scan = Scan(query, None, wanted, texts, size + TAGS * texts, found=hits)
        for number, phrase in enumerate(query.phrases):
            if vectors.is_long(phrase):
                scan.with_phrase.append(sum(counts[number] > 0 for _, _, counts in hits))
            else:
                ((holding,),) = await self.rows(_WITH_PHRASE, vectors.phrase_query(phrase))
                scan.with_phrase.append(holding)
        return scan.best()

    async def _found(self, query: Query, key: int | None, wanted: SearchFilter) -> dict[int, tuple[int, list[int]]]:
        """Return the texts that may be hits by position: the number of words, and the count of each phrase."""
        phrases = query.phrases
        found: dict[int, tuple[int, list[int]]] = {}
        for several, asked in ((False, vectors.every_term(query)), (True, vectors.any_term(query))):
            statement, parameters = _matching(asked, key, wanted, several=several)
            for position, part, size, listed in await self.rows(statement, *vectors.lexemes(query), *parameters):
                places = dict(json.loads(listed or "[]"))
                counts = [
                    1 if vectors.is_long(phrase) else vectors.count(phrase, places, first=not part)
                    for phrase in phrases
                ]
                before = found.get(position, (size, [0] * len(phrases)))[1]
                found[position] = (size, [a + b for a, b in zip(before, counts, strict=True)])
        return found

    async def _read_again(
        self, query: Query, found: dict[int, tuple[int, list[int]]]
    ) -> dict[int, tuple[int, list[int]]]:
        """Count the phrases in the texts themselves: the vectors do not hold a long phrase as a whole."""
        counted = {}
        for _, _, position, *event in await self.events_at(list(found)):
            text = text_of(event[5])
            if text is not None:
                counted[position] = (found[position][0], query.counted(text.text)[1])
        return counted

    async def redacted_since(self, position: int) -> list[Row]:
        """Return conversation's key and payload of the redactions behind a position."""
        return await self.rows(_REDACTED_SINCE, position)

    async def texts_behind(self, position: int, most: int) -> list[Row]:
        """Return the next events behind a position that may hold a text."""
        return await self.rows(_TEXTS, position, 2**63 - 1, most)

    async def events_at(self, positions: Sequence[int]) -> list[Row]:
        """Return the id and the key of the conversation, and the event, at each position."""
        rows = await self.rows(_EVENTS_AT, list(positions))
        return [(unescaped(id_), key, *event_row(tuple(row))) for id_, key, *row in rows]


def _matching(asked: str, key: int | None, wanted: SearchFilter, *, several: bool) -> tuple[str, list[Any]]:
    """Write the statement for the vectors of a query, with its parameters from the third on."""
    if wanted.types is not None:
        asked = f"({asked}) & ({vectors.any_type(wanted.types)})"
    parameters: list[Any] = [asked]
    conditions = " AND i.several" if several else " AND NOT i.several"
    if key is not None:
        parameters.append(key)
        conditions += f" AND i.conversation = ${len(parameters) + 2}"
    if wanted.bounded:
        parameters += [wanted.since, wanted.until]
        bounds = f"t.at >= ${len(parameters) + 1} AND t.at <= ${len(parameters) + 2}"
        conditions += f" AND EXISTS (SELECT 1 FROM events AS t WHERE t.{OWN} AND t.position = i.position AND {bounds})"
    statement = (
        "SELECT i.position, i.part, i.words, (SELECT json_agg(json_build_array(u.lexeme, u.positions))"
        " FROM unnest(i.found) AS u WHERE u.lexeme = ANY($1::text[]) OR u.lexeme ^@ ANY($2::text[]))"
        f" FROM (SELECT * FROM search_index AS i WHERE i.{OWN} AND i.found @@ $3::tsquery{conditions}"
        f" ORDER BY i.position DESC LIMIT {MOST_RANKED}) AS i"
    )
    return statement, parameters
