"""Read sessions of the OpenAI Agents SDK: SQLite databases of `SQLiteSession` and `AdvancedSQLiteSession`.

A session's rows are items of the Responses API, in the order of their ids. The database may be in use: it is opened
read-only and for one statement at a time, and if no other process has it open, no file is created beside it. It is
recognised by the columns of its tables, because an application may choose the tables' names. The usage of model calls
is not imported: the database has only sums of whole turns.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from timeline.databases import database_uri
from timeline.errors import ImportFailed
from timeline.events import ParentLink
from timeline.importers.builder import Origin, RecordingBuilder, parse_time
from timeline.importers.recording import Recording, Report, short_title
from timeline.importers.response_items import ItemReader
from timeline.wire.foreign import decode_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

FORMAT: Final = "openai-agents"
_OURS: Final = {"conversations", "events", "snapshots"}
_MESSAGES: Final = {"id", "session_id", "message_data", "created_at"}
_STRUCTURE: Final = {"session_id", "message_id", "branch_id", "sequence_number"}
_SEALED: Final = "__enc__"
"""The key of an item that the session encrypted."""
_MAIN: Final = "main"
_PATIENCE: Final = 5.0
"""Seconds to wait for a program that is writing to the database."""

_Row: TypeAlias = tuple[int, str, str, bytes]
"""``(id, branch, created_at, message_data)``."""


def read_agents_database(file: Path) -> list[Recording]:
    """Read a database: each session is a conversation, and so is each branch of a session.

    Raises:
        ImportFailed: it has no such sessions, is a timeline database, is locked, or cannot be read.
    """
    log = file.with_name(f"{file.name}-wal")
    try:
        # Without a write-ahead log no process has the database open, and SQLite would create one even to read.
        alone = not log.exists() and _writes_ahead(file)
        recordings = _read(file, "mode=ro&immutable=1" if alone else "mode=ro")
        if alone and log.exists():  # another process opened it meanwhile: what was read may be half of a change
            recordings = _read(file, "mode=ro")
    except sqlite3.Error as error:
        raise ImportFailed(str(file), f"the database cannot be read: {error}. {_cure(error)}") from None
    return recordings


def _writes_ahead(file: Path) -> bool:
    """Return whether a database is in WAL mode, without touching its files: SQLite opens none without locks."""
    with closing(sqlite3.connect(database_uri(file, "mode=ro&nolock=1"), uri=True)) as database:
        try:
            database.execute("PRAGMA schema_version").fetchone()
        except sqlite3.OperationalError as error:
            return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_CANTOPEN
    return False


def _cure(error: sqlite3.Error) -> str:
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return "Another program is writing to it; try again when it is done."
    return "Copy it, with the files beside it whose names begin with its own, and import the copy."


def _read(file: Path, query: str) -> list[Recording]:
    with closing(sqlite3.connect(database_uri(file, query), uri=True, timeout=_PATIENCE)) as database:
        database.text_factory = partial(str, encoding="utf-8", errors="replace")
        database.execute("PRAGMA query_only = ON")
        columns = _columns(database)
        if columns.keys() >= _OURS:
            raise ImportFailed(
                str(file),
                "this is a database of timeline itself: name it with --db. To copy conversations into another one, "
                "write them out with `timeline export --all -o FILE`, and import that file.",
            )
        messages = [name for name, has in columns.items() if has >= _MESSAGES]
        if not messages:
            raise ImportFailed(
                str(file),
                "this is a SQLite database, but not one of the OpenAI Agents SDK: no table in it holds session_id and "
                "message_data. Give another file.",
            )
        structure = next((name for name, has in columns.items() if has >= _STRUCTURE), None)
        recordings = [found for name in messages for found in _sessions(database, name, structure)]
        if not recordings and any(_is_sealed(database, name) for name in messages):
            raise ImportFailed(
                str(file),
                "its items are encrypted. Copy them into a session without encryption, in a program that has the key, "
                "and import that one.",
            )
        return recordings


def _columns(database: sqlite3.Connection) -> dict[str, set[str]]:
    tables = database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    return {
        name: {column for (column,) in database.execute("SELECT name FROM pragma_table_info(?)", (name,))}
        for (name,) in tables
    }


def _is_sealed(database: sqlite3.Connection, messages: str) -> bool:
    """Return whether a table has items of an `EncryptedSession`."""
    statement = f"SELECT 1 FROM {_quoted(messages)} WHERE message_data LIKE ? LIMIT 1"  # noqa: S608 - as below
    return database.execute(statement, (f'{{"{_SEALED}"%',)).fetchone() is not None


def _sessions(database: sqlite3.Connection, messages: str, structure: str | None) -> Iterator[Recording]:
    """Read the sessions of a table, in the order in which they began."""
    statement = f"SELECT session_id, min(id) FROM {_quoted(messages)} GROUP BY session_id ORDER BY 2"  # noqa: S608 - a name out of the schema, quoted
    for session, _ in database.execute(statement).fetchall():
        branches: dict[str, list[_Row]] = {_MAIN: []}
        for row in _rows(database, messages, structure, session):
            branches.setdefault(row[1], []).append(row)
        for branch, own in branches.items():
            if (recording := _recording(str(session), branch, own)) is not None:
                yield recording


def _rows(database: sqlite3.Connection, messages: str, structure: str | None, session: Any) -> list[_Row]:
    """Return a session's rows by branch, in order; rows without a branch belong to the main one."""
    # Read the bytes: SQLite does not check whether a text is UTF-8.
    table, data = _quoted(messages), "CAST(message_data AS BLOB)"
    if structure is None:
        statement = f"SELECT id, 'main', created_at, {data} FROM {table} WHERE session_id = ? ORDER BY id"  # noqa: S608 - as above
    else:
        statement = (
            f"SELECT m.id, coalesce(s.branch_id, 'main'), m.created_at, {data} FROM {table} AS m "  # noqa: S608 - as above
            f"LEFT JOIN {_quoted(structure)} AS s ON s.message_id = m.id AND s.session_id = m.session_id "
            "WHERE m.session_id = ? ORDER BY s.sequence_number, m.id"
        )
    return [
        (id_, str(branch), str(at), data or b"") for id_, branch, at, data in database.execute(statement, (session,))
    ]


def _recording(session: str, branch: str, rows: Sequence[_Row]) -> Recording | None:
    report = Report(format=FORMAT, lines=len(rows))
    times = (parse_time(at) for _, _, at, _ in rows)
    builder = RecordingBuilder(report, first_time=next(filter(None, times), None))
    reader = ItemReader(builder, report)
    for id_, _, created_at, data in rows:
        item = _item(data, id_, report)
        if item is not None and _SEALED in item:
            report.note("invalid", id_, "an item that is encrypted")
        elif item is not None:
            report.records += 1
            reader.read(item, Origin(f"row-{id_}", id_, parse_time(created_at)))
    events = builder.finish()
    if not events:
        return None
    is_main = branch == _MAIN
    parent = None if is_main else ParentLink(conversation=session, relation="fork")
    return Recording(
        session if is_main else f"{session}.branch-{branch}", events, report, short_title(builder.first_prompt), parent
    )


def _item(raw: bytes, id_: int, report: Report) -> dict[str, Any] | None:
    """Decode a row's item; report a row that has none under its id."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        report.note("encoding", id_, str(error))
        text = raw.decode(errors="replace")
    try:
        value, end = decode_value(text)
    except ValueError:
        value, end = None, 0
    if isinstance(value, dict) and not text[end:].strip():
        return value
    report.note("quarantined", id_, text)
    return None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
