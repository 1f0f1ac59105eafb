# ruff: noqa: S608 - the texts are put together from the constants below, never from input
"""The statements that a store sends to SQLite for its log, in one place, so that a test can check the plan of each one.

Each is an indexed look-up or a range of an index: no cost depends on the length of a conversation's history, and none
scans a table. Lists of ids go in as one JSON array, so that their number has no limit. The `CROSS JOIN` and
`INDEXED BY` fix the plan, whatever the statistics of `PRAGMA optimize` say. (Even a single path is a JSON array: beside
the lineage of a fork, SQLite would make a Bloom filter of the whole table for a plain parameter.)
"""

from __future__ import annotations

from typing import Final

from ..conversation_statements import ConversationStatements
from ..frequent_types import RARE_WHERE, RARE_WHERE_OF_E
from ..removal import DISOWNS_WHERE, OTHER_SCAVENGED

FILES_WHERE: Final = "list IN ('artifacts', 'files_read', 'files_written')"
"""Condition of the partial index of files."""
SCAVENGED_WHERE: Final = "checksum = ''"
"""Condition of the partial index of scavenged events. A damaged event still has a checksum that it does not match."""

_KEY_OF = "(SELECT key FROM conversations WHERE id = ?)"
PAYLOAD: Final = "CASE WHEN packed IS NULL THEN payload ELSE payload || unpacked(packed) END"
"""The payload of an event; each of the store's connections has the function. Rare events are never packed."""
PAYLOAD_OF_E = "CASE WHEN e.packed IS NULL THEN e.payload ELSE e.payload || unpacked(e.packed) END"
EVENT = (
    f"e.position, e.version, e.event_id, e.type, e.schema_version, e.at, {PAYLOAD_OF_E}, e.checksum,"
    " e.path, e.turn_id, e.tokens"
)
_THERE = " AND e.checksum <> ''"
LISTED = "(SELECT value FROM json_each(?))"


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


WITH_LINEAGE = _lineage("SELECT key, id, base, version, parent_key, parent FROM conversations WHERE id = ?")
WITH_LINEAGE_UP_TO = _lineage("SELECT key, id, base, ?, parent_key, parent FROM conversations WHERE key = ?")


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
    within += f" AND e.type = 'compaction.completed' AND e.version <= {{}} AND {RARE_WHERE_OF_E}"
    shared = f"{lineage}SELECT {total}(({within.format('l.key', 'l.last')})) FROM lineage AS l"
    own = within.format("conversations.key", "conversations.version")
    return f"CASE WHEN conversations.base = 0 THEN ({own}) ELSE ({shared}) END"


_ROW = "key, id, conversations.version, window_start, title, parent, created_at, updated_at, base, first_version"
_INFO = f"{_ROW}, {_of_compactions('sum', 'count(*)')}, {_of_compactions('max', 'max(e.at)')}"
"""Without the compactions, which the events say: for a row whose events are damaged."""

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
    f"{WITH_LINEAGE_UP_TO}SELECT e.path FROM lineage AS l CROSS JOIN json_each(?) AS wanted"
    " CROSS JOIN events AS e ON e.conversation = l.key AND e.path = wanted.value AND e.version <= l.last"
)

# --- the chain ----------------------------------------------------------------------------------------------------

