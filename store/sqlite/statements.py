# ruff: noqa: S608 - the texts are put together from the constants below, never from input
"""Every statement that a store sends to SQLite, in one place, so that a test can check the plan of each one.

Each is an indexed look-up or a range of an index: no cost depends on the length of a conversation's history, and none
scans a table. Lists of ids go in as one JSON array, so that their number has no limit. The `CROSS JOIN` and
`INDEXED BY` fix the plan, whatever the statistics of `PRAGMA optimize` say. (Even a single path is a JSON array: beside
the lineage of a fork, SQLite would make a Bloom filter of the whole table for a plain parameter.)

A page of digests walks compactions by position, led by the most selective filter that is given: the conversation, else
the tool, else the fixed beginning of a glob, else none. The other filters are looked up for each candidate. They may
find too much (SQLite's ``*`` crosses folders), never too little: the event decides.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from ..removal import OTHER_SCAVENGED

FILES_WHERE: Final = "list IN ('artifacts', 'files_read', 'files_written')"
"""Condition of the partial index of files."""
RARE_WHERE: Final = "type <> 'block.appended' AND type <> 'context.rendered' AND type <> 'model.called'"
"""Condition of the two partial indexes; SQLite uses them only where a query repeats it word for word."""
SCAVENGED_WHERE: Final = "checksum = ''"
"""Condition of the partial index of scavenged events. A damaged event still has a checksum that it does not match."""

FREQUENT_TYPES: Final = frozenset({"block.appended", "context.rendered", "model.called"})

_KEY_OF = "(SELECT key FROM conversations WHERE id = ?)"
PAYLOAD: Final = "CASE WHEN packed IS NULL THEN payload ELSE payload || unpacked(packed) END"
"""The payload of an event; each of the store's connections has the function. Rare events are never packed."""
_PAYLOAD_OF_E = "CASE WHEN e.packed IS NULL THEN e.payload ELSE e.payload || unpacked(e.packed) END"
EVENT = (
    f"e.position, e.version, e.event_id, e.type, e.schema_version, e.at, {_PAYLOAD_OF_E}, e.checksum,"
    " e.path, e.turn_id, e.tokens"
)
_THERE = " AND e.checksum <> ''"
_LISTED = "(SELECT value FROM json_each(?))"


def _lineage(start: str) -> str:
    """Write the common table expression of a conversation and its ancestors, itself first.

    Each row gives the versions of the whole that are that conversation's own: ``base < version <= last``. A parent has
    the lower key; without that condition, a circle in a damaged database would have no end. It also has the id that the
    fork names: a changed key must not lead to the log of another conversation.
    """
    return (
        f"WITH RECURSIVE lineage (key, id, base, last, parent_key, parent) AS ({start} UNION ALL"
        " SELECT c.key, c.id, c.base, min(l.base, l.last), c.parent_key, c.parent FROM lineage AS l"
        " CROSS JOIN conversations AS c ON c.key = l.parent_key AND c.key < l.key AND +c.id ="
        " CASE WHEN json_valid(l.parent) THEN json_extract(l.parent, '$.conversation') END) "
    )


_LINEAGE = _lineage("SELECT key, id, base, version, parent_key, parent FROM conversations WHERE id = ?")
_LINEAGE_UP_TO = _lineage("SELECT key, id, base, ?, parent_key, parent FROM conversations WHERE key = ?")
_RARE_WHERE_E = RARE_WHERE.replace("type", "e.type")


def _of_compactions(total: str, wanted: str) -> str:
    """Write an expression over the compactions of a row of `conversations`, those that a fork shares included.

    Each ancestor is one range of an index. A conversation that shares nothing has none: a list of many takes 0.6 of the
    time that a recursion for each takes.
    """
    lineage = _lineage(
        "SELECT conversations.key, conversations.id, conversations.base, conversations.version,"
        " conversations.parent_key, conversations.parent"
    )
    within = f"SELECT {wanted} FROM events AS e INDEXED BY events_rare_within WHERE e.conversation = {{}}"
    within += f" AND e.type = 'compaction.completed' AND e.version <= {{}} AND {_RARE_WHERE_E}"
    shared = f"{lineage}SELECT {total}(({within.format('l.key', 'l.last')})) FROM lineage AS l"
    own = within.format("conversations.key", "conversations.version")
    return f"CASE WHEN conversations.base = 0 THEN ({own}) ELSE ({shared}) END"


_INFO = (
    "key, id, conversations.version, window_start, title, parent, created_at, updated_at, base, first_version,"
    f" {_of_compactions('sum', 'count(*)')}, {_of_compactions('max', 'max(e.at)')}"
)

# --- the writer ---------------------------------------------------------------------------------------------------

HEAD: Final = (
    "SELECT key, version, base, parent_key, first_version, head, EXISTS (SELECT 1 FROM events AS e"
    " WHERE e.conversation = conversations.key AND e.version = conversations.version AND e.link IS NULL)"
    " FROM conversations WHERE id = ?"
)
INSERT_CONVERSATION: Final = (
    "INSERT INTO conversations (id, version, window_start, title, parent, created_at, updated_at, parent_key, base,"
    " first_version) VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?)"
)
UPDATE_CONVERSATION: Final = "UPDATE conversations SET version = ?, updated_at = ?, head = ? WHERE key = ?"
UPDATE_WINDOW_START: Final = "UPDATE conversations SET window_start = ? WHERE key = ?"
REPLACE_SNAPSHOT: Final = "INSERT OR REPLACE INTO snapshots (conversation, version, body, checksum) VALUES (?, ?, ?, ?)"
ADD_WAYPOINT: Final = "INSERT OR REPLACE INTO waypoints (conversation, version, body, checksum) VALUES (?, ?, ?, ?)"
INSERT_VALUES: Final = "INSERT OR IGNORE INTO stored_values (hash, text) VALUES (?, ?)"
_INSERT_EVENTS = (
    "INSERT INTO events (conversation, version, event_id, type, schema_version, at, path, turn_id, tokens, payload,"
    " checksum, salt, c, link) VALUES "
)
_EVENT_PARAMETERS = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_EVENTS: Final = {rows: _INSERT_EVENTS + ", ".join([_EVENT_PARAMETERS] * rows) for rows in (50, 10, 1)}
"""By number of rows, largest first: many rows in one statement take two thirds of the time that `executemany` takes."""
STORED_BETWEEN: Final = (
    "SELECT event_id, checksum, position FROM events"
    " WHERE conversation = ? AND version BETWEEN ? AND ? ORDER BY version"
)
VERSIONS_OF_IDS: Final = (
    "SELECT e.event_id, e.version FROM json_each(?) AS wanted"
    " CROSS JOIN events AS e ON e.conversation = ? AND e.event_id = wanted.value"
)
PATHS_IN_USE: Final = (
    f"{_LINEAGE_UP_TO}SELECT e.path FROM lineage AS l CROSS JOIN json_each(?) AS wanted"
    " CROSS JOIN events AS e ON e.conversation = l.key AND e.path = wanted.value AND e.version <= l.last"
)

