"""What the state machine stands on: a store, two timelines on one conversation, a fork of it, and its checks."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import anyio
from hypothesis.stateful import RuleBasedStateMachine, invariant

from tests.invariants import reference_time
from tests.invariants.checks import check_window
from tests.invariants.moods import MoodySummarizer
from tests.invariants.playing import manage, play, read_log, undo
from tests.invariants.strategies import Decide, Manual, Undo
from tests.invariants.watched import Watched
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.errors import CompactionError
from timeline.ports import Hooks
from timeline.store import open_store
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from timeline.policy.model import Policy
    from timeline.ports import EventStore

T = TypeVar("T")

Act = Literal[
    "prompt", "late result", "hide", "redact", "pin", "undo", "fork", "compact", "take over", "render", "nothing"
]
"""What somebody else does while a summary is being written."""


class Conversation(RuleBasedStateMachine):
    """One conversation, two timelines on it, at most one fork; after each step the naive fold must agree.

    ``mine`` keeps the clock. ``dead`` says that some writer took a lease and never came back.
    """

    url: ClassVar[str] = "memory://"

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.store: EventStore
        self.policy: Policy
        self.hooks = Hooks()
        self.summarizer = MoodySummarizer()
        self.mine: Watched
        self.other: Timeline
        self.fork: Watched | None = None
        self.dead = False
        self.number = 0

    @property
    def now(self) -> datetime:
        """The moment of the machine."""
        return self.mine.now

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the machine's own loop."""
        return self.loop.run_until_complete(coroutine)

    async def open(self, conversation: str, now: datetime) -> Timeline:
        """Open a conversation anew."""
        return await Timeline.open(
            self.store, conversation, policy=self.policy, summarizer=self.summarizer, hooks=self.hooks, now=now
        )

    def place(self) -> str:
        """Return the URL of an empty store."""
        return self.url.format(Path(self.folder.name) / "machine.db")

    async def begin_at(self, now: datetime, prompt: dict[str, Any]) -> None:
        """Open the store and the conversation."""
        self.store = await open_store(self.place()).__aenter__()
        self.mine = Watched(self.store, await self.open("c", now), **prompt)
        self.mine.now, self.mine.alone, self.mine.forced = now, False, True
        self.other = await self.open("c", now)

    async def reopened(self) -> None:
        """Forget all timelines and open them again."""
        await self.mine.follow(await self.open("c", self.now))
        self.other = await self.open("c", self.now)
        if self.fork is not None:
            self.fork.timeline = await self.open(self.fork.timeline.id, self.now)

    def either(self, *, other: bool) -> Timeline:
        """Return one of the two timelines."""
        return self.other if other else self.mine.timeline

    async def compacted(self, timeline: Timeline, seconds: int = 0) -> None:
        """Compact whatever the size, some time from now, unless somebody else does."""
        with suppress(CompactionError):
            assert await timeline.compact(now=self.now + timedelta(seconds=seconds), wait=False)

    async def rendered_by_other(self) -> None:
        """Render through the other timeline."""
        other = Watched(self.store, self.other, **self.mine.prompt)
        other.now = self.now
        await other.outcome()

    async def act(self, act: Act, number: int) -> None:  # noqa: C901 - one case an act
        """Do something through the other timeline, mostly."""
        match act:
            case "prompt":
                await self.mine.timeline.append(UserPrompt(text="steering"), now=self.now)
            case "late result":
                await self._late_result(number)
            case "hide" | "redact":
                await play(self.other, self.store, [Decide(act, (number,), snapshot=True)], self.now)
            case "pin":
                await manage(self.other, Manual(act, number), self.now)
            case "undo":
                await undo(self.other, self.store, Undo(None, cascade=True), self.now)
            case "fork":
                await self.other.fork(now=self.now)
            case "compact":
                await self.compacted(self.other)
            case "take over":
                await self.compacted(self.other, seconds=200)
            case "render":
                with anyio.move_on_after(0.02):  # above the limit it waits for the summary that waits for it
                    await self.rendered_by_other()
            case "nothing":
                pass

    async def _late_result(self, number: int) -> None:
        calls = [i.block for i in self.other.window.items if isinstance(i.block, ToolCall)]
        if calls:
            late = ToolResult(call_id=calls[number % len(calls)].call_id, text="late")
            await self.other.append(late, now=self.now)

    @invariant()
    def the_naive_fold_agrees(self) -> None:
        """What any timeline has caught up with is what the whole log says, and no lease is left behind."""
        if hasattr(self, "mine"):
            self.run(self._agrees())

    async def _agrees(self) -> None:
        log = await read_log(self.store, "c")
        for timeline in (self.mine.timeline, self.other):
            check_window(timeline.window, [line for line in log if line.version <= timeline.version])
        if not self.dead:
            assert reference_time.lease(log) is None
        if self.fork is not None:
            mine = await read_log(self.store, self.fork.timeline.id)
            check_window(self.fork.timeline.window, mine[: self.fork.timeline.version])

    def teardown(self) -> None:
        """Verify every conversation whole, and let go of everything."""
        try:
            if hasattr(self, "mine"):
                self.run(self._end())
        finally:
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()
            self.folder.cleanup()

    async def _end(self) -> None:
        try:
            await self.reopened()
            await self.mine.check_everything()
            async for conversation in self.store.conversations():
                report = await (await self.open(conversation.id, self.now)).verify()
                assert report.ok, report.problems
        finally:
            await self.store.aclose()
