"""What forgetting leaves in a store's files: nothing of what went, whatever is killed and whoever looks on."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.depth import DEPTH, sampled
from tests.forgetting.planted import FOLDED, LEAK, PLAIN, SECRETS, SYSTEM, UNICODE, left_in, places_left, plant
from tests.killed import killed
from tests.recorded import needs_recordings, swept
from timeline import policies
from timeline.audit.deep import verify_deep
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.errors import BudgetError, CompactionError, ConversationErased, ImportFailed
from timeline.events.encoding import checksum
from timeline.forgetting import find_subject
from timeline.importers import read_recording
from timeline.portable import export_log
from timeline.portable.recordings import import_recording
from timeline.store.sqlite.rewriting import drop_values
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import block_event
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from pathlib import Path

WHY = "a password"
STRIDE = DEPTH.step * 3
LEFT = {"redact": 10, "erase": 4, "copy": 18}
"""In how many states of the files a kill leaves them, at least."""


async def redact_all(store: SQLiteStore, *texts: str) -> None:
    """Redact every place at which texts are said, as the list of `find_subject` goes into `redact`."""
    for text in texts:
        places: dict[str, list[str]] = {}
        async for found in find_subject(store, text):
            places.setdefault(found.conversation, []).append(found.place)
        for id_, named in places.items():
            timeline = await Timeline.open(store, id_, create=False)
            await timeline.redact(named, WHY, text=text)


async def exported(store: SQLiteStore) -> bytes:
    """Return an export of everything."""
    ids = [info.id async for info in store.conversations()]
    return "".join([line async for line in export_log(store, ids)]).encode()


async def test_what_is_found_can_be_redacted_until_nothing_is_found(tmp_path: Path) -> None:
    """The list has every place, also in another case, in a system prompt, a title and a framework's entry."""
    file = tmp_path / "a.db"
    async with await SQLiteStore.open(file) as store:
        await plant(store)
        kinds = {found.kind async for found in find_subject(store, PLAIN)}
        assert kinds == {"block", "summary", "title", "event", "value"}
        await redact_all(store, PLAIN, UNICODE)
        assert [found async for found in find_subject(store, PLAIN)] == []
        assert [found async for found in find_subject(store, UNICODE)] == []
        assert left_in(await exported(store)) == 0
        for info in [info async for info in store.conversations()]:
            timeline = await Timeline.open(store, info.id, create=False)
            report = await timeline.verify()
            assert report.ok, report.problems
    assert places_left(file) == {}


@pytest.mark.parametrize("how", ["redact", "erase", "copy"])
async def test_all_that_is_derived_is_as_the_log_has_it_afterwards(tmp_path: Path, how: str) -> None:
    """Digests, facts, index, snapshots and rows of conversations; and the chain holds, and vouches for what is new."""
    async with await SQLiteStore.open(tmp_path / "a.db") as store:
        await plant(store)
        assert (await verify_deep(store)).differences == ()
        if how == "redact":
            await redact_all(store, PLAIN, UNICODE)
        elif how == "copy":
            await store.erase("cards", forks="copy")
        else:
            await store.erase("cards.late")
        for _ in range(2):
            report = await verify_deep(store)
            assert (report.differences, [each.problems for each in report.conversations if not each.ok]) == ((), [])
            _ = [hit async for hit in store.search("write")], [fact async for fact in store.facts()]
        if how == "redact":
            assert sum(each.rewritten for each in report.conversations) > 0


async def test_what_is_rewritten_without_a_redaction_is_tampering(tmp_path: Path) -> None:
    """Somebody who takes the salt away, and computes the checksum anew, is found by the chain."""
    file = tmp_path / "a.db"
    async with await SQLiteStore.open(file) as store:
        timeline = await Timeline.open(store, "cards")
        await timeline.append(UserPrompt(text="Build a flashcard app."))
        [row] = await store.database.rows("SELECT event_id, at, payload FROM events WHERE version = 2")
    payload = row[2].replace("flashcard", "gambling")
    hashed = checksum("cards", 2, row[0], "block.appended", 1, row[1], payload)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(
            "UPDATE events SET payload = ?, checksum = ?, salt = NULL WHERE version = 2", (payload, hashed)
        )
    async with await SQLiteStore.open(file) as store:
        timeline = await Timeline.open(store, "cards")
        report = await timeline.verify()
    assert any("no redaction says so" in problem for problem in report.problems)


