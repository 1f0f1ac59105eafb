"""The facts of both stores against a naive model, and what a database does for them besides."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.downgrade import before_facts
from tests.invariants.playing import search
from timeline import open_store
from timeline.blocks import ToolCall, ToolResult
from timeline.digest import Command, Digest, FileUse, Problem, Search
from timeline.errors import TimelineError
from timeline.events import BlockAppended, BlockRedacted, CompactionCompleted, CompactionReverted, Covers
from timeline.facts.extracting import FORM, facts_named, facts_of_result
from timeline.facts.model import Fact
from timeline.facts.record import record_of
from timeline.ports import Appended, Snapshot
from timeline.queries import FACT_KINDS
from timeline.store import fact_queries
from timeline.store.facts import FactFilter
from timeline.store.memory import MemoryStore
from timeline.store.sqlite import facts as sqlite_facts
from timeline.store.sqlite.connection import know_packed
from timeline.store.sqlite.facts import SQLiteFacts
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import block_event, compaction, event, fork
from timeline.store.testing.facts import call, command, found, result

if TYPE_CHECKING:
    from timeline.events import Event, NewEvent
    from timeline.queries import StoredFact

NAMES = st.sampled_from(["a", "b", "c"])
IDS = st.sampled_from(["1", "2", "3"])
TEXTS = st.sampled_from(["ok", "3 matches", "Exit code: 2", "see https://example.org/x", "ENT-241 is open"])
SAID = st.sampled_from(["yes", "Never touch main.", "use getUserName of ENT-9", "<system-reminder>x</system-reminder>"])
USES = st.sampled_from(
    [
        ("Bash", {"command": "go test ./..."}),
        ("Read", {"file_path": "src/a.py"}),
        ("Write", {"file_path": "src/b.py", "content": "0f3a9c1b"}),
        ("Ask", {"question": "ENT-9?"}),
    ]
)
PATHS = st.sampled_from([None, None, None, "", "own"])


class Model:
    """One conversation's facts, computed anew from all events that it ever had, whenever they are asked for."""

    def __init__(self, parent: Model | None = None, base: int = 0) -> None:
        self.parent, self.base = parent, base
        self.own: list[Event] = []
        self.scavenged: dict[int, int] = {}
        """Removed versions, each with the newest version of that time."""

    @property
    def version(self) -> int:
        """The newest version."""
        return self.base + len(self.own)

    def lineage(self) -> list[Model]:
        """Return itself and those whose past it shares."""
        return [self, *(self.parent.lineage() if self.parent is not None else [])]

    def events(self, until: int) -> list[Event]:
        """Return the events of the conversation, with those of the past that it shares."""
        before = self.parent.events(min(self.base, until)) if self.parent is not None else []
        return [*before, *(event for event in self.own if event.version <= until)]

    def redacted(self) -> set[tuple[str, int]]:
        """Return what is redacted here, or by the conversation that holds it."""
        there = self.events(self.version)
        owner = {e.version: e.conversation for e in there}
        gone = set()
        for event_ in [*there, *(e for log in self.lineage() for e in log.own)]:
            payload = event_.payload
            if isinstance(payload, BlockRedacted) and payload.version < event_.version:
                of = owner.get(payload.version)
                if event_ in there or of == event_.conversation:
                    gone.add((of or "", payload.version))
        return gone

    def facts(self) -> list[tuple[str, Fact]]:
        """Return all facts with their owners, in the order of the log."""
        there: list[tuple[str, Fact]] = []
        calls: list[tuple[str, int, ToolCall]] = []
        gone = self.redacted()
        for each in self.events(self.version):
            if not isinstance(each.payload, BlockAppended):
                continue
            block, owner = each.payload.block, each.conversation
            if isinstance(block, ToolCall):
                calls.append((owner, each.version, block))
            if (owner, each.version) in gone:
                continue
            there += [(owner, fact) for fact in facts_named(block, each.version, each.at)]
            if isinstance(block, ToolResult):
                answered = self._answered(block, each.version, calls)
                if answered is not None and answered[:2] not in gone:
                    said = facts_of_result(answered[2], answered[1], block, each.version, each.at)
                    there += [(owner, fact) for fact in said]
        return there

    def _answered(
        self, result_: ToolResult, version: int, calls: list[tuple[str, int, ToolCall]]
    ) -> tuple[str, int, ToolCall] | None:
        path = result_.path.removesuffix(".result") + ".call"
        beside = [c for c in calls if result_.path.endswith(".result") and c[2].path == path]
        if beside:
            return beside[0] if self.scavenged.get(beside[0][1], version) >= version else None
        same = [c for c in calls if c[2].call_id == result_.call_id and self.scavenged.get(c[1], version) >= version]
        return same[-1] if same else None

    def covered(self, version: int) -> bool:
        """Return whether a compaction in force covers a block."""
        events = self.events(self.version)
        undone = {v for e in events if isinstance(e.payload, CompactionReverted) for v in e.payload.versions}
        return any(
            version in e.payload.covers and version not in e.payload.carried and version < e.version
            for e in events
            if isinstance(e.payload, CompactionCompleted) and e.version not in undone
        )


