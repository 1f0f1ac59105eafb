"""A harness that plays a story again and again, and cancels it at its first await, at its second, and so on.

The stops are around every call of the store and of the summarizer: nothing else of the library waits for long, and who
waits for a lock meanwhile is cancelled there.
"""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio
from anyio.lowlevel import checkpoint

from tests.depth import DEPTH
from tests.invariants.checks import check_window
from tests.invariants.playing import AT, read_log
from tests.invariants.strategies import small
from tests.invariants.watched import check_same_fold
from timeline.blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt
from timeline.events import appended_block
from timeline.log.history import fold_history
from timeline.policy.model import Hiding
from timeline.ports import Summary
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
    from contextlib import AbstractAsyncContextManager

    from timeline.blocks import Block
    from timeline.policy.model import Policy
    from timeline.ports import EventStore, SummaryRequest

POLICY: Final[Policy] = small(1_000, hiding=Hiding(intact=1, old=1, files=1))


class Stops:
    """Counts the stops of a story, and cancels it at one of them."""

    def __init__(self) -> None:
        self.at, self.count = 0, 0
        self.cancel: Callable[[], object] = lambda: None

    def passed(self) -> None:
        """Pass a stop without waiting: a cancellation comes through at the next await."""
        self.count += 1
        if self.count == self.at:
            self.cancel()

    async def wait(self) -> None:
        """Wait at a stop."""
        self.passed()
        await checkpoint()


class StoppingStore:
    """Hands every call on to a store, with a stop before it, one while it runs, and one behind it."""

    def __init__(self, store: EventStore, stops: Stops) -> None:
        self._store, self._stops = store, stops

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if inspect.isasyncgenfunction(found):
            return self._iterating(found)
        return self._calling(found) if inspect.iscoroutinefunction(found) else found

    def _calling(self, call: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
        async def stopping(*given: Any, **named: Any) -> object:
            await self._stops.wait()
            self._stops.passed()
            answer = await call(*given, **named)
            await self._stops.wait()
            return answer

        return stopping

    def _iterating(self, call: Callable[..., AsyncIterator[object]]) -> Callable[..., AsyncIterator[object]]:
        async def stopping(*given: Any, **named: Any) -> AsyncIterator[object]:
            await self._stops.wait()
            async for each in call(*given, **named):
                yield each
            await self._stops.wait()

        return stopping


class StoppingSummarizer:
    """Thinks at a stop."""

    name: Final = "stopping"

    def __init__(self, stops: Stops) -> None:
        self._stops = stops

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Answer with a word."""
        await self._stops.wait()
        return Summary(text=f"{request.kind} in short", summarizer=self.name)


@dataclass
class Scene:
    """A conversation, two timelines on it, and the blocks that were acknowledged."""

    mine: Timeline
    other: Timeline
    acknowledged: list[Block] = field(default_factory=list)

    async def append(self, *blocks: Block, timeline: Timeline | None = None) -> None:
        """Append blocks and note them once they are acknowledged."""
        self.acknowledged += await (timeline or self.mine).append(*blocks, now=AT)


Story: TypeAlias = "Callable[[Scene], Coroutine[Any, Any, object]]"


def exchange(number: int, size: int) -> list[Block]:
    """Return a prompt, a call with its result, and an answer: four blocks, one of them of that size."""
    return [
        UserPrompt(text=f"task {number}"),
        ToolCall(call_id=f"c{number}", name="bash", arguments={"command": "ls"}),
        ToolResult(call_id=f"c{number}", text="line " * size),
        AssistantCompletion(text=f"done {number}"),
    ]


Opening: TypeAlias = "Callable[[], AbstractAsyncContextManager[EventStore]]"


Play: TypeAlias = "Callable[[Stops, Coroutine[Any, Any, object]], Awaitable[None]]"


async def by_scope(stops: Stops, story: Coroutine[Any, Any, object]) -> None:
    """Play a story in a scope of anyio, which is cancelled."""
    with anyio.CancelScope() as scope:
        stops.cancel = scope.cancel
        await story


async def by_task(stops: Stops, story: Coroutine[Any, Any, object]) -> None:
    """Play a story in a task of asyncio, which is cancelled, once."""
    task = asyncio.ensure_future(story)
    stops.cancel = task.cancel
    with suppress(asyncio.CancelledError):
        await task


async def cancel_everywhere(opening: Opening, story: Story, *, prepared: Story, play: Play) -> int:
    """Play a story until no stop is left to cancel it at; return the first one of those tried that it did not get to.

    Each time begins with a store of its own, in which ``prepared`` has been played to its end. A night cancels at every
    stop, other runs at each eighth.
    """
    at = 1
    while True:
        async with opening() as store:
            if not await _cancel_once(store, at, story, prepared, play):
                return at
        at += DEPTH.step


async def _cancel_once(store: EventStore, at: int, story: Story, prepared: Story, play: Play) -> bool:
    """Cancel a story at one stop; say whether it got there."""
    stops = Stops()
    stopping: Any = StoppingStore(store, stops)
    options: dict[str, Any] = {"policy": POLICY, "summarizer": StoppingSummarizer(stops), "now": AT}
    scene = Scene(await Timeline.open(stopping, "c", **options), await Timeline.open(stopping, "c", **options))
    await prepared(scene)
    stops.at, stops.count = at, 0
    await play(stops, story(scene))
    reached, stops.at = stops.count >= at, 0
    await check_after(store, scene)
    return reached


async def check_after(store: EventStore, scene: Scene) -> None:
    """What was acknowledged is there once, nobody is held up, everything verifies, and work goes on."""
    opened = await Timeline.open(store, "c", policy=POLICY, create=False)
    await opened.append(UserPrompt(text="are you there?"), now=AT)  # behind whatever a writer still had under way
    log = await read_log(store, "c")
    blocks = [block for line in log if (block := appended_block(line.payload)) is not None]
    paths = [block.path for block in blocks]
    assert len(set(paths)) == len(paths)
    for block in scene.acknowledged:
        assert blocks.count(block) == 1, f"{block.path} was acknowledged and is there {blocks.count(block)} times"
    opened = await Timeline.open(store, "c", policy=POLICY, create=False)
    check_window(opened.window, log)
    assert opened.window.lease is None, "a lease that nobody holds"
    for timeline in (scene.mine, scene.other, opened):
        await timeline.append(*exchange(9, 90), now=AT)
        await timeline.render(now=AT)
        check_same_fold(timeline._log.fold, await fold_history(store, "c"))
    check_window(opened.window, await read_log(store, "c"))
    async for conversation in store.conversations():
        going_on = await Timeline.open(store, conversation.id, policy=POLICY, create=False)
        await going_on.append(*exchange(8, 10), now=AT)
        report = await going_on.verify()
        assert report.ok, report.problems