async def test_an_erased_conversation_is_in_no_file_of_the_store(tmp_path: Path) -> None:
    """With its forks; the other conversation stays whole."""
    file = tmp_path / "a.db"
    async with await SQLiteStore.open(file) as store:
        other = await Timeline.open(store, "other")
        await other.append(UserPrompt(text="This one stays."))
        await plant(store)
        report = await store.erase("cards", forks="erase")
        assert (report.physical, set(report.conversations)) == (True, {"cards", "cards.early", "cards.late"})
        assert places_left(file) == {}
        with pytest.raises(ConversationErased):
            await Timeline.open(store, "cards")
        assert [hit.conversation async for hit in store.search("stays")] == ["other"]
    assert places_left(file) == {}


async def test_an_erasure_keeps_the_search_index_of_the_other_conversations(tmp_path: Path) -> None:
    """To index them anew takes minutes where there are many. No word of what went is left in it."""
    file = tmp_path / "a.db"
    async with await SQLiteStore.open(file) as store:
        for number in range(20):
            await store.append(f"c{number}", [block_event("p", "harmless words"), block_event("q", "more of them")])
        await store.append("secret", [block_event("p", "the password is hunter2")])
        assert [hit.conversation async for hit in store.search("hunter2")] == ["secret"]
        assert (await store.erase("secret")).physical
    assert b"hunter2" not in file.read_bytes()
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT position FROM search_progress").fetchall() == [(40,)]
        connection.execute("CREATE VIRTUAL TABLE temp.v USING fts5vocab (main, search_index, 'row')")
        assert connection.execute("SELECT doc FROM v WHERE term IN ('harmless', 'hunter2')").fetchall() == [(20,)]


async def test_an_erasure_looks_no_further_than_to_another_event_that_names_the_text(tmp_path: Path) -> None:
    """A policy is named by nearly every conversation: to read them all kept appends waiting for seconds."""
    steps: list[int] = []

    def drop(connection: sqlite3.Connection) -> None:
        done: list[None] = []
        connection.set_progress_handler(lambda: done.append(None), 1)
        drop_values(connection, {policies.balanced().hash()})
        connection.set_progress_handler(None, 1)
        steps.append(len(done))

    async with await SQLiteStore.open(tmp_path / "a.db") as store:
        for many in (10, 200):
            for number in range(many):
                await Timeline.open(store, f"{many} {number}", policy=policies.balanced())
            await store.database.do(drop)
    assert 0 < steps[1] <= steps[0]  # newer SQLite may take a few more the first time


async def test_forks_that_keep_a_copy_can_be_redacted_afterwards(tmp_path: Path) -> None:
    """They verify as before, each for itself, and what they hold goes when it is asked of them."""
    file = tmp_path / "a.db"
    async with await SQLiteStore.open(file) as store:
        world = await plant(store)
        await store.erase("cards", forks="copy")
        assert places_left(file) != {}
        for name in ("fork", "late"):
            again = await Timeline.open(store, world[name].id, create=False)
            assert again.window == world[name].window
            report = await again.verify()
            assert report.ok, report.problems
        await redact_all(store, PLAIN, UNICODE)
    assert places_left(file) == {}