# --- the chain ----------------------------------------------------------------------------------------------------

LINK_AT: Final = (
    f"{_LINEAGE_UP_TO}SELECT e.link FROM lineage AS l CROSS JOIN json_each(?) AS wanted"
    " CROSS JOIN events AS e ON e.conversation = l.key AND e.version = wanted.value AND e.version <= l.last"
)
UNCHAINED: Final = (
    "SELECT key FROM conversations INDEXED BY conversations_unchained WHERE key > 0 AND head IS NULL"
    " ORDER BY key LIMIT 1"
)
PARENT_AND_HEAD: Final = "SELECT parent_key, head FROM conversations WHERE key = ?"
TO_CHAIN_FROM: Final = (
    "SELECT id, base, coalesce((SELECT max(e.version) FROM events AS e INDEXED BY events_scavenged"
    f" WHERE e.conversation = conversations.key AND e.{SCAVENGED_WHERE} AND e.link IS NULL), 0)"
    " FROM conversations WHERE key = ?"
)
LAST_LINKED: Final = "SELECT coalesce(max(version), 0) FROM events WHERE conversation = ? AND link IS NOT NULL"
IS_BARE: Final = (
    f"SELECT salt IS NULL AND c IS NULL AND link IS NULL AND NOT ({SCAVENGED_WHERE}) FROM events"
    " WHERE conversation = ? AND version = ?"
)
"""Whether an event has nothing of a chain, as a release before the chain writes it."""
CHAIN_HEAD: Final = "SELECT head FROM conversations WHERE id = ?"
CHAINED: Final = (
    "SELECT e.version, e.position, e.event_id,"
    f" CASE WHEN e.{SCAVENGED_WHERE} AND e.turn_id IS NOT NULL THEN e.turn_id ELSE e.type END, e.schema_version, e.at,"
    " e.path, e.checksum, e.salt, e.c, e.link FROM events AS e"
    " WHERE e.conversation = ? AND e.version > ? AND e.version <= ? ORDER BY e.version LIMIT ?"
)
TO_CHAIN: Final = (
    "SELECT position, version, event_id, type, schema_version, at, checksum FROM events"
    " WHERE conversation = ? AND version > ? ORDER BY version LIMIT ?"
)
CHAIN: Final = "UPDATE events SET salt = ?, link = ? WHERE position = ?"
UNCHAIN_EVENTS: Final = (
    "UPDATE events SET salt = NULL, c = NULL, link = NULL,"
    f" packed = CASE WHEN {SCAVENGED_WHERE} THEN NULL ELSE packed END WHERE conversation = ?"
)
"""A scavenged event is vouched for by its link, and by nothing without one."""
SET_HEAD: Final = "UPDATE conversations SET head = ? WHERE key = ?"

# --- the readers --------------------------------------------------------------------------------------------------

INFO: Final = f"SELECT {_INFO} FROM conversations WHERE id = ?"
INFO_AND_SNAPSHOT: Final = (
    f"SELECT {_INFO}, s.body, s.checksum FROM conversations"
    " LEFT JOIN snapshots AS s ON s.conversation = conversations.key WHERE id = ?"
)
NEAREST_WAYPOINT: Final = (
    f"{_LINEAGE}SELECT near.id, w.version, w.body, w.checksum FROM (SELECT l.key AS key, l.id AS id,"
    " (SELECT max(n.version) FROM waypoints AS n WHERE n.conversation = l.key AND n.version > ?"
    " AND n.version <= min(l.last, ?)) AS newest FROM lineage AS l ORDER BY newest DESC LIMIT 1) AS near"
    " CROSS JOIN waypoints AS w ON w.conversation = near.key AND w.version = near.newest"
)
CONVERSATIONS: Final = f"SELECT {_INFO} FROM conversations WHERE key > ? ORDER BY key LIMIT ?"

