from __future__ import annotations

import asyncio
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import anyio
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from store import open_store
from tests.invariants.checks import check_window
from tests.invariants.moods import Mood, MoodySummarizer
from tests.invariants.playing import AT, play, read_log, say, search
from tests.invariants.strategies import ANY_BLOCK, DECISIONS, IMPORTS, LATER, TEXTS, Decide, Step, a_round, small
from tests.invariants.watched import Watched
from timeline.blocks import Block, ToolCall, ToolResult, UserPrompt
from timeline.errors import CompactionError
from timeline.events import Usage
from timeline.ports import Hooks
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from timeline.policy.model import Policy
    from timeline.ports import EventStore

T = TypeVar("T")

Act = Literal["prompt", "late result", "hide", "compact", "nothing"]
ACTS: st.SearchStrategy[Act] = st.sampled_from(["prompt", "late result", "hide", "compact", "nothing"])


async def _raise(facts: dict[str, Any]) -> None:
    raise RuntimeError(f"a hook of the application, at {facts['before_tokens']}")


class TimelineMachine(RuleBasedStateMachine):
    """One conversation, two timelines on it, a moody summarizer; after each step the naive fold must agree."""

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
        self.number = 0

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the machine's own loop."""
        return self.loop.run_until_complete(coroutine)

    async def open(self) -> Timeline:
        """Open the conversation anew."""
        return await Timeline.open(
            self.store, "c", policy=self.policy, summarizer=self.summarizer, hooks=self.hooks, now=AT
        )

    @initialize(
        limit=st.sampled_from([1_000, 2_000, 6_000]),
        counter=st.sampled_from(["chars4", "chars4", "o200k_base"]),
        keep=st.sampled_from([0.2, 0.5]),
        prompt=st.sampled_from([{}, {"system": "Be brief.", "tools": [{"name": "bash"}]}]),
    )
    def begin(self, limit: int, counter: str, keep: float, prompt: dict[str, Any]) -> None:
        """Open the store and the conversation."""
        self.policy = small(limit, counter=counter, keep_recent=keep)

        async def opened() -> None:
            url = self.url.format(Path(self.folder.name) / "machine.db")
            self.store = await open_store(url).__aenter__()
            self.mine = Watched(self.store, await self.open(), **prompt)
            self.mine.alone = False
            self.other = await self.open()

        self.run(opened())

    @rule(blocks=st.lists(ANY_BLOCK, min_size=1, max_size=5), other=st.booleans())
    def say(self, blocks: list[Block], other: bool) -> None:  # noqa: FBT001 - Hypothesis draws it
        """Append any blocks, through either timeline."""
        timeline = self.other if other else self.mine.timeline
        self.run(say(timeline, self.store, blocks))

    @rule(data=st.data(), prompt=st.booleans())
    def go_on(self, data: st.DataObject, prompt: bool) -> None:  # noqa: FBT001 - Hypothesis draws it
        """Append an orderly round of the current turn, or a prompt that begins the next one."""
        self.number += 1
        timeline = self.mine.timeline
        blocks: list[Block] = [UserPrompt(text=data.draw(TEXTS))] if prompt else []
        self.run(timeline.append(*blocks, *data.draw(a_round(self.number)), now=AT))

    @rule()
    def render(self) -> None:
        """Render, with everything that a render promises."""
        self.run(self.mine.render())

    @rule()
    def compact(self) -> None:
        """Compact whatever the size."""
        self.run(self._compact(self.mine.timeline))

    async def _compact(self, timeline: Timeline) -> None:
        with suppress(CompactionError):
            assert await timeline.compact(now=AT, wait=False)

    @rule(act=ACTS, forced=st.booleans(), number=st.integers(0, 50))
    def meanwhile(self, act: Act, forced: bool, number: int) -> None:  # noqa: FBT001 - Hypothesis draws it
        """Render or compact while somebody else writes to the log."""
        self.summarizer.meanwhile = lambda: self._act(act, number)
        story = self._compact(self.mine.timeline) if forced else self.mine.outcome()
        self.run(story)
        self.summarizer.meanwhile = None
        self.run(self.mine.timeline._log.catch_up())

    async def _act(self, act: Act, number: int) -> None:
        calls = [i.block for i in self.other.window.items if isinstance(i.block, ToolCall)]
        match act:
            case "prompt":
                await self.mine.timeline.append(UserPrompt(text="steering"), now=AT)
            case "late result" if calls:
                call_id = calls[number % len(calls)].call_id
                await self.other.append(ToolResult(call_id=call_id, text="late"), now=AT)
            case "hide":
                await play(self.other, self.store, [Decide("hide", (number,), snapshot=True)])
            case "compact":
                await self._compact(self.other)
            case _:
                pass

    @rule()
    def at_once(self) -> None:
        """Render through both timelines at the same time, while a third task appends."""

        async def together() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(self.mine.outcome)
                group.start_soon(Watched(self.store, self.other, **self.mine.prompt).outcome)
                group.start_soon(self._act, "prompt", 0)

        self.run(together())

    @rule(checkpoints=st.integers(0, 12))
    def cancel(self, checkpoints: int) -> None:
        """Cancel a render at some point."""

        async def cancelled() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(self.mine.outcome)
                for _ in range(checkpoints):
                    await asyncio.sleep(0)
                group.cancel_scope.cancel()

        self.summarizer.mood = "slow"
        self.run(cancelled())
        self.run(self.mine.timeline._log.catch_up())

    @rule(step=st.one_of(DECISIONS, IMPORTS, LATER))
    def decide(self, step: Step) -> None:
        """Append a decision, a foreign compaction, or what a later version wrote."""
        self.run(self.mine.timeline._log.catch_up())
        self.run(play(self.mine.timeline, self.store, [step]))

    @rule(mood=st.sampled_from(["well", "raising", "empty", "blank", "long", "slow"]), hooks=st.booleans())
    def mood(self, mood: Mood, hooks: bool) -> None:  # noqa: FBT001 - Hypothesis draws it
        """Change how the summarizer and the hooks behave."""
        self.summarizer.mood = mood
        self.hooks = Hooks(_raise, _raise) if hooks else Hooks()
        self.run(self._reopen())

    @rule(limit=st.sampled_from([1_000, 2_000, 6_000]), whole_turns=st.booleans())
    def change_policy(self, limit: int, whole_turns: bool) -> None:  # noqa: FBT001 - Hypothesis draws it
        """Open the conversation under another policy."""
        changes = {"max_tokens": limit, "on_split": "whole_turn" if whole_turns else "split"}
        self.policy = self.policy.model_copy(update=changes)
        self.run(self._reopen())

    @rule()
    def call_model(self) -> None:
        """Record a model call."""
        self.run(self.mine.timeline.record_model_call(Usage(input_tokens=7), model="m", now=AT))

    @rule()
    def reopen(self) -> None:
        """Forget both timelines and open them again."""
        self.run(self._reopen())

    async def _reopen(self) -> None:
        self.mine.timeline = await self.open()
        self.other = await self.open()

    @invariant()
    def the_naive_fold_agrees(self) -> None:
        """What either timeline has caught up with is what the whole log says."""
        if hasattr(self, "mine"):
            self.run(self._agrees())

    async def _agrees(self) -> None:
        log = await read_log(self.store, "c")
        for timeline in (self.mine.timeline, self.other):
            known = [line for line in log if line[0] <= timeline.version]
            check_window(timeline.window, known)

    def teardown(self) -> None:
        """Verify the whole log, and let go of everything."""

        async def end() -> None:
            try:
                self.mine.timeline = await self.open()
                await self.mine.check_everything()
            finally:
                await self.store.aclose()

        try:
            if hasattr(self, "mine"):
                self.run(end())
        finally:
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()
            self.folder.cleanup()


class SQLiteMachine(TimelineMachine):
    """The same on a database file."""

    url = "{}"


TestTimelineInMemory = TimelineMachine.TestCase
TestTimelineInMemory.settings = search(20, steps=30)
TestTimelineInSQLite = SQLiteMachine.TestCase
TestTimelineInSQLite.settings = search(8, steps=30)