async def test_a_reader_in_the_way_is_reported_and_a_repetition_ends_it(tmp_path: Path) -> None:
    """What another connection still reads cannot be taken from it; the logical part is done."""
    file = tmp_path / "a.db"
    async with await SQLiteStore.open(file, busy_timeout=0.2) as store:
        timeline = await Timeline.open(store, "cards")
        [prompt] = await timeline.append(UserPrompt(text=f"Say {PLAIN}."))
        with closing(sqlite3.connect(file, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM events").fetchall()
            report = await timeline.redact(prompt.path, WHY)
            assert not report.physical
            assert "files" in report.left
            assert (await timeline.read(prompt.path)).text == "[redacted]"
        report = await timeline.redact(prompt.path, WHY)
        assert report.physical
    assert places_left(file) == {}


@sampled
@pytest.mark.parametrize("what", ["redact", "erase", "copy"])
async def test_killed_at_any_statement_what_is_left_is_readable_and_a_rerun_ends_it(tmp_path: Path, what: str) -> None:
    """Each conversation that is there verifies, and nothing is left of what went when it is done again."""

    async def forget(store: SQLiteStore) -> None:
        if what == "redact":
            await redact_all(store, PLAIN, UNICODE)
        elif what == "erase":
            await store.erase("cards", forks="erase")
        else:
            await store.erase("cards", forks="copy")
            await redact_all(store, PLAIN, UNICODE)

    async with await SQLiteStore.open(tmp_path / "a.db", durability="normal") as store:
        await plant(store)
        async with killed(store, tmp_path, every=STRIDE) as left:
            await forget(store)
    assert len(left) >= LEFT[what] // DEPTH.step, "states of the files that differ"
    for file in left:
        async with await SQLiteStore.open(file) as store:
            for info in [info async for info in store.conversations()]:
                timeline = await Timeline.open(store, info.id, create=False)
                report = await timeline.verify()
                assert report.ok, (file, report.problems)
            await forget(store)
        assert places_left(file) == {}, file


async def _played(store: SQLiteStore, file: Path) -> list[str]:
    """Import a recording, plant secrets behind it, and go on as an agent that compacts it; return the ids."""
    policy = policies.balanced(max_tokens=20_000)
    ids = []
    for recording in read_recording(file):
        await import_recording(store, recording)
        timeline = await Timeline.open(store, recording.id, policy=policy, create=False)
        now = timeline.window.items[-1].block.at or datetime.now(UTC)
        call = ToolCall(call_id="planted", name="Write", arguments={"file_path": f"/srv/{FOLDED}.md", "content": LEAK})
        await timeline.append(UserPrompt(text=f"The key: {LEAK}."), now=now)
        await timeline.append(call, ToolResult(call_id="planted", text=f"wrote {UNICODE}"), now=now)
        for number in range(3):
            now += timedelta(minutes=10)
            with suppress(BudgetError):
                await timeline.render(system=SYSTEM, now=now)
            await timeline.append(UserPrompt(text=f"Go on, {number}."), now=now)
            with suppress(CompactionError):
                await timeline.compact(now=now)
        await timeline.fork(conversation=f"{recording.id}.fork")
        ids += [recording.id, f"{recording.id}.fork"]
    return ids


@sampled
@needs_recordings
@pytest.mark.parametrize("source", swept("*/*"), ids=lambda path: f"{path.parent.name}/{path.name}")
async def test_what_was_planted_in_a_recordings_store_goes_without_a_byte(source: Path, tmp_path: Path) -> None:
    """Out of database, log, search and exports; the rest verifies as before, and forks never show it again."""
    if source.name == "README.md":
        return
    try:
        read_recording(source)
    except ImportFailed:
        return
    file = tmp_path / "a.db"
    async with await SQLiteStore.open(file, durability="normal") as store:
        ids = await _played(store, source)
        _ = [hit async for hit in store.search("kestrel")], [fact async for fact in store.facts()]
        sound = {id_: (await (await Timeline.open(store, id_, create=False)).verify()).ok for id_ in ids}
        assert left_in(await exported(store)) > 0
        await redact_all(store, PLAIN, UNICODE)
        assert places_left(file, SECRETS) == {}
        assert left_in(await exported(store)) == 0
        for id_ in ids:
            timeline = await Timeline.open(store, id_, policy=policies.none(max_tokens=10_000_000), create=False)
            assert left_in(str((await timeline.render()).to_anthropic()).encode()) == 0
            report = await timeline.verify()
            assert report.ok or not sound[id_], report.problems
    assert places_left(file, SECRETS) == {}