class FactsAreThoseOfTheLog(RuleBasedStateMachine):
    """Whatever is appended, undone, forked, redacted or scavenged: both stores know the facts of the whole log."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.file = Path(self.folder.name) / "agent.db"
        self.memory = MemoryStore()
        self.store = self._opened()
        self.models: dict[str, Model] = {}

    def _opened(self) -> SQLiteStore:
        return self.runner.run(SQLiteStore.open(self.file, durability="normal"))

    def _append(self, name: str, events: list[NewEvent], snapshot: Snapshot | None = None) -> bool:
        """Append to both stores; return whether they took it."""
        outcomes: list[Appended | None] = []
        for store in (self.memory, self.store):
            try:
                outcomes.append(self.runner.run(store.append(name, events, snapshot=snapshot)))
            except TimelineError:
                outcomes.append(None)
        assert outcomes[0] == outcomes[1]
        return outcomes[0] is not None

    def _add(self, name: str, events: list[NewEvent], snapshot: Snapshot | None = None) -> None:
        if self._append(name, events, snapshot):
            self._read(name, self.models.setdefault(name, Model()))

    def _read(self, name: str, model: Model) -> None:
        async def read() -> list[Event]:
            return [e async for e in self.store.read(name, after=model.version)]

        model.own += self.runner.run(read())

    @rule(name=NAMES, id_=IDS, use=USES, path=PATHS, number=st.integers(0, 4))
    def call(self, name: str, id_: str, use: tuple[str, dict[str, Any]], path: str | None, number: int) -> None:
        """Append a call; ids are used again."""
        at = f"tc:turn_{number}.{id_}.call" if path is None else path and f"{path}{number}"
        self._add(name, [call(id_, use[0], use[1], path=at)])

    @rule(name=NAMES, id_=IDS, text=TEXTS, failed=st.booleans(), path=PATHS, number=st.integers(0, 4))
    def result(self, name: str, id_: str, text: str, *, failed: bool, path: str | None, number: int) -> None:
        """Append a result, maybe without a call."""
        at = f"tc:turn_{number}.{id_}.result" if path is None else path and f"{path}{number}.r"
        self._add(name, [result(id_, text, failed=failed, path=at)])

    @rule(name=NAMES, text=SAID)
    def ask(self, name: str, text: str) -> None:
        """Append a prompt; some say the same again."""
        model = self.models.get(name)
        self._add(name, [block_event(f"ar:turn_{0 if model is None else model.version}.prompt", text)])

    @rule(name=NAMES, id_=IDS, text=TEXTS, turn=st.integers(0, 9), before=st.integers(0, 1))
    def both(self, name: str, id_: str, text: str, turn: int, before: int) -> None:
        """Append a call together with its result, and with one of another path."""
        made = call(id_, "Bash", {"command": text}, path=f"tc:turn_{turn}.{id_}.call")
        answer = result(id_, text, path=f"tc:turn_{turn}.{id_}.result")
        other = result(id_, text, path=f"tc:turn_{turn + 1}.{id_}.result")
        self._add(name, [made, *[event(BlockRedacted(version=before))] * before, answer, other])

    @rule(name=NAMES, version=st.integers(1, 12))
    def redact(self, name: str, version: int) -> None:
        """Redact a block that is there, or not yet."""
        self._add(name, [event(BlockRedacted(version=version))])

    @rule(name=NAMES, first=st.integers(1, 6), last=st.integers(1, 12), carried=st.sets(st.integers(1, 12), max_size=3))
    def compact(self, name: str, first: int, last: int, carried: set[int]) -> None:
        """Cover some versions, with a snapshot behind which the rest may be scavenged."""
        model = self.models.get(name)
        if model is None or not first <= last <= model.version:
            return
        made = compaction(first, last)
        kept = tuple(sorted(v for v in carried if v <= last))
        assert isinstance(made.payload, CompactionCompleted)
        block = made.payload.block.model_copy(update={"path": f"su:{model.version}"})
        payload = made.payload.model_copy(update={"carried": kept, "block": block})
        snapshot = Snapshot(version=model.version + 1, window_start=last + 1, blocks=kept)
        self._add(name, [made.model_copy(update={"payload": payload})], snapshot)

    @rule(name=NAMES)
    def undo(self, name: str) -> None:
        """Undo the newest compaction."""
        model = self.models.get(name)
        made = [] if model is None else [e.version for e in model.own if isinstance(e.payload, CompactionCompleted)]
        if made:
            self._add(name, [event(CompactionReverted(versions=(made[-1],)))])

    @rule(name=NAMES, parent=NAMES, version=st.integers(1, 12))
    def fork(self, name: str, parent: str, version: int) -> None:
        """Open a fork, where that is possible."""
        if name not in self.models and self._append(name, [fork(parent, version)]):
            model = self.models[name] = Model(self.models[parent], version)
            self._read(name, model)

    @rule(name=NAMES, most=st.integers(1, 4))
    def scavenge(self, name: str, most: int) -> None:
        """Remove some of what may be removed."""
        model = self.models.get(name)
        if model is None:
            return
        removed = [self.runner.run(store.remove(name, most=most)) for store in (self.memory, self.store)]
        assert removed[0] == removed[1]

        async def left() -> set[int]:
            return {e.version async for e in self.store.read(name)}

        there = self.runner.run(left())
        for version in {e.version for e in model.own} - there:
            model.scavenged.setdefault(version, model.version)

    @rule()
    def reopen(self) -> None:
        """Close the file and open it again."""
        self.runner.run(self.store.aclose())
        self.store = self._opened()

    @rule()
    def look_without_writing(self) -> None:
        """A reader that may not write finds the same, before anything is caught up."""

        async def read() -> list[Any]:
            async with await SQLiteStore.open(self.file, readonly=True) as reader:
                return [await self._shown(reader, name) for name in self.models]

        assert self.runner.run(read()) == [self._expected(name) for name in self.models]

    @rule(page=st.integers(1, 3))
    def look(self, page: int) -> None:
        """Both stores show the facts of each conversation, and of all, by position."""
        for store in (self.memory, self.store):
            for name in self.models:
                assert self.runner.run(self._shown(store, name, page)) == self._expected(name)
            every = self.runner.run(found(store, page=page))
            assert [f.position for f in every] == sorted(f.position for f in every)
            assert self.runner.run(found(store, conversation=list(self.models), page=page)) == every
        assert self.runner.run(found(self.memory)) == self.runner.run(found(self.store))

    @rule(newest=st.integers(0, 3))
    def ask_for_records(self, newest: int) -> None:
        """Each compaction's record is that of its facts alone, byte for byte: it may go on from the one before."""
        for name, model in self.models.items():
            for left in (newest, 0):
                covers = Covers(ranges=((1, max(1, model.version - left)),))
                expected = record_of(fact for _, fact in model.facts() if fact.version in covers)
                for store in (self.memory, self.store):
                    assert repr(self.runner.run(store.fact_record(name, covers=covers))) == repr(expected)

    async def _shown(self, store: MemoryStore | SQLiteStore, name: str, page: int = 200) -> Any:
        shown = await found(store, conversation=name, page=page)
        fields = ("conversation", *Fact._fields, "covered")
        return [tuple(getattr(f, name) for name in fields) for f in shown], await store.fact_record(name)

    def _expected(self, name: str) -> Any:
        model = self.models[name]
        facts = model.facts()
        shown = [(owner, *fact, model.covered(fact.version)) for owner, fact in facts]
        return shown, record_of(fact for _, fact in facts)

    @invariant()
    def stores_agree(self) -> None:
        """Nothing is asked here, so that what is caught up and what is not differs from run to run."""
        assert self.runner.run(self.memory.head()) == self.runner.run(self.store.head())

    def teardown(self) -> None:
        """Look once more; close the store and remove its file."""
        self.look(2)
        self.runner.run(self.store.aclose())
        self.runner.close()
        self.folder.cleanup()


