"""Digests and search of a SQLite store: read light rows first, in pages by key, then the events that they lead to.

Searches bring the full-text index up to date, a slice at a time; appends never do. A search asks the writer
for one slice. What is more than that is indexed on a connection of its own, until the index has reached the newest
event that the search began with: slices are read and cut there while the writer serves its queue, then entered.
The index is FTS5's, without a copy of the text (see `CREATE_INDEX`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.errors import StoreCorrupt
from timeline.queries import MOST_FOUND

from ..codec import decode
from ..column_numbers import LARGEST, within
from ..search.columns import columns_of
from ..search.querying import DatabaseSearch
from ..search.scanning import Hit, SearchFilter, redacted_version, text_of
from . import query_statements
from .slices import slice_of
from .transactions import transaction

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence

    from timeline.queries import StoredDigest

    from ..codec import Row
    from ..digests import DigestFilter
    from ..search.words import Phrase, Query


FORM: Final = 6
"""Number of the rules by which texts are cut and indexed. An index of another form is rebuilt."""
SLICE: Final = 1024 * 1024
"""Characters of stored events after which a slice ends: some 30 ms of an append's time while it is entered."""
MOST_EVENTS: Final = 2_000
_REDACTED: Final = "block.redacted"


class Slice(NamedTuple):
    """Events that are next to be indexed, as they were read, with what the index is to hold of them.

    Attributes:
        after: the position that the index had reached; None if it is to be made anew.
        until: the position that it reaches with these.
        rows: position, conversation's key, type, payload and checksum of each.
        columns: the texts of each, cut into columns; None where there is none.
    """

    after: int | None
    until: int
    rows: list[tuple[int, int, str, str, str]]
    columns: list[tuple[str, str, str] | None]


def catch_up(connection: sqlite3.Connection, until: int) -> int:
    """Index one slice of the events up to a position, in one transaction; return the position that was reached.

    Raises:
        sqlite3.Error: the database failed; nothing was indexed.
    """
    with transaction(connection):
        return _index_slice(connection, until)


def index_up_to(connection: sqlite3.Connection, until: int) -> None:
    """Index all events up to a position, in the open transaction."""
    reached = 0
    while reached < until:
        reached = _index_slice(connection, until)


def _index_slice(connection: sqlite3.Connection, until: int) -> int:
    return _enter(connection, cut_slice(connection, until))


def cut_slice(connection: sqlite3.Connection, until: int) -> Slice:
    """Read the next slice of the events up to a position, and cut their texts: it takes no lock."""
    progress = connection.execute(query_statements.PROGRESS, (FORM,)).fetchone()
    after: int = 0 if progress is None else progress[0]
    found = connection.execute(query_statements.TO_INDEX, (after, until, MOST_EVENTS))
    read, cut = slice_of(found, text=5, size=SLICE, most=MOST_EVENTS)
    # Where nothing was left out, what follows the last row up to `until` holds no text.
    until = read[-1][0] if cut else max(after, until)
    rows = [(position, key, type_, payload, checksum) for position, key, _, type_, _, payload, checksum in read]
    columns = [None if type_ == _REDACTED else _columns(key, payload) for _, key, type_, payload, _ in rows]
    return Slice(None if progress is None else after, until, rows, columns)


def enter_slice(connection: sqlite3.Connection, cut: Slice) -> int:
    """Index a slice in one transaction, if the log still has what was read; return the position that was reached.

    A redaction, a scavenge or an erasure may have come in between, or another search: then nothing is indexed of it.

    Raises:
        sqlite3.Error: the database failed; nothing was indexed.
    """
    with transaction(connection):
        progress = connection.execute(query_statements.PROGRESS, (FORM,)).fetchone()
        reached = None if progress is None else progress[0]
        if reached != cut.after:
            return reached or 0
        bounds = (reached or 0, cut.rows[-1][0] if cut.rows else 0)
        if connection.execute(query_statements.STILL_TO_INDEX, bounds).fetchall() != [
            (row[0], row[4]) for row in cut.rows
        ]:
            return bounds[0]
        return _enter(connection, cut)


