"""Appends whose commit fails on a failing disk: what is said of them, and what a repetition comes to."""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faulty_disk import Disk, How, install
from timeline import Timeline
from timeline.blocks import UserPrompt
from timeline.databases import database_uri
from timeline.errors import AppendUncertain, ConversationErased, StoreError, StoreFull
from timeline.ports import Expected
from timeline.store.memory import MemoryStore
from timeline.store.sqlite import files
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import events

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from timeline.events import NewEvent
    from timeline.ports import Appended, EventStore

DISK: Final = install()
pytestmark = pytest.mark.skipif(DISK is None, reason="Python's SQLite is a library that ctypes does not reach")


@pytest.fixture(autouse=True)
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """Let stores write through the failing disk; it works until a test lets a call fail."""
    assert DISK is not None
    monkeypatch.setattr(files, "database_uri", lambda file, query: database_uri(file, f"{query}&vfs=faulty"))
    DISK.end()
    yield DISK
    DISK.end()


def _crashed(file: Path) -> Path:
    """Return the database as a process that is killed now would leave it: with its log, without the log's index."""
    left = Path(tempfile.mkdtemp(dir=file.parent)) / file.name
    for ending in ("", "-wal"):
        shutil.copyfile(f"{file}{ending}", f"{left}{ending}")
    return left


async def _ids(store: EventStore) -> list[str]:
    return [str(event.id) async for event in store.read("a")]


async def _outcome(store: EventStore, batch: Sequence[NewEvent]) -> Appended | StoreError:
    try:
        return await store.append("a", batch, expected=1)
    except StoreError as error:
        return error


async def _calls_of_an_append(disk: Disk, folder: Path) -> int:
    async with await SQLiteStore.open(folder / "counted.db") as store:
        await store.append("a", events(1))
        disk.begin()
        await store.append("a", events(3, text="x" * 3_000), expected=1)
        disk.end()
    return len(disk.calls)


@pytest.mark.parametrize("how", ["error", "late", "full"])
async def test_whichever_call_fails_nothing_is_said_of_an_append_that_a_crash_disproves(
    disk: Disk, tmp_path: Path, how: How
) -> None:
    """Acknowledged: it is there. An error: it is not there. `AppendUncertain`: it may be, and some are."""
    found: set[tuple[str, bool]] = set()
    for call in range(1, await _calls_of_an_append(disk, tmp_path) + 1):
        file, batch = tmp_path / f"{call}.db", events(3, text="x" * 3_000)
        async with await SQLiteStore.open(file) as store:
            await store.append("a", events(1))
            disk.begin(call, how)
            outcome = await _outcome(store, batch)
            disk.end()
            assert disk.failed, "the call was made"
            if isinstance(outcome, AppendUncertain):
                assert (outcome.conversation, outcome.ids) == ("a", [event.id for event in batch])
            async with await SQLiteStore.open(_crashed(file)) as left:
                there = (await left.info("a")).version == 4
            assert there if not isinstance(outcome, StoreError) else not there or isinstance(outcome, AppendUncertain)
            found.add((type(outcome).__name__, there))
    assert ("AppendUncertain", True) in found or how == "full"
    assert how != "full" or ("StoreFull", False) in found


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("how", ["error", "late"])
async def test_the_same_append_again_is_written_once(disk: Disk, tmp_path: Path, how: How, crash: bool) -> None:  # noqa: FBT001
    """In the same process or after a crash, whichever call failed, and after a second failure too."""
    for call in range(1, await _calls_of_an_append(disk, tmp_path) + 1):
        file, batch = tmp_path / f"{call}.db", events(3, text="x" * 3_000)
        store = await SQLiteStore.open(file)
        await store.append("a", events(1))
        for failing in (call, max(1, call - 1)):
            disk.begin(failing, how)
            outcome = await _outcome(store, batch)
            disk.end()
            if crash:
                file = _crashed(file)
                await store.aclose()
                store = await SQLiteStore.open(file)
        again = outcome.arguments if isinstance(outcome, AppendUncertain) else {"events": batch, "expected": 1}
        appended = await store.append(**{"conversation": "a", **again})
        assert (appended.first_version, appended.version) == (2, 4)
        assert (await _ids(store))[1:] == [str(event.id) for event in batch]
        await store.aclose()


async def test_each_of_many_that_waited_together_gets_its_own_ids(disk: Disk, tmp_path: Path) -> None:
    """One commit failed for all; each repeats its own."""
    async with await SQLiteStore.open(tmp_path / "agent.db") as store:
        await store.append("a", events(1))
        disk.begin()
        await store.append("a", events(1))
        flush = len(disk.calls)
        assert disk.calls[-1] == "sync"
        batches = [events(2) for _ in range(3)]
        for _ in range(flush, 200):  # where the flush of a transaction of three comes is not known before
            disk.begin(flush)
            outcomes = await asyncio.gather(
                *(store.append("a", batch, expected=Expected.ANY) for batch in batches), return_exceptions=True
            )
            disk.end()
            if disk.failed == "sync":
                break
            flush += 1
            batches = [events(2) for _ in range(3)]
        uncertain = [outcome for outcome in outcomes if isinstance(outcome, AppendUncertain)]
        assert uncertain
        for error in uncertain:
            assert error.ids in [[event.id for event in batch] for batch in batches]
            assert not (await store.append(**error.arguments)).repeated
        assert len(set(await _ids(store))) == len(await _ids(store))


async def test_a_disk_without_room_is_full_and_nothing_is_uncertain(disk: Disk, tmp_path: Path) -> None:
    """A page that found no room is missing from the log, and with it the commit."""
    async with await SQLiteStore.open(tmp_path / "agent.db") as store:
        await store.append("a", events(1))
        disk.begin(1, "full")
        with pytest.raises(StoreFull, match="What was stored is intact"):
            await store.append("a", events(1))


