from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from tests.depth import examples
from timeline.errors import TimelineError
from timeline.frozen import sha256_hex
from timeline.ports import Expected, Snapshot
from timeline.store.memory import MemoryStore
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import block_event, compaction, fork

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from hypothesis.strategies import SearchStrategy

    from timeline.events import NewEvent
    from timeline.ports import EventStore

NAMES = st.sampled_from(["a", "b", "c", "d"])
PATHS = st.sampled_from(["", "", "", "ar:t.user.prompt", "ar:t.user.prompt.2", "tc:t.c.call", "tc:t.c.result"])
EXPECTED: SearchStrategy[int | Expected] = st.sampled_from(list(Expected)) | st.integers(-1, 12)
TYPES = st.sets(st.sampled_from(["block.appended", "compaction.completed", "blocks.pinned"])) | st.none()


class SQLiteIsMemory(RuleBasedStateMachine):
    """Whatever is asked of it, a SQLite store answers as the memory store does: results and errors alike."""

    made = Bundle("made")

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.model = MemoryStore()
        self.store = self._opened()

    def _opened(self) -> SQLiteStore:
        file = Path(self.folder.name) / "agent.db"
        return self.runner.run(SQLiteStore.open(file, durability="normal"))

    def _both(self, call: Any) -> None:
        """Make the same call of both stores and compare what comes of it."""
        assert self._outcome(call(self.model)) == self._outcome(call(self.store))

    def _outcome(self, call: Coroutine[Any, Any, Any]) -> Any:
        try:
            return self.runner.run(call)
        except TimelineError as error:
            return type(error), str(error)

    @rule(target=made, paths=st.lists(PATHS, min_size=1, max_size=4))
    def make(self, paths: list[str]) -> Any:
        """Make events; some have paths that are taken, or will be."""
        return multiple(*(block_event(path) for path in paths))

    @rule(target=made, number=st.integers(1, 6))
    def make_compaction(self, number: int) -> NewEvent:
        """Make the event of a compaction, whose summary has a path too."""
        return compaction(number, number)

    @rule(name=NAMES, written=st.lists(made, max_size=5), expected=EXPECTED, value=st.sampled_from(["", "x", "y"]))
    def append(self, name: str, written: list[NewEvent], expected: int | Expected, value: str) -> None:
        """Append events, new ones and old ones, with any expectation."""
        values = {sha256_hex(value): value}
        self._both(lambda store: store.append(name, written, expected=expected, values=values))

    @rule(name=NAMES, written=st.lists(made, min_size=1, max_size=2), start=st.integers(1, 9), data=st.data())
    def append_with_snapshot(self, name: str, written: list[NewEvent], start: int, data: st.DataObject) -> None:
        """Move a window, as a compaction does: its start and carried blocks are versions that exist."""
        version = self._version(name) + len(written)
        start = min(start, version + 1)
        carried = tuple(data.draw(st.sets(st.integers(1, start - 1)))) if start > 1 else ()
        snapshot = Snapshot(version=version, window_start=start, blocks=carried)
        self._both(lambda store: store.append(name, written, snapshot=snapshot))

    @rule(
        name=NAMES,
        parent=NAMES,
        version=st.integers(-1, 9),
        written=st.lists(made, max_size=2),
        expected=EXPECTED,
    )
    def fork(self, name: str, parent: str, version: int, written: list[NewEvent], expected: int | Expected) -> None:
        """Open a fork of a conversation or of another fork; or try to, where that is not possible."""
        opening = [fork(parent, version), *written]
        self._both(lambda store: store.append(name, opening, expected=expected))

    def _version(self, name: str) -> int:
        log = self.model._logs.get(name)
        return log.version if log else 0

    @rule(
        name=NAMES, after=st.integers(-1, 9), until=st.integers(0, 9) | st.none(), types=TYPES, page=st.integers(1, 4)
    )
    def read(self, name: str, after: int, until: int | None, types: set[str] | None, page: int) -> None:
        """Read a range."""

        async def read(store: EventStore) -> list[Any]:
            return [e async for e in store.read(name, after=after, until=until, types=types, page=page)]

        self._both(read)

    @rule(after=st.integers(0, 9), types=TYPES, page=st.integers(1, 4))
    def read_all(self, after: int, types: set[str] | None, page: int) -> None:
        """Read everything after a position."""

        async def read(store: EventStore) -> list[Any]:
            return [e async for e in store.read_all(after=after, types=types, page=page)]

        self._both(read)

    @rule(name=NAMES, written=st.lists(made, max_size=4), stems=st.sets(PATHS | st.just("tc:")))
    def look_up(self, name: str, written: list[NewEvent], stems: set[str]) -> None:
        """Ask for ids, paths, versions and values."""
        self._both(lambda store: store.known_ids(name, {e.id for e in written}))
        self._both(lambda store: store.paths_taken(name, stems))
        self._both(lambda store: store.read_versions(name, [1, 3, 4, 99]))
        self._both(lambda store: store.find(name, "tc:t.c.call"))
        self._both(lambda store: store.values([sha256_hex(text) for text in ("", "x", "y", "z")]))

    @rule()
    def reopen(self) -> None:
        """Close the file and open it again."""
        self.runner.run(self.store.aclose())
        self.store = self._opened()

    @invariant()
    def windows_and_conversations_are_the_same(self) -> None:
        """The windows of all conversations, and their list, agree."""

        async def conversations(store: EventStore) -> list[Any]:
            infos = [info async for info in store.conversations(page=2)]
            return [(info, await store.load_window(info.id)) for info in infos]

        self._both(conversations)

    def teardown(self) -> None:
        """Close the store and remove its file."""
        self.runner.run(self.store.aclose())
        self.runner.close()
        self.folder.cleanup()


TestSQLiteIsMemory = SQLiteIsMemory.TestCase
TestSQLiteIsMemory.settings = settings(
    max_examples=examples(15), stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
