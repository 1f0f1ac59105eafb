"""Leases: one compaction at a time, expiry, fencing, cancellation (design, section 4, concurrency)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.scenes import (
    AT,
    Interrupted,
    Scribe,
    after,
    exchange,
    log_of,
    opened,
    payloads_of,
    prompt,
    small_policy,
    turn,
)
from timeline import Timeline, open_store
from timeline.engine.lease import LEASE
from timeline.errors import CompactionInProgress, CompactionRefused, CompactionSuperseded, StoreFull
from timeline.events import event_id
from timeline.events.other_payloads import CompactionFailed, CompactionStarted
from timeline.ports import Hooks
from timeline.store.memory import MemoryStore
from timeline.store.sqlite.store import SQLiteStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from timeline import RenderedContext
    from timeline.events import NewEvent
    from timeline.ports import Appended, EventStore, Summary, SummaryRequest

POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=400, hiding=None)
FINISHED = (*turn(1_500), *turn(1_500), *turn(400, asked=300))
"""Three turns above the trigger; a cut at the third splits nothing."""


@dataclass
class Slow(Scribe):
    """A summarizer that says when it has begun, and answers when it may."""

    begun: anyio.Event = field(default_factory=anyio.Event)
    may_answer: anyio.Event = field(default_factory=anyio.Event)

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Wait, then answer."""
        self.begun.set()
        await self.may_answer.wait()
        return await super().summarize(request)


class Overtaken(MemoryStore):
    """A store in which something else happens just before somebody's lease is appended."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: list[Callable[[], Awaitable[None]]] = []

    async def append(self, conversation: str, events: Sequence[NewEvent], **options: Any) -> Appended:
        """Let the next thing happen, then append."""
        if self.meanwhile and any(event.type == "compaction.started" for event in events):
            await self.meanwhile.pop()()
        return await super().append(conversation, events, **options)


class Killed(SQLiteStore):
    """A store that keeps its files as a kill leaves them right after somebody's lease was committed."""

    async def append(self, conversation: str, events: Sequence[NewEvent], **options: Any) -> Appended:
        """Append; copy the files by a process of its own, because closing one here would drop SQLite's locks."""
        appended = await super().append(conversation, events, **options)
        if any(event.type == "compaction.started" for event in events):
            left = self.file.parent / "left"
            left.mkdir()
            await anyio.run_process(["cp", *map(str, self.file.parent.glob(f"{self.file.name}*")), str(left)])
        return appended


async def begun(store: EventStore) -> Timeline:
    """Return a conversation that can be compacted."""
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    await timeline.append(*FINISHED)
    return timeline


async def start(timeline: Timeline, at: float, expires: float) -> None:
    """Let another writer take a lease at one moment, until another one."""
    started = CompactionStarted(expires_at=after(expires))
    await timeline.decide([started], at=after(at), ids=[event_id(AT)])


async def test_a_summary_is_written_under_a_lease_that_its_end_names() -> None:
    """The lease is an event; its version is what ends with it."""
    store = MemoryStore()
    timeline = await begun(store)
    await timeline.compact(now=AT)
    [version] = [e.version for e in await log_of(store) if e.type == "compaction.started"]
    [started] = await payloads_of(store, "compaction.started")
    [completed] = await payloads_of(store, "compaction.completed")
    assert (started.reason, started.expires_at) == ("forced", AT + LEASE)
    assert completed.lease == version
    assert timeline.window.lease is None