def _enter(connection: sqlite3.Connection, cut: Slice) -> int:
    if cut.after is None:
        connection.execute(query_statements.DROP_INDEX)
        connection.execute(query_statements.CREATE_INDEX)
        connection.execute(query_statements.FORGET_PROGRESS)
    texts: list[tuple[int, str, str, str]] = []
    for (position, key, type_, payload, _), columns in zip(cut.rows, cut.columns, strict=True):
        if columns is not None:
            texts.append((position, *columns))
        elif type_ == _REDACTED and (version := redacted_version(payload)) is not None:
            connection.executemany(query_statements.INDEX_TEXT, texts)  # what it takes out may be among them
            texts.clear()
            forget(connection, key, version)
    connection.executemany(query_statements.INDEX_TEXT, texts)
    connection.execute(query_statements.SET_PROGRESS, (FORM, cut.until))
    return cut.until


def forget(connection: sqlite3.Connection, key: int, version: int) -> None:
    """Remove a block from the index, if it is in there, before its text is erased from the log.

    The order matters: FTS5 finds the entries to remove by the text that they were made of, so that text must still be
    in the log.
    """
    stored = connection.execute(query_statements.STORED_AT, (key, version)).fetchone()
    if stored is not None:
        _unindex(connection, key, *stored)


def _unindex(connection: sqlite3.Connection, key: int, position: int, payload: str) -> bool:
    """Remove a text from the index; return whether it was left out: it has words, and a redaction took them out."""
    columns = _columns(key, payload)
    if connection.execute(query_statements.INDEXED, (position,)).fetchone() is None:
        return columns is not None
    if columns is not None:
        connection.execute(query_statements.UNINDEX_TEXT, (position, *columns))
    return False


def forget_text(connection: sqlite3.Connection, key: int, position: int, payload: str) -> bool:
    """Remove an event from the index, if the index has reached it, before the event is removed from the log.

    Return whether a redaction had it removed already.
    """
    progress = connection.execute(query_statements.PROGRESS, (FORM,)).fetchone()
    return progress is not None and position <= progress[0] and _unindex(connection, key, position, payload)


def index_again(connection: sqlite3.Connection, key: int, position: int, payload: str) -> None:
    """Index the new text of an event that was overwritten, if the index has reached it."""
    progress = connection.execute(query_statements.PROGRESS, (FORM,)).fetchone()
    if progress is not None and position <= progress[0] and (columns := _columns(key, payload)) is not None:
        connection.execute(query_statements.INDEX_TEXT, (position, *columns))


def drop_other_form(connection: sqlite3.Connection) -> None:
    """Drop an index of another form, out of which no text can be taken; the next search makes a new one."""
    if connection.execute(query_statements.PROGRESS, (FORM,)).fetchone() is None:
        drop_index(connection)


def drop_index(connection: sqlite3.Connection) -> None:
    """Drop the index; the next search makes a new one."""
    connection.execute(query_statements.DROP_INDEX)
    connection.execute(query_statements.FORGET_PROGRESS)


def _columns(key: int, payload: str) -> tuple[str, str, str] | None:
    text = text_of(payload)
    words, humps = ("", "") if text is None else columns_of(text.text)
    if text is None or not words:
        return None
    return (words, humps, f"{_conversation_tag(key)} {_type_tag(text.type)}")


def _conversation_tag(key: int) -> str:
    return f"c{key}"


def _type_tag(type_: str) -> str:
    # Hexadecimal: one word for FTS5's tokenizer, whatever the type is called.
    return f"t{type_.encode(errors='replace').hex()}"


def match_expression(query: Query, key: int | None, types: Collection[str] | None) -> str:
    """Write a query in FTS5's syntax. Words are quoted, and hold no character with a meaning in FTS5."""
    asked = [_any(_phrase(phrase) for phrase in term.phrases) for term in query.terms]
    if key is not None:
        asked.append(f'tags : "{_conversation_tag(key)}"')
    if types is not None:
        asked.append(_any(f'tags : "{_type_tag(type_)}"' for type_ in sorted(types)))
    return " AND ".join(asked)


def _any(expressions: Iterable[str]) -> str:
    return f"({' OR '.join(expressions)})"


def _phrase(phrase: Phrase) -> str:
    columns = [name for name, wanted in (("words", phrase.in_words), ("humps", phrase.in_humps)) if wanted]
    return f'{{{" ".join(columns)}}} : "{" ".join(phrase.parts)}"{" *" if phrase.prefix else ""}'


