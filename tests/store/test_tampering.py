from __future__ import annotations

import asyncio
import random
import re
import shutil
import sqlite3
from contextlib import closing
from itertools import product
from typing import TYPE_CHECKING, Final

import pytest

from tests.depth import DEPTH, Depth, examples, sampled
from tests.store.tampering import POLICY, blocks_of, edit_row, flip_byte, make, reads
from timeline import Timeline, open_store
from timeline.audit.deep import repair, verify_deep
from timeline.blocks import UserPrompt
from timeline.errors import StoreCorrupt, TimelineError
from timeline.store.migrations import STEPS, indexes
from timeline.store.sqlite import statements
from timeline.store.sqlite.mending import DERIVED

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.audit.deep import DeepReport

EDITS: Final = 8 if DEPTH is Depth.NIGHT else 5
"""Edits of one test: of rows and bytes 50 in all in CI, and 3,200 at night."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store with rows in every table."""
    file = tmp_path_factory.mktemp("sound") / "agent.db"
    asyncio.run(make(file))
    return file


@pytest.fixture(scope="module")
def unscavenged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Make a store of which all that is derived can be made anew; return it with everything that it reads."""
    file = tmp_path_factory.mktemp("unscavenged") / "agent.db"
    asyncio.run(make(file, scavenged=False))
    return file, asyncio.run(reads(file))


@pytest.fixture(scope="module")
def before(sound: Path) -> dict[str, str]:
    """Return everything that the sound store reads."""
    seen = asyncio.run(reads(sound))
    assert not [what for what, text in seen.items() if text.startswith("error") and "scavenge" not in text]
    return seen


def _holding(folder: Path, text: bytes) -> list[str]:
    """Return the files of a folder that contain a text."""
    return [file.name for file in folder.iterdir() if text in file.read_bytes()]


async def deep(file: Path) -> DeepReport:
    """Verify a store in depth, as the command does."""
    async with open_store(file, readonly=True) as store:
        return await verify_deep(store)


async def problems(file: Path) -> list[str]:
    """Return what a deep verification finds."""
    try:
        report = await deep(file)
    except TimelineError as refusal:
        return [str(refusal)]
    named = [f"{each.what}: {each.problem}" for each in report.differences]
    return [*named, *(problem for each in report.conversations for problem in each.problems)]


async def check_noticed(file: Path, before: dict[str, str], what: str) -> None:
    """Check that an edit is found and named, or that it changes nothing that is read; and that no read is misled."""
    seen = await reads(file)
    found = await problems(file)
    changed = [asked for asked in before if seen.get(asked) != before[asked]]
    assert found or not changed, (what, changed)
    assert all(found), (what, found)
    for asked, text in blocks_of(before).items():
        told = _without_place(seen.get(asked, text))
        assert told in {_without_place(text), "None", "[]"} or told.startswith("error"), (what, asked)


def _without_place(text: str) -> str:
    """Leave out where an event is in the store: an edited position is found, and the block is still the same."""
    return re.sub(r"position=-?\d+", "", text)


async def test_a_sound_store_is_sound_in_depth(sound: Path) -> None:
    """Nothing that is derived differs from the log, and each conversation is proved to its head."""
    report = await deep(sound)
    assert report.ok, (report.differences, [each.problems for each in report.conversations])
    assert [each.proved for each in report.conversations] == [each.events for each in report.conversations]


@sampled
@pytest.mark.parametrize("seed", range(examples(10)))
async def test_any_edit_of_a_row_is_found_or_changes_no_read(
    tmp_path: Path, sound: Path, before: dict[str, str], seed: int
) -> None:
    """Any column of any row of any table, and any deleted row: it is named, and no read returns another block."""
    for number in range(EDITS):
        file = tmp_path / "edited.db"
        shutil.copy(sound, file)
        what = edit_row(file, random.Random(f"row {seed} {number}"))
        await check_noticed(file, before, what)


@sampled
@pytest.mark.parametrize("seed", range(examples(10)))
async def test_any_flipped_byte_is_found_or_changes_no_read(
    tmp_path: Path, sound: Path, before: dict[str, str], seed: int
) -> None:
    """Headers, pages of tables and indexes, free space: it is named, and no read returns another block."""
    for number in range(EDITS):
        file = tmp_path / "flipped.db"
        shutil.copy(sound, file)
        what = flip_byte(file, random.Random(f"byte {seed} {number}"))
        await check_noticed(file, before, what)


async def _edited(sound: Path, file: Path, *statements: str) -> None:
    shutil.copy(sound, file)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount > 0, statement


async def test_two_swapped_paths_are_found_by_each_read(tmp_path: Path, sound: Path, before: dict[str, str]) -> None:
    """Asking for one of them never gives the other."""
    file = tmp_path / "agent.db"
    await _edited(
        sound,
        file,
        "UPDATE events SET path = 'x' WHERE path = 'tc:turn_1.a1.result' AND conversation = 1",
        "UPDATE events SET path = 'tc:turn_1.a1.result' WHERE path = 'tc:turn_1.a2.result' AND conversation = 1",
        "UPDATE events SET path = 'tc:turn_1.a2.result' WHERE path = 'x' AND conversation = 1",
    )
    async with open_store(file, readonly=True) as store:
        for path in ("tc:turn_1.a1.result", "tc:turn_1.a2.result"):
            with pytest.raises(TimelineError, match="its row has the path"):
                await store.find("c", path)
    await check_noticed(file, before, "swapped paths")


@pytest.mark.parametrize(
    "statements",
    [
        ["DELETE FROM events WHERE conversation = 3 AND version > 34"],
        [
            "DELETE FROM events WHERE conversation = 3 AND version > 34",
            "UPDATE conversations SET version = 34 WHERE key = 3",
        ],
        ["UPDATE conversations SET version = 34 WHERE key = 3"],
    ],
    ids=["rows", "rows and version", "version"],
)
async def test_newest_events_that_were_dropped_are_found(
    tmp_path: Path, sound: Path, before: dict[str, str], statements: list[str]
) -> None:
    """Also where the row of the conversation was changed with them: its head is that of a longer log."""
    await _edited(sound, tmp_path / "agent.db", *statements)
    await check_noticed(tmp_path / "agent.db", before, str(statements))
    assert await problems(tmp_path / "agent.db")


@sampled
@pytest.mark.parametrize("seed", range(examples(5)))
async def test_a_repair_restores_all_that_is_derived(
    tmp_path: Path, sound: Path, before: dict[str, str], seed: int
) -> None:
    """What a deep verification marks as derivable is what it was before the edit; no event is touched."""
    chance = random.Random(f"repair {seed}")
    for number in range(EDITS):
        file = tmp_path / f"{number}.db"
        shutil.copy(sound, file)
        what = edit_row(file, chance)
        try:
            report = await deep(file)
        except TimelineError:
            continue  # it cannot even be opened
        if not report.differences or not all(each.derivable for each in report.differences):
            continue
        if not all(each.ok for each in report.conversations):
            continue  # the log itself was edited: nothing makes that anew
        events = _events(file)
        async with open_store(file) as store:
            done = await repair(store, dry_run=False)
        assert (done.done, done.left) == (True, ()), what
        assert _events(file) == events, what
        assert await problems(file) == [], what
        seen = await reads(file)
        # A damaged snapshot is replaced by one of the end of the log, from which the same is shown.
        same = [asked for asked in before if "snapshots" not in what or not asked.endswith(" window")]
        assert [asked for asked in same if seen[asked] != before[asked]] == [], what


async def test_a_fact_of_a_kind_that_does_not_exist_is_a_corrupt_store_with_the_cure(
    tmp_path: Path, sound: Path
) -> None:
    """A record of it names the kind, and how to make facts anew."""
    file = tmp_path / "agent.db"
    await _edited(sound, file, "UPDATE facts SET kind = 1000 WHERE conversation = 1")
    async with open_store(file, readonly=True) as store:
        with pytest.raises(StoreCorrupt, match=r"kind 1000, which does not exist.*timeline repair"):
            await store.fact_record("c")


async def test_a_damaged_time_is_a_corrupt_store_where_facts_are_read_beyond_their_rows(
    tmp_path: Path, sound: Path
) -> None:
    """As it is where their rows reach the end of the log."""
    file = tmp_path / "agent.db"
    await _edited(
        sound,
        file,
        "UPDATE facts_progress SET position = position - 1",
        "UPDATE events SET at = 'x' WHERE position IN (SELECT position FROM facts WHERE conversation = 4)",
    )
    async with open_store(file, readonly=True) as store:
        with pytest.raises(StoreCorrupt, match="the time 'x' of an event is damaged"):
            await store.fact_record("old")


_COVERS: Final = "UPDATE events SET payload = '{}' WHERE type = 'compaction.completed'"


@pytest.mark.parametrize("payload", ['{"covers": "x"}', '{"covers": 5}', '{"covers": {"ranges": [["x", 1]]}}'])
async def test_a_compaction_that_does_not_hold_what_it_covers_is_a_corrupt_store(
    tmp_path: Path, sound: Path, payload: str
) -> None:
    """Facts ask it whether their blocks are covered."""
    file = tmp_path / "agent.db"
    await _edited(sound, file, _COVERS.format(payload))
    async with open_store(file, readonly=True) as store:
        with pytest.raises(StoreCorrupt, match="does not hold what it covers"):
            [fact async for fact in store.facts(conversation="c")]


async def test_a_last_position_that_is_no_number_is_found(tmp_path: Path, sound: Path) -> None:
    """SQLite keeps it in a table of its own, where any value may be."""
    file = tmp_path / "agent.db"
    await _edited(sound, file, "UPDATE sqlite_sequence SET seq = 'x' WHERE name = 'events'")
    assert await problems(file) == ["schema: the last position that was given is 'x'"]


_MOVED: Final = (
    "UPDATE facts SET conversation = 1004 WHERE position IN (SELECT position FROM events WHERE checksum = '')"
)
"""Moves the facts of scavenged events to a conversation that does not exist."""


async def test_a_repair_gives_a_fact_of_a_scavenged_event_back_to_its_conversation(
    tmp_path: Path, sound: Path, before: dict[str, str]
) -> None:
    """What vouches for the facts of the event holds with it."""
    file = tmp_path / "agent.db"
    await _edited(sound, file, _MOVED)
    async with open_store(file) as store:
        done = await repair(store, dry_run=False)
    assert (done.done, done.left) == (True, ())
    assert await problems(file) == []
    assert await reads(file) == before


async def test_a_moved_fact_that_nothing_vouches_for_is_left(tmp_path: Path, sound: Path) -> None:
    """It cannot be made anew: neither examination nor repair takes it for derivable, and its row stays."""
    file = tmp_path / "agent.db"
    await _edited(
        sound,
        file,
        _MOVED,
        "UPDATE events SET packed = NULL WHERE checksum = ''",
    )
    async with open_store(file) as store:
        done = await repair(store, dry_run=False)
    assert done.mended == ()
    assert all("nothing vouches for it" in each.problem for each in done.left)
    with closing(sqlite3.connect(file)) as connection:
        (kept,) = connection.execute("SELECT count(*) FROM facts WHERE conversation = 1004").fetchone()
    assert kept == len(done.left) > 0


def _events(file: Path) -> list[object]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute("SELECT * FROM events ORDER BY position").fetchall()


async def test_facts_and_an_index_of_a_newer_release_are_no_damage(
    tmp_path: Path, unscavenged: tuple[Path, dict[str, str]]
) -> None:
    """They follow other rules than this release's, whose next question makes its own."""
    file = tmp_path / "agent.db"
    shutil.copy(unscavenged[0], file)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE facts SET subject = subject || 'x'")
        connection.execute("UPDATE facts_progress SET form = form + 1")
        connection.execute("UPDATE search_progress SET form = form + 1")
        connection.commit()
    assert (await deep(file)).differences == ()
    assert await reads(file) == unscavenged[1]


