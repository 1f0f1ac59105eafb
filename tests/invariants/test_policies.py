"""Whose policy is whose: two processes, two releases of a preset, several handles, one conversation in a real file.

The model knows the conversation's policy, who works under another one, and whether an undo holds; after each step the
log says what the model says, and the handle that did it has the policy that the model gives it.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.invariants.playing import search
from tests.other_release import OtherRelease
from tests.policy_player import CONVERSATION, Player
from timeline import open_store
from timeline.events import ConversationOpened, PolicyChanged
from timeline.events.other_payloads import PolicyOverridden

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.events import Event

Choice = dict[str, Any]
_UNRESERVED: Final = {"output_reserve": 0, "safety_buffer": 0}
CHOICES: Final[dict[str, Choice]] = {
    "tight": {"preset": "cut_point", "arguments": {"max_tokens": 1_500, "counter": "chars4", "hiding": None}},
    "newest": {"preset": "keep_last", "arguments": {"max_tokens": 4_000, "messages": 4} | _UNRESERVED},
    "balanced": {"preset": "balanced", "arguments": {"max_tokens": 1_600, "counter": "chars4"}},
    "default": {"preset": "balanced", "arguments": {}},
}
"""`balanced` has other figures in the other process, so the last two are other policies there."""
NAMES = st.sampled_from([*CHOICES])
GIVEN = st.sampled_from([None, *CHOICES])
PROCESSES = st.sampled_from(["ours", "theirs"])
OTHER: list[OtherRelease] = []


@pytest.fixture(scope="module", autouse=True)
def other_release(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep one process of the other release for all examples."""
    with OtherRelease(tmp_path_factory.mktemp("release")) as process:
        OTHER.append(process)
        yield
        OTHER.clear()


@dataclass
class Handle:
    """What the model knows of a handle.

    ``known`` is the conversation's policy at its last look; ``unnamed`` that its first write names the default.
    """

    name: str
    process: str
    policy: str
    own: bool
    known: str | None
    unnamed: bool
    readonly: bool


