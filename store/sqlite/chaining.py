"""Chain the events that earlier releases wrote, a slice at a time: once, when the store is opened for writing.

Each slice is a transaction, and notes how far it came, so that after a kill the next opening goes on. A fork comes
after its parent, since it begins with the parent's link. Events that were scavenged before there was a chain cannot be
proved any more: the chain begins behind them.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Final

from timeline.events.chain import SALT, START, commitment, link, random_salts

from . import statements
from .transactions import transaction

SLICE: Final = 2_000
"""Events of a slice. Their payloads are not read: the checksum that each was written with is what is sealed."""
_PROGRESS: Final = "chained"
"""The setting that holds key and version of the newest event that a slice has linked."""


def is_unchained(connection: sqlite3.Connection) -> bool:
    """Return whether a conversation is not chained.

    Where the index for this question is damaged, the answer is False: the store has to open, so that a repair can make
    the index anew. An append chains its own conversation.
    """
    try:
        return connection.execute(statements.UNCHAINED).fetchone() is not None
    except sqlite3.DatabaseError as damage:
        if damage.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise
        return False


def chain_slice(connection: sqlite3.Connection) -> None:
    """Chain a slice of the oldest conversation that is not chained, in one transaction.

    Raises:
        sqlite3.Error: the database failed; nothing was chained.
    """
    with transaction(connection):
        found = connection.execute(statements.UNCHAINED).fetchone()
        if found is not None:
            _next_slice(connection, *found)


def _next_slice(connection: sqlite3.Connection, key: int) -> None:
    stored = connection.execute(statements.SETTING, (_PROGRESS,)).fetchone()
    of, reached = (0, 0) if stored is None else json.loads(stored[0])
    reached = _chain(connection, key, reached if of == key else _last_linked(connection, key))
    if reached is None:
        connection.execute(statements.UNSET, (_PROGRESS,))
    else:
        connection.execute(statements.SET, (_PROGRESS, json.dumps([key, reached])))


def chain_whole(connection: sqlite3.Connection, key: int) -> bytes:
    """Chain all of a conversation in the open transaction, after those that it was forked from; return its head.

    It is needed where a process of an earlier release appended while this one had the file open, and where this process
    appends before another one has chained the whole store.
    """
    parent, head = connection.execute(statements.PARENT_AND_HEAD, (key,)).fetchone()
    if parent is not None and head is None:
        chain_whole(connection, parent)
    reached: int | None = _last_linked(connection, key)
    while reached is not None:
        reached = _chain(connection, key, reached)
    (head,) = connection.execute(statements.PARENT_AND_HEAD, (key,)).fetchone()[1:]
    return bytes(head)


def is_behind_the_links(connection: sqlite3.Connection, key: int, version: int) -> bool:
    """Return whether an event is one that a release before the chain appended, with all before it linked."""
    (bare,) = connection.execute(statements.IS_BARE, (key, version)).fetchone()
    return bool(bare) and _last_linked(connection, key) > 0


def _last_linked(connection: sqlite3.Connection, key: int) -> int:
    (version,) = connection.execute(statements.LAST_LINKED, (key,)).fetchone()
    return int(version)


def link_at(connection: sqlite3.Connection, key: int, version: int) -> bytes:
    """Return the link of a conversation at a version, shared ones included; `START` where that event has none."""
    found = connection.execute(statements.LINK_AT, (version, key, json.dumps([version]))).fetchone()
    return found[0] if found and found[0] else START


def _chain(connection: sqlite3.Connection, key: int, reached: int) -> int | None:
    """Chain a slice of a conversation behind a version; return how far it came, None at the end, with the head set."""
    conversation, base, gone = connection.execute(statements.TO_CHAIN_FROM, (key,)).fetchone()
    after = max(base, gone, reached)
    previous = START if gone == after else link_at(connection, key, after)
    rows = connection.execute(statements.TO_CHAIN, (key, after, SLICE)).fetchall()
    salts = random_salts(len(rows))
    sealed = []
    for number, (position, version, id_, type_, schema_version, at, checksum) in enumerate(rows):
        salt = salts[number * SALT : (number + 1) * SALT]
        c = commitment(salt, checksum)
        previous = link(previous, conversation, version, id_, type_, schema_version, at, c)
        sealed.append((salt, previous, position))
    connection.executemany(statements.CHAIN, sealed)
    if len(rows) == SLICE:
        return int(rows[-1][1])
    connection.execute(statements.SET_HEAD, (previous, key))
    return None
