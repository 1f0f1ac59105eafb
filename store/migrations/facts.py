"""Migration 7: facts as rows. Those of the log are filled in by the first query, a slice at a time.

Of events that were scavenged before, the digests of compactions hold all that is left; their entries become facts now,
marked by their ``source``, since such an event later looks like one whose facts were extracted first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3

_STATEMENTS: Final = (
    """
    CREATE TABLE facts (
        position INTEGER NOT NULL,
        number INTEGER NOT NULL,
        conversation INTEGER NOT NULL,
        kind INTEGER NOT NULL,
        failed INTEGER NOT NULL,
        status INTEGER,
        version INTEGER NOT NULL,
        call INTEGER,
        subject TEXT NOT NULL,
        tool TEXT NOT NULL,
        detail TEXT NOT NULL,
        path TEXT,
        source INTEGER NOT NULL,
        PRIMARY KEY (position, number)
    ) WITHOUT ROWID, STRICT
    """,
    "CREATE INDEX facts_within ON facts (conversation, position)",
    """
    CREATE TABLE facts_progress (
        form INTEGER NOT NULL,
        position INTEGER NOT NULL,
        PRIMARY KEY (form)
    ) STRICT
    """,
    "INSERT INTO facts_progress (form, position) VALUES (1, 0)",
    # The newest digest that names a block says most of it; a redacted block gives no fact.
    """
    INSERT INTO facts
    SELECT position, row_number() OVER (PARTITION BY position ORDER BY kind, subject) - 1, conversation, kind, failed,
        status, version, version, subject, tool, detail, NULL, 1
    FROM (
        SELECT e.position AS position, e.conversation AS conversation, e.version AS version, d.subject AS subject,
            CASE d.list WHEN 'files_read' THEN 0 WHEN 'files_written' THEN 1 WHEN 'commands' THEN 3
                WHEN 'searches' THEN 4 ELSE 5 END AS kind,
            d.list = 'errors' OR d.errors > 0 AS failed, d.exit_status AS status, coalesce(d.tool, '') AS tool,
            CASE d.list WHEN 'searches' THEN coalesce(CAST(d.times AS TEXT), '') ELSE d.message END AS detail,
            max(d.position)
        FROM (SELECT DISTINCT conversation FROM events INDEXED BY events_scavenged WHERE checksum = '') AS s
        CROSS JOIN compactions AS c INDEXED BY compactions_within ON c.conversation = s.conversation
        CROSS JOIN digest_entries AS d ON d.position = c.position
            AND d.list IN ('files_read', 'files_written', 'commands', 'searches', 'errors')
        CROSS JOIN events AS e ON e.conversation = s.conversation AND e.path = d.path AND e.checksum = ''
        WHERE NOT EXISTS (
            SELECT 1 FROM events AS r INDEXED BY events_rare_within
            WHERE r.conversation = e.conversation AND r.type = 'block.redacted' AND r.type <> 'block.appended'
                AND r.type <> 'context.rendered' AND r.type <> 'model.called' AND json_valid(r.payload)
                AND json_extract(r.payload, '$.version') = e.version
        )
        GROUP BY e.position, kind, d.subject
    )
    """,
)


def apply(connection: sqlite3.Connection) -> None:
    """Create the tables, and fill in what only digests know."""
    for statement in _STATEMENTS:
        connection.execute(statement)
