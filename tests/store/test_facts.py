"""The facts of both stores against a naive model, and what a database does for them besides."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.depth import examples
from timeline.blocks import ToolCall, ToolResult
from timeline.errors import TimelineError
from timeline.events import BlockAppended, BlockRedacted, CompactionCompleted, CompactionReverted
from timeline.facts.extracting import facts_named, facts_of_result
from timeline.facts.model import Fact
from timeline.facts.record import record_of
from timeline.ports import Snapshot
from timeline.store.memory import MemoryStore
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import compaction, event, fork
from timeline.store.testing.facts import call, found, result

if TYPE_CHECKING:
    from timeline.events import Event, NewEvent

NAMES = st.sampled_from(["a", "b", "c"])
IDS = st.sampled_from(["1", "2", "3"])
TEXTS = st.sampled_from(["ok", "3 matches", "Exit code: 2", "see https://example.org/x", "ENT-241 is open"])
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
        outcomes = []
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


FactsAreThoseOfTheLog.TestCase.settings = settings(
    max_examples=examples(40), stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestFactsAreThoseOfTheLog = FactsAreThoseOfTheLog.TestCase
