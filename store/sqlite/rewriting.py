"""Overwrite stored payloads on one SQLite connection: the functions that the writer thread runs, transactions included.

This is the one in-place change of what was appended, see `timeline.ports.Forgetting`. A row keeps its position, its
version, id, path and time. What was made of its payload follows in the same transaction: the words of the search index,
the rows of digests and facts, the snapshots.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from timeline.errors import ConversationNotFound, VersionConflict
from timeline.events import CompactionCompleted

from ..column_numbers import LARGEST
from ..digests import rows_of
from ..removal import named_in
from ..rewriting import EventIdentity, overwritten, rewritten
from . import digest_rows, facts, statements, waypoints
from .appending import append_within
from .log_head import NOWHERE, SQLiteLog
from .removing import note_size
from .search import drop_other_form, forget_text, index_again
from .transactions import set_pragma, transaction

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Mapping, Sequence

    from timeline.events import Payload
    from timeline.ports import Rewriting

    from ..codec import Batch


def rewrite(
    connection: sqlite3.Connection,
    parts: Sequence[tuple[Rewriting, Batch]],
    values: Mapping[str, str],
    dropped: Collection[str],
    where: str,
) -> dict[str, int]:
    """Overwrite what parts name, append their events, and return what was done; see `Forgetting.rewrite`.

    Raises:
        ConversationNotFound, VersionConflict: as for `Forgetting.rewrite`.
        StoreCorrupt: a snapshot is damaged.
        sqlite3.Error: the database failed; nothing was written.
    """
    done: Counter[str] = Counter()
    with set_pragma(connection, "secure_delete", "ON"), transaction(connection):
        logs = {part.conversation: _found(connection, part) for part, _ in parts}
        for part, _ in parts:
            _check_forks(connection, logs[part.conversation], part, logs)
        note_size(connection)
        drop_other_form(connection)
        for part, batch in parts:
            log = logs[part.conversation]
            for version, payload in part.payloads.items():
                overwrite(connection, log.key, part.conversation, version, payload)
            done["facts"] += facts.forget(connection, log.key, part.blocks)
            done["snapshots"] += _rewrite_snapshots(connection, log.key, part, where)
            waypoints.rewrite(connection, log.key, part.conversation, part.snapshot, where)
            if part.title is not None:
                done["titles"] += connection.execute(statements.SET_TITLE, (part.title, log.key)).rowcount
            append_within(connection, batch)
        connection.executemany(statements.INSERT_VALUES, values.items())
        done["values"] += drop_values(connection, dropped)
    return dict(done)


def _found(connection: sqlite3.Connection, part: Rewriting) -> SQLiteLog:
    log = SQLiteLog(connection, part.conversation)
    if log.key == NOWHERE:
        raise ConversationNotFound(part.conversation)
    if log.version != part.expected:
        raise VersionConflict(part.conversation, part.expected, log.version)
    return log


def _check_forks(
    connection: sqlite3.Connection, log: SQLiteLog, part: Rewriting, logs: Mapping[str, SQLiteLog]
) -> None:
    """Check that every fork which shares a block that goes is part of the call: one may be new."""
    first = min([*part.blocks, *part.payloads], default=LARGEST)
    for fork, base in connection.execute(statements.FORKS, (log.key,)).fetchall():
        if base >= first and fork not in logs:
            raise VersionConflict(part.conversation, part.expected, log.version)


def overwrite(connection: sqlite3.Connection, key: int, conversation: str, version: int, payload: Payload) -> None:
    """Replace the payload of a stored event, with the rows and words that were made of it."""
    row = connection.execute(statements.TO_OVERWRITE, (key, version)).fetchone()
    position, id_, type_, schema, at, old, salt, was, c = row
    # Before its text goes: FTS5 finds its entries by that text.
    is_redacted = forget_text(connection, key, position, old)
    new = overwritten(EventIdentity(conversation, version, id_, type_, schema, at), payload, salt, was, c)
    connection.execute(statements.OVERWRITE, (*new, position))
    if not is_redacted:
        index_again(connection, key, position, new.payload)
    if isinstance(payload, CompactionCompleted):
        (reverted,) = connection.execute(statements.REVERTED_BY, (position,)).fetchone() or (None,)
        connection.execute(statements.DROP_ENTRIES, (position,))
        connection.execute(statements.DROP_COMPACTION, (position,))
        digest_rows.write(connection, key, rows_of(version, at, payload))
        connection.execute(statements.SET_REVERTED, (reverted, position))


def _rewrite_snapshots(connection: sqlite3.Connection, key: int, part: Rewriting, where: str) -> int:
    read = partial(rewritten, part.conversation, part.snapshot, where)
    done = 0
    for version, body, stored in connection.execute(statements.SNAPSHOTS_OF, (key,)).fetchall():
        if (new := read(body, stored)) is not None:
            done += connection.execute(statements.SET_SNAPSHOT, (*new, key, version)).rowcount
    for version, body, stored in connection.execute(statements.BASES_OF, (key,)).fetchall():
        if (new := read(body, stored)) is not None:
            done += connection.execute(statements.SET_BASE, (*new, key, version)).rowcount
    return done


def drop_values(connection: sqlite3.Connection, candidates: Collection[str]) -> int:
    """Remove those of some texts that no event and no snapshot names any more; return how many were removed."""
    left = set(candidates)
    naming = chain(
        connection.execute(statements.NAMING_EVENTS, (0,)),
        connection.execute(statements.NAMING_SNAPSHOTS, (NOWHERE, NOWHERE)),
    )
    while left and (row := next(naming, None)) is not None:  # not to the end: most, as a policy, others name too
        left.difference_update(named_in(row))
    return sum(connection.execute(statements.DROP_VALUE, (hash_,)).rowcount for hash_ in left)
