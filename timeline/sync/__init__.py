"""The library without ``await``: the same calls for programs that have no event loop, or not in this thread.

A store that is opened here starts an event loop in a thread of its own and runs every call there, from any thread.
Signatures and docstrings are those of the asynchronous methods, and so are their examples; only ``await`` is left out.
Summarizers and hooks stay asynchronous: they run in that loop. A function that calls a model is an ordinary one.

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
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, cast

from anyio.from_thread import start_blocking_portal

import timeline
from timeline.agent.list_follower import ListFollower as AsyncListFollower
from timeline.agent.recall import RecallTool as AsyncRecallTool
from timeline.agent.step_hook import StepHook as AsyncStepHook
from timeline.home import Home, never_finalize
from timeline.message_lists import compact_messages as compact_messages_async
from timeline.ports import EventStore
from timeline.retention import rehearse as rehearse_async
from timeline.retention import scavenge as scavenge_async
from timeline.sync.loop_thread import LoopThread
from timeline.sync.twins import Twin, blocking, calling, iterating, like
from timeline.timeline import Timeline as AsyncTimeline
from timeline.view import TimelineView as AsyncTimelineView

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
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
        return store.opened(lambda inner: method(inner, *args, **kwargs))

    return opened


def _giving(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, Any]], face: Callable[[LoopThread, Any], V]
) -> Callable[Concatenate[Any, P], V]:
    """Make the twin of a method that returns another conversation."""

    @wraps(method)
    def give(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> V:
        return face(self._portal, self._portal.call(partial(getattr(self._inner, method.__name__), *args, **kwargs)))

    return give


class Store(Twin):
    """An open store; see `timeline.ports.EventStore`. Methods that only one kind of store has work too."""

    append = blocking(EventStore.append)
    read = iterating(EventStore.read)
    read_versions = blocking(EventStore.read_versions)
    find = blocking(EventStore.find)
    paths_taken = blocking(EventStore.paths_taken)
    known_ids = blocking(EventStore.known_ids)
    load_window = blocking(EventStore.load_window)
    load_waypoint = blocking(EventStore.load_waypoint)
    info = blocking(EventStore.info)
    conversations = iterating(EventStore.conversations)
    read_all = iterating(EventStore.read_all)
    head = blocking(EventStore.head)
    values = blocking(EventStore.values)
    digests = iterating(EventStore.digests)
    facts = iterating(EventStore.facts)
    fact_record = blocking(EventStore.fact_record)
    fact_reach = blocking(EventStore.fact_reach)
    search = iterating(EventStore.search)
    retention = blocking(EventStore.retention)
    set_retention = blocking(EventStore.set_retention)
    remove = blocking(EventStore.remove)
    remove_values = blocking(EventStore.remove_values)
    shrink = blocking(EventStore.shrink)
    rehearse = blocking(EventStore.rehearse)
    take_lease = blocking(EventStore.take_lease)
    scavenged = blocking(EventStore.scavenged)
    load_base = blocking(EventStore.load_base)
    forks = blocking(EventStore.forks)
    rewrite = blocking(EventStore.rewrite)
    erase = blocking(EventStore.erase)
    chain_head = blocking(EventStore.chain_head)
    chained = iterating(EventStore.chained)
    read_written = iterating(EventStore.read_written)
    examine = blocking(EventStore.examine)
    mend = blocking(EventStore.mend)
    waypoints = blocking(EventStore.waypoints)
    replace_waypoints = blocking(EventStore.replace_waypoints)
    replace_snapshot = blocking(EventStore.replace_snapshot)

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


open_store = _entering(timeline.open_store)


@like(scavenge_async)
def scavenge(store: Store, *conversations: Any, **options: Any) -> ScavengeReport:
    """See `timeline.retention.scavenge`."""
    return store.run(lambda inner: scavenge_async(inner, *conversations, **options))


@like(timeline.store.backup)
def backup(*database: Any, **options: Any) -> timeline.store.Backup:
    """See `timeline.store.backup`."""
    with start_blocking_portal("asyncio") as portal:
        return portal.call(partial(timeline.store.backup, *database, **options))


@like(timeline.store.restore)
def restore(*source: Any, **options: Any) -> timeline.store.Restored:
    """See `timeline.store.restore`."""
    with start_blocking_portal("asyncio") as portal:
        return portal.call(partial(timeline.store.restore, *source, **options))


@like(rehearse_async)
def rehearse(store: Store, *conversations: Any, **options: Any) -> ScavengeReport:
    """See `timeline.retention.rehearse`."""
    return store.run(lambda inner: rehearse_async(inner, *conversations, **options))


@like(compact_messages_async)
def compact_messages(messages: list[Any], policy: Policy, **options: Any) -> CompactedMessages:
    """See `timeline.compact_messages`."""
    with start_blocking_portal("asyncio") as portal:
        return portal.call(partial(compact_messages_async, messages, policy, **options))


class ListFollower(Twin):
    """Keeps the log in step with a framework's list; see `timeline.agent.list_follower.ListFollower`."""

    take = blocking(AsyncListFollower.take)
    append = blocking(AsyncListFollower.append)
    leave = blocking(AsyncListFollower.leave)


