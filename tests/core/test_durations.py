"""How long compactions, summaries and model calls took: measured by a monotonic clock, recorded, and shown in lists."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.scenes import (
    AT,
    FULL,
    Interrupted,
    Mute,
    Scribe,
    exchange,
    log_of,
    opened,
    payloads_of,
    prompt,
    small_policy,
    turn,
)
from timeline import Timeline, open_store, policies, sync
from timeline.cli.app import app
from timeline.errors import InvalidArgument, SummarizerFailed
from timeline.events import ModelCalled
from timeline.events.encoding import decode_payload, encode_payload
from timeline.lifecycle import CompactionCompleteEvent, CompactionErrorEvent, recorded
from timeline.ports import Hooks
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from timeline.ports import EventStore
    from timeline.projection.context import RenderedContext

POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=400)
REPLY: dict[str, Any] = {
    "id": "chatcmpl-1",
    "model": "gpt-4o",
    "choices": [{"message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
}
DAY = timedelta(days=1)


@dataclass
class Watched:
    """A clock that a test lets run: its wall steps back a day whenever it does."""

    at: datetime = AT
    seconds: float = 0.0

    def now(self) -> datetime:
        """Return the wall's time."""
        return self.at

    def monotonic(self) -> float:
        """Return the seconds that ran."""
        return self.seconds

    async def run(self, seconds: float) -> None:
        """Let time pass."""
        self.seconds += seconds
        self.at -= DAY


@dataclass
class Timed(Scribe):
    """A summarizer that takes a known time by a clock."""

    clock: Watched = field(default_factory=Watched)
    takes: float = 1.25

    async def summarize(self, request: Any) -> Any:
        """Answer after that time."""
        await self.clock.run(self.takes)
        return await super().summarize(request)


async def compacted(store: EventStore, *, takes: float = 1.25, hook: float = 0.5) -> Timeline:
    """Return a conversation that was compacted, by a hook and a summarizer of known durations."""
    clock = Watched()

    async def before(_: object) -> None:
        await clock.run(hook)

    options: dict[str, Any] = {"summarizer": Timed(clock=clock, takes=takes), "hooks": Hooks(before)}
    timeline = await Timeline.open(store, "c", policy=POLICY, clock=clock, **options)
    await timeline.append(*FULL)
    await timeline.compact()
    return timeline


@pytest.mark.shows("004-142")
async def test_log_lifecycle_digests_and_state_say_how_long_a_compaction_and_its_summary_took() -> None:
    """Measured from its start, hooks included; the summarizers' part by itself."""
    store = MemoryStore()
    timeline = await compacted(store)
    [done] = await payloads_of(store, "compaction.completed")
    assert (done.duration, done.written_by.duration) == (1.75, 1.25)
    [told] = [event async for event in recorded(store, "c") if isinstance(event, CompactionCompleteEvent)]
    assert (told.duration, told.summary_duration) == (1.75, 1.25)
    assert told.line().endswith(" messages, in 1.8 s")
    assert [digest.duration async for digest in store.digests()] == [1.75]
    assert timeline.compaction_state().last_duration == 1.75
    assert (await timeline.verify()).ok


@pytest.mark.shows("004-142")
async def test_a_compaction_that_only_prunes_has_a_duration_too() -> None:
    """From its start to the event of the batch; none where the clock did not move, or in an earlier release's log."""

    @dataclass
    class Running(Watched):
        def monotonic(self) -> float:
            self.seconds += 0.25
            return self.seconds

    policy = policies.prune_then_summarize(counter="chars4", max_tokens=100_000, protect=400, minimum=200)
    store = MemoryStore()
    for conversation, clock in (("c", Running()), ("still", Watched())):
        timeline = await Timeline.open(store, conversation, policy=policy, summarizer=Scribe(), clock=clock)
        await timeline.append(prompt(), *exchange("a", 2_000), prompt(), *exchange("b", 400), *turn(), *turn())
        await timeline.end_run()
    for conversation, duration in (("c", 0.25), ("still", None)):
        [hidden] = await payloads_of(store, "blocks.hidden", conversation)
        assert hidden.pruned.duration == duration
        events = [event async for event in recorded(store, conversation)]
        [complete] = [event for event in events if isinstance(event, CompactionCompleteEvent)]
        assert (complete.was_pruned, complete.was_summarized, complete.duration) == (True, False, duration)


