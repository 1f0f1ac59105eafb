# ruff: noqa: S608 - the texts are put together from constants, never from input
"""Compare the rows of digests and facts with what the log gives."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.errors import StoreCorrupt
from timeline.events.encoding import decode_payload
from timeline.facts.extracting import FORM as FACT_FORM

from ..column_numbers import LARGEST
from ..digests import CompactionRow, Reversion, has_row, rows_of
from ..fact_making import facts_of_page
from ..facts import FactRow, proof_of_rows
from ..frequent_types import RARE_WHERE
from . import facts as stored_facts
from .digest_rows import compaction_columns, entry_columns
from .escaping import joined
from .overwriting import DROP_COMPACTIONS_AT, DROP_ENTRIES
from .pages import Page, Wrong, wrong
from .removing import facts_at
from .statements import OWN, SCAVENGED_WHERE

if TYPE_CHECKING:
    from collections.abc import Sequence

    import asyncpg

    from .connections import Connection


# --- digests ------------------------------------------------------------------------------------------------------

_COMPACTIONS_AT_ONCE: Final = 50
_EVENTS_OF_TYPE: Final = (
    "SELECT position, conversation, version, schema_version, at, payload FROM events"
    f" WHERE {OWN} AND type = 'compaction.completed' AND {RARE_WHERE} AND position > $1 ORDER BY position LIMIT $2"
)
_UNDOS: Final = (
    "SELECT conversation, version, schema_version, at, payload FROM events WHERE conversation = ANY($1::bigint[])"
    f" AND type = 'compaction.reverted' AND {RARE_WHERE} ORDER BY conversation, version"
)
_COMPACTION: Final = (
    "position, conversation, version, at, round, source, summary, first_version, last_version, before_tokens,"
    " after_tokens, errors, reverted_by"
)
_ENTRY: Final = (
    "position, list, number, subject_key, subject, tool_key, tool, path, times, tokens, exit_status, errors, message"
)
_BETWEEN = f"WHERE {OWN} AND position > $1 AND position <= $2"
_STORED_COMPACTIONS: Final = f"SELECT {_COMPACTION} FROM compactions {_BETWEEN}"
_STORED_ENTRIES: Final = f"SELECT {_ENTRY} FROM digest_entries {_BETWEEN}"


def _insert(table: str, columns: str) -> str:
    places = ", ".join(f"${place}" for place in range(1, columns.count(",") + 2))
    return f"INSERT INTO {table} ({columns}) VALUES ({places})"


_PUT_COMPACTION: Final = _insert("compactions", _COMPACTION)
_PUT_ENTRY: Final = _insert("digest_entries", _ENTRY)


async def digests(connection: Connection, after: int) -> Page:
    """Compare a page of compactions and their entries with the compactions in the log."""
    events = await connection.fetch(_EVENTS_OF_TYPE, after, _COMPACTIONS_AT_ONCE)
    last = events[-1][0] if len(events) == _COMPACTIONS_AT_ONCE else LARGEST
    undone = await _undone(connection, {row[1] for row in events})
    made: dict[int, tuple[Any, list[Any]]] = {}
    for position, key, version, schema, at, payload in events:
        row = _rows_of(version, at, "compaction.completed", schema, payload)
        if isinstance(row, CompactionRow):
            compaction = (position, key, *compaction_columns(row), undone.get((key, version)))
            made[position] = (compaction, [(position, *entry_columns(each)) for each in row.entries if has_row(each)])
    stored: defaultdict[int, tuple[list[Any], list[Any]]] = defaultdict(lambda: ([], []))
    for place, statement in enumerate((_STORED_COMPACTIONS, _STORED_ENTRIES)):
        for found in await connection.fetch(statement, after, last):
            stored[found[0]][place].append(tuple(found))
    damaged = {row[0] for row in events} - made.keys()  # reading the event reports the damage
    wrong_ones = []
    for position in sorted((made.keys() | stored.keys()) - damaged):
        compaction, entries = made.get(position, (None, []))
        there = stored.get(position, ([], []))
        if there[0] != ([] if compaction is None else [compaction]) or sorted(there[1]) != sorted(entries):
            wrong_ones.append(_anew(position, compaction, entries))
    return Page(wrong_ones, last if last != LARGEST else None)


def _rows_of(version: int, at: str, type_: str, schema: int, payload: str) -> CompactionRow | Reversion | None:
    try:
        return rows_of(version, at, decode_payload(type_, schema, payload))
    except StoreCorrupt:
        return None


async def _undone(connection: Connection, keys: set[int]) -> dict[tuple[int, int], int]:
    """Return the first event that undoes each compaction, by the conversation's key and the compaction's version."""
    undone: dict[tuple[int, int], int] = {}
    for key, version, schema, at, payload in await connection.fetch(_UNDOS, list(keys)):
        row = _rows_of(version, at, "compaction.reverted", schema, payload)
        for each in row.reverted if isinstance(row, Reversion) else ():
            undone.setdefault((key, each), version)
    return undone


def _anew(position: int, compaction: Any, entries: Sequence[Any]) -> Wrong:
    """Return that the rows of a compaction are not those of the log, and what makes them anew."""
    cure: list[tuple[str, Any]] = [(DROP_ENTRIES, ([position],)), (DROP_COMPACTIONS_AT, ([position],))]
    if compaction is None:
        return wrong("digests", f"has the compaction at position {position}, which the log does not say", *cure)
    cure.append((_PUT_COMPACTION, compaction))
    cure += ((_PUT_ENTRY, entry) for entry in entries)
    return wrong("digests", f"the compaction at position {position}, version {compaction[2]}, is another one", *cure)


# --- facts --------------------------------------------------------------------------------------------------------

_EVENTS_AT_ONCE: Final = 100
_PROGRESS: Final = f"SELECT form, position FROM facts_progress WHERE {OWN}"
_HEAD: Final = f"SELECT coalesce((SELECT position FROM events WHERE {OWN} ORDER BY position DESC LIMIT 1), 0)"
_SOURCES: Final = (
    "SELECT position, conversation, version, at, path, path_rest, payload FROM events"
    f" WHERE {OWN} AND position > $1 AND position <= $2 AND type = 'block.appended' AND schema_version = 1"
    " AND checksum <> '' ORDER BY position LIMIT $3"
)
_FACT: Final = (
    "position, number, conversation, kind, failed, status, version, call, subject, tool, detail, path, source"
)
_STORED_FACTS: Final = (
    f"SELECT f.{_FACT.replace(', ', ', f.')}, e.conversation, e.checksum = '', EXISTS (SELECT 1 FROM events AS c"
    " WHERE c.conversation = e.conversation AND c.version = f.call AND c.checksum = '') FROM facts AS f"
    f" LEFT JOIN events AS e ON e.position = f.position AND e.{OWN}"
    f" WHERE f.{OWN} AND f.position > $1 AND f.position <= $2 ORDER BY f.position, f.number"
)
_NEWEST_FACT: Final = f"SELECT coalesce(max(position), 0) FROM facts WHERE {OWN}"
_DROP_FACT: Final = f"DELETE FROM facts WHERE {OWN} AND position = $1 AND number = $2"
_GIVE_BACK: Final = f"UPDATE facts SET conversation = $1 WHERE {OWN} AND position = $2 AND number = $3"
_PUT_FACT: Final = _insert("facts", _FACT)
_PROVED: Final = (
    f"SELECT e.position, c.id, e.version, e.link, e.packed FROM events AS e JOIN conversations AS c"
    f" ON c.key = e.conversation WHERE e.{OWN} AND e.{SCAVENGED_WHERE} AND e.packed IS NOT NULL"
)
_FORGET_PROGRESS: Final = f"DELETE FROM facts_progress WHERE {OWN}"


class _Stored(NamedTuple):
    """A row of facts: whether the log still says what it should be, and the conversation of its event."""

    row: FactRow
    home: int | None
    from_log: bool


async def facts(connection: Connection, after: int) -> Page:
    """Compare a page of facts with those that the log gives, up to where a query has brought them.

    Behind that an erasure may have put those of a fork that keeps what it shared: they are compared, too.
    """
    progress = await connection.fetch(_PROGRESS)
    head = await connection.fetchval(_HEAD)
    if not progress and not after:
        return Page(await _changed(connection))
    if len(progress) != 1 or progress[0][0] <= 0 or not 0 <= progress[0][1] <= head:
        return Page([wrong("facts", "the record of how far they reach is damaged", (_FORGET_PROGRESS, ()))])
    form, reached = progress[0]
    if form != FACT_FORM:
        return Page([])  # those of another release: the next query drops them, and makes its own
    until = max(reached, await connection.fetchval(_NEWEST_FACT))
    sources = await connection.fetch(_SOURCES, after, until, _EVENTS_AT_ONCE)
    last = sources[-1][0] if len(sources) == _EVENTS_AT_ONCE else None
    made = await _made(connection, sources)
    stored = [_stored(row) for row in await connection.fetch(_STORED_FACTS, after, last or LARGEST)]
    found = _differences(made, stored, reached)
    return Page(found if after else [*await _changed(connection), *found], last)


async def _made(connection: Connection, sources: Sequence[asyncpg.Record]) -> dict[tuple[int, int], FactRow]:
    rows = [
        (position, key, version, at, "" if path is None else joined(path, rest), payload)
        for position, key, version, at, path, rest, payload in sources
    ]
    found = await stored_facts.answer(connection, facts_of_page(rows))
    every = (row for page in found for row in (*page.done, *page.named))
    return {(row.position, row.number): stored_facts.columns(row) for row in every}


def _stored(row: asyncpg.Record) -> _Stored:
    *columns, home, scavenged, call_scavenged = row
    fact = FactRow(*columns)
    from_log = fact.source == 0 and home is not None and not scavenged and not call_scavenged
    return _Stored(fact, home, from_log)


def _differences(made: dict[tuple[int, int], FactRow], stored: Sequence[_Stored], reached: int) -> list[Wrong]:
    found = []
    there = {}
    for each in stored:
        key = (each.row.position, each.row.number)
        there[key] = each
        if made.get(key) == tuple(each.row):
            continue
        named = f"fact {key[1]} at position {key[0]} ({each.row.subject})"
        if each.home is None or each.from_log:
            found.append(wrong("facts", f"has {named}, which the log does not say", (_DROP_FACT, key)))
        elif each.home != each.row.conversation:
            # What vouches for the facts of a scavenged event leaves out their conversation, which is that of the event.
            found.append(wrong("facts", f"{named} is of no event of its conversation", (_GIVE_BACK, (each.home, *key))))
    for key, row in made.items():
        if key not in there and key[0] > reached:
            continue
        if key not in there or (there[key].from_log and tuple(there[key].row) != row):
            problem = f"lacks fact {key[1]} at position {key[0]} ({row[8]}), which the log says"
            found.append(wrong("facts", problem, (_DROP_FACT, key), (_PUT_FACT, row)))
    return found


async def _changed(connection: Connection) -> list[Wrong]:
    """Find facts of scavenged events that are not the ones which their event vouches for."""
    proved = await connection.fetch(_PROVED)
    stored = await facts_at(connection, [row[0] for row in proved])
    return [
        wrong("facts", f"the facts of version {version} of {id_!r}, which was scavenged, were changed")
        for position, id_, version, link, proof in proved
        if proof_of_rows(link or b"", stored.get(position, [])) != proof
    ]