LINEAGE: Final = f"{_LINEAGE}SELECT key, id, base, last FROM lineage"
PAGE: Final = (
    f"SELECT {EVENT} FROM events AS e WHERE e.conversation = ?"
    f" AND e.version > ? AND e.version <= ?{_THERE} ORDER BY e.version LIMIT ?"
)
PAGE_AS_WRITTEN: Final = (
    f"SELECT {EVENT}, e.salt, e.c, e.link FROM events AS e WHERE e.conversation = ?"
    f" AND e.version > ? AND e.version <= ?{_THERE} ORDER BY e.version LIMIT ?"
)
PAGE_OF_TYPES: Final = (
    f"SELECT {EVENT} FROM events AS e WHERE e.conversation = ?"
    f" AND e.version > ? AND e.version <= ? AND e.type IN {_LISTED}{_THERE} ORDER BY e.version LIMIT ?"
)
PAGE_OF_RARE_TYPES: Final = (
    f"SELECT {EVENT} FROM (SELECT position AS found FROM events INDEXED BY events_rare_within"
    f" WHERE conversation = ? AND version > ? AND version <= ? AND type IN {_LISTED} AND {RARE_WHERE}"
    " ORDER BY version LIMIT ?) CROSS JOIN events AS e ON e.position = found ORDER BY e.version"
)
BY_VERSION: Final = (
    f"{_LINEAGE}SELECT l.id, {EVENT} FROM lineage AS l CROSS JOIN json_each(?) AS wanted"
    " CROSS JOIN events AS e ON e.conversation = l.key AND e.version = wanted.value AND e.version <= l.last"
)
BY_PATH: Final = (
    f"{_LINEAGE}SELECT l.id, {EVENT} FROM lineage AS l CROSS JOIN json_each(?) AS wanted"
    " CROSS JOIN events AS e ON e.conversation = l.key AND e.path = wanted.value AND e.version <= l.last"
)
AT_PATH: Final = "SELECT version FROM events WHERE conversation = ? AND version > ? AND version <= ? AND +path = ?"
"""Looks through a whole conversation for a path that its index does not lead to."""
SCAVENGED_BETWEEN: Final = (
    "SELECT count(*) FROM events INDEXED BY events_scavenged"
    f" WHERE conversation = ? AND version >= ? AND version <= ? AND {SCAVENGED_WHERE}"
)
PATHS_BETWEEN: Final = (
    f"{_LINEAGE}SELECT e.path FROM lineage AS l CROSS JOIN json_each(?) AS bounds"
    " CROSS JOIN events AS e ON e.conversation = l.key AND e.version <= l.last"
    " AND e.path >= json_extract(bounds.value, '$[0]') AND e.path < json_extract(bounds.value, '$[1]')"
)
IDS_KNOWN: Final = (
    "SELECT e.event_id FROM json_each(?) AS wanted"
    f" CROSS JOIN events AS e ON e.conversation = {_KEY_OF} AND e.event_id = wanted.value"
)

HEAD_POSITION: Final = "SELECT coalesce(max(position), 0) FROM events"

PAGE_OF_ALL: Final = (
    f"SELECT c.id, {EVENT} FROM events AS e CROSS JOIN conversations AS c ON c.key = e.conversation"
    f" WHERE e.position > ?{_THERE} ORDER BY e.position LIMIT ?"
)
PAGE_OF_ALL_OF_TYPES: Final = (
    f"SELECT c.id, {EVENT} FROM events AS e CROSS JOIN conversations AS c ON c.key = e.conversation"
    f" WHERE e.position > ? AND e.type IN {_LISTED}{_THERE} ORDER BY e.position LIMIT ?"
)
PAGE_OF_ALL_OF_RARE_TYPES: Final = (
    f"SELECT c.id, {EVENT} FROM (SELECT position AS found FROM events INDEXED BY events_rare"
    f" WHERE position > ? AND type IN {_LISTED} AND {RARE_WHERE} ORDER BY position LIMIT ?)"
    " CROSS JOIN events AS e ON e.position = found CROSS JOIN conversations AS c ON c.key = e.conversation"
    " ORDER BY e.position"
)

VALUES: Final = (
    "SELECT v.hash, v.text FROM json_each(?) AS wanted CROSS JOIN stored_values AS v ON v.hash = wanted.value"
)
VALUES_NAMED: Final = (
    f"SELECT c.id, e.version, {_PAYLOAD_OF_E} FROM events AS e CROSS JOIN conversations AS c ON c.key = e.conversation"
    " WHERE e.position > 0 AND e.checksum <> ''"
    " AND e.type IN ('conversation.opened', 'policy.changed', 'policy.overridden',"
    " 'context.rendered')"
)
"""Reads the whole log, as a verification does."""
STORE: Final = "SELECT store FROM identity"
IS_NAMED: Final = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'identity'"
ERASED_AND_LISTED: Final = (
    "SELECT (SELECT max(seq) FROM sqlite_sequence WHERE name = 'conversations'),"
    " (SELECT count(*) FROM conversations), (SELECT count(*) FROM erased)"
)
"""Keys rise and are never given again: those that are missing are of conversations that were erased."""
LAST_GIVEN: Final = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'events'"
SCHEMA_VERSION: Final = "SELECT max(number) FROM migrations"


def prefix_bounds(prefix: str) -> tuple[str, str]:
    """Return the two ends of the range of paths that begin with a prefix, for `PATHS_BETWEEN`."""
    return prefix, prefix + "\U0010ffff"  # A noncharacter: no path continues with it.


_KEY = "(SELECT key FROM conversations WHERE id = :conversation)"

# --- removing -----------------------------------------------------------------------------------------------------