async def test_a_dry_run_of_a_repair_changes_nothing(tmp_path: Path, sound: Path) -> None:
    """It says what it would do, and the next one says it again."""
    file = tmp_path / "agent.db"
    await _edited(sound, file, "DELETE FROM digest_entries", "DELETE FROM facts WHERE position > 20")
    content = file.read_bytes()
    async with open_store(file, readonly=True) as store:
        planned = await repair(store)
    assert not planned.done
    assert {each.what for each in planned.mended} == {"digests", "facts"}
    assert file.read_bytes() == content


async def test_a_fork_never_reads_the_log_of_another_conversation_than_its_parent(tmp_path: Path) -> None:
    """Its row has the key of its parent, and the id that proves it; a repair gives the key back."""
    file = tmp_path / "agent.db"
    async with open_store(file) as store:
        for id_ in ("a", "b"):
            await (await Timeline.open(store, id_)).append(UserPrompt(text=f"This is {id_}."))
        timeline = await Timeline.open(store, "b")
        fork = await timeline.fork(conversation="fork")
        await fork.append(UserPrompt(text="And now?"))
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE conversations SET parent_key = 1 WHERE id = 'fork'")
    async with open_store(file) as store:
        for asked in (store.read_versions("fork", [2]), store.find("fork", timeline.window.items[0].block.path)):
            with pytest.raises(StoreCorrupt, match="timeline repair"):
                await asked
        with pytest.raises(StoreCorrupt, match="not the one that its row leads to"):
            _ = [event async for event in store.read("fork")]
        assert any("parent_key" in each for each in await problems(file))
        await repair(store, dry_run=False)
        assert [event.version async for event in store.read("fork")] == [1, 2, 3, 4]
    assert await problems(file) == []


