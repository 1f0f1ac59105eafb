"""Keep an adapter's conversations open, for hooks that are called with or without an event loop.

A store belongs to the event loop that it was opened in. An adapter writes each hook once, as a generator of steps: each
step is a function to call, of the timeline or of the framework. `carry_out` runs the steps without an event loop,
`carry_out_async` in one.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

import anyio.to_thread

import timeline.sync
from timeline import checks
from timeline.errors import InvalidArgument, StoreMoved
from timeline.log.uncancelled import run_uncancelled
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from timeline.lifecycle.observer import Observer
    from timeline.policy.model import Policy
    from timeline.ports import EventStore, Hooks, Summarizer

R = TypeVar("R")

_MOST_OPEN: Final = 64
"""The most open conversations; opening one again reads its window, and its log once."""


class Ours(NamedTuple):
    """A step of the timeline, which runs in the event loop of the store.

    Attributes:
        call: what is called.
        whole: it is taken to its end, also where the hook is cancelled meanwhile.
    """

    call: Callable[[], Any]
    whole: bool = False


class Theirs(NamedTuple):
    """A step of the framework, which runs where the framework called the hook."""

    call: Callable[[], Any]


Steps: TypeAlias = "Generator[Ours | Theirs, Any, R]"
"""The steps of a hook: each step's result is sent into the generator, its error thrown into it."""


class Followed(NamedTuple):
    """An open conversation, and what keeps its log in step with the framework's list; both blocking, or both not."""

    timeline: Any
    follower: Any


class Conversations:
    """Opens the conversations of one store on demand; all of them again where the store went back.

    Args:
        store: an open store. One from `timeline.open_store` serves hooks that are awaited in the loop that it was
            opened in; one from `timeline.sync.open_store` serves all hooks.
        policy, summarizer, hooks, observer: as for `Timeline.open`.

    Raises:
        InvalidArgument: one of them is something else, such as a path in place of the store.
    """

    def __init__(
        self,
        store: EventStore | timeline.sync.Store,
        *,
        policy: Policy | None = None,
        summarizer: Summarizer | None = None,
        hooks: Hooks | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.blocking: bool = isinstance(store, timeline.sync.Store)
        if not self.blocking:
            checks.awaited_store(store)
        checks.parts(policy, summarizer, hooks)
        opener: Any = timeline.sync.Timeline if self.blocking else Timeline
        self._opener: Callable[[str], Any] = partial(
            opener.open, store, policy=policy, summarizer=summarizer, hooks=hooks, observer=observer
        )
        self._open: OrderedDict[str, Followed] = OrderedDict()

    def opened(self, conversation: str) -> Steps[Followed]:
        """Return an open conversation; open it, or begin it, if necessary."""
        known = self._open.get(conversation)
        if known is None:
            opened = yield Ours(partial(self._opener, conversation))
            follower = yield Ours(opened.list_follower)
            known = self._open.setdefault(conversation, Followed(opened, follower))
        self._open.move_to_end(conversation)
        while len(self._open) > _MOST_OPEN:
            self._open.popitem(last=False)
        return known

    def carry_out(self, steps: Steps[R]) -> R:
        """Run steps without an event loop.

        Raises:
            InvalidArgument: the store belongs to an event loop.
        """
        if not self.blocking:
            steps.close()
            raise InvalidArgument(
                "store",
                "belongs to an event loop, and the agent was called without one; open the store with "
                "timeline.sync.open_store, or call the agent with await",
            )
        try:
            return _carry_out(steps)
        except StoreMoved:
            self._open.clear()
            raise

    async def carry_out_async(self, steps: Steps[R]) -> R:
        """Run steps in an event loop; a blocking store is called in a thread."""
        try:
            step = next(steps)
            while True:
                try:
                    result = await self._done(step)
                except BaseException as error:  # noqa: BLE001 - the generator that yielded the step handles it
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            value: R = end.value
            return value
        except StoreMoved:
            self._open.clear()
            raise

    async def _done(self, step: Ours | Theirs) -> Any:
        if isinstance(step, Ours) and self.blocking:
            return await anyio.to_thread.run_sync(step.call)
        if isinstance(step, Ours) and step.whole:
            return await run_uncancelled(step.call())
        result: Awaitable[Any] | Any = step.call()
        return await result if isawaitable(result) else result


def _carry_out(steps: Steps[R]) -> R:
    try:
        step = next(steps)
        while True:
            try:
                result = step.call()
            except BaseException as error:  # noqa: BLE001 - the generator that yielded the step handles it
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as end:
        value: R = end.value
        return value
