from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from agents import SQLiteSession
from agents.extensions.memory import AdvancedSQLiteSession

from tests.importers.session import blocks
from timeline import Timeline, open_store
from timeline.blocks import UserPrompt
from timeline.errors import ImportFailed
from timeline.events import ParentLink
from timeline.importers import Recording, read_recording
from timeline.importers.agents_sqlite import read_agents_database
from timeline.portable.recordings import import_recording
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ITEMS: list[Any] = [
    {"role": "user", "content": "What is the weather?"},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAA"},
    {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "weather", "arguments": '{"city":"Oslo"}'},
    {"type": "function_call_output", "call_id": "a", "output": "rain"},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "It rains.", "annotations": []}],
    },
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Name a database."""
    return tmp_path / "sessions.db"


@pytest.fixture
def connection(file: Path) -> Iterator[sqlite3.Connection]:
    """Give a connection of another program."""
    with closing(sqlite3.connect(file, isolation_level=None)) as opened:
        yield opened


async def save(file: Path, session: str = "chat-1", items: list[Any] | None = None, **tables: str) -> None:
    """Write items as the SDK does."""
    opened = SQLiteSession(session, file, **tables)  # type: ignore[arg-type] # settings are no tables
    await opened.add_items(ITEMS if items is None else items)
    opened.close()


def on_disk(file: Path) -> dict[str, bytes]:
    """Return what the folder of a database holds."""
    return {found.name: found.read_bytes() for found in file.parent.iterdir() if not found.name.endswith("-shm")}


def told(recording: Recording) -> list[str]:
    """Return the types of a recording's blocks."""
    return [block.type for block in blocks(recording)]


async def test_each_session_becomes_a_conversation(file: Path) -> None:
    """Sessions stand in the order in which they began, with every item."""
    await save(file)
    await save(file, "chat-2", ITEMS[:1])
    await save(file, "chat-1", [{"role": "user", "content": "And tomorrow?"}])
    first, second = read_recording(file)
    assert (first.id, first.title, first.report.format) == ("chat-1", "What is the weather?", "openai-agents")
    assert told(first) == [
        "user.prompt",
        "assistant.reasoning",
        "react.tool.call",
        "react.tool.result",
        "assistant.completion",
        "user.prompt",
    ]
    assert (second.id, told(second)) == ("chat-2", ["user.prompt"])
    assert [block.turn_id for block in blocks(first)][-1] == "turn_2"
    assert not first.report.findings


async def test_tables_of_other_names_are_found(file: Path) -> None:
    """An application may name its tables; their columns tell them."""
    await save(file, sessions_table="my_sessions", messages_table="my_messages")
    assert [recording.id for recording in read_recording(file)] == ["chat-1"]


async def test_a_branch_is_a_conversation_of_its_own(file: Path) -> None:
    """A session of the advanced kind has branches, which name the session as where they come from."""
    session = AdvancedSQLiteSession(session_id="chat-1", db_path=file, create_tables=True)
    for text in ("First", "Second"):
        await session.add_items([{"role": "user", "content": text}, {"role": "assistant", "content": f"{text}!"}])
    await session.create_branch_from_turn(2, "other")
    await session.add_items([{"role": "user", "content": "Third"}])
    session.close()
    main, other = read_recording(file)
    assert [b.text for b in blocks(main)] == ["First", "First!", "Second", "Second!"]
    assert [b.text for b in blocks(other)] == ["First", "First!", "Third"]
    assert other.id == "chat-1.branch-other"
    assert other.parent == ParentLink(conversation="chat-1", relation="fork")


@pytest.mark.timeout(40)  # looking at all rows for each branch takes 80 seconds
def test_thousands_of_branches_are_read_in_one_pass(file: Path, connection: sqlite3.Connection) -> None:
    """All rows of the session were looked at for each of them."""
    connection.execute("CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id, message_data, created_at)")
    connection.execute("CREATE TABLE parts (message_id INTEGER PRIMARY KEY, session_id, branch_id, sequence_number)")
    numbers, item = range(64_000), '{"role": "user", "content": "Go on."}'
    at = "2026-01-31 09:00:00"
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO agent_messages VALUES (?, 'a', ?, ?)", [(n, item, at) for n in numbers])
    connection.executemany("INSERT INTO parts VALUES (?, 'a', ?, ?)", [(n, f"b{n}", n) for n in numbers])
    connection.execute("COMMIT")
    assert len(read_agents_database(file)) == len(numbers)


