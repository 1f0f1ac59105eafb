# ruff: noqa: S608 - the texts are put together from the constants below, never from input
"""The statements of appends and reads, in one place, so that a test can check the plan of each one.

Each is an indexed look-up or a range of an index; none scans a table. A look-up that does not begin at a conversation's
key names the tenant (`OWN`). What may have many answers in one index and few in another is a LATERAL query behind
``OFFSET 0``: the planner cannot turn it round, whatever the statistics say.

A reader of all conversations takes what lies below the `HORIZON` alone: every transaction below it has ended, so that
nothing can appear behind the reader's back.
"""

from __future__ import annotations

from typing import Final

from timeline.events.chain import SALT, SIZE

from ..conversation_statements import ConversationStatements
from ..frequent_types import RARE_WHERE, RARE_WHERE_OF_E
from .create import TENANT
from .escaping import HASH

SCAVENGED_WHERE: Final = "checksum = ''"
"""Condition of the partial index of scavenged events. A damaged event still has a checksum that it does not match."""

OWN: Final = f"tenant = {TENANT}"
"""Condition of every look-up that does not begin at a conversation's key."""
TIME: Final = len("2026-01-01T00:00:00.000000Z")
"""Bytes of nearly every time."""
ORDINALS: Final = 20
"""Bits of a position below the transaction's number: the place of the event among those of its transaction."""
HORIZON: Final = (
    "(SELECT (pg_snapshot_xmin(pg_current_snapshot())::text::bigint + m.xid_offset) << 20 FROM store_meta AS m)"
)
"""The position that all transactions below it have ended, so that no event will have a lower one any more."""

PATH_OF_E: Final = f"CASE WHEN e.path_rest IS NULL THEN e.path ELSE left(e.path, -{HASH}) || e.path_rest END"
EVENT: Final = (
    "e.position, e.version, e.event_id::text, e.type, e.schema_version, e.at, e.payload, e.checksum,"
    f" {PATH_OF_E}, e.turn_id, e.tokens"
)
"""The columns of an event as `codec.decode` wants them, once `store.postgres.rows.event_row` undid the escaping."""
_THERE = " AND e.checksum <> ''"


def lineage(start: str) -> str:
    """Write the common table expression of a conversation and its ancestors, itself first.

    Each row gives the versions of the whole that are that conversation's own: ``base < version <= last``. A parent has
    the lower key; without that condition, a circle in a damaged database would have no end. A parent is looked up by
    key whatever the planner expects: it takes a recursion for ten times as long as its start, and would read all rows.
    """
    return (
        f"WITH RECURSIVE lineage (key, id, base, last, parent_key, parent) AS ({start} UNION ALL"
        " SELECT c.key, c.id, c.base, least(l.base, l.last), c.parent_key, c.parent FROM lineage AS l"
        " CROSS JOIN LATERAL (SELECT key, id, base, parent_key, parent FROM conversations"
        " WHERE key = l.parent_key AND key < l.key OFFSET 0) AS c) "
    )


LINEAGE_OF_ID: Final = lineage(
    f"SELECT key, id, base, version, parent_key, parent FROM conversations WHERE id_key = $1 AND {OWN}"
)
"""Of the conversation whose `escaping.key_of` is parameter 1."""
LINEAGE_OF_KEY: Final = lineage(
    "SELECT key, id, base, $2::bigint, parent_key, parent FROM conversations WHERE key = $1"
)
"""Of the conversation with key parameter 1, up to version parameter 2."""


def _compacted() -> str:
    """Write an expression over a row of `conversations`: how many compactions it has, and the time of the newest one.

    Those that a fork shares are among them. Both are of one look: with partitions, the planner considers each of them
    for each look. A conversation that shares nothing has no ancestors: a list of many takes half of the time that a
    recursion for each takes.
    """
    start = (
        "SELECT conversations.key, conversations.id, conversations.base, conversations.version,"
        " conversations.parent_key, conversations.parent"
    )
    within = (
        "SELECT count(*) AS times, max(e.at) AS newest FROM events AS e WHERE e.conversation = {}"
        f" AND e.type = 'compaction.completed' AND e.version <= {{}} AND {RARE_WHERE_OF_E}"
    )
    own = within.format("conversations.key", "conversations.version")
    shared = f"{lineage(start)}SELECT e.times, e.newest FROM lineage AS l CROSS JOIN LATERAL"
    shared += f" ({within.format('l.key', 'l.last')} OFFSET 0) AS e"
    of_own = f"SELECT ARRAY[c.times::text, c.newest] FROM ({own}) AS c"
    of_shared = f"SELECT ARRAY[sum(c.times)::text, max(c.newest)] FROM ({shared}) AS c"
    return f"CASE WHEN conversations.base = 0 THEN ({of_own}) ELSE ({of_shared}) END"