TestFactsAreThoseOfTheLog = FactsAreThoseOfTheLog.TestCase
TestFactsAreThoseOfTheLog.settings = search(40, steps=25)


def _asked(file: Path, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        return connection.execute(statement, parameters).fetchall()


async def _worked(file: Path, *, calls: int = 12) -> list[StoredFact]:
    """Make a store in which files were read, commands ran, one failed and names were named; return its facts."""
    async with await SQLiteStore.open(file, durability="normal") as store:
        for number in range(calls):
            named = block_event(f"p{number}", f"about ENT-{number} in https://example.org/{number}")
            await store.append("a", [named, *command(f"{number}", f"go test ./p{number}", failed=number % 5 == 0)])
            await store.append("b", [call(f"{number}", "Read", {"file_path": f"src/{number}.py"}), result(f"{number}")])
        return await found(store)


async def test_a_store_of_an_earlier_version_gives_the_facts_of_its_log(tmp_path: Path) -> None:
    """They are caught up by the first query, and are the ones that would have been written at once."""
    file = tmp_path / "agent.db"
    expected = await _worked(file)
    before_facts(file)
    async with await SQLiteStore.open(file) as store:
        assert (await store.fact_reach()).position == 0
        assert await found(store) == expected
        assert (await store.fact_record("a")).counts == {"command": 9, "identifier": 12, "request": 12, "url": 12}
        reach = await store.fact_reach()
        assert reach.position == reach.newest_position == expected[-1].position


@pytest.mark.parametrize("readonly", [False, True])
async def test_a_store_from_before_requests_were_facts_has_them_once_it_is_asked(
    tmp_path: Path, *, readonly: bool
) -> None:
    """Its index of the second form is made again; where it may not be written, the log is read."""
    file = tmp_path / "agent.db"
    expected = await _worked(file)
    _asked(file, "DELETE FROM facts WHERE kind = ?", FACT_KINDS.index("request"))
    _asked(file, "UPDATE facts SET detail = '' WHERE detail = 'prompt'")
    _asked(file, "UPDATE facts_progress SET form = 2")
    async with await SQLiteStore.open(file, readonly=readonly) as store:
        assert [fact.subject for fact in await found(store, kind="request")] == [
            f"about ENT-{number} in https://example.org/{number}" for number in range(12)
        ]
        assert await found(store) == expected
        record = await store.fact_record("a")
        assert (record.counts["request"], len(record.asked)) == (12, 12)
    assert _asked(file, "SELECT form FROM facts_progress") == [(2 if readonly else FORM,)]


async def test_a_reader_that_may_not_write_reads_the_rest_from_the_log(tmp_path: Path) -> None:
    """As far as the index reaches it is asked, behind it the log is: the same facts, whatever part is caught up."""
    file = tmp_path / "agent.db"
    expected = await _worked(file)
    record = None
    before_facts(file)
    await (await SQLiteStore.open(file)).aclose()
    middle = expected[len(expected) // 2].position
    for reached in (0, middle, expected[-1].position):
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            if reached:
                know_packed(connection)
                sqlite_facts.catch_up(connection, reached)
        async with await SQLiteStore.open(file, readonly=True) as reader:
            assert (await reader.fact_reach()).position == reached
            assert await found(reader, page=5) == expected
            assert await found(reader, conversation="b") == [f for f in expected if f.conversation == "b"]
            assert await found(reader, kind="command", failed=True) == [f for f in expected if f.failed]
            record = record or await reader.fact_record("a")
            assert await reader.fact_record("a") == record


async def test_digests_are_the_facts_of_what_was_scavenged_before_there_were_facts(tmp_path: Path) -> None:
    """Their entries are marked, each once, of the block that is gone; what is still in the log is read from it."""
    file = tmp_path / "agent.db"
    path = "tc:turn_1.{}.{}".format
    digest = Digest(
        files_read=(FileUse(file="src/a.py", tool="Read", path=path(1, "call"), times=3),),
        files_written=(FileUse(file="src/b.py", tool="Write", path=path(2, "call")),),
        commands=(Command(command="go test", path=path(3, "call"), exit_status=1, failed=True, output="FAIL"),),
        searches=(Search(query="main", tool="Grep", path=path(4, "call"), hits=2),),
        errors=(Problem(tool="Fetch", path=path(5, "result"), message="no route"),),
    )
    async with await SQLiteStore.open(file) as store:
        uses = ["Read", "Write", "Bash", "Grep", "Fetch"]
        for number, name in enumerate(uses, 1):
            await store.append("a", [call(str(number), name, {}), result(str(number))])
        await store.append("a", [*command("6", "git log"), event(BlockRedacted(version=3))])
        await store.append("a", [compaction(1, 4, digest=digest)])
        made = compaction(1, 10, digest=digest, round_=2)
        await store.append("a", [made], snapshot=Snapshot(version=15, window_start=11))
        assert (await store.remove("a")).events == 10
        assert [fact.subject for fact in await found(store)] == ["git log"]
    before_facts(file)
    async with await SQLiteStore.open(file) as store:
        facts = await found(store, conversation="a")
        assert [(f.kind, f.subject, f.version, f.path, f.tool, f.exit_status, f.failed, f.detail) for f in facts] == [
            ("file_read", "src/a.py", 1, path(1, "call"), "Read", None, False, ""),
            ("command", "go test", 5, path(3, "call"), "", 1, True, "FAIL"),
            ("search", "main", 7, path(4, "call"), "Grep", None, False, "2"),
            ("error", "Fetch", 10, path(5, "result"), "Fetch", None, True, "no route"),
            ("command", "git log", 12, path(6, "result"), "Bash", None, False, ""),
        ]
        assert [fact.covered for fact in facts] == [True, True, True, True, False]
        assert facts[-1].source == "log"
        await store.append("a", [event(BlockRedacted(version=5))])
        assert [fact.subject for fact in await found(store, kind="command")] == ["git log"]


async def test_facts_of_another_form_are_made_again_where_their_events_are_there(tmp_path: Path) -> None:
    """What was made of scavenged events by the earlier rules stays: nothing else is left of them."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        await store.append("a", [*command("1", "one"), *command("2", "two"), block_event("p", "ENT-1")])
        await store.append("a", [compaction(1, 2)], snapshot=Snapshot(version=6, window_start=3))
        await store.remove("a")
    _asked(file, "UPDATE facts SET detail = 'of other rules'")
    _asked(file, "UPDATE facts_progress SET form = 0")
    async with await SQLiteStore.open(file, readonly=True) as reader:
        assert [(f.subject, f.detail) for f in await found(reader)] == [
            ("one", "of other rules"), ("two", ""), ("ENT-1", "prompt"), ("ENT-1", "said")
        ]  # fmt: skip
    async with await SQLiteStore.open(file) as store:
        assert [(f.subject, f.detail) for f in await found(store)] == [
            ("one", "of other rules"), ("two", ""), ("ENT-1", "prompt"), ("ENT-1", "said")
        ]  # fmt: skip


async def test_a_damaged_event_gives_no_facts_and_stops_no_query(tmp_path: Path) -> None:
    """Reading it reports the damage; what was written of it before stays."""
    file = tmp_path / "agent.db"
    await _worked(file, calls=2)
    _asked(file, "UPDATE events SET payload = '{' WHERE conversation = 1 AND version = 3")
    _asked(file, "UPDATE facts_progress SET position = 0")
    async with await SQLiteStore.open(file, readonly=True) as reader:
        assert [f.subject for f in await found(reader, kind="command")] == ["go test ./p0", "go test ./p1"]
    async with await SQLiteStore.open(file) as store:
        assert [f.subject for f in await found(store, kind="command")] == ["go test ./p0", "go test ./p1"]


async def test_an_append_writes_no_facts_and_a_query_behind_it_has_them_all(tmp_path: Path) -> None:
    """The store that appended, one beside it and one that may only read answer alike; a store that writes adds rows."""
    file = tmp_path / "agent.db"
    subjects = [f"make {number}" for number in range(50)]
    async with await SQLiteStore.open(file) as store, await SQLiteStore.open(file, readonly=True) as reader:
        await store.append("a", [each for number in range(50) for each in command(f"{number}", f"make {number}")])
        assert _asked(file, "SELECT 1 FROM facts") == []
        assert [f.subject for f in await found(reader)] == subjects
        assert _asked(file, "SELECT 1 FROM facts") == []
        async with await SQLiteStore.open(file) as beside:
            assert [f.subject for f in await found(beside)] == subjects
        assert len(_asked(file, "SELECT 1 FROM facts")) == 50
        assert [f.subject for f in await found(store)] == subjects


async def test_rows_that_an_earlier_release_wrote_with_its_appends_stay_as_they_are(tmp_path: Path) -> None:
    """Behind the mark of what is caught up they are known: a query adds what they lack, and none twice."""
    file = tmp_path / "agent.db"
    expected = await _worked(file)
    _asked(file, "DELETE FROM facts WHERE number < 0")
    _asked(file, "UPDATE facts SET detail = 'as written'")
    _asked(file, "UPDATE facts_progress SET position = 0")
    async with await SQLiteStore.open(file) as store:
        facts = await found(store)
    assert [(f.subject, f.position) for f in facts] == [(f.subject, f.position) for f in expected]
    written = {"command", "file_read"}
    assert {f.detail for f in facts if f.kind in written} == {"as written"}


async def test_appends_are_served_while_a_query_catches_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice is a short transaction; what is appended meanwhile is caught up by the next query."""
    file = tmp_path / "agent.db"
    expected = await _worked(file, calls=30)
    before_facts(file)
    monkeypatch.setattr(sqlite_facts, "MOST_EVENTS", 2)
    order = []
    async with await SQLiteStore.open(file) as store:

        async def ask() -> list[StoredFact]:
            facts = await found(store)
            order.append("asked")
            return facts

        async def append() -> None:
            for number in range(100, 105):
                await store.append("a", command(f"{number}", f"make {number}"))
                order.append("appended")

        facts, _ = await asyncio.gather(ask(), append())
        assert order[-1] == "asked"
        assert facts[: len(expected)] == expected
        assert [f.subject for f in await found(store, subject="make")] == [f"make {n}" for n in range(100, 105)]


CATCH_UP = """
import asyncio, sys
from timeline.store.sqlite import facts
from timeline.store.sqlite.connection import know_packed
from timeline.store.sqlite.facts import SQLiteFacts
from timeline.store.sqlite.store import SQLiteStore

facts.MOST_EVENTS = 3

async def main():
    store = await SQLiteStore.open(sys.argv[1])
    print("open", flush=True)
    async for fact in store.facts():
        pass

asyncio.run(main())
"""


@pytest.mark.parametrize("after", [0.0, 0.01, 0.03, 0.06])
async def test_a_query_that_is_killed_while_it_catches_up_loses_and_doubles_nothing(
    tmp_path: Path, after: float
) -> None:
    """The next query goes on behind the last slice that was committed."""
    file = tmp_path / "agent.db"
    expected = await _worked(file, calls=40)
    before_facts(file)
    await (await SQLiteStore.open(file)).aclose()
    command_ = [sys.executable, "-c", CATCH_UP, str(file)]
    with subprocess.Popen(command_, stdout=subprocess.PIPE) as child:  # noqa: ASYNC220 - a test may wait for its child
        assert child.stdout is not None
        assert child.stdout.readline() == b"open\n"
        await asyncio.sleep(after)
        child.kill()
    async with await SQLiteStore.open(file, readonly=True) as reader:
        assert await found(reader) == expected
    async with await SQLiteStore.open(file) as store:
        assert await found(store) == expected


async def test_results_with_paths_of_an_application_answer_the_call_of_their_id(tmp_path: Path) -> None:
    """In one append, and where neither call nor result has a path at all."""
    file = tmp_path / "agent.db"
    calls = [ToolCall(call_id=each, name="bash", arguments={"command": f"make {each}"}) for each in ("one", "two")]
    results = [ToolResult(call_id=each, text="done") for each in ("one", "two")]
    async with await SQLiteStore.open(file) as store:
        await store.append("a", [event(BlockAppended(block=b, tokens=1, counter="c")) for b in (*calls, *results)])
        assert len(await found(store)) == 2
        assert _asked(file, "SELECT subject, version, call FROM facts") == [("make one", 3, 1), ("make two", 4, 2)]


@pytest.mark.parametrize("conditions", [{"glob": "src/**/*a1?.py"}, {"query": "A1* py"}], ids=["glob", "query"])
async def test_rows_that_do_not_fit_are_left_in_the_database(tmp_path: Path, conditions: dict[str, Any]) -> None:
    """Of a million facts each that is read costs ten times as much as one that SQLite passes."""
    async with await SQLiteStore.open(tmp_path / "agent.db") as store:
        for number in range(8, 12):
            opened = [call("c", "Read", {"file_path": f"src/a{number}.py"}), result("c", "ok")]
            await store.append(f"c{number}", opened)
        assert [fact.subject async for fact in store.facts(**conditions)] == ["src/a10.py", "src/a11.py"]
        rows = SQLiteFacts(store.database.fetched)
        wanted = FactFilter.checked(**conditions)
        assert len(await rows.page_of_rows(None, wanted, (0, 0), 10**6, 100)) == 2


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("src/stra\u00dfe.py", "strasse"),
        ("src/\u212a.py", "k"),
        ("caf\u0065\u0301.py", "caf\u00e9"),
        ("src/getUserName.py", "UserName"),
    ],
    ids=["sharp s", "Kelvin", "combining", "humps"],
)
async def test_a_database_passes_no_row_whose_words_it_does_not_know(tmp_path: Path, text: str, query: str) -> None:
    """Lower case is more than SQLite's, and a letter with a mark has two forms."""
    for url in ("memory://", str(tmp_path / "agent.db")):
        async with open_store(url) as store:
            await store.append("c", [call("c", "Read", {"file_path": text}), result("c", "ok")])
            assert [fact.kind async for fact in store.facts(query=query)] == ["file_read"], url


