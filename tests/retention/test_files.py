"""What scavenging leaves in a database file: nothing of what went, and as much less as the rehearsal says."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import pytest

from tests.depth import DEPTH, sampled
from tests.killed import killed
from tests.recorded import needs_recordings, swept
from timeline import policies
from timeline.audit.verify import verify
from timeline.errors import BudgetError, CompactionError, ImportFailed
from timeline.importers import read_recording
from timeline.portable.recordings import import_recording
from timeline.ports import Summary, SystemClock
from timeline.retention import freeable, rehearse, scavenge
from timeline.retention.scavenging import LEASE
from timeline.store.sqlite.store import SQLiteStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.ports import SummaryRequest
    from timeline.retention import ScavengeReport

MARKER: Final = "Quetzalcoatlus"
TOLERANCE: Final = 4096
"""A page: the lease of scavenging is a row that the rehearsal does not have."""
TURNS: Final = 30


class _Fixed:
    """A summarizer that says nothing of what it read."""

    name = "fixed"

    async def summarize(self, request: SummaryRequest) -> Summary:
        return Summary(text=f"They worked on card {request.compaction_number}.", summarizer=self.name)


class _Later(SystemClock):
    """A clock at which the lease of a runner that was killed just now is over."""

    def now(self) -> datetime:
        return super().now() + 2 * LEASE


async def _conversation(store: SQLiteStore, id_: str = "cards") -> Timeline:
    """Make a conversation whose history, also its system prompts, says a word that its window does not."""
    policy = policies.cut_point(max_tokens=4_000)
    timeline = await Timeline.open(store, id_, policy=policy, summarizer=_Fixed())
    for number in range(TURNS):
        said = f"{MARKER}{number} " if number < TURNS // 2 else ""
        await timeline.append(
            {"type": "user.prompt", "text": f"{said}Write card {number}. " + "Say more. " * 40},
            {"type": "assistant.completion", "text": f"{said}Card {number}. " + "It is done. " * 40},
        )
        await timeline.render(system=f"You write cards. {said}")
    assert timeline.window.items[0].is_summary
    assert MARKER not in " ".join(item.block.text for item in timeline.window.items)
    return timeline


async def _scavenged(file: Path) -> ScavengeReport:
    async with await SQLiteStore.open(file) as store:
        return await scavenge(store, clock=_Later())


def _raw(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.iterdir()))


def _holds(raw: bytes) -> bool:
    word = MARKER.encode()
    return any(form in raw for form in (word, word.lower(), word.upper(), MARKER.encode("utf-16-le")))


@pytest.mark.shows("004-147")
async def test_a_word_of_the_removed_history_is_in_no_file_of_the_store(tmp_path: Path) -> None:
    """Neither in the database, nor in its log, nor among the words of its index: with the store open, and closed."""
    async with await SQLiteStore.open(tmp_path / "a.db") as store:
        await store.set_retention("window")
        timeline = await _conversation(store)
        assert [found async for found in store.search(f"{MARKER}3")]
        assert _holds(_raw(tmp_path))
        report = await scavenge(store)
        assert (report.done, report.values) == (True, TURNS // 2)
        assert not _holds(_raw(tmp_path))
        assert not [found async for found in store.search(f"{MARKER}3")]
        assert [found async for found in store.search("Card 29")]
        assert (await timeline.verify()).ok
    assert not _holds(_raw(tmp_path))


@pytest.mark.shows("004-147")
async def test_what_went_has_left_its_version_and_time_alone(tmp_path: Path) -> None:
    """Packed or not: a packed payload is in no search for a word either. What vouches for its facts is a hash."""
    async with await SQLiteStore.open(tmp_path / "a.db") as store:
        await store.set_retention("window")
        timeline = await _conversation(store)
        report = await scavenge(store)
        kept = [event.version async for event in store.read(timeline.id)]
    with closing(sqlite3.connect(tmp_path / "a.db")) as file:
        stored = file.execute("SELECT version, length(payload), length(packed), substr(packed, 1, 1) FROM events")
        gone = [row[1:] for row in stored if row[0] not in kept]
    assert gone == [(0, 17, b"\0")] * report.events


async def test_the_file_is_smaller_by_what_the_rehearsal_said(tmp_path: Path) -> None:
    """To the byte by the report, and within a page by the file, once the store is closed."""
    file = tmp_path / "a.db"
    async with await SQLiteStore.open(file) as store:
        await store.set_retention("window")
        await _conversation(store)
        assert [found async for found in store.search(f"{MARKER}3")]
    before = file.stat().st_size
    async with await SQLiteStore.open(file, readonly=True) as store:
        rehearsed = await rehearse(store)
    assert file.stat().st_size == before
    assert await _scavenged(file) == rehearsed
    freed = before - file.stat().st_size
    assert abs(freed - (rehearsed.before - rehearsed.after)) <= TOLERANCE
    assert freed > 0.5 * rehearsed.size


async def test_a_rehearsal_counts_nothing_of_a_conversation_that_stays(tmp_path: Path) -> None:
    """Neither among its events, nor in the size that the file would have."""
    file = tmp_path / "a.db"
    async with await SQLiteStore.open(file) as store:
        await store.set_retention("window")
        await _conversation(store)
        await (await _conversation(store, "held")).set_legal_hold(on=True)
    async with await SQLiteStore.open(file, readonly=True) as store:
        rehearsed = await rehearse(store)
        assert await freeable(store, _Later().now()) == rehearsed.before - rehearsed.after
    assert [found.stays for found in rehearsed.conversations] == ["", "legal_hold"]
    assert await _scavenged(file) == rehearsed


async def test_a_run_that_adds_facts_first_names_the_sizes_of_the_rehearsal(tmp_path: Path) -> None:
    """The size before is that of the file that somebody looks at, not of one that has grown by those facts."""
    file = tmp_path / "a.db"
    async with await SQLiteStore.open(file) as store:
        await store.set_retention("window")
        await _conversation(store)
        named = await Timeline.open(store, "named")
        for number in range(60):
            files = " ".join(f"/deck/{number}/{card}.md" for card in range(20))
            await named.append({"type": "user.prompt", "text": files})
    size = file.stat().st_size
    async with await SQLiteStore.open(file, readonly=True) as store:
        rehearsed = await rehearse(store)
    assert (await _scavenged(file), rehearsed.before) == (rehearsed, size)


@sampled
async def test_killed_at_any_statement_what_is_left_is_readable_and_a_rerun_ends_it(tmp_path: Path) -> None:
    """The window is as before, and a rerun removes the rest, as much as in one go."""
    async with await SQLiteStore.open(tmp_path / "a.db") as store:
        await store.set_retention("window")
        timeline = await _conversation(store)
        assert [found async for found in store.search(f"{MARKER}3")]
        window, shown = timeline.window, await timeline.render(record=False)
        async with killed(store, tmp_path, every=DEPTH.step * 5) as left:
            whole = await scavenge(store)
    assert len(left) > 5 // DEPTH.step, "states of the files that differ"
    for file in left:
        async with await SQLiteStore.open(file) as store:
            again = await Timeline.open(store, "cards", policy=timeline.policy, create=False)
            assert again.window == window
            report = await again.verify()
            assert report.ok, (file, report.problems)
        await _scavenged(file)
        assert not _holds(_raw(file.parent)), file
        async with await SQLiteStore.open(file) as store:
            assert sum((await store.scavenged("cards")).values()) == whole.events
            again = await Timeline.open(store, "cards", policy=timeline.policy, create=False)
            assert again.window == window
            assert (await again.render(record=False)).fingerprint == shown.fingerprint
            assert (await again.verify()).ok


async def _played(store: SQLiteStore, file: Path) -> list[str]:
    """Import a recording, then go on as an agent would that compacts it; return the conversations' ids."""
    policy = policies.balanced(max_tokens=20_000)
    ids = []
    for recording in read_recording(file):
        await import_recording(store, recording)
        timeline = await Timeline.open(store, recording.id, policy=policy, create=False)
        now = timeline.window.items[-1].block.at or datetime.now(UTC)
        for number in range(3):
            now += timedelta(minutes=10)
            with suppress(CompactionError):
                await timeline.compact(now=now)
            with suppress(BudgetError):
                await timeline.render(system="You are an agent.", now=now)
            await timeline.append({"type": "user.prompt", "text": f"Go on, {number}."}, now=now)
        ids.append(recording.id)
    return ids