OWN_SNAPSHOT: Final = "SELECT body, checksum FROM snapshots WHERE conversation = ?"
WIDEST_FORK: Final = "SELECT id, base FROM conversations WHERE parent_key = ? ORDER BY base DESC LIMIT 1"
NEWEST_UNDO: Final = (
    "SELECT coalesce(max(version), 0) FROM events INDEXED BY events_rare_within"
    f" WHERE conversation = ? AND type = 'compaction.reverted' AND {RARE_WHERE}"
)
OWN_NEWEST_BASE: Final = "SELECT version, body FROM bases WHERE conversation = ? ORDER BY version DESC LIMIT 1"
PLACE_AT: Final = "SELECT at, link FROM events WHERE conversation = ? AND version = ?"
OWN_OPENINGS: Final = (
    "SELECT version, payload FROM events INDEXED BY events_rare_within"
    f" WHERE conversation = ? AND type = 'conversation.opened' AND {RARE_WHERE} ORDER BY version DESC"
)
ADD_BASE: Final = "INSERT OR IGNORE INTO bases (conversation, version, body, checksum) VALUES (?, ?, ?, ?)"
DROP_BASES: Final = "DELETE FROM bases WHERE conversation = ? AND version >= ? AND version < ?"
DROP_WAYPOINTS: Final = "DELETE FROM waypoints WHERE conversation = ? AND version < ?"
RAISE_FIRST: Final = "UPDATE conversations SET first_version = max(first_version, ?) WHERE key = ?"
TO_REMOVE: Final = (
    f"SELECT position, version, {PAYLOAD}, type, path, link, salt, checksum, c FROM events"
    " WHERE conversation = ? AND version > ? AND version <= ?"
    f" AND type NOT IN {_LISTED} AND version NOT IN {_LISTED} AND checksum <> '' ORDER BY version LIMIT ?"
)
BLANK: Final = (
    "UPDATE events SET payload = '', checksum = '', salt = ?, packed = ?, c = ?, tokens = NULL,"
    f" turn_id = CASE WHEN {RARE_WHERE} THEN type END,"
    f" type = CASE WHEN {RARE_WHERE} THEN '{OTHER_SCAVENGED}' ELSE type END WHERE position = ?"
)
"""A rare event gets another type, so that the indexes of rare events find none that is not there. Its link covers its
own type, which stays in the place of its turn; what vouches for its facts takes the place of a packed payload."""
NEWEST_SCAVENGED: Final = (
    f"{_LINEAGE_UP_TO}SELECT coalesce(max((SELECT max(e.version) FROM events AS e INDEXED BY events_scavenged"
    f" WHERE e.conversation = l.key AND e.version <= l.last AND e.{SCAVENGED_WHERE})), 0) FROM lineage AS l"
)
COUNT_SCAVENGED: Final = (
    "SELECT type, count(*) FROM events INDEXED BY events_scavenged"
    f" WHERE conversation = ? AND version <= ? AND {SCAVENGED_WHERE} GROUP BY type"
)
NEWEST_BASE: Final = (
    f"{_LINEAGE}SELECT b.body, b.checksum FROM lineage AS l CROSS JOIN bases AS b"
    " ON b.conversation = l.key AND b.version <= l.last AND b.version <= ? ORDER BY b.version DESC LIMIT 1"
)
NAMING_EVENTS: Final = (
    f"SELECT {PAYLOAD} FROM events WHERE position > ? AND type <> 'block.appended' AND checksum <> ''"
)
NAMING_SNAPSHOTS: Final = (
    "SELECT body FROM snapshots WHERE conversation > ? UNION ALL SELECT body FROM bases WHERE conversation > ?"
)
SIZES_OF_VALUES: Final = "SELECT hash, length(CAST(text AS BLOB)) FROM stored_values WHERE hash > ?"
"""These three read whole tables, once a run: the texts to remove are those that none of them names."""
DROP_VALUE: Final = "DELETE FROM stored_values WHERE hash = ?"
SETTING: Final = "SELECT value FROM settings WHERE name = ?"
SET: Final = "INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)"
SET_ONCE: Final = "INSERT OR IGNORE INTO settings (name, value) VALUES (?, ?)"
MARK: Final = "PRAGMA user_version"
SET_MARK: Final = "PRAGMA user_version = {:d}"
UNSET: Final = "DELETE FROM settings WHERE name = ?"

# --- forgetting ---------------------------------------------------------------------------------------------------