async def test_a_refusal_takes_no_lease() -> None:
    """Nothing is written, so nobody has to wait."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY)
    await timeline.append(*turn(5))
    with pytest.raises(CompactionRefused):
        await timeline.compact(now=AT)
    assert await payloads_of(store, "compaction.started") == []


@pytest.mark.shows("004-110", "R-004-29")
async def test_while_somebody_compacts_a_second_caller_is_told_so() -> None:
    """By choice; the error names the lease and when it ends."""
    store = MemoryStore()
    timeline = await begun(store)
    await start(timeline, 0, 100)
    with pytest.raises(CompactionInProgress, match=r"compact\(wait=True\)") as busy:
        await timeline.compact(wait=False, now=after(99))
    assert (busy.value.conversation, busy.value.version, busy.value.expires_at) == ("c", 8, after(100))


@pytest.mark.shows("R-004-29")
async def test_or_it_waits_until_the_other_one_is_done(tmp_path: Path) -> None:
    """And then looks anew: what is left may be nothing to do."""
    async with open_store(str(tmp_path / "a.db")) as store:
        slow = Slow()
        first = await opened(store, policy=POLICY, summarizer=slow)
        await first.append(*FINISHED)
        second = await opened(store, policy=POLICY, summarizer=Scribe())
        refused: list[str] = []

        async def compact_too() -> None:
            with pytest.raises(CompactionRefused) as error:
                await second.compact(now=AT)
            refused.append(error.value.reason)

        async with anyio.create_task_group() as group:
            group.start_soon(lambda: first.compact(now=AT))
            await slow.begun.wait()
            group.start_soon(compact_too)
            await anyio.sleep(0.3)
            assert refused == []
            slow.may_answer.set()
        assert refused == ["nothing_to_cover"]
        assert len(await payloads_of(store, "compaction.completed")) == 1
        assert (await first.verify()).ok


async def test_a_caller_that_waits_says_for_what_and_until_when(caplog: pytest.LogCaptureFixture) -> None:
    """A program that was killed while it wrote a summary left the next one silent for two minutes."""
    timeline = await begun(MemoryStore())
    await start(timeline, 0, 0.15)
    await timeline.compact(now=AT)
    assert "conversation c: waiting for the compaction that another writer began at version 8, until" in caplog.text
    assert timeline.window.compaction is not None


async def test_a_process_that_is_killed_as_its_lease_is_committed_holds_nobody_up(tmp_path: Path) -> None:
    """The mark named the lease before it was in the log; afterwards would be too late for this kill."""
    async with await Killed.open(tmp_path / "agent.db") as store:
        timeline = await opened(store, policy=POLICY)
        await timeline.append(*FINISHED)
        await timeline.compact(now=AT)
    async with open_store(tmp_path / "left" / "agent.db") as store:
        timeline = await Timeline.open(store, "c")
        lease = timeline.window.lease
        assert lease is not None
        await timeline.compact(wait=False, now=AT)
        assert [failed.lease for failed in await payloads_of(store, "compaction.failed")] == [lease.version]


async def test_two_tasks_of_one_timeline_take_turns_too() -> None:
    """A lease is the conversation's, not the object's."""
    slow = Slow()
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=slow)
    await timeline.append(*FINISHED)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: timeline.compact(now=AT))
        await slow.begun.wait()
        with pytest.raises(CompactionInProgress):
            await timeline.compact(wait=False, now=AT)
        slow.may_answer.set()
    assert timeline.window.compaction is not None


@pytest.mark.parametrize("attempts", [1, 3])
async def test_a_render_that_others_appends_bring_above_the_limit_waits_for_their_compaction(attempts: int) -> None:
    """It began below the limit, where it waits for nobody, and learned of lease and block as it asked for a lease."""
    store, slow, policy = Overtaken(), Slow(), POLICY.model_copy(update={"attempts": attempts})
    other = await opened(store, policy=policy, summarizer=slow)
    await other.append(*FINISHED)
    timeline = await opened(store, policy=policy, summarizer=Scribe())
    contexts: list[RenderedContext] = []

    async def render_too() -> None:
        contexts.append(await timeline.render(now=AT))

    async with anyio.create_task_group() as group:

        async def overtake() -> None:
            group.start_soon(lambda: other.render(now=AT))
            await slow.begun.wait()
            await other.append(*turn(600))

        store.meanwhile.append(overtake)
        group.start_soon(render_too)
        await slow.begun.wait()
        await anyio.sleep(0.3)
        assert contexts == []
        slow.may_answer.set()
    [context] = contexts
    assert [(taken.kind, taken.reason) for taken in context.decisions] == [("refused", "in_progress")]
    assert not context.account.over_trigger
    assert len(await payloads_of(store, "compaction.completed")) == 1
    assert await payloads_of(store, "compaction.failed") == []


async def test_a_lease_that_expired_holds_nobody_up() -> None:
    """A writer that died under it is not waited for."""
    store = MemoryStore()
    timeline = await begun(store)
    await start(timeline, 0, 100)
    await timeline.compact(wait=False, now=after(100))
    [completed] = await payloads_of(store, "compaction.completed")
    assert completed.lease == 9


@pytest.mark.shows("004-118")
async def test_a_lease_that_runs_cannot_be_taken() -> None:
    """A start meanwhile is void: the fold goes on with the first one."""
    timeline = await begun(MemoryStore())
    await start(timeline, 0, 100)
    await start(timeline, 50, 500)
    assert timeline.window.lease is not None
    assert timeline.window.lease.version == 8
    await start(timeline, 100, 500)
    assert timeline.window.lease.version == 10


async def test_a_lease_is_in_every_copy_of_the_log() -> None:
    """Also for a process that opens it from a snapshot."""
    store = MemoryStore()
    timeline = await begun(store)
    await timeline.compact(now=AT)
    await start(timeline, 0, 100)
    await timeline.decide([], at=AT, ids=[])
    again = await opened(store, policy=POLICY)
    assert again.window == timeline.window
    assert again.window.lease == timeline.window.lease is not None


@pytest.mark.shows("004-118")
async def test_a_summary_whose_lease_was_taken_over_is_refused() -> None:
    """The one who took it over is the one who covers: fencing. No second summary is asked for."""
    store = MemoryStore()
    other = await opened(store, policy=POLICY)
    late = Interrupted(meanwhile=[lambda: start(other, 120, 240)])
    timeline = await opened(store, policy=POLICY, summarizer=late)
    await timeline.append(*FINISHED)
    with pytest.raises(CompactionSuperseded):
        await timeline.compact(now=AT)
    assert late.kinds == ["history"]
    assert await payloads_of(store, "compaction.completed") == []
    [failed] = await payloads_of(store, "compaction.failed")
    assert (failed.reason, failed.lease) == ("superseded", 8)
    assert timeline.window.lease is not None
    assert timeline.window.lease.version == 9
    await timeline.compact(now=after(240))
    assert (await timeline.verify()).ok


async def test_somebody_elses_change_inside_the_range_is_planned_for_once_more(tmp_path: Path) -> None:
    """Another process pins a block meanwhile: the second plan carries it."""
    async with open_store(str(tmp_path / "a.db")) as store:
        other = await begun(store)
        scribe = Interrupted(meanwhile=[lambda: other.pin("ar:turn_1.assistant.completion", now=AT)])
        timeline = await opened(store, policy=POLICY, summarizer=scribe)
        await timeline.compact(now=AT)
        assert scribe.kinds == ["history", "history"]
        assert len(await payloads_of(store, "compaction.started")) == 1
        states = {item.block.path: item.state for item in timeline.window.items}
        assert states["ar:turn_1.assistant.completion"] == "carried"
        assert (await timeline.verify()).ok


async def test_what_was_taken_back_meanwhile_is_not_folded_after_all() -> None:
    """An undo by another writer holds the automatic compaction that is under way, too."""
    store = MemoryStore()
    other = await begun(store)
    await other.compact(now=AT)
    scribe = Interrupted(meanwhile=[lambda: other.undo_compaction(now=AT)])
    timeline = await opened(store, policy=POLICY, summarizer=scribe)
    await timeline.append(prompt(), *exchange("a", 1_500), *exchange("b", 1_500), *turn(100))
    context = await timeline.render(now=AT)
    assert [taken.kind for taken in context.decisions] == ["failed"]
    assert scribe.kinds == ["history"]
    assert timeline.window.summaries == ()
    assert timeline.window.lease is None


async def test_a_forced_compaction_goes_on_after_an_undo() -> None:
    """A caller that forces one wants it in any case."""
    store = MemoryStore()
    other = await begun(store)
    await other.compact(now=AT)
    scribe = Interrupted(meanwhile=[lambda: other.undo_compaction(now=AT)])
    timeline = await opened(store, policy=POLICY, summarizer=scribe)
    await timeline.append(prompt(), *exchange("a", 1_500), *exchange("b", 1_500), *turn(100))
    await timeline.compact(now=AT)
    assert timeline.window.compaction is not None
    assert (await timeline.verify()).ok


async def test_a_cancelled_compaction_frees_its_lease(tmp_path: Path) -> None:
    """The next caller need not wait, and the log says what happened."""
    async with open_store(str(tmp_path / "a.db")) as store:
        slow = Slow()
        timeline = await opened(store, policy=POLICY, summarizer=slow)
        await timeline.append(*FINISHED)
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: timeline.compact(now=AT))
            await slow.begun.wait()
            group.cancel_scope.cancel()
        [failed] = await payloads_of(store, "compaction.failed")
        assert (failed.reason, failed.lease) == ("cancelled", 8)
        assert (failed.unanswered, failed.usage) == (1, None)
        assert timeline.window.lease is None
        slow.may_answer.set()
        await timeline.compact(wait=False, now=AT)
        assert (await timeline.verify()).ok


class Interrupting(Scribe):
    """A summarizer that stops the program while it works."""

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Stop it."""
        del request
        raise KeyboardInterrupt