LINK_AT: Final = (
    f"{WITH_LINEAGE_UP_TO}SELECT e.link FROM lineage AS l CROSS JOIN json_each(?) AS wanted"
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


def _conversation_statements(columns: str) -> ConversationStatements:
    """Return what reads these columns of conversations.

    No index has the times, which each append changes (ADR 0099): a look at 100,000 takes 20 ms.
    """
    recent = "SELECT key FROM conversations WHERE (updated_at, id) < (?, ?) ORDER BY updated_at DESC, id DESC LIMIT ?"
    return ConversationStatements(
        info=f"SELECT {columns} FROM conversations WHERE id = ?",
        info_and_snapshot=f"SELECT {columns}, s.body, s.checksum FROM conversations"
        " LEFT JOIN snapshots AS s ON s.conversation = conversations.key WHERE id = ?",
        conversations=f"SELECT {columns} FROM conversations WHERE key > ? ORDER BY key LIMIT ?",
        recent_conversations=f"SELECT {columns} FROM conversations WHERE key IN ({recent})"
        " ORDER BY updated_at DESC, id DESC",
    )


WHOLE: Final = _conversation_statements(_INFO)
BARE: Final = _conversation_statements(f"{_ROW}, 0, NULL")
NEAREST_WAYPOINT: Final = (
    f"{WITH_LINEAGE}SELECT near.id, w.version, w.body, w.checksum FROM (SELECT l.key AS key, l.id AS id,"
    " (SELECT max(n.version) FROM waypoints AS n WHERE n.conversation = l.key AND n.version > ?"
    " AND n.version <= min(l.last, ?)) AS newest FROM lineage AS l ORDER BY newest DESC LIMIT 1) AS near"
    " CROSS JOIN waypoints AS w ON w.conversation = near.key AND w.version = near.newest"
)
COUNT_UNLISTED: Final = (
    "WITH RECURSIVE held (key) AS (SELECT min(conversation) FROM events UNION ALL SELECT"
    " (SELECT min(e.conversation) FROM events AS e WHERE e.conversation > held.key) FROM held"
    " WHERE held.key IS NOT NULL) SELECT count(*) FROM held WHERE held.key IS NOT NULL"
    " AND NOT EXISTS (SELECT 1 FROM conversations AS c WHERE c.key = held.key)"
)
"""Skips in an index from one conversation to the next."""
CONVERSATION_COUNT: Final = "SELECT count(*) FROM conversations"

LINEAGE: Final = f"{WITH_LINEAGE}SELECT key, id, base, last FROM lineage"
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
    f" AND e.version > ? AND e.version <= ? AND e.type IN {LISTED}{_THERE} ORDER BY e.version LIMIT ?"
)
PAGE_OF_RARE_TYPES: Final = (
    f"SELECT {EVENT} FROM (SELECT position AS found FROM events INDEXED BY events_rare_within"
    f" WHERE conversation = ? AND version > ? AND version <= ? AND type IN {LISTED} AND {RARE_WHERE}"
    " ORDER BY version LIMIT ?) CROSS JOIN events AS e ON e.position = found ORDER BY e.version"
)
BY_VERSION: Final = (
    f"{WITH_LINEAGE}SELECT l.id, {EVENT} FROM lineage AS l CROSS JOIN json_each(?) AS wanted"
    " CROSS JOIN events AS e ON e.conversation = l.key AND e.version = wanted.value AND e.version <= l.last"
)
BY_PATH: Final = (
    f"{WITH_LINEAGE}SELECT l.id, {EVENT} FROM lineage AS l CROSS JOIN json_each(?) AS wanted"
    " CROSS JOIN events AS e ON e.conversation = l.key AND e.path = wanted.value AND e.version <= l.last"
)
AT_PATH: Final = "SELECT version FROM events WHERE conversation = ? AND version > ? AND version <= ? AND +path = ?"
"""Looks through a whole conversation for a path that its index does not lead to."""
SCAVENGED_BETWEEN: Final = (
    "SELECT count(*) FROM events INDEXED BY events_scavenged"
    f" WHERE conversation = ? AND version >= ? AND version <= ? AND {SCAVENGED_WHERE}"
)
PATHS_BETWEEN: Final = (
    f"{WITH_LINEAGE}SELECT e.path FROM lineage AS l CROSS JOIN json_each(?) AS bounds"
    " CROSS JOIN events AS e ON e.conversation = l.key AND e.version <= l.last"
    " AND e.path >= json_extract(bounds.value, '$[0]') AND e.path < json_extract(bounds.value, '$[1]')"
)
IDS_KNOWN: Final = (
    "SELECT e.event_id FROM json_each(?) AS wanted"
    f" CROSS JOIN events AS e ON e.conversation = {_KEY_OF} AND e.event_id = wanted.value"
)

HEAD_POSITION: Final = "SELECT coalesce(max(position), 0) FROM events NOT INDEXED"
"""The statistics of a small store lead SQLite to an index of the versions, which it then reads to its end."""