FORKS: Final = "SELECT id, base FROM conversations WHERE parent_key = ? ORDER BY key"
TO_OVERWRITE: Final = (
    f"SELECT position, event_id, type, schema_version, at, {PAYLOAD}, salt, checksum, c FROM events"
    " WHERE conversation = ? AND version = ?"
)
OVERWRITE: Final = (
    "UPDATE events SET payload = ?, packed = NULL, tokens = ?, checksum = ?, salt = NULL, c = ? WHERE position = ?"
)
"""Its link stays, and its commitment is kept from now on: it vouches for what was there, which nobody can guess without
the salt."""
SET_TITLE: Final = "UPDATE conversations SET title = ? WHERE key = ?"
REVERTED_BY: Final = "SELECT reverted_by FROM compactions WHERE position = ?"
SET_REVERTED: Final = "UPDATE compactions SET reverted_by = ? WHERE position = ?"
DROP_ENTRIES: Final = "DELETE FROM digest_entries WHERE position = ?"
DROP_COMPACTION: Final = "DELETE FROM compactions WHERE position = ?"
SNAPSHOTS_OF: Final = "SELECT version, body, checksum FROM snapshots WHERE conversation = ?"
SET_SNAPSHOT: Final = "UPDATE snapshots SET body = ?, checksum = ? WHERE conversation = ? AND version = ?"
ALL_BASES: Final = (
    "SELECT c.key, c.id, b.version, b.body, b.checksum FROM bases AS b CROSS JOIN conversations AS c"
    " ON c.key = b.conversation"
)
_SCAVENGED_ITSELF = (
    "conversations AS c CROSS JOIN events AS e INDEXED BY events_scavenged"
    f" ON e.conversation = c.key AND e.{SCAVENGED_WHERE} WHERE c.first_version > c.base + 1"
)
WITHOUT_BASE: Final = (
    f"SELECT DISTINCT c.key, c.id FROM {_SCAVENGED_ITSELF}"
    " AND NOT EXISTS (SELECT 1 FROM bases AS b WHERE b.conversation = c.key)"
)
LACKS_BASE: Final = f"SELECT 1 FROM {_SCAVENGED_ITSELF} AND c.key = ? LIMIT 1"
SCAVENGED_UP_TO: Final = (
    "SELECT first_version, (SELECT coalesce(max(version), 0) FROM events AS e INDEXED BY events_scavenged"
    f" WHERE e.conversation = c.key AND e.{SCAVENGED_WHERE}) FROM conversations AS c WHERE key = ?"
)
BASES_OF: Final = "SELECT version, body, checksum FROM bases WHERE conversation = ?"
SET_BASE: Final = "UPDATE bases SET body = ?, checksum = ? WHERE conversation = ? AND version = ?"
ALL_WAYPOINTS: Final = (
    "SELECT w.conversation, c.id, w.version FROM waypoints AS w LEFT JOIN conversations AS c ON c.key = w.conversation"
)
WAYPOINT_VERSIONS: Final = "SELECT version FROM waypoints WHERE conversation = ? ORDER BY version"
WAYPOINT: Final = "SELECT body, checksum FROM waypoints WHERE conversation = ? AND version = ?"
DROP_WAYPOINT: Final = "DELETE FROM waypoints WHERE conversation = ? AND version = ?"
ERASED: Final = "SELECT at, reason FROM erased WHERE id = ?"
HAS_ERASED: Final = "SELECT 1 FROM sqlite_schema WHERE name = 'erased'"
REDACTED_BEHIND: Final = (
    f"SELECT 1 FROM events WHERE conversation = {_KEY_OF} AND type = 'block.redacted' AND {RARE_WHERE} AND version > ?"
    " LIMIT 1"
)
ADD_ERASED: Final = "INSERT OR IGNORE INTO erased (id, at, reason) VALUES (?, ?, ?)"
NEWEST_RETENTION: Final = (
    "SELECT payload FROM events INDEXED BY events_rare_within"
    f" WHERE conversation = ? AND version <= ? AND type = 'retention.set' AND {RARE_WHERE}"
    " ORDER BY version DESC LIMIT 1"
)
NAMES_IN: Final = f"SELECT {PAYLOAD} FROM events WHERE conversation = ? AND type <> 'block.appended' AND checksum <> ''"
DROP_EVENTS: Final = "DELETE FROM events WHERE conversation = ?"
DROP_ALL_ENTRIES: Final = (
    "DELETE FROM digest_entries WHERE position IN (SELECT position FROM compactions WHERE conversation = ?)"
)
DROP_COMPACTIONS: Final = "DELETE FROM compactions WHERE conversation = ?"
DROP_FACTS_AT: Final = "DELETE FROM facts WHERE position = ?"
PULL_FACTS_PROGRESS: Final = (
    "UPDATE facts_progress SET position = min(position, (SELECT coalesce(max(e.position), 0) FROM events AS e))"
    " WHERE form > 0"
)
PULL_PROGRESS: Final = PULL_FACTS_PROGRESS.replace("facts_progress", "search_progress")
"""How far the log is read does not lie behind its end, also where the newest events are erased."""
DROP_FACTS: Final = "DELETE FROM facts WHERE conversation = ?"
DROP_SNAPSHOT: Final = "DELETE FROM snapshots WHERE conversation = ?"
DROP_ALL_BASES: Final = "DELETE FROM bases WHERE conversation = ?"
DROP_STRAY_WAYPOINTS: Final = (
    "DELETE FROM waypoints WHERE NOT EXISTS (SELECT 1 FROM conversations AS c WHERE c.key = waypoints.conversation)"
)
DROP_ALL_WAYPOINTS: Final = "DELETE FROM waypoints WHERE conversation = ?"
DROP_CONVERSATION: Final = "DELETE FROM conversations WHERE key = ?"
_COPIED = "version, event_id, type, schema_version, at, path, turn_id, tokens"
ROWS_OF_EVENTS: Final = (
    f"SELECT position, {_COPIED}, payload, packed, checksum FROM events"
    " WHERE conversation = ? AND version > ? AND version <= ? ORDER BY version LIMIT ?"
)
COPY_EVENT: Final = (
    f"INSERT INTO events (conversation, {_COPIED}, payload, packed, checksum)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
MOVE_FACTS: Final = (
    "INSERT OR REPLACE INTO facts (position, number, conversation, kind, failed, status, version, call, subject, tool,"
    " detail, path, source) SELECT ?, number, ?, kind, failed, status, version, call, subject, tool, detail, path,"
    " source FROM facts WHERE position = ?"
)
MOVE_COMPACTION: Final = (
    "INSERT INTO compactions SELECT ?, ?, version, at, round, source, summary, first_version, last_version,"
    " before_tokens, after_tokens, errors, NULL FROM compactions WHERE position = ?"
)
REVERT_ANEW: Final = (
    "UPDATE compactions SET reverted_by = (SELECT min(e.version) FROM events AS e, json_each(e.payload, '$.versions')"
    " AS undone WHERE e.conversation = compactions.conversation AND e.type = 'compaction.reverted'"
    f" AND {RARE_WHERE.replace('type', 'e.type')} AND json_valid(e.payload) AND e.version > compactions.version"
    " AND undone.value = compactions.version) WHERE conversation = ?"
)
"""An undo counts in the log that has it alone: a fork's, of what it shares, counts once that is its own."""
MOVE_ENTRIES: Final = (
    "INSERT INTO digest_entries SELECT ?, list, number, subject, tool, path, times, tokens, exit_status, errors,"
    " message FROM digest_entries WHERE position = ?"
)
COPY_BASES: Final = (
    "INSERT OR IGNORE INTO bases (conversation, version, body, checksum)"
    " SELECT ?, version, body, checksum FROM bases WHERE conversation = ? AND version <= ?"
)
CUT_LOOSE: Final = (
    "UPDATE conversations SET parent_key = NULL, base = 0, packed = 0, head = NULL, created_at ="
    " (SELECT e.at FROM events AS e WHERE e.conversation = conversations.key ORDER BY e.version LIMIT 1) WHERE key = ?"
)
LINEAGE_OF: Final = f"{_LINEAGE}SELECT key, base, last FROM lineage"

# --- packing ------------------------------------------------------------------------------------------------------

PACKED_UNTIL: Final = "SELECT key, max(packed, base), version, window_start FROM conversations WHERE id = ?"
SET_PACKED: Final = "UPDATE conversations SET packed = ? WHERE key = ?"
_PACKED_COLUMNS = (
    "position, conversation, version, event_id, type, schema_version, at, path, turn_id, tokens, salt, c, link"
)
TO_PACK: Final = (
    f"SELECT {_PACKED_COLUMNS}, checksum, CAST(payload AS BLOB) FROM events"
    " WHERE conversation = ? AND version > ? AND version <= ?"
    f" AND NOT ({RARE_WHERE}) AND packed IS NULL AND checksum <> '' AND length(payload) <= 8000000"
    " ORDER BY version LIMIT ?"
)
"""Rare events are left: statements look into them, and the rows of compactions refer to theirs. So is a payload that
would hold up the writer for a tenth of a second."""
TAKE_OUT: Final = "DELETE FROM events WHERE position = ?"
PUT_BACK: Final = (
    f"INSERT INTO events ({_PACKED_COLUMNS}, checksum, payload, packed)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', ?)"
)

# --- digests ------------------------------------------------------------------------------------------------------

INSERT_COMPACTION: Final = (
    "INSERT INTO compactions (position, conversation, version, at, round, source, summary, first_version, last_version,"
    " before_tokens, after_tokens, errors) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
INSERT_ENTRY: Final = (
    "INSERT INTO digest_entries (position, list, number, subject, tool, path, times, tokens, exit_status, errors,"
    " message) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
POSITION: Final = "SELECT position FROM events WHERE conversation = ? AND version = ?"
REVERT: Final = (
    "UPDATE compactions SET reverted_by = ? WHERE reverted_by IS NULL AND position IN"
    " (SELECT e.position FROM json_each(?) AS wanted CROSS JOIN events AS e"
    " ON e.conversation = ? AND e.version = wanted.value)"
)
EVENTS_OF_TYPE: Final = (
    "SELECT position, conversation, version, schema_version, at, payload FROM events INDEXED BY events_rare"
    f" WHERE type = ? AND {RARE_WHERE} ORDER BY position"
)
FIRST_SINCE: Final = "SELECT min(position) FROM compactions INDEXED BY compactions_at WHERE at >= ?"


def _fits(entry: str) -> str:
    """Write the condition that a row's subject fits a glob; SQLite's ends at U+0000, which a text may hold."""
    return f"({entry}.subject GLOB :glob OR instr({entry}.subject, char(0)) > 0)"


_HOLDS = (
    " AND d.at BETWEEN :since AND :until AND d.round BETWEEN :first_round AND :last_round"
    " AND d.errors BETWEEN :least_errors AND :most_errors"
    " AND (:reverted IS NULL OR (d.reverted_by IS NOT NULL) = :reverted)"
)
_DELETED = "list = 'files_deleted'"
"""In no index: a compaction has few, and its own entries are near."""
_ENTRY = " AND EXISTS (SELECT 1 FROM digest_entries AS x WHERE x.position = d.position AND "
_ASKED: Final = {
    "tool": f"{_ENTRY}x.tool = :tool)",
    "path_glob": f"{_ENTRY}({FILES_WHERE} OR {_DELETED}) AND {_fits('x')})",
    "command": f"{_ENTRY}x.list = 'commands' AND instr(x.subject, :command) > 0)",
    "error": f"{_ENTRY}x.errors > 0 AND instr(x.message, :error) > 0)",
}
_FOUND: Final = "SELECT d.position AS found, d.reverted_by AS reverted_by FROM "
_LEADS: Final = {
    "conversation": (
        f"{_FOUND}compactions AS d INDEXED BY compactions_within WHERE d.conversation = {_KEY} AND d.position > :after"
    ),
    # Several entries of a compaction may be of one tool; both tables are walked by position, so no sort is needed.
    "tool": (
        f"{_FOUND}digest_entries AS t INDEXED BY digest_tools"
        " CROSS JOIN compactions AS d ON d.position = t.position WHERE t.tool = :tool AND t.position > :after"
    ),
    "prefix": (
        f"{_FOUND}compactions AS d NOT INDEXED WHERE d.position > :after AND (d.position IN"
        f" (SELECT x.position FROM digest_entries AS x INDEXED BY digest_files WHERE {FILES_WHERE}"
        f" AND x.subject >= :prefix AND x.subject < :beyond AND x.position > :after AND {_fits('x')})"
        f" OR EXISTS (SELECT 1 FROM digest_entries AS x WHERE x.position = d.position AND {_DELETED}"
        f" AND {_fits('x')}))"
    ),
    "nothing": f"{_FOUND}compactions AS d NOT INDEXED WHERE d.position > :after",
}
_ORDER: Final = {"tool": " GROUP BY t.position ORDER BY t.position LIMIT :page"}


@cache
def page_of_digests(given: frozenset[str]) -> str:
    """Write the statement of a page for the given filters.

    Its rows come in any order, since sorting here would copy whole events. The filters are among conversation,
    tool, path_glob, prefix (the glob begins with fixed text), command, error (a text).
    """
    lead = next((name for name in _LEADS if name in given), "nothing")
    done = {"prefix": "path_glob"}.get(lead, lead)
    asked = "".join(condition for name, condition in _ASKED.items() if name in given and name != done)
    order = _ORDER.get(lead, " ORDER BY d.position LIMIT :page")
    return (
        f"SELECT k.reverted_by, c.id, {EVENT} FROM ({_LEADS[lead]}{_HOLDS}{asked}{order}) AS k"
        " CROSS JOIN events AS e ON e.position = k.found CROSS JOIN conversations AS c ON c.key = e.conversation"
    )


# --- facts --------------------------------------------------------------------------------------------------------

_RARE_WHERE_OF_E = RARE_WHERE.replace("type", "e.type")
REPLACE_FACT: Final = (
    "INSERT OR REPLACE INTO facts (position, number, conversation, kind, failed, status, version, call, subject, tool,"
    " detail, path, source) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
FACT: Final = (
    "f.position, f.number, f.conversation, f.kind, f.failed, f.status, f.version, f.call, f.subject, f.tool, f.detail,"
    " f.path, f.source"
)
CALLS_AT: Final = (
    f"{_LINEAGE_UP_TO}SELECT e.path, e.version, {_PAYLOAD_OF_E} FROM lineage AS l CROSS JOIN json_each(?) AS wanted"
    " CROSS JOIN events AS e ON e.conversation = l.key AND e.path = wanted.value AND e.version <= l.last"
)
_IN_LINEAGE = (
    "e.conversation IN (SELECT key FROM lineage)"
    " AND e.version <= (SELECT l.last FROM lineage AS l WHERE +l.key = e.conversation)"
)
"""No join: beside a lineage, a condition on the event alone makes SQLite build a Bloom filter of the table; the
plus sign keeps it from making an index of the few ancestors."""
CALLS_OF_IDS: Final = (
    f"{_LINEAGE_UP_TO}, texts (version, payload) AS MATERIALIZED (SELECT e.version, {_PAYLOAD_OF_E} FROM events AS e"
    f" WHERE {_IN_LINEAGE} AND e.type = 'block.appended'"
    f' AND instr({_PAYLOAD_OF_E}, \'"type":"react.tool.call"\') > 0) '
    "SELECT json_extract(t.payload, '$.block.call_id'), t.version, t.payload FROM texts AS t"
    f" WHERE json_valid(t.payload) AND json_extract(t.payload, '$.block.call_id') IN {_LISTED}"
)
"""Reads all calls of a conversation: only for results that no path leads to a call."""
REDACTIONS: Final = (
    f"{_LINEAGE_UP_TO}SELECT e.conversation, e.version, e.payload FROM events AS e INDEXED BY events_rare_within"
    f" WHERE {_IN_LINEAGE} AND e.type = 'block.redacted' AND {_RARE_WHERE_OF_E}"
)
FORGET_FACTS: Final = (
    "DELETE FROM facts WHERE conversation = ? AND (version = ? OR call = ?"
    " OR position IN (SELECT e.position FROM events AS e WHERE e.conversation = ? AND e.version = ?))"
)
UNPROVE_FACTS: Final = (
    "UPDATE events SET packed = NULL WHERE checksum = '' AND position IN (SELECT f.position FROM facts AS f"
    " WHERE f.conversation = ? AND (f.version = ? OR f.call = ?"
    " OR f.position IN (SELECT e.position FROM events AS e WHERE e.conversation = ? AND e.version = ?)))"
)
FACTS_AT: Final = (
    "SELECT number, kind, failed, status, version, call, subject, tool, detail, path, source FROM facts"
    " WHERE position = ? ORDER BY number"
)
PROVED_FACTS: Final = (
    "SELECT e.position, e.conversation, e.version, e.link, e.packed FROM events AS e INDEXED BY events_scavenged"
    f" WHERE e.conversation > 0 AND e.{SCAVENGED_WHERE} AND e.packed IS NOT NULL"
)
"""Reads a whole index, as a verification does."""
FACTS_PROGRESS: Final = "SELECT position FROM facts_progress WHERE form = ?"
FORGET_FACTS_PROGRESS: Final = "DELETE FROM facts_progress"
SET_FACTS_PROGRESS: Final = "INSERT OR REPLACE INTO facts_progress (form, position) VALUES (?, ?)"
EVENTS_OF_FACTS: Final = (
    f"SELECT position, conversation, version, at, coalesce(path, ''), {PAYLOAD}, checksum FROM events"
    " WHERE position > ? AND position <= ? AND type = 'block.appended' AND schema_version = 1"
    " ORDER BY position LIMIT ?"
)
EVENTS_OF_FACTS_WITHIN: Final = (
    f"SELECT position, conversation, version, at, coalesce(path, ''), {PAYLOAD}, checksum FROM events"
    " WHERE conversation = :key AND version > coalesce((SELECT b.version FROM events AS b WHERE b.position = :after"
    " AND +b.conversation = :key), 0) AND +position > :after AND +position <= :last AND type = 'block.appended'"
    " AND schema_version = 1 ORDER BY version LIMIT :most"
)
"""Positions rise with versions. Behind the first page ``after`` is one of the conversation's own."""
ID_OF: Final = "SELECT id FROM conversations WHERE key = ?"
DONE_AT: Final = f"SELECT {FACT} FROM json_each(?) AS wanted CROSS JOIN facts AS f ON f.position = wanted.value"
POSITION_AT: Final = "SELECT position FROM events WHERE conversation = ? AND version <= ? ORDER BY version DESC LIMIT 1"
KNOWN_BETWEEN: Final = "SELECT DISTINCT position FROM facts WHERE position > ? AND position <= ? AND number >= 0"
COVERING: Final = (
    f"{_LINEAGE}SELECT e.type, e.version, json_extract(e.payload, '$.covers'), json_extract(e.payload, '$.carried'),"
    f" json_extract(e.payload, '$.versions') FROM events AS e INDEXED BY events_rare_within WHERE {_IN_LINEAGE}"
    f" AND e.type IN ('compaction.completed', 'compaction.reverted') AND {_RARE_WHERE_OF_E} AND json_valid(e.payload)"
)
"""Only the covered versions of compactions are read, not their digests."""
DROP_OTHER_FACTS: Final = (
    "DELETE FROM facts WHERE source = 0"
    " AND EXISTS (SELECT 1 FROM events AS e WHERE e.position = facts.position AND e.checksum <> ''"
    " AND NOT EXISTS (SELECT 1 FROM events AS c WHERE c.conversation = e.conversation AND c.version = facts.call"
    " AND c.checksum = ''))"
)
"""Once for a new form of the rules: what can be read from the log again is. The conversation is that of the event."""

_RECORDED: Final = (
    "FROM json_each(:parts) AS p CROSS JOIN facts AS f INDEXED BY facts_within"
    " ON f.conversation = json_extract(p.value, '$[0]') AND f.position <= json_extract(p.value, '$[1]')"
    " WHERE f.version NOT IN (SELECT value FROM json_each(:hidden))"
    " AND (f.call IS NULL OR f.call NOT IN (SELECT value FROM json_each(:hidden)))"
    " AND (:covers IS NULL OR f.version IN (SELECT value FROM json_each(:summaries))"
    " OR EXISTS (SELECT 1 FROM json_each(:covers) AS r"
    " WHERE f.version BETWEEN json_extract(r.value, '$[0]') AND json_extract(r.value, '$[1]')))"
    " GROUP BY f.kind, f.subject, f.failed"
)
_MEANT = "(f.tool <> '' OR f.detail = :by_user)"
"""Named by a call or a prompt."""
MERGED_FACTS: Final = (
    "SELECT l.*, e.at, coalesce(e.path, '') FROM (SELECT f.kind, f.subject, f.failed, count(*), "
    f" total({_MEANT}), f.version, f.position AS position, f.path, f.tool, f.status, f.detail,"
    " CASE f.kind WHEN :request THEN json_group_array(f.version) END, max((f.version << 32) + f.position)"
    f" {_RECORDED}) AS l"
    " CROSS JOIN events AS e ON e.position = l.position ORDER BY l.kind, l.subject, l.failed"
)
"""The other columns are those of the row with the highest version, and of several results of one call the newest
(https://sqlite.org/lang_select.html#bareagg): of equal rows SQLite would take any."""
FIRST_FACTS: Final = f"SELECT f.kind, f.subject, f.failed, min(f.version), {_MEANT} {_RECORDED} ORDER BY 1, 2, 3"

_TEXTS_OF_F = "(f.subject || ' ' || f.tool || ' ' || f.detail)"
_FACT_CONDITIONS: Final = {
    "kinds": f" AND f.kind IN {_LISTED.replace('?', ':kinds')}",
    "failed": " AND f.failed = :failed",
    "tool": " AND f.tool = :tool",
    "status": " AND f.status = :status",
    "subject": " AND instr(f.subject, :subject) > 0",
    "glob": f" AND {_fits('f')}",
    "word": f" AND (instr(lower({_TEXTS_OF_F}), :word) > 0"
    f" OR length(CAST({_TEXTS_OF_F} AS BLOB)) <> length({_TEXTS_OF_F}))",
    "time": " AND EXISTS (SELECT 1 FROM events AS t WHERE t.position = f.position AND t.at BETWEEN :since AND :until)",
}


@cache
def page_of_facts(given: frozenset[str]) -> str:
    """Write the statement of a page of facts, by position.

    The conditions that are given are among conversation, kinds, failed, tool, status, subject, glob, word, time. The
    rows of the conversation, or all, are walked by position as far as the page goes; a row is small, and has all that
    is asked for. They come in any order. `FactFilter` decides: SQLite's globs cross folders, and a word is looked for
    as letters alone, in texts of ASCII, of which SQLite knows the lower case.
    """
    lead = (
        "INDEXED BY facts_within WHERE f.conversation = :key" if "conversation" in given else "NOT INDEXED WHERE true"
    )
    asked = "".join(text for name, text in _FACT_CONDITIONS.items() if name in given)
    return (
        f"SELECT f.*, e.at, coalesce(e.path, ''), c.id FROM (SELECT {FACT} FROM facts AS f {lead}"
        f" AND (f.position, f.number) > (:after, :number) AND f.position <= :last{asked}"
        " ORDER BY f.position, f.number LIMIT :page) AS f CROSS JOIN events AS e ON e.position = f.position"
        " CROSS JOIN conversations AS c ON c.key = f.conversation"
    )


# --- search -------------------------------------------------------------------------------------------------------

CREATE_INDEX: Final = (
    "CREATE VIRTUAL TABLE search_index USING fts5 (words, humps, tags, content = '', tokenize = 'ascii')"
)
"""A contentless table: the text stays only in the log.

The text is cut into words beforehand (see `store.search.words`).
"""
DROP_INDEX: Final = "DROP TABLE IF EXISTS search_index"
IS_INDEXED: Final = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'search_index'"
FORGET_PROGRESS: Final = "DELETE FROM search_progress"
SET_PROGRESS: Final = "INSERT OR REPLACE INTO search_progress (form, position) VALUES (?, ?)"
PROGRESS: Final = "SELECT position FROM search_progress WHERE form = ?"
LAST_OF_ALL: Final = "SELECT max(position) FROM events"
INDEX_TEXT: Final = "INSERT INTO search_index (rowid, words, humps, tags) VALUES (?, ?, ?, ?)"
UNINDEX_TEXT: Final = "INSERT INTO search_index (search_index, rowid, words, humps, tags) VALUES ('delete', ?, ?, ?, ?)"
INDEXED: Final = "SELECT rowid FROM search_index WHERE rowid = ?"
_INDEXABLE = "position > ? AND position <= ? AND type NOT IN ('context.rendered', 'model.called') AND checksum <> ''"
TO_INDEX: Final = (
    f"SELECT position, conversation, version, type, at, {PAYLOAD}, checksum FROM events"
    f" WHERE {_INDEXABLE} ORDER BY position LIMIT ?"
)
STILL_TO_INDEX: Final = f"SELECT position, checksum FROM events WHERE {_INDEXABLE} ORDER BY position"
TEXTS_OF: Final = (
    f"SELECT position, {PAYLOAD} FROM events WHERE conversation = ?"
    " AND type NOT IN ('context.rendered', 'model.called') AND checksum <> ''"
)
STORED_AT: Final = f"SELECT position, {PAYLOAD} FROM events WHERE conversation = ? AND version = ?"
MERGE_INDEX: Final = "INSERT INTO search_index (search_index) VALUES ('optimize')"
"""Merge the index into one segment: until then, the words of a text that was taken out are still in the older ones."""
REDACTED_SINCE: Final = (
    "SELECT conversation, payload FROM events INDEXED BY events_rare"
    f" WHERE type = 'block.redacted' AND {RARE_WHERE} AND position > ? ORDER BY position"
)
KEY_AND_VERSION: Final = "SELECT key, version FROM conversations WHERE id = ?"
REWRITTEN_SINCE: Final = (
    "SELECT (SELECT max(position) FROM events INDEXED BY events_rare"
    f" WHERE type = 'block.redacted' AND {RARE_WHERE}),"
    " (SELECT max(position) FROM events INDEXED BY events_rare"
    f" WHERE type = 'compaction.reverted' AND {RARE_WHERE}),"
    " (SELECT count(*) FROM erased), (SELECT total(first_version - 1) FROM conversations)"
)
"""What rises with all that changes the rows of older events: redactions, undone compactions, erasures, scavenges."""
INDEXES: Final = (
    "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name NOT LIKE 'search_index%' UNION"
    " SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND wr ORDER BY name"
)
"""With the tables that are indexes themselves."""

_SCORE = "bm25(search_index, 1.0, 1.0, 0.0)"
SEARCH: Final = (
    f"SELECT rowid, {_SCORE} AS score FROM search_index WHERE search_index MATCH ? ORDER BY score, rowid DESC LIMIT ?"
)
SEARCH_BETWEEN: Final = (
    f"SELECT f.rowid, {_SCORE} AS score FROM search_index AS f CROSS JOIN events AS e ON e.position = f.rowid"
    " WHERE f.search_index MATCH ? AND e.at BETWEEN ? AND ? ORDER BY score, f.rowid DESC LIMIT ?"
)
CONVERSATION_KEY: Final = "SELECT key FROM conversations WHERE id = ?"
FOUND: Final = (
    "SELECT (SELECT d.reverted_by FROM compactions AS d WHERE d.position = e.position),"
    f" c.id, e.conversation, {EVENT} FROM json_each(?) AS wanted CROSS JOIN events AS e"
    " ON e.position = wanted.value CROSS JOIN conversations AS c ON c.key = e.conversation"
)