async def test_the_past_of_a_fork_that_names_itself_as_its_parent_has_an_end(tmp_path: Path) -> None:
    """Both columns that lead to a parent are edited alike; a read says so, and does not go around for ever."""
    file = tmp_path / "agent.db"
    async with open_store(file) as store:
        timeline = await Timeline.open(store, "a")
        await timeline.append(UserPrompt(text="This is a."))
        await timeline.fork(conversation="fork")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(
            "UPDATE conversations SET parent_key = key, parent = json_set(parent, '$.conversation', id)"
            " WHERE id = 'fork'"
        )
        steps = iter(range(1_000))
        connection.set_progress_handler(lambda: next(steps, None) is None, 1_000)
        assert len(connection.execute(statements.LINEAGE_OF, ("fork",)).fetchall()) == 1
    async with open_store(file) as store:
        with pytest.raises(StoreCorrupt):
            _ = [event async for event in store.read("fork")]
        assert await problems(file) != []


@sampled
@pytest.mark.parametrize(
    ("name", "other"),
    list(product(indexes.made_by(STEPS), ["", "CREATE INDEX {} ON events (at)"]))[:: DEPTH.step],
)
async def test_an_index_that_was_dropped_or_changed_is_found_and_made_anew(
    tmp_path: Path, sound: Path, before: dict[str, str], name: str, other: str
) -> None:
    """A verification says so; opening it for writing is enough to mend it."""
    file = tmp_path / "agent.db"
    shutil.copy(sound, file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"DROP INDEX {name}")
        connection.execute(other.format(name))
    assert any("index" in each for each in await problems(file))
    async with open_store(file) as store:
        await repair(store, dry_run=False)
    assert await problems(file) == []
    assert await reads(file) == before