def test_an_interrupted_program_frees_the_lease_and_ends_as_it_was_interrupted() -> None:
    """What ends the program is no failure of the summarizer: it arrives as it is, in no group."""
    store = MemoryStore()

    async def main() -> None:
        timeline = await opened(store, policy=POLICY, summarizer=Interrupting())
        await timeline.append(*FINISHED)
        await timeline.compact(now=AT)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    [failed] = asyncio.run(payloads_of(store, "compaction.failed"))
    assert (failed.reason, failed.lease, failed.detail) == ("failed", 8, "KeyboardInterrupt: ")


@dataclass
class Late(MemoryStore):
    """A store that has an append of some type, and answers when it may."""

    type: str
    written: anyio.Event = field(default_factory=anyio.Event)
    may_answer: anyio.Event = field(default_factory=anyio.Event)

    def __post_init__(self) -> None:
        super().__init__()

    async def append(self, conversation: str, events: Sequence[NewEvent], **rest: Any) -> Appended:
        """Append as ever; answer later."""
        appended = await super().append(conversation, events, **rest)
        if events[0].payload.type == self.type and not self.written.is_set():
            self.written.set()
            await self.may_answer.wait()
        return appended


async def test_a_task_that_is_cancelled_while_it_takes_the_lease_gives_it_back() -> None:
    """The lease is in the log when the task is cancelled; nobody waits for its expiry."""
    store = Late("compaction.started")
    timeline = await begun(store)
    compacting = asyncio.create_task(timeline.compact(now=AT))
    await store.written.wait()
    compacting.cancel()
    await anyio.lowlevel.checkpoint()
    store.may_answer.set()
    with pytest.raises(asyncio.CancelledError):
        await compacting
    assert timeline.window.lease is None
    assert [failed.reason for failed in await payloads_of(store, "compaction.failed")] == ["cancelled"]