async def test_a_glob_fits_a_path_that_holds_the_character_0(tmp_path: Path) -> None:
    """SQLite's own globs end there."""
    async with await SQLiteStore.open(tmp_path / "agent.db") as store:
        wrote = Digest(files_written=(FileUse(file="src/a\0b.py", tool="Write", path="tc:1"),))
        opened = [call("c", "Read", {"file_path": "src/a\0b.py"}), result("c", "ok")]
        await store.append("c", [*opened, compaction(1, 1, digest=wrote)])
        for glob in ("src/a?b.py", "**/*b.py"):
            assert len([fact async for fact in store.facts(glob=glob)]) == 1
            assert len([found async for found in store.digests(path_glob=glob)]) == 1


async def test_a_question_about_one_conversation_waits_for_the_facts_of_a_part_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they do not reach is read from its own log, by its versions; a question to all adds the rest."""
    monkeypatch.setattr(sqlite_facts, "MOST_EVENTS", 1)
    monkeypatch.setattr(fact_queries, "SCANNED", 2)
    async with await SQLiteStore.open(tmp_path / "agent.db") as store:
        for name in ("first", "others", "last"):
            for number in range(1, 8):
                opened = [call(f"c{number}", "Read", {"file_path": f"{name}/{number}.py"}), result(f"c{number}", "ok")]
                await store.append(name, opened)
        record = await store.fact_record("last")
        assert {entry.subject for entry in record.done["file_read"]} == {f"last/{n}.py" for n in range(1, 8)}
        assert (await store.fact_reach()).position < 20
        assert [fact.version async for fact in store.facts(conversation="last")] == list(range(2, 15, 2))
        assert len([fact async for fact in store.facts()]) == 21
        assert (await store.fact_reach()).position == await store.head()
