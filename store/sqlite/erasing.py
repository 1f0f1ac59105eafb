"""Erase conversations on one SQLite connection: the functions that the writer thread runs, transaction included.

All rows of a conversation are removed but one, which keeps its id taken. A fork that is to keep the past that it shares
gets it as rows of its own: its whole log is written anew behind all other events, since positions rise with versions.
It gets a chain of its own, since links name their conversation.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Final

from timeline.errors import ConversationErased, ConversationNotFound, ForksRemain, UnderLegalHold
from timeline.events.encoding import checksum

from ..erasures import Erasing
from ..packing import unpacked
from ..removal import named_in
from . import query_statements, statements
from .chaining import chain_whole
from .log_head import NOWHERE, SQLiteLog
from .removing import note_size
from .rewriting import drop_values
from .search import drop_index, drop_other_form, forget_text
from .transactions import set_pragma, transaction

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from timeline.ports import ForksOnErase

_PAGE: Final = 500
_SHARE: Final = 4
"""If one event in this many is erased, the whole search index is dropped."""


def erase(connection: sqlite3.Connection, conversation: str, forks: ForksOnErase, reason: str, at: str) -> Erasing:
    """Erase a conversation, in one transaction; see `Forgetting.erase`.

    Raises:
        ConversationNotFound, ForksRemain, UnderLegalHold: as for `Forgetting.erase`.
        sqlite3.Error: the database failed; nothing was erased.
    """
    with set_pragma(connection, "secure_delete", "ON"), transaction(connection):
        try:
            log = SQLiteLog(connection, conversation)
        except ConversationErased:  # once more: its bytes may still be in the files
            note_size(connection)
            return Erasing([conversation], [], {})
        if log.key == NOWHERE:
            raise ConversationNotFound(conversation)
        # Until the commit: an event of a copied fork moves before the rows that were made of it.
        connection.execute("PRAGMA defer_foreign_keys = ON")
        own = connection.execute(statements.FORKS, (log.key,)).fetchall()
        if own and forks == "refuse":
            raise ForksRemain(conversation, [fork for fork, _ in own])
        erased = [conversation] if forks == "copy" else _family(connection, conversation)
        for id_ in erased:
            _check_hold(connection, id_)
        note_size(connection)
        copied = [fork for fork, _ in own] if forks == "copy" else []
        _forget_words(connection, erased, copied)
        for fork in copied:
            _cut_loose(connection, fork)
            for id_ in _family(connection, fork)[1:]:
                _chain_anew(connection, id_)
        counts: Counter[str] = Counter()
        named: set[str] = set()
        for id_ in reversed(erased):  # a fork before its parent, which it refers to
            _erase_one(connection, id_, reason, at, counts, named)
        counts["values"] += drop_values(connection, named)
        connection.execute(statements.PULL_FACTS_PROGRESS)
        connection.execute(statements.PULL_PROGRESS)
    return Erasing(erased, copied, dict(counts))


def _family(connection: sqlite3.Connection, conversation: str) -> list[str]:
    """Return a conversation and all forks of it and of its forks, parents first."""
    found = [conversation]
    for id_ in found:
        found += [fork for fork, _ in connection.execute(statements.FORKS, (SQLiteLog(connection, id_).key,))]
    return found


def _check_hold(connection: sqlite3.Connection, conversation: str) -> None:
    """Check that no legal hold is on a conversation, by its newest setting, a fork's shared past included."""
    for key, _, last in connection.execute(statements.LINEAGE_OF, (conversation,)).fetchall():
        newest = connection.execute(statements.NEWEST_RETENTION, (key, last)).fetchone()
        if newest is not None:
            if json.loads(newest[0]).get("legal_hold"):
                raise UnderLegalHold(conversation)
            return


def _forget_words(connection: sqlite3.Connection, erased: Sequence[str], copied: Sequence[str]) -> None:
    """Take erased words out of the search index, or drop the index where that costs less.

    To take a text out costs about as much as to index it. The events of a copied fork get other positions.
    """
    logs = [SQLiteLog(connection, id_) for id_ in erased]
    (head,) = connection.execute(statements.HEAD_POSITION).fetchone()
    if copied or sum(log.version - log.base for log in logs) * _SHARE > head:
        drop_index(connection)
        return
    drop_other_form(connection)
    for log in logs:
        for position, payload in connection.execute(query_statements.TEXTS_OF, (log.key,)):
            forget_text(connection, log.key, position, payload)


