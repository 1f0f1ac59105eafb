"""The statements of digests and of search; those of the log are in `store.sqlite.statements`. One test has all plans.

A page of digests walks compactions by position, led by the most selective filter that is given: the conversation, else
the tool, else the fixed beginning of a glob, else none. What else is asked is looked up for each candidate. What they
find may be too much (SQLite's ``*`` crosses folders), never too little: the event decides.
"""

# ruff: noqa: S608 - the texts are put together from the constants below, never from input
from __future__ import annotations

from functools import cache
from typing import Final

from .statements import EVENT, FILES_WHERE, RARE_WHERE

_KEY = "(SELECT key FROM conversations WHERE id = :conversation)"

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
FIRST_SINCE: Final = "SELECT min(position) FROM compactions INDEXED BY compactions_at WHERE at >= ?"

_HOLDS = (
    " AND d.at BETWEEN :since AND :until AND d.round BETWEEN :first_round AND :last_round"
    " AND d.errors BETWEEN :least_errors AND :most_errors"
    " AND (:reverted IS NULL OR (d.reverted_by IS NOT NULL) = :reverted)"
)
_ENTRY = " AND EXISTS (SELECT 1 FROM digest_entries AS x WHERE x.position = d.position AND "
_ASKED: Final = {
    "tool": f"{_ENTRY}x.tool = :tool)",
    "path_glob": f"{_ENTRY}{FILES_WHERE} AND x.subject GLOB :glob)",
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
        f"{_FOUND}compactions AS d NOT INDEXED WHERE d.position IN"
        f" (SELECT position FROM digest_entries INDEXED BY digest_files WHERE {FILES_WHERE}"
        " AND subject >= :prefix AND subject < :beyond AND position > :after AND subject GLOB :glob)"
    ),
    "nothing": f"{_FOUND}compactions AS d NOT INDEXED WHERE d.position > :after",
}
_ORDER: Final = {"tool": " GROUP BY t.position ORDER BY t.position LIMIT :page"}


@cache
def page_of_digests(given: frozenset[str]) -> str:
    """Write the statement of a page for the filters that are given.

    Its rows come in any order: to sort them here would be to copy whole events. The filters are among conversation,
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


# --- search -------------------------------------------------------------------------------------------------------

CREATE_INDEX: Final = (
    "CREATE VIRTUAL TABLE search_index USING fts5 (words, humps, tags, content = '', tokenize = 'ascii')"
)
"""Contentless: the text stays in the log alone.

It is cut into words before it comes here (see `store.search.words`).
"""
DROP_INDEX: Final = "DROP TABLE IF EXISTS search_index"
FORGET_PROGRESS: Final = "DELETE FROM search_progress"
SET_PROGRESS: Final = "INSERT OR REPLACE INTO search_progress (form, position) VALUES (?, ?)"
PROGRESS: Final = "SELECT position FROM search_progress WHERE form = ?"
LAST_OF_ALL: Final = "SELECT max(position) FROM events"
INDEX_TEXT: Final = "INSERT INTO search_index (rowid, words, humps, tags) VALUES (?, ?, ?, ?)"
UNINDEX_TEXT: Final = "INSERT INTO search_index (search_index, rowid, words, humps, tags) VALUES ('delete', ?, ?, ?, ?)"
INDEXED: Final = "SELECT rowid FROM search_index WHERE rowid = ?"
TO_INDEX: Final = (
    "SELECT position, conversation, version, type, at, payload FROM events WHERE position > ? AND position <= ?"
    " AND type NOT IN ('context.rendered', 'model.called') ORDER BY position LIMIT ?"
)
STORED_AT: Final = "SELECT position, payload FROM events WHERE conversation = ? AND version = ?"
REDACTED_SINCE: Final = (
    "SELECT conversation, payload FROM events INDEXED BY events_rare"
    f" WHERE type = 'block.redacted' AND {RARE_WHERE} AND position > ? ORDER BY position"
)

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
    f"SELECT c.id, e.conversation, {EVENT} FROM json_each(?) AS wanted CROSS JOIN events AS e"
    " ON e.position = wanted.value CROSS JOIN conversations AS c ON c.key = e.conversation"
)