async def test_a_table_that_is_an_index_itself_is_mended_page_by_page(
    tmp_path: Path, sound: Path, before: dict[str, str]
) -> None:
    """A cell of the table of digests that points out of its page: SQLite makes the table anew as it makes an index."""
    file = tmp_path / "agent.db"
    shutil.copy(sound, file)
    with closing(sqlite3.connect(file)) as connection:
        ((root,),) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'digest_entries'")
    content = bytearray(file.read_bytes())
    content[(root - 1) * 4096 + 8 + 2 * 3] ^= 0x80
    file.write_bytes(content)
    assert any(each.startswith("file") for each in await problems(file))
    async with open_store(file) as store:
        done = await repair(store, dry_run=False)
    assert done.left == ()
    assert await problems(file) == []
    assert await reads(file) == before


async def test_a_search_index_whose_totals_are_no_numbers_is_a_corrupt_store_with_the_cure(
    tmp_path: Path, sound: Path, before: dict[str, str]
) -> None:
    """SQLite ranks no hit by them then; the repair makes the index anew."""
    file = tmp_path / "agent.db"
    await _edited(sound, file, "UPDATE search_index_data SET block = x'02100fd203030303030378' WHERE id = 1")
    async with open_store(file, readonly=True) as store:
        with pytest.raises(StoreCorrupt, match="timeline repair"):
            [hit async for hit in store.search("make")]
    assert any("search" in each for each in await problems(file))
    async with open_store(file) as store:
        await repair(store, dry_run=False)
    assert await reads(file) == before


