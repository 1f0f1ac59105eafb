"""Migration 3: digests as rows, filled from the compactions in the log, and the progress of the search index.

The first search makes the index itself: a database that is never searched has none and pays nothing for it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from timeline.errors import StoreCorrupt
from timeline.events.encoding import decode_payload

from ..digests import rows_of
from ..sqlite import digest_rows

if TYPE_CHECKING:
    import sqlite3

log: Final = logging.getLogger("timeline.store")

_STATEMENTS: Final = (
    """
    CREATE TABLE compactions (
        position INTEGER NOT NULL,
        conversation INTEGER NOT NULL,
        version INTEGER NOT NULL,
        at TEXT NOT NULL,
        round INTEGER NOT NULL,
        source TEXT NOT NULL,
        summary TEXT NOT NULL,
        first_version INTEGER,
        last_version INTEGER,
        before_tokens INTEGER NOT NULL,
        after_tokens INTEGER NOT NULL,
        errors INTEGER NOT NULL,
        reverted_by INTEGER,
        PRIMARY KEY (position),
        FOREIGN KEY(position) REFERENCES events (position),
        FOREIGN KEY(conversation) REFERENCES conversations ("key")
    ) STRICT
    """,
    "CREATE INDEX compactions_within ON compactions (conversation, position)",
    "CREATE INDEX compactions_at ON compactions (at, position)",
    """
    CREATE TABLE digest_entries (
        position INTEGER NOT NULL,
        list TEXT NOT NULL,
        number INTEGER NOT NULL,
        subject TEXT NOT NULL,
        tool TEXT,
        path TEXT,
        times INTEGER,
        tokens INTEGER,
        exit_status INTEGER,
        errors INTEGER NOT NULL,
        message TEXT NOT NULL,
        PRIMARY KEY (position, list, number),
        FOREIGN KEY(position) REFERENCES compactions (position)
    ) WITHOUT ROWID, STRICT
    """,
    "CREATE INDEX digest_tools ON digest_entries (tool, position) WHERE tool IS NOT NULL",
    """
    CREATE INDEX digest_files ON digest_entries (subject, position)
    WHERE list IN ('artifacts', 'files_read', 'files_written')
    """,
    """
    CREATE TABLE search_progress (
        form INTEGER NOT NULL,
        position INTEGER NOT NULL,
        PRIMARY KEY (form)
    ) STRICT
    """,
)
_PAGE: Final = 100
_PAGE_OF_TYPE: Final = """
    SELECT position, conversation, version, schema_version, at, payload FROM events INDEXED BY events_rare
    WHERE type = ? AND type NOT IN ('block.appended', 'context.rendered', 'model.called')
    AND position > ? ORDER BY position LIMIT ?
"""


def apply(connection: sqlite3.Connection) -> None:
    """Create the tables and fill them, a page of compactions at a time; compactions come before their reversions."""
    for statement in _STATEMENTS:
        connection.execute(statement)
    for type_ in ("compaction.completed", "compaction.reverted"):
        position = 0
        while page := connection.execute(_PAGE_OF_TYPE, (type_, position, _PAGE)).fetchall():
            for place, key, *event in page:
                _fill(connection, place, key, type_, event)
            position = page[-1][0]


def _fill(connection: sqlite3.Connection, position: int, key: int, type_: str, event: list[Any]) -> None:
    version, schema_version, at, text = event
    try:
        payload = decode_payload(type_, schema_version, text)
    except StoreCorrupt as damage:
        # A damaged event must not keep the store from opening; reading the event reports the damage.
        log.warning("the compaction at position %d has no digest rows: %s", position, damage)
    else:
        digest_rows.write(connection, key, rows_of(version, at, payload))