@dataclass(frozen=True, slots=True)
class SQLiteQuestions(DatabaseSearch):
    """The queries on one SQLite file.

    Attributes:
        rows: runs a statement on the reading connection and returns all rows.
        where: names the store in errors.
    """

    rows: Callable[[str, Sequence[Any] | Mapping[str, Any]], Awaitable[list[Row]]]
    where: str

    async def digests(self, conversation: str | None, wanted: DigestFilter, page: int) -> AsyncIterator[StoredDigest]:
        """Iterate over the compactions that match a filter; see `timeline.queries.Queries.digests`."""
        given, parameters = _asked(conversation, wanted)
        parameters |= {"after": await self._before_first(wanted), "page": page}
        statement = query_statements.page_of_digests(given)
        while True:
            rows = sorted(await self.rows(statement, parameters), key=lambda row: row[2])
            for reverted_by, owner, *row in rows:
                digest = wanted.found(decode(owner, tuple(row), self.where), reverted_by)
                if digest is not None:
                    yield digest
            if len(rows) < page:
                return
            parameters["after"] = rows[-1][2]

    async def _before_first(self, wanted: DigestFilter) -> int:
        """Return a position before the first compaction that may match."""
        if not wanted.since:
            return 0
        ((first,),) = await self.rows(query_statements.FIRST_SINCE, (wanted.since,))
        return LARGEST if first is None else int(first) - 1

    async def progress(self) -> tuple[int, int]:
        """Return the position that the index has reached, and that of the newest event."""
        rows = await self.rows(query_statements.PROGRESS, (FORM,))
        ((last,),) = await self.rows(query_statements.LAST_OF_ALL, ())
        return (int(rows[0][0]) if rows else 0), last or 0

    async def indexed(self, query: Query, key: int | None, wanted: SearchFilter) -> list[Hit]:
        """Return the best hits in the index."""
        if wanted.types is not None and not wanted.types:
            return []
        expression = match_expression(query, key, wanted.types)
        if wanted.bounded:
            rows = await self.rows(
                query_statements.SEARCH_BETWEEN, (expression, wanted.since, wanted.until, MOST_FOUND)
            )
        else:
            rows = await self.rows(query_statements.SEARCH, (expression, MOST_FOUND))
        if any(score is None for _, score in rows):  # SQLite's way to write that it is no number
            raise StoreCorrupt(
                f"{self.where}: the totals of the search index are damaged. `timeline repair` makes it anew."
            )
        return [Hit(position, -score) for position, score in rows]

    async def redacted_since(self, position: int) -> list[Row]:
        """Return conversation's key and payload of the redactions behind a position."""
        return await self.rows(query_statements.REDACTED_SINCE, (position,))

    async def texts_behind(self, position: int, most: int) -> list[Row]:
        """Return the next events behind a position that may hold a text."""
        return await self.rows(query_statements.TO_INDEX, (position, LARGEST, most))

    async def events_at(self, positions: Sequence[int]) -> list[Row]:
        """Return the events at some positions; see `DatabaseSearch.events_at`."""
        return await self.rows(query_statements.FOUND, (json.dumps(positions),))


def _asked(conversation: str | None, wanted: DigestFilter) -> tuple[frozenset[str], dict[str, Any]]:
    """Return the names of the given filters, which choose the statement, and its parameters."""
    glob, error = wanted.glob, wanted.error
    texts = {
        "conversation": conversation,
        "tool": wanted.tool,
        "path_glob": glob and glob.coarse,
        "prefix": glob and (glob.prefix or None),
        "command": wanted.command,
        "error": error if isinstance(error, str) else None,
    }
    numbers = wanted.compaction_numbers or (-LARGEST, LARGEST)
    return frozenset(name for name, text in texts.items() if text is not None), {
        **texts,
        "glob": texts["path_glob"],
        "beyond": f"{texts['prefix']}\U0010ffff",
        "since": wanted.since,
        "until": wanted.until,
        "first_number": within(numbers[0]),
        "last_number": within(numbers[-1]),
        "least_errors": int(bool(error)),
        "most_errors": 0 if error is False else LARGEST,
        "reverted": wanted.reverted,
    }
