# ruff: noqa: S608 - the texts are put together from the constants below, never from input
"""The statements of what queries read: digests, facts and the full-text index, as rows that are made of the log.

A test checks the plan of each one, as of those in `statements`.

A page of digests walks compactions by position, led by the most selective filter that is given: the conversation, else
the tool, else the fixed beginning of a glob, else none. The other filters are looked up for each candidate. They may
find too much (SQLite's ``*`` crosses folders), never too little: the event decides.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from ..frequent_types import RARE_WHERE, RARE_WHERE_OF_E
from .statements import (
    EVENT,
    FILES_WHERE,
    KEY_OF_NAMED,
    LISTED,
    PAYLOAD,
    PAYLOAD_OF_E,
    SCAVENGED_WHERE,
    WITH_LINEAGE,
    WITH_LINEAGE_UP_TO,
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
    " AND d.at BETWEEN :since AND :until AND d.round BETWEEN :first_number AND :last_number"
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
        f"{_FOUND}compactions AS d INDEXED BY compactions_within WHERE d.conversation = {KEY_OF_NAMED}"
        " AND d.position > :after"
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

REPLACE_FACT: Final = (
    "INSERT OR REPLACE INTO facts (position, number, conversation, kind, failed, status, version, call, subject, tool,"
    " detail, path, source) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
FACT: Final = (
    "f.position, f.number, f.conversation, f.kind, f.failed, f.status, f.version, f.call, f.subject, f.tool, f.detail,"
    " f.path, f.source"
)
CALLS_AT: Final = (
    f"{WITH_LINEAGE_UP_TO}SELECT e.path, e.version, {PAYLOAD_OF_E} FROM lineage AS l CROSS JOIN json_each(?) AS wanted"
    " CROSS JOIN events AS e ON e.conversation = l.key AND e.path = wanted.value AND e.version <= l.last"
)
_IN_LINEAGE = (
    "e.conversation IN (SELECT key FROM lineage)"
    " AND e.version <= (SELECT l.last FROM lineage AS l WHERE +l.key = e.conversation)"
)
"""No join: beside a lineage, a condition on the event alone makes SQLite build a Bloom filter of the table; the
plus sign keeps it from making an index of the few ancestors."""
CALLS_OF_IDS: Final = (
    f"{WITH_LINEAGE_UP_TO}, texts (version, payload) AS MATERIALIZED (SELECT e.version, {PAYLOAD_OF_E} FROM events AS e"
    f" WHERE {_IN_LINEAGE} AND e.type = 'block.appended'"
    f' AND instr({PAYLOAD_OF_E}, \'"type":"react.tool.call"\') > 0) '
    "SELECT json_extract(t.payload, '$.block.call_id'), t.version, t.payload FROM texts AS t"
    f" WHERE json_valid(t.payload) AND json_extract(t.payload, '$.block.call_id') IN {LISTED}"
)
"""Reads all calls of a conversation: only for results that no path leads to a call."""
REDACTIONS: Final = (
    f"{WITH_LINEAGE_UP_TO}SELECT e.conversation, e.version, e.payload FROM events AS e INDEXED BY events_rare_within"
    f" WHERE {_IN_LINEAGE} AND e.type = 'block.redacted' AND {RARE_WHERE_OF_E}"
)
_OF_BLOCKS: Final = (
    "conversation = :key AND (version IN (SELECT value FROM json_each(:versions))"
    " OR call IN (SELECT value FROM json_each(:versions)) OR position IN (SELECT e.position"
    " FROM json_each(:versions) AS wanted CROSS JOIN events AS e"
    " ON e.conversation = :key AND e.version = wanted.value))"
)
"""Finds the facts of some blocks, all at once: it looks at each fact of the conversation."""
FORGET_FACTS: Final = f"DELETE FROM facts WHERE {_OF_BLOCKS}"
UNPROVE_FACTS: Final = (
    "UPDATE events NOT INDEXED SET packed = NULL WHERE checksum = ''"
    f" AND position IN (SELECT position FROM facts WHERE {_OF_BLOCKS})"
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
DONE_AT: Final = f"SELECT {FACT} FROM json_each(?) AS wanted CROSS JOIN facts AS f ON f.position = wanted.value"
POSITION_AT: Final = "SELECT position FROM events WHERE conversation = ? AND version <= ? ORDER BY version DESC LIMIT 1"
TIME_AT: Final = "SELECT at FROM events WHERE position = ? AND conversation = ?"
KNOWN_BETWEEN: Final = "SELECT DISTINCT position FROM facts WHERE position > ? AND position <= ? AND number >= 0"
COVERING: Final = (
    f"{WITH_LINEAGE}SELECT e.type, e.version, json_extract(e.payload, '$.covers'),"
    " json_extract(e.payload, '$.carried'),"
    f" json_extract(e.payload, '$.versions') FROM events AS e INDEXED BY events_rare_within WHERE {_IN_LINEAGE}"
    f" AND e.type IN ('compaction.completed', 'compaction.reverted') AND {RARE_WHERE_OF_E} AND json_valid(e.payload)"
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
    "kinds": f" AND f.kind IN {LISTED.replace('?', ':kinds')}",
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
REWRITTEN_SINCE: Final = (
    "SELECT (SELECT max(position) FROM events INDEXED BY events_rare"
    f" WHERE type = 'block.redacted' AND {RARE_WHERE}),"
    " (SELECT max(position) FROM events INDEXED BY events_rare"
    f" WHERE type = 'compaction.reverted' AND {RARE_WHERE}),"
    " (SELECT count(*) FROM erased), (SELECT total(first_version - 1) FROM conversations)"
)
"""What rises with all that changes the rows of older events: redactions, undone compactions, erasures, scavenges."""

_SCORE = "bm25(search_index, 1.0, 1.0, 0.0)"
SEARCH: Final = (
    f"SELECT rowid, {_SCORE} AS score FROM search_index WHERE search_index MATCH ? ORDER BY score, rowid DESC LIMIT ?"
)
SEARCH_BETWEEN: Final = (
    f"SELECT f.rowid, {_SCORE} AS score FROM search_index AS f CROSS JOIN events AS e ON e.position = f.rowid"
    " WHERE f.search_index MATCH ? AND e.at BETWEEN ? AND ? ORDER BY score, f.rowid DESC LIMIT ?"
)
FOUND: Final = (
    "SELECT (SELECT d.reverted_by FROM compactions AS d WHERE d.position = e.position),"
    f" c.id, e.conversation, {EVENT} FROM json_each(?) AS wanted CROSS JOIN events AS e"
    " ON e.position = wanted.value CROSS JOIN conversations AS c ON c.key = e.conversation"
)
