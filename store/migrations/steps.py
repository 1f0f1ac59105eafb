"""What each migration runs, by its number, word for word as it was released.

The texts are frozen. `store.sqlite.schema` describes the result of all migrations; a test compares the two.
"""

from __future__ import annotations

from typing import Final

CREATE: Final = (
    """
    CREATE TABLE conversations (
        "key" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL,
        version INTEGER NOT NULL,
        window_start INTEGER NOT NULL,
        title TEXT NOT NULL,
        parent TEXT,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        UNIQUE (id)
    ) STRICT
    """,
    """
    CREATE TABLE events (
        position INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        conversation INTEGER NOT NULL,
        version INTEGER NOT NULL,
        event_id TEXT NOT NULL,
        type TEXT NOT NULL,
        schema_version INTEGER NOT NULL,
        at TEXT NOT NULL,
        path TEXT,
        turn_id TEXT,
        tokens INTEGER,
        payload TEXT NOT NULL,
        checksum TEXT NOT NULL,
        UNIQUE (conversation, version),
        UNIQUE (conversation, event_id),
        FOREIGN KEY(conversation) REFERENCES conversations ("key")
    ) STRICT
    """,
    "CREATE UNIQUE INDEX events_path ON events (conversation, path) WHERE path IS NOT NULL",
    """
    CREATE INDEX events_rare ON events (type, position)
    WHERE type NOT IN ('block.appended', 'context.rendered', 'model.called')
    """,
    """
    CREATE INDEX events_rare_within ON events (conversation, type, version)
    WHERE type NOT IN ('block.appended', 'context.rendered', 'model.called')
    """,
    """
    CREATE TABLE snapshots (
        conversation INTEGER NOT NULL,
        version INTEGER NOT NULL,
        body TEXT NOT NULL,
        checksum TEXT NOT NULL,
        PRIMARY KEY (conversation),
        FOREIGN KEY(conversation) REFERENCES conversations ("key")
    ) STRICT
    """,
    "CREATE TABLE stored_values ( hash TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (hash) ) STRICT",
    "CREATE TABLE migrations ( number INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY (number) ) STRICT",
)
"""The tables of the first release, word for word."""
FORKS: Final = (
    'ALTER TABLE conversations ADD COLUMN parent_key INTEGER REFERENCES conversations ("key")',
    "ALTER TABLE conversations ADD COLUMN base INTEGER NOT NULL DEFAULT 0",
)
"""The versions that a fork shares with its parent. Earlier conversations keep their parent link and share nothing."""
RARE: Final = (
    "DROP INDEX events_rare",
    "DROP INDEX events_rare_within",
    """
    CREATE INDEX events_rare ON events (type, position)
    WHERE type <> 'block.appended' AND type <> 'context.rendered' AND type <> 'model.called'
    """,
    """
    CREATE INDEX events_rare_within ON events (conversation, type, version)
    WHERE type <> 'block.appended' AND type <> 'context.rendered' AND type <> 'model.called'
    """,
)
"""Indexes of rare events, with a condition that costs nothing for an appended block.

For ``NOT IN``, SQLite looks a type up in the list for each index and each event. With a condition for each type it
stops at the first that is false, which for most events is the very first: an append takes a fifth less time.
"""
IDENTITY: Final = (
    "CREATE TABLE identity ( store TEXT NOT NULL, PRIMARY KEY (store) ) STRICT",
    "INSERT INTO identity (store) VALUES (lower(hex(randomblob(16))))",
)
"""A unique name of the store, which reveals that another file was put in its place; a copy of the file has the same."""
RETENTION: Final = (
    "ALTER TABLE conversations ADD COLUMN first_version INTEGER NOT NULL DEFAULT 1",
    "CREATE INDEX conversations_forks ON conversations (parent_key, base) WHERE parent_key IS NOT NULL",
    "CREATE INDEX events_scavenged ON events (conversation, version) WHERE checksum = ''",
    """
    CREATE TABLE bases (
        conversation INTEGER NOT NULL,
        version INTEGER NOT NULL,
        body TEXT NOT NULL,
        checksum TEXT NOT NULL,
        PRIMARY KEY (conversation, version),
        FOREIGN KEY(conversation) REFERENCES conversations ("key")
    ) WITHOUT ROWID, STRICT
    """,
    "CREATE TABLE settings ( name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (name) ) STRICT",
)
"""What removing history needs: settings, the snapshots that the log is folded from, and where it begins.

A removed event keeps its row, so that version, id and path stay taken by the indexes that hold them anyway, and an
append asks nothing more than before. Its checksum is empty.
"""
FACTS: Final = (
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
"""Facts as rows. Those of the log are filled in by the first query, a slice at a time.

Of events that were scavenged before, the digests of compactions hold all that is left; their entries become facts now,
marked by their ``source``, since such an event later looks like one whose facts were extracted first.
"""
PACKING: Final = (
    "ALTER TABLE events ADD COLUMN packed BLOB",
    "ALTER TABLE conversations ADD COLUMN packed INTEGER NOT NULL DEFAULT 0",
)
"""Room for packed payloads, and for how far each conversation's are packed.

Both columns are added without a look at any row: what earlier releases wrote is read as it is, and packed behind the
next compaction of its conversation.
"""
CHAIN: Final = (
    "ALTER TABLE events ADD COLUMN salt BLOB",
    "ALTER TABLE events ADD COLUMN c BLOB",
    "ALTER TABLE events ADD COLUMN link BLOB",
    "ALTER TABLE conversations ADD COLUMN head BLOB",
    'CREATE INDEX conversations_unchained ON conversations ("key") WHERE head IS NULL',
)
"""Room for the chain; `store.sqlite.chaining` fills it for what earlier releases wrote.

The columns are added without a look at any row, and none is rewritten in this transaction.
"""
ERASURES: Final = (
    "CREATE TABLE erased ( id TEXT NOT NULL, at TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (id) ) STRICT",
)
"""The ids of erased conversations, which are never given again, with the time and the reason that was given."""
WAYPOINTS: Final = (
    """
    CREATE TABLE waypoints (
        conversation INTEGER NOT NULL,
        version INTEGER NOT NULL,
        body BLOB NOT NULL,
        checksum TEXT NOT NULL,
        PRIMARY KEY (conversation, version),
        FOREIGN KEY(conversation) REFERENCES conversations (key)
    ) STRICT
    """,
)
"""Snapshots of the past, so that it is folded from near. They come with new appends, or by a repair."""
