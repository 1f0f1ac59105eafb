"""A framework's history that grows, is gone back in and changed, followed by a log that is compacted meanwhile."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.scenes import opened, small_policy
from timeline.blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt
from timeline.log.history import fold_history
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline.agent.list_follower import ListFollower
    from timeline.blocks import Block

Message = tuple[str, tuple["Block", ...]]

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.integers(1, 4)),
        st.tuples(st.just("work"), st.integers(1, 3)),
        st.tuples(st.just("back"), st.integers(1, 12)),
        st.tuples(st.just("switch"), st.integers(0, 9)),
        st.tuples(st.just("render"), st.just(0)),
        st.tuples(st.just("new process"), st.just(0)),
    ),
    min_size=4,
    max_size=18,
)


class Application:
    """Keeps lists as a framework does; each message has a word that no other has."""

    def __init__(self) -> None:
        self.history: list[Message] = []
        self.earlier: list[list[Message]] = []
        self.count = 0

    def say(self) -> None:
        """Add a question and its answer."""
        self._add(UserPrompt(text=self._words(20)))
        self._add(AssistantCompletion(text=self._words(40), response_id=f"r{self.count}"))

    def work(self) -> None:
        """Add a question, two calls at once, their results and an answer."""
        self._add(UserPrompt(text=self._words(10)))
        ids = [f"call_{self.count}_{n}" for n in range(2)]
        self._add(*(ToolCall(call_id=id_, name="run", response_id=f"r{self.count}") for id_ in ids))
        for id_ in ids:
            self._add(ToolResult(call_id=id_, text=self._words(120)))
        self._add(AssistantCompletion(text=self._words(10), response_id=f"r{self.count}"))

    def back(self, messages: int) -> None:
        """Leave the newest messages; a first one stays, and no call is without its results."""
        self.earlier.append(self.history)
        kept = self.history[: max(1, len(self.history) - messages)]
        while isinstance(kept[-1][1][0], ToolCall | ToolResult):
            kept = kept[:-1]
        self.history = kept

    def switch(self, number: int) -> None:
        """Take an earlier history up again."""
        if self.earlier:
            self.earlier.append(self.history)
            self.history = self.earlier[number % len(self.earlier)]

    def _words(self, size: int) -> str:
        self.count += 1
        return f"word_{self.count}_ " + "abc " * size

    def _add(self, *blocks: Block) -> None:
        self.history = [*self.history, (f"m{self.count}", blocks)]


async def follow(follower: ListFollower, history: list[Message], *, with_ids: bool) -> None:
    """Hand a history over."""
    messages = [list(blocks) for _, blocks in history]
    await follower.take(messages, ids=[id_ for id_, _ in history] if with_ids else None)


async def play(steps: list[tuple[str, int]], *, with_ids: bool) -> None:
    """Play steps; after each, what a context says is what the history says, or a part of it behind a summary."""
    store = MemoryStore()
    policy = small_policy(max_tokens=2_500)
    timeline = await opened(store, policy=policy)
    follower, application = timeline.list_follower(), Application()
    application.say()
    for step, number in steps:
        match step:
            case "say" | "work":
                for _ in range(number):
                    getattr(application, step)()
            case "back":
                application.back(number)
            case "switch":
                application.switch(number)
            case "new process":
                timeline = await opened(store, policy=policy)
                follower = timeline.list_follower()
        await follow(follower, application.history, with_ids=with_ids)
        if step != "render":
            continue
        context = await timeline.render(system="You work.")
        said = str(context.to_anthropic())
        own = [word for _, blocks in application.history for b in blocks for word in re.findall(r"word_\d+_", b.text)]
        assert {*re.findall(r"word_\d+_", said)} <= {*own}
    await check(timeline, application, with_ids=with_ids)


async def check(timeline: Any, application: Application, *, with_ids: bool) -> None:
    """Check the log as a whole, and that the same history appends nothing more."""
    store = timeline._store
    report = await timeline.verify()
    assert report.ok, report
    version = timeline.version
    await follow(timeline.list_follower(), application.history, with_ids=with_ids)
    assert timeline.version == version
    whole = await fold_history(store, timeline.id)
    assert [(i.version, i.state) for i in whole.window.items] == [(i.version, i.state) for i in timeline.window.items]
    assert whole.turns.turn_id == timeline.window.turn_id
    shown = [item.block for item in timeline.window.items if item.state != "omitted" and not item.is_summary]
    said = [block for _, blocks in application.history for block in blocks]
    texts = [(block.type, block.text) for block in said]
    assert [(block.type, block.text) for block in shown] == texts[
        len(texts) - len(shown) :
    ] or timeline.window.summaries


@given(STEPS)
@example([("back", 1), ("work", 1), ("switch", 3), ("switch", 9), ("switch", 1), ("switch", 10), ("work", 1)])
def test_a_log_shows_the_branch_that_its_framework_is_in(steps: list[tuple[str, int]]) -> None:
    """By the ids of its messages."""
    asyncio.run(play(steps, with_ids=True))


@given(STEPS)
def test_a_log_shows_the_branch_of_a_framework_without_ids(steps: list[tuple[str, int]]) -> None:
    """By content and order."""
    asyncio.run(play(steps, with_ids=False))