async def test_a_summary_that_takes_real_time_has_a_real_duration() -> None:
    """The computer measures where the application's clock does not."""

    async def slow() -> None:
        await anyio.sleep(0.31)

    store = MemoryStore()
    timeline = await opened(store, policy=POLICY, summarizer=Interrupted(meanwhile=[slow]))
    await timeline.append(*FULL)
    await timeline.compact()
    [done] = await payloads_of(store, "compaction.completed")
    assert 0.3 <= done.written_by.duration <= done.duration < 30


async def test_a_compaction_that_fails_says_how_long_it_tried() -> None:
    """By a summarizer without an answer, or by an error of the store; a refusal takes no time."""
    store = MemoryStore()
    clock = Watched()

    class Failing(Mute):
        async def summarize(self, request: Any) -> Any:
            await clock.run(2.5)
            return await super().summarize(request)

    policy = POLICY.model_copy(update={"on_failure": "unchanged"})
    timeline = await Timeline.open(store, "c", policy=policy, summarizer=Failing(), clock=clock)
    await timeline.append(*FULL)
    with pytest.raises(SummarizerFailed):
        await timeline.compact()
    [failed] = await payloads_of(store, "compaction.failed")
    assert (failed.reason, failed.duration) == ("summarizer", 2.5)
    [told] = [event async for event in recorded(store, "c") if isinstance(event, CompactionErrorEvent)]
    assert told.duration == 2.5
    assert told.line().startswith("Not compacted after 2.5 s (summarizer)")


async def test_a_cancelled_compaction_says_how_long_it_ran() -> None:
    """Its lease ends with it, and names the time."""
    store = MemoryStore()
    clock = Watched()

    class Hanging(Scribe):
        async def summarize(self, request: Any) -> Any:
            del request
            await clock.run(4)
            await anyio.sleep_forever()

    timeline = await Timeline.open(store, "c", policy=POLICY, summarizer=Hanging(), clock=clock)
    await timeline.append(*FULL)
    with anyio.move_on_after(0.1):
        await timeline.compact()
    [failed] = await payloads_of(store, "compaction.failed")
    assert (failed.reason, failed.duration) == ("cancelled", 4.0)


async def test_waiting_for_another_writer_is_no_part_of_a_compaction(tmp_path: Path) -> None:
    """It begins when it is its turn."""
    async with open_store(str(tmp_path / "a.db")) as store:
        begun = anyio.Event()

        async def slow() -> None:
            begun.set()
            await anyio.sleep(0.5)

        first = await opened(store, policy=POLICY, summarizer=Interrupted(meanwhile=[slow]))
        await first.append(*FULL, *FULL)
        second = await opened(store, policy=POLICY, summarizer=Scribe())
        async with anyio.create_task_group() as group:
            group.start_soon(first.compact)
            await begun.wait()
            await second.append(*FULL)
            await second.compact()
        long, short = await payloads_of(store, "compaction.completed")
    assert long.duration >= 0.5
    assert short.duration < long.duration


def test_a_log_of_an_earlier_release_has_no_durations() -> None:
    """They are None, not 0.0, and nothing is written for them."""
    stored = json.dumps({"model": "gpt-4o"})
    called = decode_payload("model.called", 1, stored)
    assert isinstance(called, ModelCalled)
    assert called.duration is None
    assert json.loads(encode_payload(called)) == {"model": "gpt-4o"}