async def test_what_a_failed_commit_left_in_the_log_keeps_nobody_from_opening_the_file(
    disk: Disk, tmp_path: Path
) -> None:
    """The next commits overwrite the first pages of the failed one: the others count as little as those."""
    file, large = tmp_path / "agent.db", events(3, text="x" * 30_000)
    async with await SQLiteStore.open(tmp_path / "counted.db") as store:
        await store.append("a", events(1))
        disk.begin()
        await store.append("a", large)
        flush = disk.calls.index("sync") + 1
        disk.end()
    async with await SQLiteStore.open(file) as store:
        await store.append("a", events(1))
        disk.begin(flush)
        with pytest.raises(AppendUncertain):
            await store.append("a", large)
        disk.end()
        for _ in range(3):
            await store.append("b", events(1))
        async with await SQLiteStore.open(_crashed(file)) as left, await SQLiteStore.open(file) as second:
            for each in (left, second):
                assert {info.id: info.version async for info in each.conversations()} == {"a": 1, "b": 3}


async def test_the_message_says_which_events_and_what_to_do(disk: Disk, tmp_path: Path) -> None:
    """It does not say that nothing was written."""
    async with await SQLiteStore.open(tmp_path / "agent.db") as store:
        await store.append("a", events(1))
        disk.begin()
        await store.append("a", events(1))
        flush = disk.calls.index("sync") + 1
        disk.begin(flush)
        with pytest.raises(AppendUncertain, match=r"1 event to conversation 'a' failed .*under their ids") as uncertain:
            await store.append("a", events(1))
        assert "othing was written" not in str(uncertain.value)
        assert await store.known_ids("a", uncertain.value.ids) == set()


async def test_a_timeline_goes_on_behind_an_uncertain_append(disk: Disk, tmp_path: Path) -> None:
    """Its window is that of the log: without the events, and with them once they are appended again."""
    async with await SQLiteStore.open(tmp_path / "agent.db") as store:
        timeline = await Timeline.open(store, "a")
        await timeline.append(UserPrompt(text="one"))
        disk.begin(1, "late")
        with pytest.raises(AppendUncertain) as uncertain:
            await timeline.append(UserPrompt(text="two"))
        disk.end()
        version = timeline.version
        await store.append(**uncertain.value.arguments)
        [block] = await timeline.append(UserPrompt(text="three"))
        assert timeline.version == version + 2
        assert [item.block.text for item in timeline.window.items][-2:] == ["two", "three"]
        assert (await timeline.read(block.path)).text == "three"
        assert (await timeline.verify()).ok


class _Fate:
    """What becomes of an append: which call of it fails, whether the process is killed then."""

    def __init__(self, number: int, call: int, *, late: bool, crash: bool) -> None:
        self.batch = events(number)
        self.call, self.late, self.crash = call, late, crash


FATES: Final = st.lists(
    st.builds(
        _Fate, st.integers(1, 3), st.sampled_from([0, 1, 8, 9, 10, 11, 12, 13]), late=st.booleans(), crash=st.booleans()
    ),
    max_size=8,
)


@given(fates=FATES, seed=st.integers(0, 9))
def test_appends_that_are_repeated_until_they_are_acknowledged_are_in_the_log_once(
    fates: list[_Fate], seed: int
) -> None:
    """In both stores, and in order: the memory store stands in for a disk that kept or lost the append."""
    with tempfile.TemporaryDirectory() as folder:
        on_disk = asyncio.run(_lived(fates, Path(folder) / "agent.db"))
    in_memory = asyncio.run(_remembered(fates, random.Random(seed)))
    assert on_disk == in_memory == [str(event.id) for fate in fates for event in fate.batch]


async def _lived(fates: Sequence[_Fate], file: Path) -> list[str]:
    assert DISK is not None
    store = await SQLiteStore.open(file)
    for fate in fates:
        DISK.begin(fate.call, "late" if fate.late else "error")
        try:
            await store.append("a", fate.batch)
        except StoreError as error:
            DISK.end()
            if fate.crash:
                file = _crashed(file)
                await store.aclose()
                store = await SQLiteStore.open(file)
            if isinstance(error, AppendUncertain):
                await store.append(**error.arguments)
            else:
                await store.append("a", fate.batch)
        finally:
            DISK.end()
    ids = await _ids(store) if fates else []
    await store.aclose()
    return ids


async def _remembered(fates: Sequence[_Fate], chance: random.Random) -> list[str]:
    store = MemoryStore()
    for fate in fates:
        if fate.call and chance.random() < 0.5:
            await store.append("a", fate.batch)  # it is there, and nobody was told
        await store.append("a", fate.batch)
    ids = await _ids(store) if fates else []
    await store.aclose()
    return ids


async def test_an_erasure_whose_file_cannot_be_rewritten_is_no_error(disk: Disk, tmp_path: Path) -> None:
    """Where one is raised, the conversation is there; where it is gone, the report says whether its bytes are."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        for name in "abc":
            await store.append(name, events(3))
        disk.begin()
        await store.erase("a")
        disk.end()
        calls = len(disk.calls)
        disk.begin(1)
        with pytest.raises(StoreError):
            await store.erase("b")
        disk.end()
        assert (await store.info("b")).version == 3
        disk.begin(calls - 2)
        report = await store.erase("b")
        disk.end()
        assert disk.failed
        assert not report.physical
        assert "check the disk" in report.left["files"]
        with pytest.raises(ConversationErased):
            await store.info("b")
        assert (await store.erase("b")).physical
