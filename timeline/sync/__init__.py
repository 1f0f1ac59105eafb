"""The library without ``await``: the same calls for programs that have no event loop, or not in this thread.

A store that you open here starts an event loop in a thread of its own and runs every call there, from whichever thread
it comes. Signatures, docstrings and examples are those of the asynchronous methods; leave out ``await``. Summarizers
and hooks stay asynchronous: they run in that loop. A function that calls a model is an ordinary one.

Example:
    ```python
    from timeline import sync

    with sync.open_store("memory://") as store:
        timeline = sync.Timeline.open(store, "cards")
        timeline.append({"type": "user.prompt", "text": "Build a flashcard app."})
        print(timeline.render().to_openai_chat())
    ```
"""

from __future__ import annotations

import atexit
import sys
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack, contextmanager
from functools import partial, wraps
from inspect import isasyncgenfunction
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeVar, cast

from anyio.from_thread import start_blocking_portal

import timeline
from timeline.agent.list_follower import ListFollower as AsyncListFollower
from timeline.agent.recall import RecallTool as AsyncRecallTool
from timeline.agent.step_hook import StepHook as AsyncStepHook
from timeline.errors import InvalidArgument
from timeline.home import Home, never_finalize
from timeline.message_lists import compact_messages as compact_messages_async
from timeline.ports import EventStore
from timeline.retention import rehearse as rehearse_async
from timeline.retention import scavenge as scavenge_async
from timeline.sync.loop_thread import LoopThread
from timeline.sync.twins import (
    Method,
    Twin,
    blocking,
    calling,
    iterating,
    like,
    plain_events,
    twin_of_function,
    twin_of_method,
)
from timeline.timeline import Timeline as AsyncTimeline
from timeline.view import TimelineView as AsyncTimelineView

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
    from datetime import datetime
    from types import TracebackType

    from timeline.agent.state import CompactionState
    from timeline.agent.streaming import StreamRecording
    from timeline.blocks import Block
    from timeline.fold.window import Window
    from timeline.message_lists import CompactedMessages
    from timeline.policy.model import Policy
    from timeline.ports import TokenCounter
    from timeline.projection.context import RenderedContext
    from timeline.retention import ScavengeReport
    from timeline.wire.request import Request

__all__ = [
    "ListFollower",
    "RecallTool",
    "Recording",
    "StepHook",
    "Store",
    "Timeline",
    "TimelineView",
    "backup",
    "compact_messages",
    "open_store",
    "rehearse",
    "restore",
    "scavenge",
]

P = ParamSpec("P")
V = TypeVar("V")


def _entering(
    opener: Callable[P, AbstractAsyncContextManager[Any]],
) -> Callable[P, AbstractContextManager[Store]]:
    """Make the twin of a function that opens a store: entering starts its loop, leaving closes both."""

    @wraps(opener)
    @contextmanager
    def entered(*args: P.args, **kwargs: P.kwargs) -> Iterator[Store]:
        home, thread = Home("this store of timeline.sync"), start_blocking_portal("asyncio")
        keep = partial(never_finalize, thread)
        atexit.register(keep)  # behind that moment the thread does not run any more, and nothing may wait for it
        with ExitStack() as stack:
            stack.callback(atexit.unregister, keep)
            portal = stack.enter_context(thread)
            inner = stack.enter_context(portal.wrap_async_context_manager(opener(*args, **kwargs)))
            loop = LoopThread(portal)
            try:
                yield Store(loop, inner)
            finally:
                loop.leave()
                if sys.is_finalizing():
                    stack.pop_all()  # the block was never left; what was acknowledged is in the store
                elif home.forked:
                    # The loop and the store are the parent's: to leave them here would wait for its thread for ever.
                    never_finalize(stack.pop_all())
        home.check_process()

    return entered


def _opening(
    method: Callable[Concatenate[EventStore, P], Coroutine[Any, Any, AsyncTimeline]],
) -> Callable[Concatenate[Store, P], Timeline]:
    """Make the twin of a function that opens a conversation of a store."""

    @wraps(method)
    def opened(store: Store, /, *args: P.args, **kwargs: P.kwargs) -> Timeline:
        if not isinstance(store, Store):
            raise InvalidArgument(
                "store", "must be an open store from here: with timeline.sync.open_store('agent.db') as store"
            )
        return store.opened(lambda inner: method(inner, *args, **kwargs))

    return opened


