"""The full-text index of a database: brought up to date by searches, a slice at a time, never by an append.

A search asks the writer for slices until the index has reached the newest event that the search began with; between
two slices the writer serves whoever waits. The index is FTS5's, without a copy of the text (see `CREATE_INDEX`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..search.texts import redacted_version, text_of
from ..search.words import Words
from . import query_statements as statements

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable

    from ..codec import Row
    from ..search.words import Phrase, Query

FORM: Final = 1
"""Number of the rules by which texts are cut and indexed. An index of another form is made anew."""
SLICE: Final = 512 * 1024
"""Characters of stored events after which a slice ends: some 50 ms of the writer's time."""
MOST_EVENTS: Final = 2_000


def catch_up(connection: sqlite3.Connection, until: int) -> int:
    """Index one slice of the events up to a position, in one transaction; return the position that is reached.

    Raises:
        sqlite3.Error: the database could not do it; nothing was indexed.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        reached = _index_slice(connection, until)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return reached


def _index_slice(connection: sqlite3.Connection, until: int) -> int:
    progress = connection.execute(statements.PROGRESS, (FORM,)).fetchone()
    if progress is None:
        connection.execute(statements.DROP_INDEX)
        connection.execute(statements.CREATE_INDEX)
        connection.execute(statements.FORGET_PROGRESS)
    after: int = 0 if progress is None else progress[0]
    rows = connection.execute(statements.TO_INDEX, (after, until, MOST_EVENTS))
    size = count = 0
    for row in rows:
        _index(connection, row)
        after, size, count = row[0], size + len(row[5]), count + 1
        if size >= SLICE:
            break
    else:
        # Nothing was left out: what follows the last row up to `until` holds no text, unless there were too many.
        after = after if count == MOST_EVENTS else max(after, until)
    rows.close()
    connection.execute(statements.SET_PROGRESS, (FORM, after))
    return after


def _index(connection: sqlite3.Connection, row: Row) -> None:
    position, key, _, type_, _, payload = row
    if type_ == "block.redacted":
        version = redacted_version(payload)
        if version is not None:
            forget(connection, key, version)
    elif (columns := _columns(key, payload)) is not None:
        connection.execute(statements.INDEX_TEXT, (position, *columns))


def forget(connection: sqlite3.Connection, key: int, version: int) -> None:
    """Take a block out of the index, if it is in there. Whoever erases its text from the log does this before.

    FTS5 finds the entries to remove by the text that they were made of, so that text must still be there.
    """
    stored = connection.execute(statements.STORED_AT, (key, version)).fetchone()
    if stored is None or connection.execute(statements.INDEXED, stored[:1]).fetchone() is None:
        return
    columns = _columns(key, stored[1])
    if columns is not None:
        connection.execute(statements.UNINDEX_TEXT, (stored[0], *columns))


def _columns(key: int, payload: str) -> tuple[str, str, str] | None:
    text = text_of(payload)
    words = None if text is None else Words.of(text.text)
    if text is None or words is None or not words.words:
        return None
    return (*words.columns, f"{_conversation_tag(key)} {_type_tag(text.type)}")


def _conversation_tag(key: int) -> str:
    return f"c{key}"


def _type_tag(type_: str) -> str:
    # Hexadecimal: one word for FTS5's tokenizer, whatever the type is called.
    return f"t{type_.encode(errors='replace').hex()}"


def match_expression(query: Query, key: int | None, types: Collection[str] | None) -> str:
    """Write a query for FTS5. Words hold no character that has a meaning there, and stand between quotes."""
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
