"""Sessions of the Claude Agent SDK in a store of timelines: the lines, and the blocks beside them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.depth import sampled
from tests.importers.session import use
from tests.integrations.claude_agent_sdk.written import KEY, SUB, Written, batches, feed, opened
from tests.recorded import needs_recordings, swept
from timeline import Timeline, open_store
from timeline.errors import ConversationNotFound, InvalidArgument, MissingExtra
from timeline.events import BlockAppended, ModelCalled
from timeline.importers import Report, read_recording
from timeline.importers.builder import parse_time
from timeline.importers.claude_code import OPENING
from timeline.importers.lines import read_records
from timeline.integrations.claude_agent_sdk import TimelineSessionStore
from timeline.portable.recordings import import_recording
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.ports import EventStore


async def said_in(store: EventStore, conversation: str) -> list[tuple[Any, ...]]:
    """Return what a log says, in order: blocks and model calls, without the lines."""
    found: list[tuple[Any, ...]] = []
    async for event in store.read(conversation):
        match event.payload:
            case BlockAppended(block=block):
                found.append((block.type, block.path, block.text, block.turn_id, event.id))
            case ModelCalled():
                found.append(("called", event.payload.usage, event.payload.finish_reason, event.payload.response_id))
            case _ if event.payload.type == "compaction.completed":
                found.append(("compacted", event.id))
    return found


async def imported(tmp_path: Path, session: Written) -> list[tuple[Any, ...]]:
    """Return what a session says by an import of its file."""
    store = MemoryStore()
    recording, *_ = read_recording(session.write(tmp_path))
    await import_recording(store, recording)
    return await said_in(store, recording.id)


async def test_what_is_loaded_is_deep_equal_to_what_was_appended() -> None:
    """Also half a surrogate pair, which the client writes where it cut a text, and a number that no integer holds."""
    session = Written().works(3)
    session.user("cut here \ud83d")
    session.unnamed("atis-latch", atis="")
    session.unnamed("atis-latch", atis="")
    session.row("attachment", attachment={"size": 10**30, "share": 0.1, "none": None, "zero": "\x00"})
    async with open_store("memory://") as store:
        sessions = await feed(store, session.rows)
        assert await sessions.load(KEY) == session.rows
        assert await TimelineSessionStore(store).load(KEY) == session.rows
        assert await sessions.load(SUB) is None


@given(seed=st.integers(0, 10_000))
async def test_in_whatever_batches_a_session_comes_its_log_says_what_an_import_says(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The same blocks at the same paths under the same ids, each model call once, whoever reads the rows when."""
    session = Written().works(4)
    session.row("system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 900})
    session.user("The story so far.", isCompactSummary=True)
    session.works(2)
    store = MemoryStore()
    for number, batch in enumerate(batches(session.rows, seed=seed)):
        if number % 3 == 0:  # another process goes on
            sessions = TimelineSessionStore(store)
        await sessions.append(KEY, batch)
    whole = await imported(tmp_path_factory.mktemp("session"), session)
    assert Counter(await said_in(store, KEY["session_id"])) == Counter(whole)


@pytest.mark.parametrize("seed", range(4))
async def test_what_a_user_says_while_the_agent_works_is_in_the_log_of_its_session(seed: int, tmp_path: Path) -> None:
    """The client gives such a prompt to the model beside the conversation: once by its queue, once in a row."""
    session = Written()
    session.user("go")
    session.asks(use("a", command="make"))
    del session.row("queue-operation", operation="enqueue", content="commit first")["uuid"]
    del session.row("queue-operation", operation="remove")["uuid"]
    session.result("a", "made")
    session.row("attachment", attachment={"type": "queued_command", "prompt": "then push"})
    session.ends("Done.")
    store = MemoryStore()
    await feed(store, session.rows, seed=seed)
    said = await said_in(store, KEY["session_id"])
    assert [text for type_, _, text, *_ in said if type_ == "user.prompt"] == ["go", "commit first", "then push"]
    assert Counter(said) == Counter(await imported(tmp_path, session))


async def test_the_log_is_ready_after_each_batch() -> None:
    """The last answer of a turn is there with its call of the model when the turn is over."""
    session = Written()
    session.user("hi")
    session.ends("Hello there.")
    async with open_store("memory://") as store:
        await feed(store, session.rows)
        timeline = await opened(store)
        assert [item.block.text for item in timeline.window.items] == ["hi", "Hello there."]
        assert [call.finish_reason async for call in timeline.calls()] == ["end_turn"]
        assert (await store.info(timeline.id)).title == "hi"


async def test_a_response_that_two_batches_share_is_one_call_of_the_model() -> None:
    """Its call is recorded when the calls of tools that it announced are there."""
    session = Written()
    session.user("go")
    session.asks(use("a", command="make"))
    session.result("a")
    session.ends("Done.")
    async with open_store("memory://") as store:
        sessions = TimelineSessionStore(store)
        for row in session.rows:
            await sessions.append(KEY, [row])
        kinds = [kind for kind, *_ in await said_in(store, KEY["session_id"])]
    parts = ["user.prompt", "assistant.completion", "react.tool.call", "called", "react.tool.result"]
    assert kinds == [*parts, "assistant.completion", "called"]


async def test_a_batch_that_comes_again_changes_nothing() -> None:
    """Not by the same store, nor by another one, nor in other batches; and what is new in it is added."""
    session = Written().works(2)
    async with open_store("memory://") as store:
        sessions = await feed(store, session.rows)
        version = (await store.info(KEY["session_id"])).version
        await sessions.append(KEY, session.rows)
        for batch in batches(session.rows, seed=5):
            if any("uuid" in row for row in batch):
                await TimelineSessionStore(store).append(KEY, batch)
        assert (await store.info(KEY["session_id"])).version == version
        session.ends("More.")
        await sessions.append(KEY, session.rows[-6:])
        assert await sessions.load(KEY) == session.rows


async def test_a_line_without_a_uuid_is_kept_as_often_as_it_is_said() -> None:
    """Titles and modes are: the protocol wants them without deduplication."""
    row = {"type": "mode", "mode": "plan"}
    async with open_store("memory://") as store:
        sessions = TimelineSessionStore(store)
        await sessions.append(KEY, [row])
        await sessions.append(KEY, [row])
        await sessions.append(KEY, [])
        assert await sessions.load(KEY) == [row, row]


async def test_appends_at_the_same_time_lose_nothing_and_keep_each_line_once() -> None:
    """From several stores, some of which are given the same batches."""
    session = Written().works(6)
    async with open_store("memory://") as store:
        stores = [TimelineSessionStore(store) for _ in range(4)]
        parts = list(batches(session.rows, seed=2))

        async def write(sessions: TimelineSessionStore, mine: list[list[dict[str, Any]]]) -> None:
            for batch in mine:
                await sessions.append(KEY, [row for row in batch if "uuid" in row])

        await asyncio.gather(*(write(one, parts[start:]) for one, start in zip(stores, (0, 0, 1, 3), strict=True)))
        loaded = await stores[0].load(KEY)
        assert loaded is not None
        wanted = [row["uuid"] for row in session.rows if "uuid" in row]
        assert sorted(row["uuid"] for row in loaded) == sorted(wanted)
        timeline = await opened(store)
        assert (await timeline.verify()).ok
        paths = [path for kind, path, *_ in await said_in(store, timeline.id) if kind != "called"]
        assert len(paths) == len(set(paths)) == 6 * 7


WRITING = """
import asyncio, json, sys
from timeline import open_store
from timeline.integrations.claude_agent_sdk import TimelineSessionStore

async def main():
    rows, key = json.loads(sys.stdin.readline())
    async with open_store(sys.argv[1]) as store:
        sessions = TimelineSessionStore(store)
        for start in range(0, len(rows), 3):
            await sessions.append(key, rows[start:start + 3])
            print(start + 3, flush=True)

asyncio.run(main())
"""


def killed_while_writing(database: Path, rows: list[dict[str, Any]], lines: int) -> int:
    """Write rows in another process, and kill it after some answers; return how many rows it said it had written."""
    command = [sys.executable, "-c", WRITING, str(database)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writing:
        assert writing.stdin is not None
        assert writing.stdout is not None
        writing.stdin.write(json.dumps([rows, KEY]) + "\n")
        writing.stdin.flush()
        acknowledged = [int(writing.stdout.readline()) for _ in range(lines)][-1]
        os.kill(writing.pid, signal.SIGKILL)
    return acknowledged


@pytest.mark.parametrize("lines", [1, 4, 9])
async def test_killed_in_the_middle_nothing_acknowledged_is_lost_and_the_rest_is_made_up(
    tmp_path: Path, lines: int
) -> None:
    """The session is imported anew by the SDK after a gap: what was there is known."""
    session = Written().works(6)
    rows = [row for row in session.rows if "uuid" in row]
    acknowledged = killed_while_writing(tmp_path / "agent.db", rows, lines)
    async with open_store(tmp_path / "agent.db") as store:
        sessions = TimelineSessionStore(store)
        kept = await sessions.load(KEY) or []
        assert kept == rows[: len(kept)]
        assert len(kept) >= acknowledged
        await sessions.append(KEY, rows)
        assert await sessions.load(KEY) == rows
        assert Counter(await said_in(store, KEY["session_id"])) == Counter(await imported(tmp_path, session))
        assert (await (await opened(store)).verify()).ok


async def test_a_subagent_is_a_conversation_of_its_own_that_names_the_call() -> None:
    """Its rows, all on the side of the session, are the conversation there."""
    session, side = Written(), Written()
    session.user("go")
    session.asks(use("toolu_4", "Agent", prompt="Look at it."), text="Let me have it looked at.")
    side.unnamed("agent_metadata", agentType="general-purpose", toolUseId="toolu_4")
    side.user("Look at it.", isSidechain=True)
    side.ends("It is fine.", isSidechain=True)
    async with open_store("memory://") as store:
        sessions = await feed(store, session.rows)
        await sessions.append(SUB, side.rows)
        assert await sessions.list_subkeys(KEY) == [SUB["subpath"]]
        assert await sessions.load(SUB) == side.rows
        assert await sessions.load(KEY) == session.rows
        conversation = f"{KEY['session_id']}.agent-a75353995cda43722"
        timeline = await opened(store, conversation)
        assert [item.block.text for item in timeline.window.items] == ["Look at it.", "It is fine."]
        link = (await store.info(conversation)).parent
    assert link is not None
    assert (link.conversation, link.relation) == (KEY["session_id"], "subagent")
    assert link.path == "tc:turn_1.toolu_4.call"


async def test_sessions_of_one_id_in_two_projects_know_nothing_of_each_other() -> None:
    """The second one's conversation has another id."""
    other = {**KEY, "project_key": "-home-you"}
    async with open_store("memory://") as store:
        sessions = TimelineSessionStore(store)
        await sessions.append(KEY, [{"type": "x", "uuid": "1"}])
        assert await sessions.load(other) is None
        await sessions.append(other, [{"type": "y", "uuid": "1"}])
        again = TimelineSessionStore(store)
        assert await again.load(KEY) == [{"type": "x", "uuid": "1"}]
        assert await again.load(other) == [{"type": "y", "uuid": "1"}]
        assert [one["session_id"] for one in await again.list_sessions("-home-you")] == [KEY["session_id"]]
        assert [info.id async for info in store.conversations()] == [KEY["session_id"], f"{KEY['session_id']}~2"]


async def test_a_conversation_that_is_no_session_is_left_alone() -> None:
    """An application may have one under the id of a session."""
    async with open_store("memory://") as store:
        timeline = await Timeline.open(store, KEY["session_id"])
        await timeline.append({"type": "user.prompt", "text": "mine"})
        sessions = TimelineSessionStore(store)
        assert await sessions.load(KEY) is None
        await sessions.append(KEY, [{"type": "x"}])
        assert await sessions.load(KEY) == [{"type": "x"}]
        assert [item.block.text for item in (await opened(store)).window.items] == ["mine"]


async def test_a_deleted_session_is_gone_with_its_subagents_and_may_be_written_anew() -> None:
    """Also by a store that had it open; the log keeps what was deleted."""
    session = Written().works(1)
    async with open_store("memory://") as store:
        sessions, other = await feed(store, session.rows), TimelineSessionStore(store)
        await sessions.append(SUB, session.rows[:2])
        await other.delete(KEY)
        assert await sessions.load(KEY) is await sessions.load(SUB) is None
        assert (await sessions.list_sessions(KEY["project_key"]), await sessions.list_subkeys(KEY)) == ([], [])
        await sessions.append(KEY, session.rows[:3])
        assert await other.load(KEY) == session.rows[:3]
        assert await other.load(SUB) is None
        assert (await opened(store)).window.items
        anew = await opened(store, f"{KEY['session_id']}~2")
        assert [item.block.text for item in anew.window.items] == ["Step 0", "Running."]


async def test_a_listing_dates_a_session_by_when_its_newest_line_was_written() -> None:
    """Not by the client's clock, and not by what is decided about it later."""
    session = Written().works(1)
    async with open_store("memory://") as store:
        sessions = await feed(store, session.rows)
        (before,) = await sessions.list_sessions(KEY["project_key"])
        timeline = await opened(store)
        await timeline.hide(timeline.window.items[0].block.path)
        assert await sessions.list_sessions(KEY["project_key"]) == [before]
        assert before["mtime"] > session_time(session)


async def test_sessions_that_are_written_within_a_millisecond_are_dated_in_their_order() -> None:
    """The SDK sorts by the time alone."""
    async with open_store("memory://") as store:
        sessions = TimelineSessionStore(store)
        for number in range(20):
            row = {**Written().works(1).rows[0], "sessionId": f"session {number}"}
            await sessions.append({"project_key": "p", "session_id": f"session {number}"}, [row])
        listed = await sessions.list_sessions("p")
    assert [one["session_id"] for one in listed] == [f"session {number}" for number in reversed(range(20))]
    times = [one["mtime"] for one in listed]
    assert times == sorted(set(times), reverse=True)


def session_time(session: Written) -> int:
    """Return the newest time that a session's rows tell, in milliseconds."""
    times = [parse_time(row.get("timestamp")) for row in session.rows]
    return max(int(at.timestamp() * 1_000) for at in times if at is not None)


async def test_what_the_sdk_alone_can_do_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """A summary is the SDK's own fold; all else works without it."""
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", None)
    async with open_store("memory://") as store:
        sessions = await feed(store, Written().works(1).rows)
        with pytest.raises(MissingExtra, match=r"pip install 'timeline-engine\[claude-agent-sdk\]'"):
            await sessions.list_session_summaries(KEY["project_key"])


async def test_wrong_arguments_are_refused() -> None:
    """With the choices."""
    async with open_store("memory://") as store:
        with pytest.raises(InvalidArgument, match="'verbatim' or 'compacted'"):
            TimelineSessionStore(store, resume="short")  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="open store"):
            TimelineSessionStore("agent.db")  # type: ignore[arg-type]
        with pytest.raises(ConversationNotFound):
            await opened(store)


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a session's file, each uuid once: one of the files repeats a row."""
    rows = [record.value for record in read_records(path.read_bytes(), Report(), opening=OPENING)]
    return list({row.get("uuid", number): row for number, row in enumerate(rows)}.values())


@needs_recordings
@sampled
@pytest.mark.parametrize("path", swept("claude-code/*.jsonl"), ids=lambda path: path.stem)
async def test_recorded_sessions_come_back_as_they_were_with_the_blocks_of_an_import(path: Path) -> None:
    """But for the last model call: old versions of the client do not say that its response is over."""
    rows = rows_of(path)
    key = {"project_key": "p", "session_id": next(row["sessionId"] for row in rows if row.get("sessionId"))}
    store, whole = MemoryStore(), MemoryStore()
    sessions = TimelineSessionStore(store)
    for start in range(0, len(rows), 100):
        await sessions.append(key, rows[start : start + 100])
    assert await sessions.load(key) == rows
    recording, *_ = read_recording(path)
    await import_recording(whole, recording)
    ours, theirs = await said_in(store, key["session_id"]), await said_in(whole, recording.id)
    assert [one for one in theirs if one not in ours] in ([], [one for one in theirs if one[0] == "called"][-1:])
    assert [one for one in ours if one not in theirs] == []


def left_in_files(folder: Path, text: str) -> list[str]:
    """Return the names of the files that hold a text."""
    return [path.name for path in folder.iterdir() if text.encode() in path.read_bytes()]


async def test_a_redaction_takes_the_words_out_of_the_clients_lines_and_a_batch_that_comes_again_brings_none_back(
    tmp_path: Path,
) -> None:
    """The client still has what was redacted, and may send its lines once more."""
    planted = "sk-live-51planted0123456789abcdef"
    session = Written()
    session.user(f"Deploy with {planted}.")
    session.asks(use("c1", command=f"export KEY={planted}"))
    session.result("c1", f"KEY={planted} is set")
    session.ends("Deployed.")
    file = tmp_path / "agent.db"
    async with open_store(file) as store:
        sessions = await feed(store, session.rows)
        timeline = await Timeline.open(store, KEY["session_id"])
        held = [item for item in timeline.window.items if planted in item.block.model_dump_json()]
        await timeline.redact([f"@{item.version}" for item in held], "a leaked key")
        loaded = await sessions.load(KEY)
        assert loaded is not None
        assert [row.get("uuid") for row in loaded] == [row.get("uuid") for row in session.rows]
    async with open_store(file) as store:
        await feed(store, session.rows, seed=2)
        assert planted not in json.dumps(await TimelineSessionStore(store).load(KEY))
    assert left_in_files(tmp_path, planted) == []


async def test_a_redaction_of_a_result_takes_what_the_client_keeps_of_it_beside_the_message(tmp_path: Path) -> None:
    """There it says the same otherwise: a file without the numbers of its lines, and the whole of it."""
    planted = "rotate the vault on friday"
    session = Written()
    session.user("Read the notes.")
    session.asks(use("c1", "Read", file_path="notes.md"), use("c2", command="ls"))
    file = {"filePath": "notes.md", "content": f"Notes\n{planted}\nBye", "numLines": 3}
    numbered = f"1\tNotes\n2\t{planted[:12]}\n"  # as the message shows it, cut
    session.result("c1", numbered, toolUseResult={"type": "text", "agentId": "a1", "file": file})
    session.result("c2", "notes.md", toolUseResult={"stdout": "notes.md", "stderr": ""})
    session.ends("Done.")
    database = tmp_path / "agent.db"
    async with open_store(database) as store:
        sessions = await feed(store, session.rows)
        timeline = await Timeline.open(store, KEY["session_id"])
        report = await timeline.redact("tc:turn_1.c1.result", "a secret")
        rows = {row["uuid"]: row for row in await sessions.load(KEY) or () if "toolUseResult" in row}
        assert report.left == {}
    read, listed = (rows[row["uuid"]]["toolUseResult"] for row in session.rows if "toolUseResult" in row)
    assert (read["type"], read["agentId"]) == ("text", "a1")
    assert read["file"] == {"filePath": "[redacted]", "content": "[redacted]", "numLines": 3}
    assert listed == {"stdout": "notes.md", "stderr": ""}
    assert left_in_files(tmp_path, planted) == []
