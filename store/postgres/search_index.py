# ruff: noqa: S608 - the texts are put together from constants, never from input
"""The full-text index of a PostgreSQL store: an append adds nothing to it, and searches bring it up to the log."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..search.scanning import redacted_version, text_of
from . import vectors
from .catching_up import DerivedRows
from .statements import OWN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from ..codec import Row
    from .connections import Connection

FORM: Final = 6
"""Number of the rules by which texts are cut and indexed. An index of another form is made anew."""
SLICE: Final = 1024 * 1024
"""Bytes of payloads after which a transaction ends."""
_MOST_EVENTS: Final = 500
_AT_ONCE: Final = 256
"""Rows of the index in one statement: a long text has many, of some hundred kilobytes each."""
REDACTED: Final = "block.redacted"
_FORGET_ALL: Final = f"DELETE FROM search_index WHERE {OWN}"
TEXTS: Final = (
    "SELECT position, conversation, version, type, at, payload, checksum FROM events"
    f" WHERE {OWN} AND position > $1 AND position <= $2 AND type NOT IN ('context.rendered', 'model.called')"
    " AND checksum <> '' ORDER BY position LIMIT $3"
)
_SLICE: Final = (
    "SELECT position, conversation, version, type, payload, most FROM (SELECT *, count(*) OVER () AS most,"
    " sum(octet_length(payload)) OVER (ORDER BY position) - octet_length(payload) AS before"
    f" FROM ({TEXTS}) AS e) AS e WHERE before < $4 ORDER BY position"
)
_KEEP_UNSORTED_FEW: Final = "SET LOCAL gin_pending_list_limit = '512kB'"
"""Words that are new to the index wait in a list, which every search reads from end to end, also a tenant's that holds
none of them, until autovacuum or a full list sorts them in. With the server's default of 4 MB a search took nine times
as long; with this, filling the index takes a quarter more of the server, where making the vectors takes far longer."""
_INSERT: Final = (
    "INSERT INTO search_index (position, part, conversation, words, several, found)"
    " SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::boolean[], $6::tsvector[])"
    " ON CONFLICT (tenant, position, part) DO NOTHING"
)
_FORGET: Final = (
    f"DELETE FROM search_index WHERE {OWN} AND position = ANY(ARRAY"
    "(SELECT position FROM events WHERE conversation = $1 AND version = ANY($2::bigint[])))"
)
DROP_WORDS: Final = f"DELETE FROM search_index WHERE {OWN} AND position = ANY($1::bigint[])"


class Changed(NamedTuple):
    """An event that was overwritten: its position, and its payload before and now."""

    position: int
    old: str
    new: str


async def _add(connection: Connection, rows: Sequence[Row], after: int, reached: int) -> None:
    """Index some events, and take away those that were redacted by one of them."""
    del after, reached
    made = await asyncio.to_thread(indexed_rows, rows)
    await connection.execute(_KEEP_UNSORTED_FEW)
    await _run(connection, insertions(made))
    gone: dict[int, list[int]] = {}
    for _, key, by, type_, payload, _ in rows:
        version = redacted_version(payload) if type_ == REDACTED else None
        if version is not None and version < by:
            gone.setdefault(key, []).append(version)
    for key, versions in gone.items():
        await connection.execute(_FORGET, key, versions)


async def index_again(connection: Connection, key: int, changed: Sequence[Changed]) -> None:
    """Index the new texts of events, as far as the index has reached, and no redaction left them out.

    Args:
        connection: in the transaction that overwrites them, which holds `catching_up.LOCK`.
        key: their conversation's.
        changed: the events.
    """
    dropped = {
        row[0] for row in await connection.fetch(f"{DROP_WORDS} RETURNING position", [e.position for e in changed])
    }
    reached = await connection.fetchval(ROWS.reached, FORM) or 0
    within = [event for event in changed if event.position <= reached]
    made = await asyncio.to_thread(_indexed_anew, key, within, dropped)
    await _run(connection, insertions(made))


def _indexed_anew(key: int, changed: Sequence[Changed], dropped: Collection[int]) -> list[Row]:
    """Return the new rows of events, given the positions of those that had rows."""
    return indexed_rows(
        [
            (event.position, key, 0, "", event.new, 1)
            for event in changed
            if event.position in dropped or not indexed_rows([(event.position, key, 0, "", event.old, 1)])
        ]
    )


async def slice_of(connection: Connection, after: int, until: int) -> tuple[list[Row], int]:
    """Read the events of a slice that may hold a text, and return them with the position that it reaches."""
    rows = [tuple(row) for row in await connection.fetch(_SLICE, after, until, _MOST_EVENTS, SLICE)]
    cut = bool(rows) and (len(rows) < rows[0][5] or len(rows) == _MOST_EVENTS)
    return rows, rows[-1][0] if cut else max(after, until)


ROWS: Final = DerivedRows("search_progress", FORM, _FORGET_ALL, slice_of, _add)
"""The rows of the index, as searches bring them up to the log."""


def insertions(made: Sequence[Row]) -> Iterator[tuple[str, list[list[Any]]]]:
    """Return the statements that add rows to the index, with their parameters."""
    for start in range(0, len(made), _AT_ONCE):
        yield _INSERT, [list(column) for column in zip(*made[start : start + _AT_ONCE], strict=True)]


async def _run(connection: Connection, statements: Iterable[tuple[str, list[list[Any]]]]) -> None:
    for statement, parameters in statements:
        await connection.execute(statement, *parameters)


def indexed_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the index for some events."""
    made: list[Row] = []
    for position, key, _, type_, payload, _ in rows:
        text = None if type_ == REDACTED else text_of(payload)
        if text is not None:
            size, parts = vectors.vectors(text)
            made += [(position, part, key, size, len(parts) > 1, vector) for part, vector in enumerate(parts)]
    return made
