"""Check what the store says of itself: tables, indexes, triggers, migrations, its name and its settings."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

import asyncpg

from ..settings import wrong_settings
from . import create
from .migrations import MIGRATIONS
from .pages import Page, Wrong, wrong
from .partitions import detached
from .statements import OWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .connections import Connection

_INVALID: Final = (
    "SELECT c.relname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid"
    " WHERE c.relnamespace = current_schema()::regnamespace AND NOT (i.indisvalid AND i.indisready) ORDER BY 1"
)
_AMCHECK: Final = (
    "SELECT n.nspname FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace"
    " WHERE e.extname = 'amcheck'"
)
_BTREES: Final = (
    "SELECT c.oid, c.relname FROM pg_class AS c JOIN pg_am AS a ON a.oid = c.relam"
    " WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'i' AND a.amname = 'btree' ORDER BY 2"
)
_TRIGGERS: Final = (
    "SELECT c.relname, t.tgname FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid"
    " WHERE c.relnamespace = current_schema()::regnamespace AND NOT t.tgisinternal ORDER BY 1, 2"
)
_COLUMNS: Final = (
    "SELECT table_name::text, column_name::text FROM information_schema.columns WHERE table_schema = current_schema()"
)
_INDEXES: Final = (
    "SELECT c.relname, pg_get_indexdef(i.indexrelid) FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid"
    " WHERE c.relnamespace = current_schema()::regnamespace AND NOT c.relispartition"
)
_HAS_FIND: Final = "SELECT to_regprocedure('search_found(tsquery)')"
_STATEMENT: Final = re.compile(
    r"CREATE (?P<unique>UNIQUE )?INDEX (?P<name>\w+) ON (?:ONLY )?(?P<table>[\w.\"]+) (?:USING (?P<method>\w+) )?"
    r"\((?P<columns>[^)]*)\)(?: WHERE (?P<where>.*))?",
    re.DOTALL,
)
_TABLE: Final = re.compile(r"CREATE TABLE (?P<name>\w+) \((?P<body>.*)\)", re.DOTALL)
_KEY: Final = re.compile(r"(?P<kind>PRIMARY KEY|UNIQUE) \((?P<columns>[^)]*)\)")
_KEY_OF_COLUMN: Final = re.compile(r"^ *(?P<columns>\w+) [^,\n]*(?P<kind>PRIMARY KEY)(?! \()", re.MULTILINE)
_ANYTHING: Final = re.compile(r"::(?:text|bigint)(?:\[\])?|COLLATE \"?C\"?|\"|[()\s\[\]']|= ANY|ARRAY|\bIN\b")


class _Index(NamedTuple):
    """What an index is: its table's name, its columns, whether it is unique, and the rows that it holds."""

    table: str
    columns: str
    unique: bool
    where: str


async def damaged_indexes(connection: Connection, _: int) -> Page:
    """Find indexes that the server does not use, and, where the extension amcheck is there, ones that are damaged."""
    found = [
        wrong("file", f"the index {name} is not valid", (f'REINDEX INDEX "{name}"', ()))
        for (name,) in await connection.fetch(_INVALID)
    ]
    schema = await connection.fetchval(_AMCHECK)
    if schema is None:
        return Page(found)
    for oid, name in await connection.fetch(_BTREES):
        try:
            async with connection.transaction():
                await connection.execute(f'SELECT "{schema}".bt_index_check($1::oid::regclass, true)', oid)
        except asyncpg.InsufficientPrivilegeError:
            break
        except (asyncpg.DataCorruptedError, asyncpg.IndexCorruptedError, asyncpg.InternalServerError) as damage:
            found.append(wrong("file", f"the index {name}: {damage}", (f'REINDEX INDEX "{name}"', ())))
    return Page(found)