@pytest.mark.parametrize(
    "trigger",
    [
        'CREATE TRIGGER "it\'s" AFTER INSERT ON events BEGIN DELETE FROM compactions; END',
        "CREATE TRIGGER it BEFORE UPDATE ON conversations BEGIN SELECT raise(IGNORE); END",
        "CREATE TRIGGER it BEFORE DELETE ON digest_entries BEGIN SELECT raise(ABORT, 'no'); END",
    ],
)
async def test_a_trigger_that_was_added_is_found_and_removed(
    tmp_path: Path, sound: Path, before: dict[str, str], trigger: str
) -> None:
    """It would change what is appended, and what is repaired."""
    file = tmp_path / "agent.db"
    shutil.copy(sound, file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(
            "UPDATE digest_entries SET errors = 77 WHERE position = (SELECT max(position) FROM compactions)"
        )
        connection.execute(trigger)
    assert any("the trigger it" in each for each in await problems(file))
    async with open_store(file) as store:
        done = await repair(store, dry_run=False)
    assert done.left == ()
    assert await problems(file) == []
    assert await reads(file) == before


async def test_a_trigger_copies_nothing_that_is_appended_to_a_file_that_somebody_else_made(
    tmp_path: Path, sound: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It would keep in a table of its own what a redaction then says is in no file of the store."""
    file = tmp_path / "agent.db"
    shutil.copy(sound, file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE kept (payload TEXT)")
        connection.execute(
            "CREATE TRIGGER keeps AFTER INSERT ON events BEGIN INSERT INTO kept VALUES (new.payload); END"
        )
    async with open_store(file) as store:
        timeline = await Timeline.open(store, "new", policy=POLICY)
        [appended] = await timeline.append(UserPrompt(text="The word is sesame-7731."))
        report = await timeline.redact(appended.path, reason="a secret")
    assert (report.physical, report.left) == (True, {})
    assert not _holding(tmp_path, b"sesame-7731")
    assert "the trigger 'keeps' was removed" in caplog.text


@pytest.mark.parametrize("readonly", [True, False])
async def test_a_view_in_the_place_of_a_table_is_refused(tmp_path: Path, sound: Path, *, readonly: bool) -> None:
    """A statement of another program would answer, and this one never ends."""
    file = tmp_path / "agent.db"
    shutil.copy(sound, file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("ALTER TABLE conversations RENAME TO others")
        connection.execute(
            "CREATE VIEW Conversations AS WITH RECURSIVE all_of(key) AS (SELECT 1 UNION ALL SELECT key + 1 FROM all_of)"
            " SELECT others.*, all_of.key AS number FROM others, all_of"
        )
    with pytest.raises(StoreCorrupt, match="a view was put in the place of the table conversations"):
        await open_store(file, readonly=readonly)


@pytest.mark.parametrize("table", ["bases", "erased", "settings"])
async def test_a_table_of_which_other_records_say_what_was_in_it_is_made_anew(
    tmp_path: Path, sound: Path, before: dict[str, str], table: str
) -> None:
    """A base is among the snapshots, the retention in the file's header; no conversation was erased here."""
    file = tmp_path / "agent.db"
    shutil.copy(sound, file)
    history = await _history(file)
    _drop(file, table)
    assert f"schema: the table {table} is missing" in await problems(file)
    async with open_store(file) as store:
        done = await repair(store, dry_run=False)
    assert done.left == ()
    assert await problems(file) == []
    assert await reads(file) == before
    assert await _history(file) == history


async def _history(file: Path) -> str:
    """Return what is shown of a scavenged conversation, right behind what was removed of it."""
    async with open_store(file, readonly=True) as store:
        timeline = await Timeline.open(store, "old", create=False)
        view = await timeline.at((await store.info("old")).first_version + 3)
        return (await view.render()).neutral.canonical()


@pytest.mark.parametrize(
    "statement", ["DELETE FROM bases", "UPDATE bases SET body = 'x'", "UPDATE bases SET version = version + 1"]
)
async def test_a_lost_or_damaged_base_comes_from_its_twin_among_the_snapshots_of_the_past(
    tmp_path: Path, sound: Path, before: dict[str, str], statement: str
) -> None:
    """The conversation says still how far it was scavenged."""
    file = tmp_path / "agent.db"
    history = await _history(sound)
    await _edited(sound, file, statement)
    assert any(each.startswith("bases: ") for each in await problems(file))
    async with open_store(file) as store:
        done = await repair(store, dry_run=False)
    assert done.left == ()
    assert await problems(file) == []
    assert await reads(file) == before
    assert await _history(file) == history


async def test_a_base_that_has_no_twin_comes_from_a_backup_and_the_conversation_opens(
    tmp_path: Path, sound: Path
) -> None:
    """Its row keeps saying from where on its log is whole."""
    file = tmp_path / "agent.db"
    await _edited(sound, file, "DELETE FROM bases", "DELETE FROM waypoints", "DELETE FROM snapshots")
    async with open_store(file) as store:
        done = await repair(store, dry_run=False)
        assert (await store.info("old")).first_version > 1
    assert "'old' lacks the snapshot from which its log is folded" in done.left[0].problem


async def test_stored_texts_that_were_dropped_are_named_and_come_back_with_a_render(
    tmp_path: Path, sound: Path
) -> None:
    """The store takes appends again, and says what only a backup has."""
    file = tmp_path / "agent.db"
    shutil.copy(sound, file)
    _drop(file, "stored_values")
    async with open_store(file) as store:
        done = await repair(store, dry_run=False)
        assert {each.what for each in done.left} == {"values"}
        assert "a backup has them" in done.left[0].problem
        timeline = await Timeline.open(store, "c", policy=POLICY)
        await timeline.render(system="S", tools=[{"name": "run"}])
        again = {each.problem for each in (await repair(store)).left}
    assert again < {each.problem for each in done.left}


async def test_the_list_of_erased_conversations_is_missed(tmp_path: Path, sound: Path) -> None:
    """Keys are never given again, so they count what was erased; which ids these were, only a backup knows."""
    file = tmp_path / "agent.db"
    shutil.copy(sound, file)
    async with open_store(file) as store:
        await store.erase("fork")
    assert await problems(file) == []
    _drop(file, "erased")
    assert any("is missing" in each for each in await problems(file))
    async with open_store(file) as store:
        done = await repair(store, dry_run=False)
        await Timeline.open(store, "new")
    assert [each.what for each in done.left] == ["erased"]
    assert "4 conversations were begun, 3 are there, and 0 are listed as erased" in done.left[0].problem
    assert any(each.startswith("erased: ") for each in await problems(file))


async def test_a_conversation_that_was_deleted_with_all_its_rows_is_missed(tmp_path: Path, sound: Path) -> None:
    """Nothing else is left of it."""
    file = tmp_path / "agent.db"
    shutil.copy(sound, file)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for table in ("digest_entries", "facts", "events", "compactions", "snapshots", "waypoints"):
            if table == "digest_entries":
                of = "position IN (SELECT position FROM events WHERE conversation = 2)"
            else:
                of = "conversation = 2"
            connection.execute(f"DELETE FROM {table} WHERE {of}")  # noqa: S608 - own names
        connection.execute("DELETE FROM conversations WHERE key = 2")
    assert any("a conversation or the id" in each for each in await problems(file))


@pytest.mark.parametrize("table", [*sorted(DERIVED), "search_index"])
async def test_a_derived_table_that_was_dropped_is_found_and_made_anew(
    tmp_path: Path, unscavenged: tuple[Path, dict[str, str]], table: str
) -> None:
    """With its rows and its indexes; opening the store does not ask for it. A new snapshot is one of the newest end."""
    file = tmp_path / "agent.db"
    whole, before = unscavenged
    shutil.copy(whole, file)
    _drop(file, table)
    assert await problems(file) != []
    async with open_store(file) as store:
        done = await repair(store, dry_run=False)
    assert done.left == ()
    assert await problems(file) == []
    seen = await reads(file)
    assert [asked for asked in before if seen[asked] != before[asked] and not asked.endswith(" window")] == []
    with closing(sqlite3.connect(file)) as connection:
        snapshots = "SELECT (SELECT count(*) FROM snapshots), (SELECT count(*) FROM conversations)"
        ((kept, conversations),) = connection.execute(snapshots).fetchall()
    assert kept == conversations


async def test_facts_that_were_dropped_with_their_table_and_whose_events_are_gone_come_from_a_backup(
    tmp_path: Path, sound: Path
) -> None:
    """All others are made anew, and what is left is named."""
    file = tmp_path / "agent.db"
    shutil.copy(sound, file)
    _drop(file, "facts")
    async with open_store(file) as store:
        done = await repair(store, dry_run=False)
        assert len([fact async for fact in store.facts(conversation="c")]) > 0
    assert {each.what for each in done.left} == {"facts"}
    assert all("scavenged" in problem for problem in await problems(file))


def _drop(file: Path, table: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"DROP TABLE {table}")


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM settings",
        "DELETE FROM settings WHERE name = 'retention'",
        "DELETE FROM settings WHERE name = 'retention.proof'",
        "UPDATE settings SET value = 'keep' WHERE name = 'retention'",
        "PRAGMA user_version = 0",
        "PRAGMA user_version = 7",
    ],
)
async def test_a_retention_that_was_deleted_or_changed_is_found_and_set_again(
    tmp_path: Path, sound: Path, before: dict[str, str], statement: str
) -> None:
    """Its value, its proof and the mark in the file's header each say what it was set to."""
    file = tmp_path / "agent.db"
    shutil.copy(sound, file)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute(statement)
    if statement != "PRAGMA user_version = 0":  # a file of an earlier release
        assert any(each.startswith("settings: ") for each in await problems(file))
    async with open_store(file) as store:
        done = await repair(store, dry_run=False)
        assert await store.retention() == "window"
    assert done.left == ()
    assert await problems(file) == []
    assert await reads(file) == before