_ROW = "key, id, conversations.version, window_start, title, parent, created_at, updated_at, base, first_version"
_INFO = f"{_ROW}, compacted.found[1]::bigint, compacted.found[2]"
"""Without the compactions, which the events say: for a row whose events are damaged."""
_OF_CONVERSATIONS = f"conversations CROSS JOIN LATERAL (SELECT {_compacted()} OFFSET 0) AS compacted (found)"
"""The table with what `_INFO` asks beside it."""

# --- opening ------------------------------------------------------------------------------------------------------

ALIVE: Final = "SELECT 1"
SESSION: Final = "SELECT current_setting('search_path'), current_setting('timeline.tenant', true)"
ROLE: Final = (
    "SELECT current_user::text, r.rolsuper OR r.rolbypassrls, (SELECT m.tenants FROM store_meta AS m)"
    " FROM pg_roles AS r WHERE r.rolname = current_user"
)
HAS_TENANTS: Final = "UPDATE store_meta SET tenants = true WHERE NOT tenants"
COUNTER_IS_BEHIND: Final = (
    f"SELECT coalesce((SELECT max(e.position) FROM events AS e WHERE e.{OWN} AND e.position > 0) >> 20 >="
    " pg_snapshot_xmax(pg_current_snapshot())::text::bigint + m.xid_offset, false) FROM store_meta AS m"
)
LOCK_META: Final = "LOCK TABLE store_meta IN ACCESS EXCLUSIVE MODE"
RAISE_OFFSET: Final = (
    f"UPDATE store_meta SET epoch = gen_random_uuid(), xid_offset = (SELECT max(e.position) >> 20 FROM events AS e"
    f" WHERE e.{OWN}) + 1 - pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
    f" WHERE (SELECT max(e.position) >> 20 FROM events AS e WHERE e.{OWN})"
    " >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint + xid_offset"
)
_KEYS: Final = "pg_get_serial_sequence('conversations', 'key')::regclass"
KEYS_BEHIND: Final = (
    f"SELECT CASE WHEN has_sequence_privilege({_KEYS}, 'USAGE') THEN max(c.key)"
    f" - coalesce(pg_sequence_last_value({_KEYS}), 0) END FROM conversations AS c WHERE c.{OWN}"
)
"""By how much the keys that are given next are below those that are there."""
PASS_KEYS: Final = f"SELECT count(nextval({_KEYS})) FROM generate_series(1, $1::bigint)"
"""Setting the sequence wants a right that roles do not have which may use it."""

# --- the writer ---------------------------------------------------------------------------------------------------

HEADS: Final = (
    "SELECT id_key, key, version, base, parent_key, first_version, head FROM conversations"
    f" WHERE id_key = ANY($1::text[]) AND {OWN}"
)


def _cut(column: int, size: int, table: str = "e") -> str:
    """Write the part of a row out of a parameter that has one of that many bytes for each."""
    return f"substring(${column}::bytea FROM {table}.place * {size} + 1 FOR {size})"


def _cut_time(column: int, table: str) -> str:
    """Write the time of a row: out of an array, or out of a parameter with all of them."""
    return f"coalesce({table}.at, encode({_cut(column, TIME, table)}, 'escape'))"


def _began(least: int) -> str:
    """Write the common table expression of an append's first position, and of its tenant."""
    return f"""began AS MATERIALIZED (
    SELECT greatest((pg_current_xact_id()::text::bigint + m.xid_offset) << {ORDINALS}, ${least}::bigint) AS position,
        {TENANT} AS tenant
    FROM store_meta AS m
)"""