async def _look(store: SQLiteStore, id_: str) -> tuple[object, str]:
    """Return a conversation's window, and what its next render is, or why there is none."""
    timeline = await Timeline.open(store, id_, policy=policies.balanced(max_tokens=20_000), create=False)
    now = datetime(2030, 1, 1, tzinfo=UTC)
    try:
        return timeline.window, (await timeline.render(system="You are an agent.", now=now, record=False)).fingerprint
    except BudgetError as error:
        return timeline.window, str(error)


async def scavenged_recording(source: Path, folder: Path) -> tuple[int, int, int]:
    """Scavenge the store of a recording and check it; return the file's bytes before, after, and as rehearsed."""
    file = folder / "a.db"
    async with await SQLiteStore.open(file, durability="normal") as store:
        ids = await _played(store, source)
        await store.set_retention("window")
        _ = [found async for found in store.search("the")]
    before = file.stat().st_size
    async with await SQLiteStore.open(file) as store:
        looks = [await _look(store, id_) for id_ in ids]
        digests = [digest async for digest in store.digests(reverted=None)]
        sound = [(await verify(store, id_)).ok for id_ in ids]
        rehearsed = await rehearse(store)
        done = await scavenge(store)
        assert (done.done, done.events, done.values) == (True, rehearsed.events, rehearsed.values)
        assert [await _look(store, id_) for id_ in ids] == looks
        assert [digest async for digest in store.digests(reverted=None)] == digests
        for id_, was_sound in zip(ids, sound, strict=True):
            report = await verify(store, id_)
            assert report.ok or not was_sound, report.problems
        assert (await rehearse(store)).events == 0
    after = file.stat().st_size
    # Where nothing goes the file is not rewritten; it may have grown by the facts that the looks made.
    goes = rehearsed.events or rehearsed.values
    assert not goes or abs((before - after) - (rehearsed.before - rehearsed.after)) <= TOLERANCE
    return before, after, rehearsed.before - rehearsed.after


@needs_recordings
@pytest.mark.parametrize("source", swept("*/*"), ids=lambda path: f"{path.parent.name}/{path.name}")
async def test_a_recordings_store_has_the_same_window_and_renders_afterwards(source: Path, tmp_path: Path) -> None:
    """And its file is smaller by what the rehearsal said, within a page."""
    if source.name == "README.md":
        return
    try:
        read_recording(source)
    except ImportFailed:
        return
    await scavenged_recording(source, tmp_path)
