from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, get_args

import anyio
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tests.invariants.checks import check_window
from tests.invariants.designs import DESIGNS
from tests.invariants.machine import Act, Conversation
from tests.invariants.playing import AT, commit, play, read_log, say, search
from tests.invariants.strategies import (
    ANY_BLOCK,
    CALLS,
    COMPACTIONS,
    DECISIONS,
    GOING_BACK,
    HIDINGS,
    IMPORTS,
    LATER,
    MANUAL,
    STAGED,
    TEXTS,
    UNDOS,
    WAITS,
    Call,
    Compact,
    GoBack,
    Manual,
    Say,
    Staged,
    Step,
    Undo,
    Wait,
    a_round,
    small,
)
from tests.invariants.watched import Watched
from timeline.blocks import Block, UserPrompt
from timeline.events import BlockRedacted, appended_block, event_id
from timeline.events.other_payloads import CompactionStarted
from timeline.policy.model import CachePointRule
from timeline.policy.steps import CutPoint, Summarize
from timeline.ports import Hooks
from timeline.usage import KeptLong

if TYPE_CHECKING:
    from tests.invariants.moods import Mood
    from timeline.policy.model import Hiding, Policy

ACTS: st.SearchStrategy[Act] = st.sampled_from(
    ["prompt", "late result", "hide", "redact", "pin", "undo", "fork", "compact", "take over", "render", "nothing"]
)
MOODS: st.SearchStrategy[Mood] = st.sampled_from(["well", "raising", "empty", "blank", "long", "slow"])
DEATH = timedelta(seconds=0.1)
"""How long the lease of a writer lasts that died: whoever is above the limit waits for it in earnest."""
Operation = Literal["render", "compact", "undo", "append"]


KEPT_LONG: st.SearchStrategy[KeptLong] = st.sampled_from(get_args(KeptLong))


async def _raise(facts: dict[str, Any]) -> None:
    raise RuntimeError(f"a hook of the application, at {facts['before_tokens']}")


