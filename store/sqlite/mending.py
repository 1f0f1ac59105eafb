"""Compare all that is derived from the log with the log, and make it anew where it differs; never change an event.

It runs on a private copy; `carrying` brings what was mended there into the store itself. What is derived is computed
into temporary tables of the same names, which SQLite finds before the real ones, so that the very functions that keep
the real tables up to date fill these. Then both are compared by SQL. Everything that may be large is in temporary
files.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import contextmanager, suppress
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.errors import StoreCorrupt
from timeline.events.encoding import decode_payload
from timeline.facts.extracting import FORM as FACT_FORM
from timeline.ports import Finding

from ..codec import has_hash
from ..digests import rows_of
from ..failures import damage_said
from . import bases, broken_trees, conversation_rows, digest_rows, query_statements, sources, statements, waypoints
from .facts import proof_of, reach
from .search import FORM as SEARCH_FORM
from .search import index_up_to
from .sources import MOST, capped
from .transactions import set_pragma, transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DERIVED: Final = frozenset(
    {"compactions", "digest_entries", "facts", "facts_progress", "search_progress", "snapshots", "waypoints"}
)
"""Tables whose rows follow from the log, but for the facts of what was scavenged."""
_OF_THE_INDEX: Final = frozenset(
    {"search_index_config", "search_index_data", "search_index_docsize", "search_index_idx"}
)
_FROM_THE_LOG: Final = DERIVED | _OF_THE_INDEX | {"sqlite_stat1", "sqlite_stat4"}
"""Tables that may lose their rows: with those of the full-text index, and those that only guide SQLite's plans."""
_SOURCES: Final = frozenset({"bases", "erased", "settings", "stored_values"})
"""Tables that are made anew without rows, so that the store works; other records say what was in them, or is lost."""
_DAMAGE: Final = (sqlite3.DatabaseError, TypeError, ValueError, AttributeError, LookupError)
"""A byte in the header of a row makes its values of other types than its columns: SQLite does not look."""


def mend(connection: sqlite3.Connection, where: str) -> list[Finding]:
    """Make anew what is derived and differs; return what was found, in the order in which it was looked for.

    Raises:
        StoreCorrupt: the file is so damaged that not even its tables can be read.
    """
    found: list[Finding] = []
    with set_pragma(connection, "temp_store", "FILE"):
        for name, part in _PARTS.items():
            try:
                found += part(connection)
            except _DAMAGE as damage:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                found.append(Finding(name, f"{where}: cannot be read: {damage_said(damage)}", derivable=False))
    return found


# --- the file -----------------------------------------------------------------------------------------------------


def _file(connection: sqlite3.Connection) -> list[Finding]:
    """Check the pages of the file, and make its indexes and derived tables anew where these are what is damaged."""
    messages = broken_trees.problems(connection)
    if not messages:
        return []
    made_anew = mend_file(connection)
    left = set(broken_trees.problems(connection))
    found = [Finding("file", f"pages of {table} or of its indexes are broken", derivable=True) for table in made_anew]
    return found + [Finding("file", message, derivable=message not in left) for message in messages]


def mend_file(connection: sqlite3.Connection) -> list[str]:
    """Make indexes and derived tables anew whose pages are broken; return the tables that they are of."""
    made_anew = broken_trees.made_anew(connection, _FROM_THE_LOG - _irreplaceable(connection))
    if not _OF_THE_INDEX.isdisjoint(made_anew):
        _make_legible(connection)  # SQLite 3.44 and later check it too: what it lacks would hide the unused pages
    # At once: where a table is dropped, SQLite moves pages, and comes upon those that belong to nobody.
    broken_trees.without_unused(connection)
    return made_anew