_COLUMNS = """tenant, conversation, version, position, event_id, type, schema_version, at, path, path_rest, turn_id,
        tokens, payload, checksum, salt, c, link"""

APPEND: Final = f"""
WITH cas AS MATERIALIZED (
    UPDATE conversations AS c
    SET version = b.seen + coalesce(b.events, $31::bigint), updated_at = {_cut_time(32, "b")},
        head = {_cut(7, SIZE, "b")}, window_start = coalesce(b.window_start, c.window_start)
    FROM (SELECT *, (ordinal - 1)::integer AS place
        FROM unnest($1::bigint[], $2::bigint[], $4::bigint[], $5::bigint[], $6::text[], $8::bigint[]) WITH ORDINALITY
            AS b (key, seen, seen_first, events, at, window_start, ordinal)) AS b
    WHERE c.key = b.key AND c.version = b.seen AND c.head IS NOT DISTINCT FROM {_cut(3, SIZE, "b")}
        AND c.first_version = coalesce(b.seen_first, $30::bigint) AND EXISTS (SELECT FROM store_meta)
    RETURNING c.key
), {_began(34)}, written AS (
    INSERT INTO events ({_COLUMNS})
    SELECT began.tenant, coalesce(e.key, $20::bigint), coalesce(e.version, $21::bigint + e.place),
        began.position + e.place, encode({_cut(26, 16)}, 'hex')::uuid, coalesce(e.type, $22::text),
        coalesce(e.schema_version, $23::bigint), coalesce($24::text, {_cut_time(33, "e")}),
        e.path, e.path_rest, coalesce(e.turn_id, $25::text), e.tokens, e.payload, encode({_cut(27, 32)}, 'hex'),
        CASE WHEN e.c IS NULL THEN {_cut(28, SALT)} END, e.c, {_cut(29, SIZE)}
    FROM began CROSS JOIN (SELECT *, (ordinal - 1)::integer AS place
        FROM unnest($9::bigint[], $10::bigint[], $11::text[], $12::bigint[], $13::text[], $14::text[], $15::text[],
            $16::text[], $17::bigint[], $18::text[], $19::bytea[]) WITH ORDINALITY
            AS e (key, version, type, schema_version, at, path, path_rest, turn_id, tokens, payload, c, ordinal)) AS e
    WHERE coalesce(e.key, $20::bigint) IN (SELECT key FROM cas)
)
SELECT began.position, (SELECT array_agg(key) FROM cas) FROM began
"""
"""Append to many conversations at once: to each that still has the version and the head that were seen, none of the
others. It has to be the first statement of its transaction that writes: a transaction takes its number, of which the
positions are made, with its first write, and so it must not have one before it looks whether another one was first.
A column may be shorter than the others of its table: the rest of it is NULL. The parameters from 20 to 25, 30 and 31
take the place of a NULL in each row; 3, 7, 26 to 29, 32 and 33 are columns whose parts have one length.
Parameter 34 is the lowest position that the events may have, of an append that cannot be the first one.
In a damaged store without a row in `store_meta` there is no position: then no head moves on, and no row comes back."""
APPEND_ONE: Final = f"""
WITH cas AS MATERIALIZED (
    UPDATE conversations AS c
    SET version = $5, updated_at = $6, head = $7, window_start = coalesce($8, c.window_start)
    WHERE c.key = $1 AND c.version = $2 AND c.head IS NOT DISTINCT FROM $3 AND c.first_version = $4
        AND EXISTS (SELECT FROM store_meta)
    RETURNING c.key
), {_began(20)}, written AS (
    INSERT INTO events ({_COLUMNS})
    SELECT began.tenant, cas.key, $5, began.position, $9, $10, $11, $6, $12, $13, $14, $15, $16, $17, $18, $19, $7
    FROM began CROSS JOIN cas
)
SELECT began.position, (SELECT key FROM cas) FROM began
"""
"""Append one event as `APPEND` does, in two thirds to four fifths of its time: no columns are made, nor taken apart.
Most appends of an agent that is alone are of one event. No parameter and no column is an array of anything but texts:
the driver asks the server about others, on each connection before it first runs a statement with one."""
INSERT_CONVERSATION: Final = (
    "INSERT INTO conversations (id_key, id, version, window_start, title, parent, created_at, updated_at, parent_key,"
    " base, first_version, head) VALUES ($1, $2, $3, 1, $4, $5, $6, $6, $7, $8, $9, $10)"
    " ON CONFLICT (id_key, tenant) DO NOTHING RETURNING key"
)
INSERT_CONVERSATIONS: Final = (
    "INSERT INTO conversations (id_key, id, version, window_start, title, parent, created_at, updated_at, head)"
    " SELECT u.id_key, u.id, 0, 1, u.title, u.parent, u.at, u.at, $6 FROM unnest($1::text[], $2::text[], $3::text[],"
    " $4::text[], $5::text[]) WITH ORDINALITY AS u (id_key, id, title, parent, at, number) ORDER BY u.number"
    " ON CONFLICT (id_key, tenant) DO NOTHING RETURNING id_key, key"
)
"""The keys rise in the order that is given: conversations are listed by it."""
SET_OPENING: Final = "UPDATE conversations SET title = $1, parent = $2 WHERE key = $3 AND base = 0"
"""Not for a fork that reads its past from its parent: its row was made from its opening."""
WRITTEN_BEFORE: Final = "UPDATE conversations SET version = version WHERE key = $1"
"""Change nothing, so that the commit waits for the disk, and for a synchronous standby, to have all that was committed
before: a transaction that only reads waits for neither."""
HOLD_PARENT: Final = "SELECT first_version FROM conversations WHERE key = $1 FOR KEY SHARE"
"""Waits for a removal from the conversation, keeps the next one from beginning, and lets appends to it go on."""
REPLACE_SNAPSHOT: Final = (
    "INSERT INTO snapshots (conversation, version, body, checksum) VALUES ($1, $2, $3, $4)"
    " ON CONFLICT (conversation) DO UPDATE"
    " SET version = excluded.version, body = excluded.body, checksum = excluded.checksum"
)
ADD_WAYPOINT: Final = (
    "INSERT INTO waypoints (conversation, version, body, checksum) VALUES ($1, $2, $3, $4)"
    " ON CONFLICT (conversation, version) DO UPDATE SET body = excluded.body, checksum = excluded.checksum"
)
INSERT_VALUES: Final = (
    "INSERT INTO stored_values (hash, text) SELECT * FROM unnest($1::text[], $2::text[])"
    " ON CONFLICT (hash, tenant) DO NOTHING"
)
IN_TURN: Final = "SELECT pg_advisory_xact_lock(hashtext(current_schema()), hashtext($1))"
ALONE_BEHIND: Final = "SELECT pg_advisory_xact_lock($1)"
NEWEST_BETWEEN: Final = (
    f"SELECT max(e.position) FROM events AS e WHERE e.{OWN} AND e.position >= $1 AND e.position < $2"
)
STORED_BETWEEN: Final = (
    "SELECT event_id::text, checksum, position, version FROM events"
    " WHERE conversation = $1 AND version BETWEEN $2 AND $3 ORDER BY version"
)
VERSIONS_OF_IDS: Final = (
    "SELECT event_id::text, version FROM events WHERE conversation = $1 AND event_id = ANY($2::uuid[])"
)
PATHS_IN_USE: Final = (
    f"{LINEAGE_OF_KEY}SELECT e.path FROM lineage AS l CROSS JOIN LATERAL (SELECT path, version FROM events"
    " WHERE conversation = l.key AND path = ANY($3::text[]) OFFSET 0) AS e WHERE e.version <= l.last"
)
LINK_AT: Final = (
    f"{LINEAGE_OF_KEY}SELECT e.link FROM lineage AS l CROSS JOIN LATERAL (SELECT link, version FROM events"
    " WHERE conversation = l.key AND version = $2 OFFSET 0) AS e WHERE e.version <= l.last"
)
NEWEST_SCAVENGED: Final = (
    f"{LINEAGE_OF_KEY}SELECT coalesce(max((SELECT max(e.version) FROM events AS e"
    f" WHERE e.conversation = l.key AND e.version <= l.last AND e.{SCAVENGED_WHERE})), 0) FROM lineage AS l"
)
INSERT_COMPACTION: Final = (
    "INSERT INTO compactions (position, conversation, version, at, round, source, summary, first_version, last_version,"
    " before_tokens, after_tokens, errors) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
)
INSERT_ENTRIES: Final = (
    "INSERT INTO digest_entries (position, list, number, subject_key, subject, tool_key, tool, path, times, tokens,"
    " exit_status, errors, message) SELECT $1, * FROM unnest($2::text[], $3::bigint[], $4::text[], $5::text[],"
    " $6::text[], $7::text[], $8::text[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[])"
)
REVERT: Final = (
    "UPDATE compactions SET reverted_by = $1 WHERE reverted_by IS NULL AND position IN"
    " (SELECT e.position FROM events AS e WHERE e.conversation = $3 AND e.version = ANY($2::bigint[]))"
)
FORGET_FACTS: Final = (
    "DELETE FROM facts WHERE conversation = $1 AND (version = ANY($2::bigint[]) OR call = ANY($2::bigint[])"
    " OR position IN (SELECT e.position FROM events AS e WHERE e.conversation = $1 AND e.version = ANY($2::bigint[])))"
)
UNPROVE_FACTS: Final = (
    f"UPDATE events SET packed = NULL WHERE {OWN} AND checksum = '' AND position IN (SELECT f.position FROM facts AS f"
    " WHERE f.conversation = $1 AND (f.version = ANY($2::bigint[]) OR f.call = ANY($2::bigint[]) OR f.position IN"
    " (SELECT e.position FROM events AS e WHERE e.conversation = $1 AND e.version = ANY($2::bigint[]))))"
)

