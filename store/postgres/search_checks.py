# ruff: noqa: S608 - the texts are put together from constants, never from input
"""Compare the full-text index with the texts of the log, as far as searches have brought it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from ..frequent_types import RARE_WHERE
from ..search.scanning import redacted_version
from .catching_up import LAST_OF_ALL, LOCK
from .pages import Page, Wrong, wrong
from .search_index import FORM, REDACTED, ROWS, indexed_rows, insertions, slice_of
from .statements import OWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..codec import Row
    from .connections import Connection

_PROGRESS: Final = f"SELECT form, position FROM search_progress WHERE {OWN}"
_REDACTIONS: Final = (
    "SELECT conversation, version, payload FROM events WHERE conversation = ANY($1::bigint[])"
    f" AND type = '{REDACTED}' AND {RARE_WHERE} AND position <= $2"
)
_DIFFERENT: Final = f"""
SELECT DISTINCT position FROM
    (SELECT position, part, conversation, words, several, found FROM search_index
        WHERE {OWN} AND position > $1 AND position <= $2) AS s
    FULL JOIN unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::boolean[], $8::tsvector[])
        AS m (position, part, conversation, words, several, found) USING (position, part)
WHERE (s.conversation, s.words, s.several, s.found) IS DISTINCT FROM (m.conversation, m.words, m.several, m.found)
ORDER BY position
"""
_BEHIND: Final = f"SELECT DISTINCT position FROM search_index WHERE {OWN} AND position > $1 ORDER BY position LIMIT 100"
_STILL: Final = f"UPDATE search_progress SET position = position WHERE {OWN}"
"""Fails, and is tried again from the beginning, if a search has brought the index further meanwhile."""
_DROP: Final = f"DELETE FROM search_index WHERE {OWN} AND position = $1"


async def search(connection: Connection, after: int) -> Page:
    """Compare a page of the index with the words of its texts."""
    progress = await connection.fetch(_PROGRESS)
    if not progress and not after:
        return Page([])  # the next search makes it anew, whatever there is
    last = await connection.fetchval(LAST_OF_ALL)
    if len(progress) != 1 or progress[0][0] <= 0 or not 0 <= progress[0][1] <= last:
        return Page([wrong("search", "the record of how far the index reaches is damaged", (ROWS.forget, ()))])
    form, until = progress[0]
    if form != FORM:
        return Page([])  # that of another release: the next search makes its own
    rows, reached = await slice_of(connection, after, until)
    made = await asyncio.to_thread(indexed_rows, await _unredacted(connection, rows, until))
    columns = [list(column) for column in zip(*made, strict=True)] or [[]] * 6
    different = [position for (position,) in await connection.fetch(_DIFFERENT, after, reached, *columns)]
    if reached == until:
        different += [position for (position,) in await connection.fetch(_BEHIND, until)]
    return Page(_anew(different, made), None if reached == until else reached)


async def _unredacted(connection: Connection, rows: Sequence[Row], until: int) -> list[Row]:
    """Return the events whose words are in the index: those that nothing which it has reached redacts."""
    redactions = await connection.fetch(_REDACTIONS, sorted({row[1] for row in rows}), until)
    gone = {
        (key, version)
        for key, by, payload in redactions
        if (version := redacted_version(payload)) is not None and version < by
    }
    return [row for row in rows if (row[1], row[2]) not in gone]


def _anew(different: Sequence[int], made: Sequence[Row]) -> list[Wrong]:
    """Return that the words of some events are not those of their texts, and what makes them anew."""
    rows: defaultdict[int, list[Row]] = defaultdict(list)
    for row in made:
        rows[row[0]].append(row)
    found = []
    for position in different:
        cure: list[tuple[str, Sequence[Any]]] = [(LOCK, ()), (_STILL, ()), (_DROP, (position,))]
        cure += insertions(rows[position])
        problem = f"the words of the event at position {position} are not those of its text"
        found.append(wrong("search", problem, *cure))
    return found