class TimelineMachine(Conversation):
    """The rules: what applications, other writers, models and time do to a conversation."""

    @initialize(
        limit=st.sampled_from([1_000, 2_000, 6_000]),
        counter=st.sampled_from(["chars4", "chars4", "o200k_base"]),
        keep=st.sampled_from([0.2, 0.5]),
        hiding=HIDINGS,
        kept_long=KEPT_LONG,
        prompt=st.sampled_from([{}, {"system": "Be brief.", "tools": [{"name": "bash"}]}]),
    )
    def begin(
        self, limit: int, counter: str, keep: float, *, hiding: Hiding, kept_long: KeptLong, prompt: dict[str, Any]
    ) -> None:
        """Open the store and the conversation."""
        points = {"kept_long": kept_long}
        self.policy = small(limit, counter=counter, keep_recent=keep, hiding=hiding, cache_points=points)
        self.run(self.begin_at(AT, prompt))

    @rule(blocks=st.lists(ANY_BLOCK, min_size=1, max_size=5), other=st.booleans())
    def say(self, blocks: list[Block], other: bool) -> None:  # noqa: FBT001 - Hypothesis draws it
        """Append any blocks, through either timeline."""
        self.run(say(self.either(other=other), self.store, blocks, self.now))

    @rule(data=st.data(), prompt=st.booleans())
    def go_on(self, data: st.DataObject, prompt: bool) -> None:  # noqa: FBT001 - Hypothesis draws it
        """Append an orderly round of the current turn, or a prompt that begins the next one."""
        self.number += 1
        blocks: list[Block] = [UserPrompt(text=data.draw(TEXTS))] if prompt else []
        self.run(self.mine.timeline.append(*blocks, *data.draw(a_round(self.number)), now=self.now))

    @rule()
    def render(self) -> None:
        """Render, with everything that a render promises."""
        self.run(self.mine.render())

    @rule(wait=WAITS)
    def time_passes(self, wait: Wait) -> None:
        """Let time pass; the clock may go back, unless that would make somebody wait for the dead."""
        self.run(self.mine.play(Wait(abs(wait.seconds)) if self.dead else wait))

    @rule(wait=WAITS, call=CALLS)
    def a_call_and_a_pause(self, wait: Wait, call: Call) -> None:
        """Call the model, come back later, and render."""
        self.run(self.mine.play(call))
        self.time_passes(wait)
        self.render()

    @rule()
    def compact(self) -> None:
        """Compact whatever the size."""
        self.run(self.compacted(self.mine.timeline))

    @rule(step=COMPACTIONS, other=st.booleans())
    def compact_up_to_a_block(self, step: Compact, other: bool) -> None:  # noqa: FBT001 - Hypothesis draws it
        """Compact up to a block of the window, through a timeline that has caught up."""
        timeline = self.either(other=other)
        self.run(timeline._log.catch_up())
        self.run(play(timeline, self.store, [step], self.now))

    @rule(step=UNDOS, other=st.booleans())
    def undo(self, step: Undo, other: bool) -> None:  # noqa: FBT001 - Hypothesis draws it
        """Take a compaction back, through either timeline."""
        self.run(play(self.either(other=other), self.store, [step], self.now))

    @rule(step=GOING_BACK, other=st.booleans())
    def go_back(self, step: GoBack, other: bool) -> None:  # noqa: FBT001 - Hypothesis draws it
        """Take a turn back, through either timeline; `manage` reveals it again."""
        self.run(play(self.either(other=other), self.store, [step], self.now))

    @rule(step=MANUAL, other=st.booleans())
    def manage(self, step: Manual, other: bool) -> None:  # noqa: FBT001 - Hypothesis draws it
        """Hide, reveal, pin or unpin a block by its path, through a timeline that has caught up."""
        timeline = self.either(other=other)
        self.run(timeline._log.catch_up())
        self.run(play(timeline, self.store, [step], self.now))

    @rule(number=st.integers(0, 200))
    def redact(self, number: int) -> None:
        """Leave the tombstone of a block, live or covered."""

        async def erased() -> None:
            log = await read_log(self.store, "c")
            known = [line.version for line in log if appended_block(line.payload) is not None]
            if known:
                erasure = BlockRedacted(version=known[number % len(known)], reason="asked for")
                await self.mine.timeline.decide([erasure], at=self.now, ids=[event_id(self.now)])

        self.run(erased())

    @rule(step=STAGED, other=st.booleans())
    def work_in_stages(self, step: Staged, other: bool) -> None:  # noqa: FBT001 - Hypothesis draws it
        """Begin, approve or go back to a stage, through either timeline."""
        self.run(play(self.either(other=other), self.store, [step], self.now))

    @rule(step=st.one_of(DECISIONS, IMPORTS, LATER))
    def decide(self, step: Step) -> None:
        """Append a decision, a foreign compaction, or what a later version wrote."""
        self.run(self.mine.timeline._log.catch_up())
        self.run(self.mine.play(step))

    @rule(act=ACTS, forced=st.booleans(), number=st.integers(0, 50))
    def meanwhile(self, act: Act, forced: bool, number: int) -> None:  # noqa: FBT001 - Hypothesis draws it
        """Render or compact while somebody else writes to the log."""
        self.summarizer.meanwhile = lambda: self.act(act, number)
        story = self.compacted(self.mine.timeline) if forced else self._outcome()
        self.run(story)
        self.summarizer.meanwhile = None
        self.run(self.mine.timeline._log.catch_up())

    async def _outcome(self) -> None:
        await self.mine.outcome()

    @rule()
    def at_once(self) -> None:
        """Render through both timelines at the same time, while a third task appends."""

        async def together() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(self._outcome)
                group.start_soon(self.rendered_by_other)
                group.start_soon(self.act, "prompt", 0)

        self.run(together())

    @rule(operation=st.sampled_from(["render", "compact", "undo", "append"]), checkpoints=st.integers(0, 12))
    def cancel(self, operation: Operation, checkpoints: int) -> None:
        """Cancel something at some point."""

        async def cancelled() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(self._operate, operation)
                for _ in range(checkpoints):
                    await asyncio.sleep(0)
                group.cancel_scope.cancel()

        self.summarizer.mood = "slow"
        self.run(cancelled())
        self.run(self.mine.timeline._log.catch_up())

    async def _operate(self, operation: Operation) -> None:
        match operation:
            case "render":
                await self.mine.outcome()
            case "compact":
                await self.compacted(self.mine.timeline)
            case "undo":
                await self.mine.play(Undo(None, cascade=True))
            case "append":
                await self.mine.timeline.append(UserPrompt(text="perhaps"), now=self.now)

    @rule()
    def die(self) -> None:
        """Somebody begins a compaction and never comes back."""
        self.run(commit(self.other, [CompactionStarted(expires_at=self.now + DEATH)], self.now))
        self.dead = True

    @precondition(lambda self: self.fork is None)
    @rule(number=st.integers(0, 200))
    def branch(self, number: int) -> None:
        """Fork the conversation at any version."""

        async def forked() -> None:
            last = (await self.store.info("c")).version
            # The log's length is no bound to draw from: a cancelled append may still go through, or not.
            fork = await self.mine.timeline.fork(at=number % last + 1, now=self.now)
            self.fork = Watched(self.store, fork, **self.mine.prompt)
            self.fork.alone, self.fork.forced = False, True

        self.run(forked())

    @precondition(lambda self: self.fork is not None)
    @rule(
        step=st.one_of(
            st.lists(ANY_BLOCK, min_size=1, max_size=5).map(lambda b: Say(tuple(b))), CALLS, MANUAL, UNDOS, GOING_BACK
        )
    )
    def go_on_in_the_fork(self, step: Step) -> None:
        """Say or decide something in the fork, and render there."""
        assert self.fork is not None
        self.fork.now = self.now
        self.run(self.fork.play(step))
        self.run(self.fork.render())

    @rule(number=st.integers(0, 200))
    def look_back(self, number: int) -> None:
        """See the conversation as it was at any version."""

        async def seen() -> None:
            log = await read_log(self.store, "c")
            version = number % len(log) + 1
            check_window((await self.mine.timeline.at(version)).window, log[:version])

        self.run(seen())

    @rule(mood=MOODS, hooks=st.booleans())
    def mood(self, mood: Mood, hooks: bool) -> None:  # noqa: FBT001 - Hypothesis draws it
        """Change how the summarizer and the hooks behave."""
        self.summarizer.mood = mood
        self.hooks = Hooks(_raise, _raise) if hooks else Hooks()
        self.run(self.reopened())

    @rule(
        limit=st.sampled_from([1_000, 2_000, 6_000]),
        whole_turns=st.booleans(),
        hiding=st.none() | HIDINGS,
        kept_long=KEPT_LONG,
    )
    def change_policy(
        self,
        limit: int,
        whole_turns: bool,  # noqa: FBT001 - drawn
        hiding: Hiding | None,
        kept_long: KeptLong,
    ) -> None:
        """Open the conversation under another policy."""
        steps = (Summarize(cut=CutPoint(on_split="whole_turn" if whole_turns else "split")),)
        points = CachePointRule(kept_long=kept_long)
        changes = {"max_tokens": limit, "steps": steps, "hiding": hiding, "cache_points": points}
        self.policy = self.policy.model_copy(update=changes)
        self.run(self.reopened())

    @rule(policy=DESIGNS)
    def follow_another_design(self, policy: Policy) -> None:
        """Open the conversation under one of the published designs."""
        self.policy = policy.model_copy(update={"counter": self.policy.counter})
        self.run(self.reopened())

    @rule()
    def reopen(self) -> None:
        """Forget all timelines and open them again."""
        self.run(self.reopened())


class SQLiteMachine(TimelineMachine):
    """The same on a database file."""

    url = "{}"


TestTimelineInMemory = TimelineMachine.TestCase
TestTimelineInMemory.settings = search(20, steps=30)
TestTimelineInSQLite = SQLiteMachine.TestCase
TestTimelineInSQLite.settings = search(6, steps=30)