PAGE_OF_ALL: Final = (
    f"SELECT c.id, {EVENT} FROM events AS e CROSS JOIN conversations AS c ON c.key = e.conversation"
    f" WHERE e.position > ?{_THERE} ORDER BY e.position LIMIT ?"
)
PAGE_OF_ALL_OF_TYPES: Final = (
    f"SELECT c.id, {EVENT} FROM events AS e CROSS JOIN conversations AS c ON c.key = e.conversation"
    f" WHERE e.position > ? AND e.type IN {LISTED}{_THERE} ORDER BY e.position LIMIT ?"
)
PAGE_OF_ALL_OF_RARE_TYPES: Final = (
    f"SELECT c.id, {EVENT} FROM (SELECT position AS found FROM events INDEXED BY events_rare"
    f" WHERE position > ? AND type IN {LISTED} AND {RARE_WHERE} ORDER BY position LIMIT ?)"
    " CROSS JOIN events AS e ON e.position = found CROSS JOIN conversations AS c ON c.key = e.conversation"
    " ORDER BY e.position"
)

VALUES: Final = (
    "SELECT v.hash, v.text FROM json_each(?) AS wanted CROSS JOIN stored_values AS v ON v.hash = wanted.value"
)
VALUES_NAMED: Final = (
    f"SELECT c.id, e.version, {PAYLOAD_OF_E} FROM events AS e CROSS JOIN conversations AS c ON c.key = e.conversation"
    " WHERE e.position > 0 AND e.checksum <> ''"
    " AND e.type IN ('conversation.opened', 'policy.changed', 'policy.overridden',"
    " 'context.rendered')"
)
"""Reads the whole log, as a verification does."""
STORE: Final = "SELECT store FROM identity"
WRITE_NOTHING: Final = "DELETE FROM identity WHERE 0"
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


KEY_OF_NAMED = "(SELECT key FROM conversations WHERE id = :conversation)"
CONVERSATION_KEY: Final = "SELECT key FROM conversations WHERE id = ?"
KEY_AND_VERSION: Final = "SELECT key, version FROM conversations WHERE id = ?"
ID_OF: Final = "SELECT id FROM conversations WHERE key = ?"

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
    f" AND type NOT IN {LISTED} AND version NOT IN {LISTED} AND NOT ({DISOWNS_WHERE}) AND checksum <> ''"
    " ORDER BY version LIMIT ?"
)
BLANK: Final = (
    "UPDATE events SET payload = '', checksum = '', salt = ?, packed = ?, c = ?, tokens = NULL,"
    f" turn_id = CASE WHEN {RARE_WHERE} THEN type END,"
    f" type = CASE WHEN {RARE_WHERE} THEN '{OTHER_SCAVENGED}' ELSE type END WHERE position = ?"
)
"""A rare event gets another type, so that the indexes of rare events find none that is not there. Its link covers its
own type, which stays in the place of its turn; what vouches for its facts takes the place of a packed payload."""
NEWEST_SCAVENGED: Final = (
    f"{WITH_LINEAGE_UP_TO}SELECT coalesce(max((SELECT max(e.version) FROM events AS e INDEXED BY events_scavenged"
    f" WHERE e.conversation = l.key AND e.version <= l.last AND e.{SCAVENGED_WHERE})), 0) FROM lineage AS l"
)
COUNT_SCAVENGED: Final = (
    "SELECT type, count(*) FROM events INDEXED BY events_scavenged"
    f" WHERE conversation = ? AND version <= ? AND {SCAVENGED_WHERE} GROUP BY type"
)
NEWEST_BASE: Final = (
    f"{WITH_LINEAGE}SELECT b.body, b.checksum FROM lineage AS l CROSS JOIN bases AS b"
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
SET_OPENING: Final = "UPDATE conversations SET title = ?, parent = ? WHERE key = ? AND base = 0"
"""Not for a fork that reads its past from its parent: its row was made from its opening."""
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
LINEAGE_OF: Final = f"{WITH_LINEAGE}SELECT key, base, last FROM lineage"

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