async def schema(connection: Connection, _: int) -> Page:
    """Compare tables, indexes and triggers with those that the migrations make."""
    statements = create.statements(await connection.fetchval("SELECT partitions FROM store_meta") or 0)
    # what is derived from the events of a detached partition is not damaged
    found = await _tables(connection, statements) or [wrong("schema", each) for each in await detached(connection)]
    if found:
        return Page(found, lacking=True)
    for table, name in await connection.fetch(_TRIGGERS):
        problem = f"the trigger {name} changes what is written; it is not one of ours"
        found.append(wrong("schema", problem, (f'DROP TRIGGER "{name}" ON "{table}"', ())))
    if found:
        return Page(found)
    found += await _indexes(connection, statements)
    if await connection.fetchval(_HAS_FIND) is None:
        cure = [(statement, ()) for statement in create.find_anew()]
        found.append(wrong("schema", "the function search_found, by which searches look, is missing", *cure))
    stored = [tuple(row) for row in await connection.fetch("SELECT number, name FROM migrations ORDER BY number")]
    if stored != [(number, name) for number, (name, _) in enumerate(MIGRATIONS, 1)]:
        found.append(wrong("schema", "the record of the migrations is not that of this schema"))
    names = await connection.fetch("SELECT store FROM store_meta")
    if not names:
        found.append(wrong("schema", create.NO_META))
    elif len(names) != 1 or len(names[0][0]) != 32:
        found.append(wrong("schema", "the store has lost its name"))
    return Page(found)


async def _tables(connection: Connection, statements: list[str]) -> list[Wrong]:
    there: dict[str, set[str]] = {}
    for table, column in await connection.fetch(_COLUMNS):
        there.setdefault(table, set()).add(column)
    found = []
    for made in filter(None, map(_TABLE.match, statements)):
        lines = (line.split() for line in made["body"].split(",\n"))
        wanted = {words[0] for words in lines if words and words[0].islower()}
        if made["name"] not in there:
            again = create.anew(made["name"]) if made["name"] in create.DERIVED else []
            cure = [(statement, ()) for statement in again]
            found.append(wrong("schema", f"the table {made['name']} is missing", *cure))
        elif missing := sorted(wanted - there[made["name"]]):
            found.append(wrong("schema", f"the table {made['name']} lacks the column {missing[0]}"))
    return found


async def _indexes(connection: Connection, statements: list[str]) -> list[Wrong]:
    """Find the indexes that are missing, or are others."""
    stored = {name: _read(text) for name, text in await connection.fetch(_INDEXES)}
    found = []
    for statement in statements:
        wanted = _STATEMENT.match(statement)
        if wanted is not None and stored.get(wanted["name"]) != _read(statement):
            problem = f"the index {wanted['name']} is missing, or is another one"
            drop = (f"DROP INDEX IF EXISTS {wanted['name']}", ())
            found.append(wrong("schema", problem, drop, (statement, ())))
        if (table := _TABLE.match(statement)) is not None:
            found += _keys(table["name"], table["body"], set(stored.values()))
    return found


def _keys(table: str, body: str, stored: set[_Index | None]) -> Iterator[Wrong]:
    """Find the keys that a table lacks: without one, what is written on a conflict with it is refused."""
    for key in chain(_KEY.finditer(body), _KEY_OF_COLUMN.finditer(body)):
        if _Index(table, _plain(key["columns"]), True, "") not in stored:
            cure = f"ALTER TABLE {table} ADD {key['kind']} ({key['columns']})"
            yield wrong("schema", f"the table {table} lacks its key ({key['columns']})", (cure, ()))


def _read(statement: str) -> _Index | None:
    found = _STATEMENT.match(statement.replace('"', ""))  # the server's quote_all_identifiers may be on
    if found is None:
        return None
    table = found["table"].rpartition(".")[2]
    return _Index(table, _plain(found["columns"]), bool(found["unique"]), _plain(found["where"] or ""))


def _plain(text: str) -> str:
    """Return a text without what the server adds to it when it writes it itself."""
    return _ANYTHING.sub("", text)


async def settings(connection: Connection, _: int) -> Page:
    """Check the settings of the store."""
    rows = await connection.fetch(f"SELECT name, value FROM settings WHERE {OWN}")  # noqa: S608 - own condition
    stored = {name: value for name, value in rows}  # noqa: C416 - a record is no pair for the type checker
    return Page([Wrong(each) for each in wrong_settings(stored)])