def _irreplaceable(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the derived tables with rows that nothing gives again: facts of events that were scavenged."""
    try:
        scavenged = connection.execute("SELECT 1 FROM events NOT INDEXED WHERE checksum = '' LIMIT 1").fetchone()
    except sqlite3.DatabaseError:
        return frozenset({"facts"})  # nobody can say
    return frozenset({"facts"} if scavenged else ())


def _orphans(connection: sqlite3.Connection) -> list[Finding]:
    rows = connection.execute("PRAGMA foreign_key_check")
    problems = (
        f"row {rowid} of {table} refers to a row of {parent} that is not there" for table, rowid, parent, _ in rows
    )
    return capped("references", problems, derivable=False)


def mend_schema(connection: sqlite3.Connection) -> list[Finding]:
    """Check what the store says of itself: tables, triggers, migrations, its name, and the highest position given."""
    from ..migrations import MIGRATIONS, STEPS, indexes, tables  # noqa: PLC0415 - migrations import what is beside this

    anew = DERIVED | _SOURCES
    wrong = [(name, how, how == tables.MISSING and name in anew) for name, how in tables.wrong(connection, STEPS)]
    found = [Finding("schema", f"the table {name} {how}", derivable) for name, how, derivable in wrong]
    # First: what is mended here is not to be changed by one of them.
    for name in tables.triggers(connection):
        found.append(
            Finding("schema", f"the trigger {name} changes what is written; it is not one of ours", derivable=True)
        )
        connection.execute(tables.drop(name))
    if any(not each.derivable for each in found):
        return found  # what follows reads these tables
    with transaction(connection):
        for name, _, _ in wrong:
            tables.make(connection, STEPS, name)
    found += sources.erased(connection)
    if any(name == "stored_values" for name, _, _ in wrong) and any(sources.missing_texts(connection)):
        lost = (
            "the policies, system prompts, tools and tails that events name went with their table: a backup has them."
            " Until then name a policy to open a conversation with; a render stores its own texts again"
        )
        found.append(Finding("values", lost, derivable=False))
    for name in indexes.different(connection, STEPS):
        found.append(Finding("schema", f"the index {name} is missing, or is another one", derivable=True))
        with transaction(connection):
            indexes.make(connection, STEPS, name)
    stored = connection.execute("SELECT number, name FROM migrations ORDER BY number").fetchall()
    expected = [(number, name) for number, (name, _) in enumerate(MIGRATIONS, 1)]
    if stored != expected:
        with transaction(connection):
            connection.execute("DELETE FROM migrations")
            connection.executemany("INSERT INTO migrations (number, name) VALUES (?, ?)", expected)
        found.append(Finding("schema", "the record of the migrations is not that of this schema", derivable=True))
    names = connection.execute("SELECT store FROM identity").fetchall()
    if len(names) != 1 or len(names[0][0]) != 32:
        found.append(Finding("schema", "the store has lost its name", derivable=False))
    ((highest,),) = connection.execute(statements.HEAD_POSITION).fetchall()
    ((given,),) = connection.execute(statements.LAST_GIVEN).fetchall()
    if not isinstance(given, int):
        found.append(Finding("schema", f"the last position that was given is {given!r}", derivable=False))
    elif highest > given:
        found.append(
            Finding("schema", f"an event is at position {highest}, of {given} that were given", derivable=False)
        )
    return found


def _snapshots(connection: sqlite3.Connection) -> list[Finding]:
    """Check that each snapshot is as it was written; only a fold shows whether it is the one of its log."""
    found = []
    rows = connection.execute(
        "SELECT c.id, s.version, s.body, s.checksum FROM snapshots AS s"
        " CROSS JOIN conversations AS c ON c.key = s.conversation"
    )
    for id_, version, body, stored in rows:
        if not has_hash(body, stored):
            found.append(Finding("snapshots", f"that of {id_!r} does not match its checksum", derivable=True))
        elif json.loads(body)["version"] != version:
            found.append(Finding("snapshots", f"that of {id_!r} is not of version {version}", derivable=True))
    return found


# --- derived tables -----------------------------------------------------------------------------------------------


@contextmanager
def _shadows(connection: sqlite3.Connection, **keys: str) -> Iterator[None]:
    """Put empty temporary tables before the real ones, each with the unique key that its statements need."""
    try:
        for table, key in keys.items():
            connection.execute(f"CREATE TEMP TABLE {table} AS SELECT * FROM main.{table} WHERE false")  # noqa: S608
            connection.execute(f"CREATE UNIQUE INDEX temp.{table}_key ON {table} ({key})")
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        for table in keys:
            connection.execute(f"DROP TABLE IF EXISTS temp.{table}")


def _only_in(connection: sqlite3.Connection, one: str, other: str) -> list[Any]:
    """Return rows that the first select gives and the second does not, a few more than are reported."""
    return connection.execute(f"{one} EXCEPT {other} LIMIT {MOST + 1}").fetchall()


def _compared(what: str, missing: list[Any], extra: list[Any], name: Callable[[Any], str]) -> list[Finding]:
    lost = (f"lacks {name(row)}, which the log says" for row in missing)
    made = (f"has {name(row)}, which the log does not say" for row in extra)
    return capped(what, iter([*lost, *made]), derivable=True)


def _digests(connection: sqlite3.Connection) -> list[Finding]:
    """Compare the rows of compactions and their digests with the compactions in the log."""
    with _shadows(connection, compactions="position", digest_entries="position, list, number"):
        connection.execute("CREATE TEMP TABLE every_entry AS SELECT * FROM main.digest_entries WHERE false")
        try:
            _digests_anew(connection)
            found = _different_digests(connection)
            if found:
                _replace_digests(connection)
        finally:
            connection.execute("DROP TABLE IF EXISTS temp.every_entry")
    return found


def _different_digests(connection: sqlite3.Connection) -> list[Finding]:
    compactions = _compared(
        "digests",
        _only_in(connection, "SELECT * FROM temp.compactions", "SELECT * FROM main.compactions"),
        _only_in(connection, "SELECT * FROM main.compactions", "SELECT * FROM temp.compactions"),
        lambda row: f"the compaction at position {row[0]}, version {row[2]}",
    )
    entries = _compared(
        "digests",
        _only_in(connection, "SELECT * FROM temp.digest_entries", "SELECT * FROM main.digest_entries"),
        # Earlier releases wrote a row for every entry.
        _only_in(connection, "SELECT * FROM main.digest_entries", "SELECT * FROM temp.every_entry"),
        lambda row: f"the entry {row[1]} {row[2]} ({row[3]}) at position {row[0]}",
    )
    return compactions + entries


def _replace_digests(connection: sqlite3.Connection) -> None:
    with transaction(connection):
        for statement in _NEW_DIGESTS:
            connection.execute(statement)


_NEW_DIGESTS: Final = (
    "DELETE FROM main.digest_entries",
    "DELETE FROM main.compactions",
    "INSERT INTO main.compactions SELECT * FROM temp.compactions",
    "INSERT INTO main.digest_entries SELECT * FROM temp.digest_entries",
)


def _digests_anew(connection: sqlite3.Connection) -> None:
    for type_ in ("compaction.completed", "compaction.reverted"):
        for position, key, version, schema_version, at, text in connection.execute(
            query_statements.EVENTS_OF_TYPE, (type_,)
        ):
            try:
                rows = rows_of(version, at, decode_payload(type_, schema_version, text))
            except StoreCorrupt:
                continue  # reading the event reports the damage
            digest_rows.write(connection, key, rows)
            entries = getattr(rows, "entries", ())
            connection.executemany(
                "INSERT INTO temp.every_entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (digest_rows.held((position, *entry)) for entry in entries),
            )


_MADE_FROM_THE_LOG: Final = (
    "f.source = 0 AND EXISTS (SELECT 1 FROM events AS e WHERE e.position = f.position AND e.checksum <> ''"
    " AND NOT EXISTS (SELECT 1 FROM events AS c WHERE c.conversation = e.conversation AND c.version = f.call"
    " AND c.checksum = ''))"
)
"""Of a fact whose event or call was scavenged its row is all that is left. Its conversation is that of its event."""


def _facts(connection: sqlite3.Connection) -> list[Finding]:
    """Compare the rows of facts with the facts that the log gives, up to where a query has brought them."""
    stored = connection.execute("SELECT form, position FROM main.facts_progress").fetchall()
    ((head,),) = connection.execute(statements.HEAD_POSITION).fetchall()
    sound = len(stored) == 1 and stored[0][0] > 0 and 0 <= stored[0][1] <= head
    if sound and stored[0][0] != FACT_FORM:
        return []  # those of another release: the next query drops them, and makes its own
    found = [] if sound else [Finding("facts", "the record of how far they reach is damaged", derivable=True)]
    strays = _strays(connection)
    for derivable in (True, False):
        found += capped("facts", (each.problem for each in strays if each.derivable is derivable), derivable=derivable)
    found += capped("facts", _changed(connection), derivable=False)
    reached = stored[0][1] if sound else 0
    with _shadows(connection, facts="position, number", facts_progress="form"):
        connection.execute("INSERT INTO temp.facts_progress (form, position) VALUES (?, 0)", (FACT_FORM,))
        with transaction(connection):
            reach(connection, head)
        made = f"SELECT f.* FROM main.facts AS f WHERE {_MADE_FROM_THE_LOG}"  # noqa: S608 - own conditions
        found += _compared(
            "facts",
            _only_in(
                connection,
                f"SELECT * FROM temp.facts WHERE position <= {int(reached)}",  # noqa: S608 - a number
                "SELECT * FROM main.facts",
            ),
            _only_in(connection, made, "SELECT * FROM temp.facts"),
            lambda row: f"fact {row[1]} at position {row[0]} ({row[8]})",
        )
        if any(each.derivable for each in found):
            with transaction(connection):
                connection.execute(f"DELETE FROM main.facts AS f WHERE {_MADE_FROM_THE_LOG}")  # noqa: S608
                connection.executemany(_GIVE_BACK, [(each.home, *each.key) for each in strays if each.home is not None])
                connection.execute(_DROP_ORPHANED)
                connection.execute("INSERT OR REPLACE INTO main.facts SELECT * FROM temp.facts")
                connection.execute("DELETE FROM main.facts_progress")
                connection.execute("INSERT INTO main.facts_progress SELECT * FROM temp.facts_progress")
    return found


class _Stray(NamedTuple):
    """A row of facts that is not in the conversation of its event.

    Attributes:
        key: its position and its number.
        home: the conversation to give it back to, since what vouches for the facts of its event holds with it.
        derivable: whether it can be given back, or goes for what the log gives.
        problem: what is wrong.
    """

    key: tuple[int, int]
    home: int | None
    derivable: bool
    problem: str


_STRAYS: Final = (
    f"SELECT f.position, f.number, e.conversation, e.link, e.packed, e.checksum = '', {_MADE_FROM_THE_LOG}"  # noqa: S608
    " FROM main.facts AS f LEFT JOIN main.events AS e ON e.position = f.position"
    " WHERE e.conversation IS NOT f.conversation ORDER BY f.position, f.number"
)
_DROP_ORPHANED: Final = (
    "DELETE FROM main.facts AS f WHERE NOT EXISTS (SELECT 1 FROM main.events AS e WHERE e.position = f.position)"
)
_GIVE_BACK: Final = "UPDATE main.facts SET conversation = ? WHERE position = ? AND number = ?"


def _strays(connection: sqlite3.Connection) -> list[_Stray]:
    """Return the rows that are not in the conversation of their event.

    The row of an event stays when it is scavenged: where there is none, such a fact was never made.
    """
    found = []
    for position, number, home, link, packed, scavenged, made in connection.execute(_STRAYS).fetchall():
        problem = f"fact {number} at position {position} is of no event of its conversation"
        vouched = scavenged and packed is not None and proof_of(connection, position, link or b"") == packed
        derivable = bool(vouched or made or home is None)
        more = "" if derivable else ", and nothing vouches for it"
        found.append(_Stray((position, number), home if vouched else None, derivable, problem + more))
    return found


def _changed(connection: sqlite3.Connection) -> Iterator[str]:
    for position, key, version, link, proof in connection.execute(query_statements.PROVED_FACTS):
        if proof_of(connection, position, link or b"") != proof:
            yield f"the facts of version {version} of conversation number {key}, which was scavenged, were changed"


def _search(connection: sqlite3.Connection) -> list[Finding]:
    """Compare the full-text index with one that is made of the log anew, word by word."""
    stored = connection.execute("SELECT form, position FROM main.search_progress").fetchall()
    (there,) = connection.execute(query_statements.IS_INDEXED).fetchone()
    if not there and not stored:
        return []
    ((head,),) = connection.execute(statements.HEAD_POSITION).fetchall()
    if len(stored) == 1 and stored[0][0] > 0 and stored[0][0] != SEARCH_FORM and there:
        return []  # that of another release: the next search makes its own
    if not there or len(stored) != 1 or stored[0][0] != SEARCH_FORM or not 0 <= stored[0][1] <= head:
        problem = "the record of how far the index reaches is damaged"
    else:
        problem = _search_differs(connection, stored[0][1])
    if not problem:
        return []
    _index_anew(connection, head)
    return [Finding("search", problem, derivable=True)]


def _search_differs(connection: sqlite3.Connection, reached: int) -> str:
    """Return how the index differs from what the log gives; empty where it does not."""
    try:
        connection.execute("INSERT INTO main.search_index (search_index) VALUES ('integrity-check')")
    except sqlite3.DatabaseError as damage:
        return f"the index is damaged: {damage_said(damage)}"
    with _shadows(connection, search_progress="form"):
        try:
            connection.execute(query_statements.CREATE_INDEX.replace(" search_index ", " temp.search_index "))
            connection.execute("INSERT INTO temp.search_progress (form, position) VALUES (?, 0)", (SEARCH_FORM,))
            with transaction(connection):
                index_up_to(connection, reached)
            return _first_difference(connection)
        except sqlite3.DatabaseError as damage:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            return f"the index is damaged: {damage_said(damage)}"
        finally:
            for name in ("stored_terms", "stored_words", "made_words", "search_index"):
                connection.execute(f"DROP TABLE IF EXISTS temp.{name}")


def _first_difference(connection: sqlite3.Connection) -> str:
    for select, what in (
        ("SELECT id, sz FROM {}.search_index_docsize", "the sizes of texts"),
        ("SELECT k, v FROM {}.search_index_config", "its settings"),
        ("SELECT id, block FROM {}.search_index_data WHERE id = 1", "its totals"),
    ):
        stored, made = select.format("main"), select.format("temp")
        if _only_in(connection, stored, made) or _only_in(connection, made, stored):
            return f"{what} in the index are not those of the log"
    for schema, name in (("main", "stored_words"), ("temp", "made_words")):
        connection.execute(f"CREATE VIRTUAL TABLE temp.{name} USING fts5vocab ('{schema}', 'search_index', 'instance')")
    words = "SELECT term, doc, col, offset FROM temp.{}"  # in the order of the index, in both
    lost = _first_lost(connection)
    if lost:
        return f"the word {lost!r} is in the index, and a search does not find it"
    pairs = zip_longest(
        connection.execute(words.format("stored_words")), connection.execute(words.format("made_words"))
    )
    for stored_word, made_word in pairs:
        if stored_word != made_word:
            word, position = (stored_word or made_word)[:2]
            return f"the word {word!r} of position {position} is not in the index as the log has it"
    return ""


def _first_lost(connection: sqlite3.Connection) -> str:
    """Return a word that a search does not find as often as the index has it: FTS5's own check overlooks that."""
    connection.execute("CREATE VIRTUAL TABLE temp.stored_terms USING fts5vocab ('main', 'search_index', 'row')")
    for word, texts in connection.execute("SELECT term, doc FROM temp.stored_terms"):
        found = connection.execute("SELECT count(*) FROM main.search_index('\"' || ? || '\"')", (word,))
        if found.fetchone() != (texts,):
            return str(word)
    return ""


def _index_anew(connection: sqlite3.Connection, head: int) -> None:
    drop_index(connection)
    with transaction(connection):
        index_up_to(connection, head)


def drop_index(connection: sqlite3.Connection) -> None:
    """Drop the full-text index, however damaged: what makes it anew begins at the first event."""
    _make_legible(connection)
    with transaction(connection):
        connection.execute(query_statements.DROP_INDEX)
        connection.execute(query_statements.FORGET_PROGRESS)


def _make_legible(connection: sqlite3.Connection) -> None:
    """Empty the index: FTS5 does not even drop one whose settings, or whose list of segments, it cannot read."""
    with suppress(sqlite3.DatabaseError):
        connection.execute("DELETE FROM main.search_index_config")
        connection.execute("INSERT INTO main.search_index_config VALUES ('version', 4)")
        connection.execute("INSERT OR REPLACE INTO main.search_index_data VALUES (1, x''), (10, zeroblob(7))")


_PARTS: Final[dict[str, Callable[[sqlite3.Connection], list[Finding]]]] = {
    "file": _file,
    "schema": mend_schema,
    "settings": sources.mend_settings,
    "bases": bases.mend,
    "conversations": conversation_rows.mend,
    "snapshots": _snapshots,
    "waypoints": waypoints.mend,
    "values": sources.texts,
    "digests": _digests,
    "facts": _facts,
    "search": _search,
    "references": _orphans,
}
"""In this order: what is derived is read by indexes that are sound by then, and refers to rows that are there again."""