async def test_a_setting_under_another_name_is_left_and_the_retention_is_set_again(tmp_path: Path, sound: Path) -> None:
    """Nothing reads it; what it was, only a backup knows."""
    file = tmp_path / "agent.db"
    await _edited(sound, file, "UPDATE settings SET name = 'retentionx' WHERE name = 'retention'")
    async with open_store(file) as store:
        done = await repair(store, dry_run=False)
        assert await store.retention() == "window"
    assert [f"{each.what}: {each.problem}" for each in done.left] == await problems(file)
    assert "retentionx" in done.left[0].problem


@pytest.mark.parametrize("column", ["events.at", "conversations.created_at", "conversations.updated_at"])
async def test_a_time_that_a_flipped_byte_made_null_is_found_and_named(
    tmp_path: Path, sound: Path, before: dict[str, str], column: str
) -> None:
    """SQLite reads it from the row's header, whatever the table forbids: each read is right, or an error of ours."""
    file = tmp_path / "agent.db"
    shutil.copy(sound, file)
    _make_null(file, *column.split("."))
    await check_noticed(file, before, column)
    seen = await reads(file)
    assert not [text for text in seen.values() if "TypeError" in text]
    assert await problems(file) != []


@pytest.mark.parametrize("column", ["facts.subject", "snapshots.body", "bases.body", "stored_values.text", "events.at"])
async def test_a_text_that_a_flipped_byte_made_bytes_is_found_and_named(
    tmp_path: Path, sound: Path, before: dict[str, str], column: str
) -> None:
    """Its header says which it is, and SQLite does not compare that with the table."""
    file = tmp_path / "agent.db"
    shutil.copy(sound, file)
    table, name = column.split(".")
    scavenged = " WHERE position IN (SELECT position FROM events WHERE checksum = '')" if table == "facts" else ""
    change = f"UPDATE {table} SET {name} = CAST({name} AS BLOB){scavenged}"  # noqa: S608 - own names
    _let(file, table, (f"{name} TEXT NOT NULL", f"{name} ANY NOT NULL"), change)
    assert await problems(file) != []
    await check_noticed(file, before, column)