async def test_a_call_that_is_retried_is_recorded_with_the_duration_of_the_call_that_answered() -> None:
    """The reply itself says which call it was."""
    clock = Watched()
    store = MemoryStore()
    timeline = await Timeline.open(store, "c", policy=POLICY, clock=clock)
    await timeline.append(prompt())

    async def ask(context: RenderedContext) -> dict[str, Any]:
        del context
        await clock.run(3.5)
        return {**REPLY}

    reply = await timeline.retry_with_compaction(ask)
    await clock.run(60)  # what the application does with it
    await timeline.record(reply)
    await timeline.record({**REPLY, "id": "chatcmpl-2"})
    assert [called.duration for called in await payloads_of(store, "model.called")] == [3.5, None]


async def test_a_call_that_is_recorded_inside_the_retried_function_has_its_duration() -> None:
    """Of one timeline only: another's call inside it is not measured by it."""
    clock = Watched()
    store = MemoryStore()
    timeline = await Timeline.open(store, "c", policy=POLICY, clock=clock)
    other = await Timeline.open(store, "other", policy=POLICY, clock=clock)
    await timeline.append(prompt())

    async def ask(context: RenderedContext) -> None:
        del context
        await clock.run(2)
        await timeline.record(REPLY)
        await other.record(REPLY)

    await timeline.retry_with_compaction(ask)
    assert [called.duration for called in await payloads_of(store, "model.called")] == [2.0]
    assert [called.duration for called in await payloads_of(store, "model.called", "other")] == [None]


async def test_a_stream_takes_until_its_last_event_arrives() -> None:
    """From `recording` on, or from the request of the call that opened it; what follows the last event is no part."""
    clock = Watched()
    store = MemoryStore()
    timeline = await Timeline.open(store, "c", policy=POLICY, clock=clock)
    await timeline.append(prompt())

    async def stream(number: int) -> AsyncIterator[dict[str, Any]]:
        for text in ("Hel", "lo."):
            await clock.run(1)
            yield {"id": f"chatcmpl-{number}", "choices": [{"index": 0, "delta": {"content": text}}]}
        await clock.run(10)

    async def request(context: RenderedContext) -> AsyncIterator[dict[str, Any]]:
        del context
        await clock.run(0.5)
        return stream(2)

    await timeline.record_stream(stream(1))
    await timeline.record_stream(await timeline.retry_with_compaction(request))
    assert [called.duration for called in await payloads_of(store, "model.called")] == [2.0, 2.5]


async def test_a_step_takes_from_its_messages_to_its_reply() -> None:
    """The loop calls the model between `prepare_step` and `on_step_finish`."""
    clock = Watched()
    store = MemoryStore()
    timeline = await Timeline.open(store, "c", policy=POLICY, clock=clock)
    hook = timeline.step_hook("openai_chat")
    await hook.prepare_step(messages=[{"role": "user", "content": "Hello?"}])
    await clock.run(1.5)
    await hook.on_step_finish(REPLY)
    await hook.on_step_finish({**REPLY, "id": "chatcmpl-2"})
    assert [called.duration for called in await payloads_of(store, "model.called")] == [1.5, None]


@pytest.mark.shows("004-142")
async def test_the_application_says_how_long_its_own_call_took() -> None:
    """A start alone gives no duration: the wall clock may have been set since."""
    store = MemoryStore()
    timeline = await opened(store)
    began = datetime.now(UTC)
    await timeline.record(REPLY, started_at=began)
    await timeline.record({**REPLY, "id": "chatcmpl-2"}, duration=1.23456)
    await timeline.record_model_call(model="gpt-4o", duration=2)
    await timeline.after_length_stop(
        {**REPLY, "id": "chatcmpl-3", "choices": [{**REPLY["choices"][0], "finish_reason": "length"}]}, duration=0.5
    )
    calls = await payloads_of(store, "model.called")
    assert [called.duration for called in calls] == [None, 1.235, 2.0, 0.5]


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), "1.2", True, timedelta(seconds=1)])
async def test_a_duration_is_a_number_of_seconds(wrong: Any) -> None:
    """Anything else is refused, and nothing is written."""
    store = MemoryStore()
    timeline = await opened(store)
    for record in (timeline.record(REPLY, duration=wrong), timeline.record_model_call(duration=wrong)):
        with pytest.raises(InvalidArgument, match="duration"):
            await record
    assert len(await log_of(store)) == 1