async def test_importing_again_adds_what_is_new(file: Path) -> None:
    """Rows are known by their ids, also after the newest were taken back."""
    await save(file)
    store = MemoryStore()
    await import_recording(store, *read_recording(file))
    await save(file, "chat-1", [{"role": "user", "content": "And tomorrow?"}])
    assert (await import_recording(store, *read_recording(file))).events == 1
    assert (await import_recording(store, *read_recording(file))).events == 0
    newest = (await Timeline.open(store, "chat-1")).window.items[-1].block
    assert isinstance(newest, UserPrompt)
    assert newest.text == "And tomorrow?"


async def test_damaged_rows_are_reported_under_their_ids_and_cost_no_other(
    file: Path, connection: sqlite3.Connection
) -> None:
    """What is no JSON object is put aside; bytes that are no UTF-8 are read with replacements."""
    await save(file)
    insert = "INSERT INTO agent_messages (session_id, message_data) VALUES ('chat-1', ?)"
    for data in ('{"role": "user", "cont', "[1]", "{} {}", "", b'{"role":"user","content":"\xff"}', 7):
        connection.execute(insert, (data,))
    (recording,) = read_recording(file)
    counts = recording.report.counts
    assert (counts["quarantined"], counts["encoding"]) == (5, 1)
    assert [f["line"] for f in recording.report.findings if f["kind"] == "quarantined"] == [6, 7, 8, 9, 11]
    assert blocks(recording)[-1].text == "\ufffd"
    assert len(blocks(recording)) == 6


async def test_a_database_that_is_in_use_is_read_and_left_alone(file: Path, connection: sqlite3.Connection) -> None:
    """What a writer has committed is there, what it has not is not, and it is never in its way."""
    await save(file)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    insert = "INSERT INTO agent_messages (session_id, message_data) VALUES ('chat-1', ?)"
    connection.execute(insert, ('{"role":"user","content":"committed"}',))
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(insert, ('{"role":"user","content":"not yet"}',))
    before = on_disk(file)
    (recording,) = read_recording(file)
    assert blocks(recording)[-1].text == "committed"
    assert on_disk(file) == before
    connection.execute("COMMIT")
    assert blocks(read_recording(file)[0])[-1].text == "not yet"


async def test_a_database_that_nobody_has_open_gets_no_files_beside_it(
    file: Path, connection: sqlite3.Connection
) -> None:
    """Reading one in WAL mode changes neither it nor its folder, even where nothing may be written."""
    await save(file)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    before = on_disk(file)
    file.parent.chmod(0o500)
    try:
        assert read_recording(file)
    finally:
        file.parent.chmod(0o700)
    assert on_disk(file) == before


async def test_a_database_of_timeline_is_told_apart(file: Path) -> None:
    """Its own databases are named with --db, and moved by an export."""
    async with open_store(file) as store:
        await (await Timeline.open(store, "chat-1")).append(UserPrompt(text="Hi"))
    with pytest.raises(ImportFailed, match=r"--db.*timeline export"):
        read_recording(file)


def test_other_databases_and_broken_ones_are_refused(file: Path, connection: sqlite3.Connection) -> None:
    """Each says what it is not, and how to go on."""
    connection.execute("CREATE TABLE t (x)")
    with pytest.raises(ImportFailed, match="not one of the OpenAI Agents SDK"):
        read_recording(file)
    file.write_bytes(file.read_bytes()[:600] + b"\x00" * 600)
    with pytest.raises(ImportFailed, match="cannot be read"):
        read_recording(file)


async def test_items_that_are_encrypted_are_no_answers_of_the_model(file: Path) -> None:
    """They are reported where others can be read, and refused with the cure where none can."""
    sealed = {"__enc__": 1, "v": 1, "kid": "hkdf-v1", "payload": "gAAA"}
    await save(file, "sealed", [sealed])
    with pytest.raises(ImportFailed, match=r"its items are encrypted\. Copy them into a session without encryption"):
        read_recording(file)
    await save(file, "open", [{"role": "user", "content": "Hi"}, sealed])
    [recording] = read_recording(file)
    assert (told(recording), recording.report.counts["invalid"]) == (["user.prompt"], 1)


async def test_a_database_without_items_says_so(file: Path) -> None:
    """An empty session holds nothing to import."""
    await save(file, items=[])
    with pytest.raises(ImportFailed, match="no message"):
        read_recording(file)