def _erase_one(  # noqa: PLR0917 - the parts of a row
    connection: sqlite3.Connection, id_: str, reason: str, at: str, counts: Counter[str], named: set[str]
) -> None:
    key = SQLiteLog(connection, id_).key
    for (payload,) in connection.execute(statements.NAMES_IN, (key,)):
        named.update(named_in([payload]))
    connection.execute(statements.DROP_ALL_ENTRIES, (key,))
    counts["summaries"] += connection.execute(statements.DROP_COMPACTIONS, (key,)).rowcount
    counts["facts"] += connection.execute(statements.DROP_FACTS, (key,)).rowcount
    counts["snapshots"] += connection.execute(statements.DROP_SNAPSHOT, (key,)).rowcount
    counts["snapshots"] += connection.execute(statements.DROP_ALL_BASES, (key,)).rowcount
    connection.execute(statements.DROP_ALL_WAYPOINTS, (key,))
    counts["payloads"] += connection.execute(statements.DROP_EVENTS, (key,)).rowcount
    counts["conversations"] += connection.execute(statements.DROP_CONVERSATION, (key,)).rowcount
    connection.execute(statements.ADD_ERASED, (id_, at, reason))


def _chain_anew(connection: sqlite3.Connection, id_: str) -> None:
    """Chain a fork anew behind a parent whose links have changed; its events stay as they are."""
    key = SQLiteLog(connection, id_).key
    connection.execute(statements.UNCHAIN_EVENTS, (key,))
    connection.execute(statements.SET_HEAD, (None, key))
    chain_whole(connection, key)


def _cut_loose(connection: sqlite3.Connection, fork: str) -> None:
    """Write the log of a fork anew, with what it shares as its own."""
    log = SQLiteLog(connection, fork)
    for key, base, last in connection.execute(statements.LINEAGE_OF, (fork,)).fetchall()[::-1]:
        if key != log.key:
            connection.execute(statements.COPY_BASES, (log.key, key, last))
        after = base
        while rows := connection.execute(statements.ROWS_OF_EVENTS, (key, after, last, _PAGE)).fetchall():
            insert = _move_own if key == log.key else _copy
            for position, *columns in rows:
                insert(connection, log.key, fork, position, columns)
            after = rows[-1][1]
    connection.execute(statements.REVERT_ANEW, (log.key,))
    connection.execute(statements.CUT_LOOSE, (log.key,))
    chain_whole(connection, log.key)


def _move_own(connection: sqlite3.Connection, key: int, fork: str, position: int, columns: list[object]) -> None:
    """Put an event of the fork's own behind all others, with the rows that were made of it."""
    connection.execute(statements.TAKE_OUT, (position,))  # before its twin: version, id and path are unique
    _copy(connection, key, fork, position, columns)
    for statement in (statements.DROP_ENTRIES, statements.DROP_COMPACTION, statements.DROP_FACTS_AT):
        connection.execute(statement, (position,))


def _copy(connection: sqlite3.Connection, key: int, fork: str, position: int, columns: list[object]) -> None:
    """Insert an event again behind all others as the fork's own, with the rows that were made of it."""
    version, id_, type_, schema, at, _path, _turn, _tokens, payload, packed, old = columns
    text = payload if packed is None else unpacked(packed)  # type: ignore[arg-type] # a column of bytes
    hashed = old and checksum(fork, version, id_, type_, schema, at, text)  # type: ignore[arg-type] # columns of a row
    # The packed payload of a scavenged event holds the proof of its facts, which is for the old position.
    packed = packed if old else None
    new = connection.execute(statements.COPY_EVENT, (key, *columns[:-2], packed, hashed)).lastrowid
    connection.execute(statements.MOVE_FACTS, (new, key, position))
    connection.execute(statements.MOVE_COMPACTION, (new, key, position))
    connection.execute(statements.MOVE_ENTRIES, (new, position))