# --- the readers --------------------------------------------------------------------------------------------------

ANY_ERASED: Final = f"SELECT EXISTS (SELECT 1 FROM erased WHERE id_key = ANY($1::text[]) AND {OWN})"
CONVERSATION_KEY: Final = f"SELECT key FROM conversations WHERE id_key = $1 AND {OWN}"
ERASED: Final = f"SELECT at, reason FROM erased WHERE id_key = $1 AND {OWN}"


def _conversation_statements(columns: str, table: str) -> ConversationStatements:
    """Return what reads these columns of conversations.

    No index has the times (ADR 0099): each append changes one, and would have to write the index as well.
    """
    latest = 'updated_at COLLATE "C" DESC, id COLLATE "C" DESC'
    recent = (
        f"SELECT c.key FROM conversations AS c WHERE c.{OWN}"
        ' AND (c.updated_at COLLATE "C", c.id COLLATE "C") < ($1, $2)'
        ' ORDER BY c.updated_at COLLATE "C" DESC, c.id COLLATE "C" DESC LIMIT $3'
    )
    return ConversationStatements(
        info=f"SELECT {columns} FROM {table} WHERE id_key = $1 AND {OWN}",
        info_and_snapshot=f"SELECT {columns}, s.body, s.checksum FROM {table} LEFT JOIN LATERAL (SELECT body, checksum"
        " FROM snapshots WHERE conversation = conversations.key OFFSET 0) AS s ON true"
        f" WHERE id_key = $1 AND {OWN}",
        conversations=f"SELECT {columns} FROM {table} WHERE {OWN} AND key > $1 ORDER BY key LIMIT $2",
        recent_conversations=f"SELECT {columns} FROM {table} WHERE {OWN} AND key = ANY (ARRAY({recent}))"
        f" ORDER BY {latest}",
    )