class Policies(RuleBasedStateMachine):
    """One conversation, and handles of two processes on it."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.file = str(Path(self.folder.name) / "timeline.db")
        self.player = Player()
        self.handles: list[Handle] = []
        self.opened = 0
        self.forks = 0
        self.in_force: str | None = None
        self.choice: str | None = None
        self.overrides: set[str] = set()
        self.held = False
        self.past: list[tuple[int, str | None]] = []
        """From which version on which policy was in force."""
        self.told: list[tuple[str, str]] = []
        """The events about policies, each with the hash that it names."""

    def teardown(self) -> None:
        """Close everything and verify."""
        self.do("ours", do="close")
        self.do("theirs", do="close")
        report = self.loop.run_until_complete(self._verified())
        assert report.ok, report.problems
        self.loop.close()
        self.folder.cleanup()

    async def _verified(self) -> Any:
        from timeline.audit.verify import verify  # noqa: PLC0415 - at the end of an example only

        async with open_store(self.file) as store:
            return await verify(store, CONVERSATION)

    # Both sides

    def do(self, process: str, **command: Any) -> dict[str, Any]:
        """Send a command to a process, and wait for it."""
        if process == "theirs":
            return OTHER[0].do(**command)
        return self.loop.run_until_complete(self.player.do(command))

    def hash(self, process: str, name: str) -> str:
        """Return the hash that a choice has in a process."""
        answer: str = self.do(process, do="hash", policy=CHOICES[name])["hash"]
        return answer

    async def _read(self) -> list[Event]:
        async with open_store(self.file, readonly=True) as store:
            return [event async for event in store.read(CONVERSATION)]

    def events(self) -> list[Event]:
        """Return the log."""
        return self.loop.run_until_complete(self._read())

    def version(self) -> int:
        """Return the newest version, by the bytes of the file alone."""
        with closing(sqlite3.connect(self.file)) as connection:
            [(version,)] = connection.execute(
                "SELECT version FROM conversations WHERE id = ?",
                (CONVERSATION,),
            ).fetchall()
        return int(version)

    # What the model does

    def put_in_force(self, hash_: str, name: str, *, at: int) -> None:
        """Take note that another policy is the conversation's."""
        self.in_force, self.choice, self.overrides = hash_, name, set()
        self.past.append((at, hash_))

    def look(self, handle: Handle) -> None:
        """Follow the conversation's policy, as a handle does before a render or a decision."""
        if handle.known == self.in_force:
            return
        handle.known = self.in_force
        if not handle.own and self.in_force is not None:
            handle.policy = self.in_force

    def wrote(self, handle: Handle, before: int) -> None:
        """Take note of the default that a handle named ahead of the first thing that it wrote."""
        if not handle.unnamed or self.version() == before:
            return
        handle.unnamed = False
        if self.in_force is None:
            hash_ = self.hash(handle.process, "default")
            self.told.append(("policy.changed", hash_))
            self.put_in_force(hash_, "default", at=before + 1)

    def same_choice(self, name: str) -> bool:
        """Return whether a choice is the conversation's, in whatever release."""
        return self.choice == name

    # Rules

    @initialize(process=PROCESSES, given=GIVEN, imported=st.booleans(), undone=st.booleans())
    def begin(self, process: str, given: str | None, *, imported: bool, undone: bool) -> None:
        """Begin the conversation, or import it; fill it above the smaller triggers, and perhaps undo a compaction."""
        policy = None if given is None else CHOICES[given]
        source = "chat" if imported else ""
        answer = self.do(process, do="open", file=self.file, handle="h0", policy=policy, source=source)
        first = given if given is not None or imported else "default"
        own = self.hash(process, first or "default")
        assert (answer["policy"], answer["warned"]) == (own, [])
        if first is not None:
            self.told.append(("conversation.opened", own))
            self.put_in_force(own, first, at=1)
        else:
            self.past.append((1, None))
        self.handles.append(Handle("h0", process, own, False, self.in_force, False, False))
        for _ in range(7):
            self.do(process, do="append", handle="h0")
        if undone:
            self.do(process, do="compact", handle="h0")
            self.held = "undone" in self.do(process, do="undo", handle="h0")

    @rule(process=PROCESSES, given=GIVEN, readonly=st.booleans())
    def open(self, process: str, given: str | None, *, readonly: bool) -> None:
        """Open another handle."""
        self.opened += 1
        name = f"h{self.opened}"
        policy = None if given is None else CHOICES[given]
        before = self.version()
        answer = self.do(process, do="open", file=self.file, handle=name, policy=policy, readonly=readonly)
        handle = Handle(name, process, "", False, self.in_force, False, readonly)
        if given is None:
            handle.unnamed = self.in_force is None
            handle.policy = self.in_force or self.hash(process, "default")
        else:
            self._opened_with(handle, given, before)
        handle.known = self.in_force
        self.handles.append(handle)
        assert answer["policy"] == handle.policy
        assert bool(answer["warned"]) == handle.own or readonly
        assert not readonly or self.version() == before

    def _opened_with(self, handle: Handle, given: str, before: int) -> None:
        hash_ = self.hash(handle.process, given)
        if self.in_force is None:
            handle.policy, handle.own = hash_, handle.readonly
            if not handle.readonly:
                self.told.append(("policy.changed", hash_))
                self.put_in_force(hash_, given, at=before + 1)
        elif hash_ == self.in_force or self.same_choice(given):
            handle.policy = self.in_force
        else:
            handle.policy, handle.own = hash_, True
            if not handle.readonly and hash_ not in self.overrides:
                self.told.append(("policy.overridden", hash_))
                self.overrides.add(hash_)

    @rule(data=st.data())
    def append(self, data: st.DataObject) -> None:
        """Append a turn."""
        handle = self._any(data)
        before = self.version()
        answer = self.do(handle.process, do="append", handle=handle.name)
        assert ("error" in answer) == handle.readonly
        self.wrote(handle, before)

    @rule(data=st.data(), record=st.booleans())
    def render(self, data: st.DataObject, *, record: bool) -> None:
        """Render: under the handle's policy; while an undo holds, nothing is compacted."""
        handle = self._any(data)
        before = self.version()
        record = record and not handle.readonly
        self.look(handle)
        answer = self.do(handle.process, do="render", handle=handle.name, record=record)
        assert answer["policy"] == handle.policy
        if self.held and "kinds" in answer:
            assert "compacted" not in answer["kinds"]
        if record:
            self.wrote(handle, before)
        else:
            assert self.version() == before

    def everybody_looks(self) -> None:
        """Render by each handle, without recording: each has the policy that the model gives it, and an undo holds."""
        before = self.version()
        for handle in self.handles:
            self.look(handle)
            answer = self.do(handle.process, do="render", handle=handle.name, record=False)
            assert (answer["policy"], answer["held"]) == (handle.policy, self.held)
            assert not self.held or "compacted" not in answer.get("kinds", [])
        assert self.version() == before

    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        """Compact by request, which ends an undo's hold."""
        handle = self._writer(data)
        before = self.version()
        self.look(handle)
        answer = self.do(handle.process, do="compact", handle=handle.name)
        assert answer["policy"] == handle.policy
        self.wrote(handle, before)
        self.held = self.held and "compacted" not in answer.get("kinds", [])

    @rule(data=st.data())
    def undo(self, data: st.DataObject) -> None:
        """Undo the newest compaction, or one that is made for it; then nobody compacts by itself."""
        handle = self._writer(data)
        before = self.version()
        self.look(handle)
        answer = self.do(handle.process, do="undo", handle=handle.name)
        if "error" in answer and "kinds" in self.do(handle.process, do="compact", handle=handle.name):
            answer = self.do(handle.process, do="undo", handle=handle.name)
        self.wrote(handle, before)
        self.held = self.held or "undone" in answer
        assert answer["held"] == self.held
        self.everybody_looks()

    @rule(data=st.data(), name=NAMES)
    def use_policy(self, data: st.DataObject, name: str) -> None:
        """Change the policy for everybody."""
        handle = self._writer(data)
        before = self.version()
        hash_ = self.hash(handle.process, name)
        self.look(handle)
        answer = self.do(handle.process, do="use_policy", handle=handle.name, policy=CHOICES[name])
        if hash_ != self.in_force:
            self.told.append(("policy.changed", hash_))
            self.put_in_force(hash_, name, at=before + 1)
            self.held = False
        else:
            assert self.version() == before
        handle.policy, handle.own, handle.known, handle.unnamed = hash_, False, self.in_force, False
        assert answer["policy"] == hash_
        self.everybody_looks()

    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        """The past has the policy of its time, and a fork goes on under it; nothing is appended for a look."""
        handle = self._any(data)
        newest = self.version()
        version = data.draw(st.integers(1, newest), "version")
        then = [hash_ for first, hash_ in self.past if first <= version][-1]
        past = self.do(handle.process, do="past", handle=handle.name, version=version)
        assert past["past"] == (handle.policy if handle.own or then is None else then)
        assert self.version() == newest
        if handle.readonly:
            return
        self.forks += 1
        fork = self.do(
            handle.process, do="fork", handle=handle.name, version=version, name=f"{CONVERSATION}.{self.forks}"
        )
        expected = handle.policy if then is None else then
        assert (fork["fork"], fork["named"]) == (expected, expected)

    @precondition(lambda self: len(self.handles) > 1)
    @rule(process=PROCESSES)
    def restart(self, process: str) -> None:
        """Close everything of a process; the file says what is left."""
        self.do(process, do="close")
        self.handles = [handle for handle in self.handles if handle.process != process]

    def _any(self, data: st.DataObject) -> Handle:
        if not self.handles:
            self.open(process="ours", given=None, readonly=False)
        return data.draw(st.sampled_from(self.handles), "handle")

    def _writer(self, data: st.DataObject) -> Handle:
        if all(handle.readonly for handle in self.handles):
            self.open(process="theirs", given=None, readonly=False)
        return data.draw(st.sampled_from([handle for handle in self.handles if not handle.readonly]), "writer")

    @invariant()
    def the_log_says_so(self) -> None:
        """Each change and each override once, in order; nothing is compacted by itself while an undo holds."""
        if not self.past:
            return
        told: list[tuple[str, str]] = []
        held = False
        for event in self.events():
            match event.payload:
                case ConversationOpened(policy=str(policy)) | PolicyOverridden(policy=policy):
                    told.append((event.type, policy))
                case PolicyChanged(policy=policy, adopted=adopted):
                    told.append((event.type, policy))
                    held = held and adopted
            if event.type == "compaction.reverted":
                held = True
            if event.type == "compaction.completed":
                assert not held or event.payload.reason in {"forced", "refused"}  # type: ignore[attr-defined]
                held = False
        assert told == self.told
        assert held == self.held


TestPolicies = Policies.TestCase
TestPolicies.settings = search(40, steps=25)