async def test_a_compaction_that_is_cancelled_while_it_is_written_did_not_fail() -> None:
    """The log has it whole when the cancellation comes; nothing else is said of it."""
    store = Late("compaction.completed")
    timeline = await begun(store)
    compacting = asyncio.create_task(timeline.compact(now=AT))
    await store.written.wait()
    compacting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await compacting
    assert timeline.window.lease is None
    assert not await payloads_of(store, "compaction.failed")
    assert timeline.window.items[0].is_summary


async def test_a_lease_of_a_clock_that_is_ahead_is_waited_for_no_longer_than_a_lease_lasts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A writer whose clock is a month ahead, and which died, blocks the others for no month."""
    monkeypatch.setattr("timeline.engine.lease.LEASE", timedelta(milliseconds=50))
    store = MemoryStore()
    timeline = await begun(store)
    month = 30 * 86_400
    await start(timeline, month, month + 120)
    with anyio.fail_after(10):
        await timeline.compact(now=AT)
    assert timeline.window.compaction is not None
    assert timeline.window.lease is None


@pytest.mark.parametrize("of", ["hook", "summarizer"])
async def test_a_compaction_does_not_wait_for_itself(of: str) -> None:
    """A hook, or a summarizer, that compacts or renders its own conversation gets `CompactionInProgress`."""
    told: list[object] = []

    async def compact(_: object = None) -> None:
        with pytest.raises(CompactionInProgress):
            await timeline.compact(now=AT)
        told.extend((await timeline.render(now=AT)).decisions)

    hooks = Hooks(on_before_compaction=compact) if of == "hook" else Hooks()
    summarizer = Interrupted(meanwhile=[compact] if of == "summarizer" else [])
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=summarizer, hooks=hooks)
    await timeline.append(*FINISHED)
    with anyio.fail_after(10):
        await timeline.compact(now=AT)
    assert timeline.window.compaction is not None
    assert told


async def test_the_failure_of_a_compaction_that_was_taken_over_costs_its_successor_nothing() -> None:
    """It says that nothing was done: the plan of the one that took over stays good."""
    store = MemoryStore()
    timeline = await begun(store)
    late = Interrupted(meanwhile=[lambda: timeline.decide([failed], at=AT, ids=[event_id(AT)])])
    failed = CompactionFailed(reason="superseded", lease=8)
    await start(timeline, 0, 120)
    successor = await opened(store, policy=POLICY, summarizer=late)
    await successor.compact(now=after(120))
    assert late.kinds == ["history"]
    assert successor.window.compaction is not None


class FullForAWhile(MemoryStore):
    """A store that refuses everything while it is full."""

    full = False

    async def append(self, conversation: str, events: Any, **options: Any) -> Appended:
        """Append, or refuse."""
        if self.full:
            raise StoreFull("no room")
        return await super().append(conversation, events, **options)


@dataclass
class Filling(Scribe):
    """A summarizer during whose first work the disk fills up."""

    store: FullForAWhile = field(default_factory=FullForAWhile)

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Answer onto a full disk."""
        self.store.full = not self.asked
        return await super().summarize(request)


async def test_a_lease_that_a_full_disk_kept_is_given_back_before_the_next_compaction() -> None:
    """Its own writer knows that nobody works under it: no need to wait until it expires."""
    store = FullForAWhile()
    timeline = await opened(store, policy=POLICY, summarizer=Filling(store=store))
    await timeline.append(*FINISHED)
    with pytest.raises(StoreFull):
        await timeline.compact(now=AT)
    assert timeline.window.lease is not None
    with pytest.raises(StoreFull):
        await timeline.compact(wait=False, now=AT)
    store.full = False
    again = await opened(store, policy=POLICY)
    with pytest.raises(CompactionInProgress):
        await again.compact(wait=False, now=AT)
    await timeline.compact(wait=False, now=AT)
    assert [p.reason for p in await payloads_of(store, "compaction.failed")] == ["failed"]
    assert len(await payloads_of(store, "compaction.completed")) == 1
    assert (await timeline.verify()).ok