def _giving(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, Any]], face: Callable[[LoopThread, Any], V]
) -> Method[P, V]:
    """Make the twin of a method that returns another conversation."""

    @wraps(method)
    def give(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> V:
        return face(self._portal, self._portal.call(partial(getattr(self._inner, method.__name__), *args, **kwargs)))

    return cast("Method[P, V]", give)


class Store(Twin):
    """An open store; see `timeline.ports.EventStore`. Methods that only some kinds of store have work, too."""

    append: Final = blocking(EventStore.append)
    read: Final = iterating(EventStore.read)
    read_versions: Final = blocking(EventStore.read_versions)
    find: Final = blocking(EventStore.find)
    paths_taken: Final = blocking(EventStore.paths_taken)
    known_ids: Final = blocking(EventStore.known_ids)
    load_window: Final = blocking(EventStore.load_window)
    load_waypoint: Final = blocking(EventStore.load_waypoint)
    info: Final = blocking(EventStore.info)
    conversations: Final = iterating(EventStore.conversations)
    recent_conversations: Final = iterating(EventStore.recent_conversations)
    conversation_count: Final = blocking(EventStore.conversation_count)
    read_all: Final = iterating(EventStore.read_all)
    head: Final = blocking(EventStore.head)
    values: Final = blocking(EventStore.values)
    digests: Final = iterating(EventStore.digests)
    facts: Final = iterating(EventStore.facts)
    fact_record: Final = blocking(EventStore.fact_record)
    fact_reach: Final = blocking(EventStore.fact_reach)
    search: Final = iterating(EventStore.search)
    retention: Final = blocking(EventStore.retention)
    set_retention: Final = blocking(EventStore.set_retention)
    remove: Final = blocking(EventStore.remove)
    remove_values: Final = blocking(EventStore.remove_values)
    shrink: Final = blocking(EventStore.shrink)
    rehearse: Final = blocking(EventStore.rehearse)
    take_lease: Final = blocking(EventStore.take_lease)
    scavenged: Final = blocking(EventStore.scavenged)
    load_base: Final = blocking(EventStore.load_base)
    forks: Final = blocking(EventStore.forks)
    rewrite: Final = blocking(EventStore.rewrite)
    erase: Final = blocking(EventStore.erase)
    chain_head: Final = blocking(EventStore.chain_head)
    check_listed: Final = blocking(EventStore.check_listed)
    chained: Final = iterating(EventStore.chained)
    read_written: Final = iterating(EventStore.read_written)
    examine: Final = blocking(EventStore.examine)
    mend: Final = blocking(EventStore.mend)
    waypoints: Final = blocking(EventStore.waypoints)
    replace_waypoints: Final = blocking(EventStore.replace_waypoints)
    replace_snapshot: Final = blocking(EventStore.replace_snapshot)

    def __getattr__(self, name: str) -> Any:
        """Return the twin of a method that only this kind of store has."""
        method = getattr(type(self._inner), name)
        return partial((iterating if isasyncgenfunction(method) else blocking)(method), self)

    def opened(self, method: Callable[[EventStore], Coroutine[Any, Any, AsyncTimeline]]) -> Timeline:
        """Open a conversation in the loop that serves this store."""
        return Timeline(self._portal, self._portal.call(method, self._inner))

    def run(self, function: Callable[[EventStore], Coroutine[Any, Any, V]]) -> V:
        """Run a function of the store in the loop that serves it."""
        return cast("V", self._portal.call(function, self._inner))


open_store: Final = _entering(timeline.open_store)


@twin_of_method(scavenge_async)
def scavenge(store: Store, *conversations: Any, **options: Any) -> ScavengeReport:
    """See `timeline.retention.scavenge`."""
    return store.run(lambda inner: scavenge_async(inner, *conversations, **options))


@twin_of_function(timeline.store.backup)
def backup(*database: Any, **options: Any) -> timeline.store.Backup:
    """See `timeline.store.backup`."""
    with start_blocking_portal("asyncio") as portal:
        return portal.call(partial(timeline.store.backup, *database, **options))


@twin_of_function(timeline.store.restore)
def restore(*source: Any, **options: Any) -> timeline.store.Restored:
    """See `timeline.store.restore`."""
    with start_blocking_portal("asyncio") as portal:
        return portal.call(partial(timeline.store.restore, *source, **options))


@twin_of_method(rehearse_async)
def rehearse(store: Store, *conversations: Any, **options: Any) -> ScavengeReport:
    """See `timeline.retention.rehearse`."""
    return store.run(lambda inner: rehearse_async(inner, *conversations, **options))


@twin_of_function(compact_messages_async)
def compact_messages(messages: list[Any], policy: Policy, **options: Any) -> CompactedMessages:
    """See `timeline.compact_messages`."""
    with start_blocking_portal("asyncio") as portal:
        return portal.call(partial(compact_messages_async, messages, policy, **options))


class ListFollower(Twin):
    """Keeps the log in step with a framework's list; see `timeline.agent.list_follower.ListFollower`."""

    take: Final = blocking(AsyncListFollower.take)
    take_messages: Final = blocking(AsyncListFollower.take_messages)
    append: Final = blocking(AsyncListFollower.append)
    leave: Final = blocking(AsyncListFollower.leave)


class RecallTool(Twin):
    """The recall tool; see `timeline.agent.recall.RecallTool`."""

    name: Final = AsyncRecallTool.name
    handle: Final = blocking(AsyncRecallTool.handle)
    look: Final = blocking(AsyncRecallTool.look)
    answer: Final = blocking(AsyncRecallTool.answer)

    @property
    def schema(self) -> dict[str, Any]:
        """The schema for the request's ``tools``."""
        return dict(self._inner.schema)

    @property
    def max_tokens(self) -> int:
        """Most tokens of an answer."""
        return int(self._inner.max_tokens)


class StepHook(Twin):
    """The adapter of a loop with a prepare-step function; see `timeline.agent.step_hook.StepHook`."""

    prepare_step: Final = blocking(AsyncStepHook.prepare_step)
    on_step_finish: Final = blocking(AsyncStepHook.on_step_finish)

    @property
    def context(self) -> RenderedContext | None:
        """Context of the step that was prepared last; None before the first."""
        return cast("RenderedContext | None", self._inner.context)


class Recording(Twin):
    """A stream that is being recorded; see `timeline.agent.streaming.StreamRecording`.

    The stream is read in the caller's thread.
    """

    def __init__(self, portal: LoopThread, inner: StreamRecording, stream: Iterable[Any]) -> None:
        super().__init__(portal, inner)
        self._events = iter(stream)

    @property
    def blocks(self) -> list[Block]:
        """The blocks as they are stored; empty until the stream was recorded."""
        return list(self._inner.blocks)

    def __enter__(self) -> Self:
        return self

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        try:
            event = next(self._events)
        except StopIteration:
            self._portal.call(self._inner.save)
            raise
        self._inner.take(event)
        return event

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._portal.call(self._inner.__aexit__, kind, error, trace)


class TimelineView(Twin):
    """A conversation at one version, read-only; see `timeline.view.TimelineView`."""

    @twin_of_method(AsyncTimelineView.render)
    def render(self, **options: Any) -> RenderedContext:
        """See `timeline.view.TimelineView.render`."""
        return cast("RenderedContext", self._portal.call(partial(self._inner.render, **options)))

    read: Final = blocking(AsyncTimelineView.read)
    history: Final = iterating(AsyncTimelineView.history)

    def _repr_html_(self) -> str:
        return cast("str", self._inner._repr_html_())

    @property
    def id(self) -> str:
        """The conversation's id."""
        return cast("str", self._inner.id)

    @property
    def policy(self) -> Policy:
        """The policy in force for renders and compactions."""
        return cast("Policy", self._inner.policy)

    @property
    def counter(self) -> TokenCounter:
        """The policy's token counter."""
        return cast("TokenCounter", self._inner.counter)

    @property
    def version(self) -> int:
        """Version of the last event that this timeline has read."""
        return cast("int", self._portal.call(getattr, self._inner, "version"))

    @property
    def window(self) -> Window:
        """The live blocks: what the model could see now."""
        return cast("Window", self._portal.call(getattr, self._inner, "window"))


class Timeline(TimelineView):
    """One conversation of a store; see `timeline.Timeline`."""

    open: Final = staticmethod(_opening(AsyncTimeline.open))
    append: Final = blocking(AsyncTimeline.append)
    extend: Final = blocking(AsyncTimeline.extend)
    decide: Final = blocking(AsyncTimeline.decide)
    count: Final = blocking(AsyncTimeline.count)
    messages: Final = blocking(AsyncTimeline.messages)

    @twin_of_method(AsyncTimeline.render)
    def render(self, **options: Any) -> RenderedContext:
        """See `timeline.Timeline.render`."""
        return cast("RenderedContext", self._portal.call(partial(self._inner.render, **options)))

    retry_with_compaction: Final = calling(AsyncTimeline.retry_with_compaction)
    after_refusal: Final = blocking(AsyncTimeline.after_refusal)
    compact: Final = blocking(AsyncTimeline.compact)
    use_policy: Final = blocking(AsyncTimeline.use_policy)
    retention: Final = blocking(AsyncTimeline.retention)
    set_retention: Final = blocking(AsyncTimeline.set_retention)
    set_legal_hold: Final = blocking(AsyncTimeline.set_legal_hold)
    catch_up: Final = blocking(AsyncTimeline.catch_up)
    undo_compaction: Final = blocking(AsyncTimeline.undo_compaction)
    go_back: Final = blocking(AsyncTimeline.go_back)
    hide: Final = blocking(AsyncTimeline.hide)
    reveal: Final = blocking(AsyncTimeline.reveal)
    pin: Final = blocking(AsyncTimeline.pin)
    unpin: Final = blocking(AsyncTimeline.unpin)
    redact: Final = blocking(AsyncTimeline.redact)
    enter_stage: Final = blocking(AsyncTimeline.enter_stage)
    approve_stage: Final = blocking(AsyncTimeline.approve_stage)
    rewind_stage: Final = blocking(AsyncTimeline.rewind_stage)
    at: Final = _giving(AsyncTimeline.at, TimelineView)
    fork: Final = _giving(AsyncTimeline.fork, lambda portal, inner: Timeline(portal, inner))  # noqa: PLW0108 - not yet made
    hand_over: Final = _giving(AsyncTimeline.hand_over, lambda portal, inner: Timeline(portal, inner))  # noqa: PLW0108 - not yet made
    verify: Final = blocking(AsyncTimeline.verify)
    call: Final = blocking(AsyncTimeline.call)
    calls: Final = iterating(AsyncTimeline.calls)
    diff: Final = blocking(AsyncTimeline.diff)
    diff_summaries: Final = blocking(AsyncTimeline.diff_summaries)
    why: Final = blocking(AsyncTimeline.why)
    record: Final = blocking(AsyncTimeline.record)
    record_model_call: Final = blocking(AsyncTimeline.record_model_call)
    append_messages: Final = blocking(AsyncTimeline.append_messages)
    inject: Final = blocking(AsyncTimeline.inject)
    calibration: Final = blocking(AsyncTimeline.calibration)
    after_length_stop: Final = blocking(AsyncTimeline.after_length_stop)
    end_run: Final = blocking(AsyncTimeline.end_run)
    lifecycle: Final = iterating(AsyncTimeline.lifecycle)

    @like(AsyncTimeline.run)
    @contextmanager
    def run(self) -> Iterator[None]:
        """See `timeline.Timeline.run`."""
        with self._portal.entering(self._inner.run()):
            yield

    @twin_of_method(AsyncTimeline.compaction_state)
    def compaction_state(self, **options: Any) -> CompactionState:
        """See `timeline.Timeline.compaction_state`."""
        return cast("CompactionState", self._portal.call(partial(self._inner.compaction_state, **options)))

    @twin_of_method(AsyncTimeline.tools_in_use)
    def tools_in_use(self) -> tuple[str, ...]:
        """See `timeline.Timeline.tools_in_use`."""
        return cast("tuple[str, ...]", self._portal.call(self._inner.tools_in_use))

    @twin_of_method(AsyncTimeline.still_used)
    def still_used(self, tools: Sequence[Any]) -> list[Any]:
        """See `timeline.Timeline.still_used`."""
        return list(self._portal.call(self._inner.still_used, tools))

    @like(AsyncTimeline.recording)
    def recording(
        self,
        stream: Iterable[Any],
        *,
        started_at: datetime | None = None,
        request: Request | None = None,
        now: datetime | None = None,
    ) -> Recording:
        """See `timeline.Timeline.recording`."""
        plain_events(stream)
        inner = self._inner._recording(stream, started_at=started_at, request=request, now=now)  # noqa: SLF001 - its face
        return Recording(self._portal, inner, stream)

    @like(AsyncTimeline.record_stream)
    def record_stream(
        self,
        stream: Iterable[Any],
        *,
        on_event: Callable[[Any], object] | None = None,
        started_at: datetime | None = None,
        request: Request | None = None,
        now: datetime | None = None,
    ) -> list[Block]:
        """See `timeline.Timeline.record_stream`."""
        with self.recording(stream, started_at=started_at, request=request, now=now) as recording:
            for event in recording:
                if on_event is not None:
                    on_event(event)
        return recording.blocks

    @twin_of_method(AsyncTimeline.recall_tool)
    def recall_tool(self, wire: Any, **options: Any) -> RecallTool:
        """See `timeline.Timeline.recall_tool`."""
        return RecallTool(self._portal, self._inner.recall_tool(wire, **options))

    @like(AsyncTimeline.list_follower)
    def list_follower(self) -> ListFollower:
        """See `timeline.Timeline.list_follower`."""
        # Made in its loop: the thread that asks for it may run another one, to which it would belong.
        return ListFollower(self._portal, self._portal.call(self._inner.list_follower))

    @twin_of_method(AsyncTimeline.step_hook)
    def step_hook(self, wire: Any, **options: Any) -> StepHook:
        """See `timeline.Timeline.step_hook`."""
        return StepHook(self._portal, self._inner.step_hook(wire, **options))