@pytest.mark.parametrize("column", ["salt", "link"])
async def test_bytes_that_a_flipped_byte_made_a_text_are_found_and_named(
    tmp_path: Path, sound: Path, before: dict[str, str], column: str
) -> None:
    """What proves an event is compared as bytes."""
    file = tmp_path / "agent.db"
    shutil.copy(sound, file)
    change = f"UPDATE events SET {column} = CAST(x'61' AS TEXT) WHERE position = 7"  # noqa: S608 - own names
    _let(file, "events", (f"{column} BLOB", f"{column} ANY"), change)
    assert any("of another type than its column" in each for each in await problems(file))
    await check_noticed(file, before, column)


def _make_null(file: Path, table: str, column: str) -> None:
    """Set a column of the newest row of a table to NULL, which its constraint forbids."""
    change = f"UPDATE {table} SET {column} = NULL WHERE rowid = (SELECT max(rowid) FROM {table})"  # noqa: S608
    _let(file, table, (f"{column} TEXT NOT NULL", f"{column} TEXT"), change)


def _let(file: Path, table: str, lifted: tuple[str, str], change: str) -> None:
    """Change rows while a part of their table's statement is another one."""
    of_table = f"UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE name = '{table}'"  # noqa: S608
    strict, free = lifted
    for before, after, done in ((strict, free, ""), ("", "", change), (free, strict, "")):
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            if done:
                assert connection.execute(done).rowcount > 0
            else:
                connection.execute("PRAGMA writable_schema = ON")
                assert connection.execute(of_table, (before, after)).rowcount == 1