WHOLE: Final = _conversation_statements(_INFO, _OF_CONVERSATIONS)
BARE: Final = _conversation_statements(f"{_ROW}, 0::bigint, NULL::text", "conversations")
COUNT_UNLISTED: Final = (
    f"WITH RECURSIVE held (key) AS (SELECT min(conversation) FROM events WHERE {OWN} UNION ALL SELECT"
    f" (SELECT min(e.conversation) FROM events AS e WHERE e.{OWN} AND e.conversation > held.key) FROM held"
    " WHERE held.key IS NOT NULL) SELECT count(*) FROM held WHERE held.key IS NOT NULL"
    " AND NOT EXISTS (SELECT 1 FROM conversations AS c WHERE c.key = held.key)"
)
"""Skips in an index from one conversation to the next."""
CONVERSATION_COUNT: Final = f"SELECT count(*) FROM conversations WHERE {OWN}"
LINEAGE: Final = f"{LINEAGE_OF_ID}SELECT key, id, base, last, parent FROM lineage ORDER BY key DESC"
PAGE: Final = (
    f"SELECT {EVENT} FROM events AS e WHERE e.conversation = $1"
    f" AND e.version > $2 AND e.version <= $3{_THERE} ORDER BY e.version LIMIT $4"
)
PAGE_AS_WRITTEN: Final = (
    f"SELECT {EVENT}, e.salt, e.c, e.link FROM events AS e WHERE e.conversation = $1"
    f" AND e.version > $2 AND e.version <= $3{_THERE} ORDER BY e.version LIMIT $4"
)
PAGE_OF_TYPES: Final = (
    f"SELECT {EVENT} FROM events AS e WHERE e.conversation = $1 AND e.version > $2 AND e.version <= $3"
    f" AND e.type = ANY($5::text[]){_THERE} ORDER BY e.version LIMIT $4"
)
PAGE_OF_RARE_TYPES: Final = (
    f"SELECT {EVENT} FROM (SELECT f.version FROM unnest($5::text[]) AS t (type) CROSS JOIN LATERAL"
    " (SELECT version FROM events WHERE conversation = $1 AND type = t.type AND version > $2 AND version <= $3"
    f" AND {RARE_WHERE} AND checksum <> '' ORDER BY version LIMIT $4) AS f ORDER BY f.version LIMIT $4) AS found"
    " JOIN events AS e ON e.conversation = $1 AND e.version = found.version ORDER BY e.version"
)
BY_VERSION: Final = (
    f"{LINEAGE_OF_ID}SELECT l.id, e.* FROM lineage AS l CROSS JOIN LATERAL (SELECT {EVENT} FROM events AS e"
    " WHERE e.conversation = l.key AND e.version = ANY($2::bigint[]) AND e.version <= l.last OFFSET 0) AS e"
)
BY_PATH: Final = (
    f"{LINEAGE_OF_ID}SELECT l.id, e.* FROM lineage AS l CROSS JOIN LATERAL (SELECT {EVENT} FROM events AS e"
    " WHERE e.conversation = l.key AND e.path = $2 AND e.version <= l.last OFFSET 0) AS e"
)
AT_PATH: Final = (
    "SELECT e.version FROM events AS e WHERE e.conversation = $1 AND e.version > $2 AND e.version <= $3"
    " AND e.path || '' = $4 ORDER BY e.version LIMIT 1"
)
"""The same as `BY_PATH` past the index of paths: it walks the conversation's events."""
SCAVENGED_BETWEEN: Final = (
    f"SELECT count(*) FROM events WHERE conversation = $1 AND version >= $2 AND version <= $3 AND {SCAVENGED_WHERE}"
)
PATHS_BETWEEN: Final = (
    f"{LINEAGE_OF_ID}SELECT e.path, e.path_rest FROM lineage AS l CROSS JOIN unnest($2::text[], $3::text[])"
    " AS b (first, beyond) CROSS JOIN LATERAL (SELECT path, path_rest, version FROM events WHERE conversation = l.key"
    " AND path >= b.first AND path < b.beyond AND path IS NOT NULL OFFSET 0) AS e WHERE e.version <= l.last"
)
IDS_KNOWN: Final = (
    f"SELECT e.event_id::text FROM events AS e WHERE e.conversation = ({CONVERSATION_KEY})"
    " AND e.event_id = ANY($2::uuid[])"
)
HEAD_POSITION: Final = (
    f"SELECT e.position FROM events AS e WHERE {OWN} AND e.position < {HORIZON} ORDER BY e.position DESC LIMIT 1"
)
HIDDEN_POSITION: Final = (
    f"SELECT e.position FROM events AS e WHERE {OWN} AND e.position >= {HORIZON} ORDER BY e.position DESC LIMIT 1"
)
IS_SETTLED: Final = f"SELECT {HORIZON} > $1::bigint"
IS_AHEAD: Final = (
    f"SELECT NOT pg_is_in_recovery() AND ($1::bigint >> {ORDINALS})"
    " >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint + m.xid_offset FROM store_meta AS m"
)
"""Whether a position is above all that the server has given. A standby may lag behind the one that gave it."""
HORIZON_LAG: Final = (
    "SELECT pg_snapshot_xmax(s)::text::bigint - pg_snapshot_xmin(s)::text::bigint"
    " FROM (SELECT pg_current_snapshot()) AS t (s)"
)
HOLDER: Final = (
    "SELECT a.what, extract(epoch FROM clock_timestamp() - a.since)::bigint FROM ("
    " SELECT backend_xid, xact_start, format('process %s of database %s', pid, datname) FROM pg_stat_activity"
    " UNION ALL"
    " SELECT transaction, prepared, format('the prepared transaction %L of database %s', gid, database)"
    " FROM pg_prepared_xacts) AS a (xid, since, what) WHERE a.xid = pg_snapshot_xmin(pg_current_snapshot())::xid"
)
_ALL = f"e.{OWN} AND e.position > $1 AND e.position < {HORIZON}"
_OF_ALL = " CROSS JOIN LATERAL (SELECT id FROM conversations WHERE key = e.conversation OFFSET 0) AS c"
PAGE_OF_ALL: Final = (
    f"SELECT c.id, e.* FROM (SELECT {EVENT}, e.conversation FROM events AS e WHERE {_ALL}{_THERE}"
    f" ORDER BY e.position LIMIT $2) AS e{_OF_ALL} ORDER BY e.position"
)
PAGE_OF_ALL_OF_TYPES: Final = (
    f"SELECT c.id, e.* FROM (SELECT {EVENT}, e.conversation FROM events AS e WHERE {_ALL}{_THERE}"
    f" AND e.type = ANY($3::text[]) ORDER BY e.position LIMIT $2) AS e{_OF_ALL} ORDER BY e.position"
)
PAGE_OF_ALL_OF_RARE_TYPES: Final = (
    f"SELECT c.id, e.* FROM (SELECT f.* FROM unnest($3::text[]) AS t (type) CROSS JOIN LATERAL (SELECT {EVENT},"
    f" e.conversation FROM events AS e WHERE {_ALL}{_THERE} AND e.type = t.type AND {RARE_WHERE_OF_E}"
    f" ORDER BY e.position LIMIT $2) AS f ORDER BY f.position LIMIT $2) AS e{_OF_ALL} ORDER BY e.position"
)
VALUES: Final = f"SELECT hash, text FROM stored_values WHERE hash = ANY($1::text[]) AND {OWN}"
NEAREST_WAYPOINT: Final = (
    f"{LINEAGE_OF_ID}SELECT l.id, w.version, w.body, w.checksum FROM lineage AS l CROSS JOIN LATERAL"
    " (SELECT version, body, checksum FROM waypoints WHERE conversation = l.key AND version > $2"
    " AND version <= least(l.last, $3) ORDER BY version DESC LIMIT 1) AS w ORDER BY w.version DESC LIMIT 1"
)
NEWEST_BASE: Final = (
    f"{LINEAGE_OF_ID}SELECT b.body, b.checksum FROM lineage AS l CROSS JOIN LATERAL"
    " (SELECT version, body, checksum FROM bases WHERE conversation = l.key AND version <= least(l.last, $2)"
    " ORDER BY version DESC LIMIT 1) AS b ORDER BY b.version DESC LIMIT 1"
)
CHAIN_HEAD: Final = f"SELECT head FROM conversations WHERE id_key = $1 AND {OWN}"
CHAINED: Final = (
    "SELECT e.version, e.position, e.event_id::text,"
    f" CASE WHEN e.{SCAVENGED_WHERE} AND e.turn_id IS NOT NULL THEN e.turn_id ELSE e.type END, e.schema_version, e.at,"
    " e.path, e.path_rest, e.checksum, e.salt, e.c, e.link FROM events AS e"
    " WHERE e.conversation = $1 AND e.version > $2 AND e.version <= $3 ORDER BY e.version LIMIT $4"
)
WAYPOINT_VERSIONS: Final = "SELECT version FROM waypoints WHERE conversation = $1 ORDER BY version"
COUNT_SCAVENGED: Final = (
    f"SELECT type, count(*) FROM events WHERE conversation = $1 AND version <= $2 AND {SCAVENGED_WHERE} GROUP BY type"
)