def test_the_blocking_library_measures_calls_too() -> None:
    """The function runs in a thread of its own."""
    with sync.open_store("memory://") as store:
        clock = Watched()
        timeline = sync.Timeline.open(store, "c", policy=POLICY, clock=clock)
        timeline.append(prompt())

        def ask(context: RenderedContext) -> dict[str, Any]:
            del context
            clock.seconds += 3
            return {**REPLY}

        timeline.record(timeline.retry_with_compaction(ask))
        called = [event.payload for event in store.read("c", types=["model.called"])]
    assert [payload.duration for payload in called if isinstance(payload, ModelCalled)] == [3.0]


async def test_the_command_line_shows_durations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the tree, in the digests, and in the JSON of both."""
    db = str(tmp_path / "a.db")
    async with open_store(db) as store:
        timeline = await compacted(store, takes=75.5)
        await timeline.record(REPLY, duration=1.5)

    async def printed(*arguments: str) -> str:
        def run() -> None:
            app([*arguments, "--db", db], standalone_mode=False)

        await anyio.to_thread.run_sync(run)
        return capsys.readouterr().out

    shown = await printed("show", "c", "--all")
    assert "(in 1 min 16 s) " in shown
    assert "0 tokens in, 0 out, in 1.5 s" in shown
    rows = json.loads(await printed("show", "c", "--json"))
    assert {row["type"]: row["duration"] for row in rows if row["duration"] is not None} == {
        "conv.range.summary": 76.0,
        "model.called": 1.5,
    }
    assert ", in 1 min 16 s" in (await printed("digests")).splitlines()[0]
    assert [row["duration"] for row in json.loads(await printed("digests", "--json"))] == [76.0]
    await printed("undo", "c")
    again = json.loads(await printed("compact", "c", "--policy", "cut_point", "--max-tokens", "4000", "--json"))
    assert again["decisions"][-1]["kind"] == "compacted"
    assert 0 <= again["duration"] < 60


async def test_a_call_at_a_given_time_reads_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay takes no time, and the same steps write the same log: nothing is measured."""

    class Forbidden:
        def now(self) -> datetime:
            pytest.fail("the wall clock was read")

        def monotonic(self) -> float:
            pytest.fail("the monotonic clock was read")

    monkeypatch.setattr("timeline.log.stopwatch.perf_counter", lambda: pytest.fail("the computer's clock was read"))
    store = MemoryStore()
    timeline = await Timeline.open(store, "c", policy=POLICY, summarizer=Scribe(), clock=Forbidden(), now=AT)
    await timeline.append(*FULL, now=AT)
    hook = timeline.step_hook("openai_chat")
    await hook.prepare_step(messages=[{"role": "user", "content": "Hello?"}], now=AT)
    await hook.on_step_finish(REPLY, now=AT)
    await timeline.append(*FULL, now=AT)

    async def ask(context: RenderedContext) -> dict[str, Any]:
        del context
        return {**REPLY, "id": "chatcmpl-2"}

    await timeline.record(await timeline.retry_with_compaction(ask, now=AT), now=AT)
    await timeline.undo_compaction(now=AT)
    await timeline.compact(now=AT)
    compactions = await payloads_of(store, "compaction.completed")
    assert {(done.duration, done.written_by.duration) for done in compactions} == {(None, None)}
    assert {called.duration for called in await payloads_of(store, "model.called")} == {None}