class RecallTool(Twin):
    """The recall tool; see `timeline.agent.recall.RecallTool`."""

    name = AsyncRecallTool.name
    handle = blocking(AsyncRecallTool.handle)
    look = blocking(AsyncRecallTool.look)
    answer = blocking(AsyncRecallTool.answer)

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

    prepare_step = blocking(AsyncStepHook.prepare_step)
    on_step_finish = blocking(AsyncStepHook.on_step_finish)

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

    render = blocking(AsyncTimelineView.render)
    read = blocking(AsyncTimelineView.read)

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


# Made outside of the class: there, a type checker gives a new value the type that the base has for its name.
_recorded_render = blocking(AsyncTimeline.render)


class Timeline(TimelineView):
    """One conversation of a store; see `timeline.Timeline`."""

    open = staticmethod(_opening(AsyncTimeline.open))
    append = blocking(AsyncTimeline.append)
    extend = blocking(AsyncTimeline.extend)
    decide = blocking(AsyncTimeline.decide)
    count = blocking(AsyncTimeline.count)
    render = _recorded_render
    retry_with_compaction = calling(AsyncTimeline.retry_with_compaction)
    after_refusal = blocking(AsyncTimeline.after_refusal)
    compact = blocking(AsyncTimeline.compact)
    use_policy = blocking(AsyncTimeline.use_policy)
    retention = blocking(AsyncTimeline.retention)
    set_retention = blocking(AsyncTimeline.set_retention)
    set_legal_hold = blocking(AsyncTimeline.set_legal_hold)
    catch_up = blocking(AsyncTimeline.catch_up)
    undo_compaction = blocking(AsyncTimeline.undo_compaction)
    hide = blocking(AsyncTimeline.hide)
    reveal = blocking(AsyncTimeline.reveal)
    pin = blocking(AsyncTimeline.pin)
    unpin = blocking(AsyncTimeline.unpin)
    redact = blocking(AsyncTimeline.redact)
    enter_stage = blocking(AsyncTimeline.enter_stage)
    approve_stage = blocking(AsyncTimeline.approve_stage)
    rewind_stage = blocking(AsyncTimeline.rewind_stage)
    at = _giving(AsyncTimeline.at, TimelineView)
    fork = _giving(AsyncTimeline.fork, lambda portal, inner: Timeline(portal, inner))  # noqa: PLW0108 - not yet made
    hand_over = _giving(AsyncTimeline.hand_over, lambda portal, inner: Timeline(portal, inner))  # noqa: PLW0108 - not yet made
    verify = blocking(AsyncTimeline.verify)
    call = blocking(AsyncTimeline.call)
    calls = iterating(AsyncTimeline.calls)
    diff = blocking(AsyncTimeline.diff)
    diff_summaries = blocking(AsyncTimeline.diff_summaries)
    why = blocking(AsyncTimeline.why)
    record = blocking(AsyncTimeline.record)
    record_model_call = blocking(AsyncTimeline.record_model_call)
    append_messages = blocking(AsyncTimeline.append_messages)
    inject = blocking(AsyncTimeline.inject)
    calibration = blocking(AsyncTimeline.calibration)
    after_length_stop = blocking(AsyncTimeline.after_length_stop)
    end_run = blocking(AsyncTimeline.end_run)
    lifecycle = iterating(AsyncTimeline.lifecycle)

    @like(AsyncTimeline.run)
    @contextmanager
    def run(self) -> Iterator[None]:
        """See `timeline.Timeline.run`."""
        with self._portal.entering(self._inner.run()):
            yield

    @like(AsyncTimeline.compaction_state)
    def compaction_state(self, **options: Any) -> CompactionState:
        """See `timeline.Timeline.compaction_state`."""
        return cast("CompactionState", self._portal.call(partial(self._inner.compaction_state, **options)))

    @like(AsyncTimeline.tools_in_use)
    def tools_in_use(self) -> tuple[str, ...]:
        """See `timeline.Timeline.tools_in_use`."""
        return cast("tuple[str, ...]", self._portal.call(self._inner.tools_in_use))

    @like(AsyncTimeline.still_used)
    def still_used(self, tools: Sequence[Any]) -> list[Any]:
        """See `timeline.Timeline.still_used`."""
        return list(self._portal.call(self._inner.still_used, tools))

    @like(AsyncTimeline.recording)
    def recording(self, stream: Iterable[Any], **options: Any) -> Recording:
        """See `timeline.Timeline.recording`."""
        return Recording(self._portal, self._inner.recording(stream, **options), stream)

    @like(AsyncTimeline.record_stream)
    def record_stream(
        self, stream: Iterable[Any], *, on_event: Callable[[Any], object] | None = None, **options: Any
    ) -> list[Block]:
        """See `timeline.Timeline.record_stream`."""
        with self.recording(stream, **options) as recording:
            for event in recording:
                if on_event is not None:
                    on_event(event)
        return recording.blocks

    @like(AsyncTimeline.recall_tool)
    def recall_tool(self, wire: Any, **options: Any) -> RecallTool:
        """See `timeline.Timeline.recall_tool`."""
        return RecallTool(self._portal, self._inner.recall_tool(wire, **options))

    @like(AsyncTimeline.list_follower)
    def list_follower(self) -> ListFollower:
        """See `timeline.Timeline.list_follower`."""
        # Made in its loop: the thread that asks for it may run another one, to which it would belong.
        return ListFollower(self._portal, self._portal.call(self._inner.list_follower))

    @like(AsyncTimeline.step_hook)
    def step_hook(self, wire: Any, **options: Any) -> StepHook:
        """See `timeline.Timeline.step_hook`."""
        return StepHook(self._portal, self._inner.step_hook(wire, **options))