async def test_a_table_that_was_dropped_is_damage_of_each_conversation_that_is_read_from_it(
    tmp_path: Path, sound: Path
) -> None:
    """What is said of each names it, and the cure."""
    file = tmp_path / "agent.db"
    shutil.copy(sound, file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DROP TABLE events")
    report = await deep(file)
    assert ("schema", "the table events is missing", False) in {
        (each.what, each.problem, each.derivable) for each in report.differences
    }
    for each in report.conversations:
        assert not each.ok
        assert re.search(r"timeline restore.*no such table: events", each.problems[0])


async def test_a_table_with_another_column_is_found(tmp_path: Path, sound: Path) -> None:
    """What is written to it by place would be refused."""
    file = tmp_path / "agent.db"
    shutil.copy(sound, file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("ALTER TABLE facts ADD COLUMN more TEXT")
    assert "schema: the table facts has other columns" in await problems(file)


async def test_a_snapshot_of_the_past_that_is_of_no_conversation_is_removed(
    tmp_path: Path, sound: Path, before: dict[str, str]
) -> None:
    """The conversation that lost it is folded without it, or gets another one."""
    file = tmp_path / "agent.db"
    await _edited(sound, file, "UPDATE waypoints SET conversation = 0 WHERE rowid = (SELECT min(rowid) FROM waypoints)")
    assert any("waypoints" in each for each in await problems(file))
    async with open_store(file) as store:
        await repair(store, dry_run=False)
    assert await problems(file) == []
    assert await reads(file) == before
