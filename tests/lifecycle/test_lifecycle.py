"""The lifecycle stream: its events, from the log alone, live and afterwards (004)."""

from __future__ import annotations

import asyncio
import gc
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pytest
from pydantic import TypeAdapter

from tests.portable.recordings import TALK, recording
from tests.scenes import (
    AT,
    FULL,
    Interrupted,
    Mute,
    Scribe,
    after,
    answer,
    exchange,
    log_of,
    opened,
    prompt,
    small_policy,
    turn,
    words,
)
from timeline import Hooks, Skip, Timeline, open_store, policies
from timeline.errors import (
    BudgetImpossible,
    CompactionRefused,
    ContextOverflow,
    ConversationNotFound,
    InvalidArgument,
    StoreClosed,
    SummarizerFailed,
)
from timeline.events import WRITTEN_ANEW
from timeline.events.encoding import decode_payload
from timeline.frozen import compact_json
from timeline.importers import ImportedCompaction
from timeline.lifecycle import (
    CompactionCompleteEvent,
    CompactionErrorEvent,
    CompactionPruneEvent,
    CompactionStartEvent,
    CompactionSummarizeEvent,
    ContextOverflowEvent,
    ContextUsageEvent,
    LifecycleEvent,
    follow,
    lifecycle_of,
    recorded,
)
from timeline.lifecycle.progress import Progress
from timeline.log.wakeups import _ASLEEP
from timeline.portable.recordings import import_recording
from timeline.store.memory import MemoryStore
from timeline.sync import Timeline as SyncTimeline
from timeline.sync import open_store as open_store_sync
from timeline.wire.refusals import ContextLimit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from timeline.policy.model import Policy
    from timeline.ports import EventStore

LONG: Final = 60.0
"""An interval that no test waits for: what comes sooner was not polled."""
PRUNING: Final = policies.prune_then_summarize(
    max_tokens=6_000, output_reserve=1_000, counter="chars4", protect=1_000, minimum=500
)


async def told(store: EventStore, conversation: str | None = "c", after: int = 0) -> list[LifecycleEvent]:
    """Return what is recorded."""
    return [event async for event in recorded(store, conversation, after=after)]


def kinds(events: list[LifecycleEvent]) -> list[str]:
    """Return the events' types, without the uses of contexts."""
    return [event.type for event in events if event.type != "context-usage"]


async def talk(policy: Policy, *blocks: Any, **options: Any) -> Timeline:
    """Return a conversation of these blocks."""
    timeline = await opened(MemoryStore(), policy=policy, **{"summarizer": Scribe(), **options})
    await timeline.append(*blocks)
    return timeline


async def taken(stream: AsyncIterator[LifecycleEvent], count: int) -> list[LifecycleEvent]:
    """Take so many events of a stream."""
    return [await anext(stream) for _ in range(count)]


# What is told


@pytest.mark.shows("004-119", "004-121", "004-122")
async def test_a_summary_is_told_from_start_to_complete() -> None:
    """Each figure is that of the compaction's own event, in tokens of the messages."""
    timeline = await talk(small_policy(max_tokens=4_000), *FULL)
    context = await timeline.render()
    start, summarize, complete, usage = await told(timeline._store)
    [done] = context.decisions
    assert isinstance(start, CompactionStartEvent)
    assert isinstance(summarize, CompactionSummarizeEvent)
    assert (start.type, start.tokens_before, start.model_limit, start.reason) == (
        "compaction-start",
        3_710,
        4_000,
        "overflow",
    )
    assert (summarize.type, summarize.messages_count) == ("compaction-summarize", done.facts["messages"])
    assert isinstance(complete, CompactionCompleteEvent)
    assert (complete.tokens_before, complete.tokens_after) == (3_710, done.facts["after_tokens"])
    assert complete.percent_saved == pytest.approx(100 * (1 - complete.tokens_after / 3_710))
    assert (complete.messages_compacted, complete.was_pruned, complete.was_summarized) == (
        done.facts["messages"],
        False,
        True,
    )
    assert complete.summary == (await timeline.read(str(complete.summary_path))).text
    assert isinstance(usage, ContextUsageEvent)
    assert (usage.current_tokens, usage.limit) == (context.account.total, 4_000)
    assert usage.percent_used == context.account.percent_used
    assert [event.version for event in (start, summarize, complete, usage)] == [16, 16, 17, 18]


@pytest.mark.shows("004-49", "004-120")
async def test_a_prune_that_is_enough_is_told_whole() -> None:
    """Outputs, tokens saved and the tools' names; then it is complete, without a summary."""
    outputs = [*exchange("a", 1_000), *exchange("b", 1_000), *exchange("c", 2_500, name="grep")]
    timeline = await talk(PRUNING, prompt(), *outputs, *turn(), *turn(800))
    context = await timeline.render()
    start, prune, complete, usage = await told(timeline._store)
    assert isinstance(prune, CompactionPruneEvent)
    assert (prune.outputs_pruned, prune.tokens_saved, prune.pruned_tools) == (
        context.pruned.outputs_pruned,
        context.pruned.tokens_saved,
        context.pruned.pruned_tools,
    )
    assert (prune.outputs_pruned, prune.pruned_tools) == (3, ("grep", "run"))
    assert isinstance(start, CompactionStartEvent)
    assert isinstance(complete, CompactionCompleteEvent)
    assert (complete.was_pruned, complete.was_summarized, complete.summary) == (True, False, None)
    assert start.tokens_before - prune.tokens_saved == complete.tokens_after == context.account.messages
    assert usage.type == "context-usage"


@pytest.mark.shows("004-122", "R-004-35")
async def test_a_prune_that_is_not_enough_goes_on_to_the_summary() -> None:
    """It is one compaction, in the order of seed 004, and its figures are those of both."""
    blocks = [prompt(), *exchange("a", 2_500), answer(3_000), *turn(), *turn(2_500)]
    timeline = await talk(PRUNING, *blocks)
    context = await timeline.render()
    events = await told(timeline._store)
    assert kinds(events) == ["compaction-start", "compaction-prune", "compaction-summarize", "compaction-complete"]
    start, complete = events[0], events[3]
    assert isinstance(start, CompactionStartEvent)
    assert isinstance(complete, CompactionCompleteEvent)
    assert (complete.was_pruned, complete.was_summarized) == (True, True)
    assert complete.tokens_before == start.tokens_before == context.preparation.tokens.before
    assert complete.tokens_after == context.preparation.tokens.after_compact


@pytest.mark.shows("004-119", "004-120")
async def test_a_compaction_that_prunes_twice_starts_once() -> None:
    """The second batch goes on with the figures of the first, and the summary with those of both."""
    steps = [{"kind": "clear_tool_outputs", "protect": protect, "minimum": 500} for protect in (2_000, 1_000)]
    policy = policies.prune_then_summarize(
        max_tokens=6_000, output_reserve=1_000, counter="chars4", steps=[*steps, PRUNING.steps[-1].model_dump()]
    )
    outputs = [block for name in "abcd" for block in exchange(name, 900)]
    timeline = await talk(policy, prompt(), *outputs, answer(3_000), *turn(), *turn(2_500))
    context = await timeline.render()
    events = await told(timeline._store)
    assert kinds(events) == [
        "compaction-start",
        *(["compaction-prune"] * 2),
        "compaction-summarize",
        "compaction-complete",
    ]
    start = events[0]
    assert isinstance(start, CompactionStartEvent)
    assert start.tokens_before == context.preparation.tokens.before


@pytest.mark.shows("004-119")
@pytest.mark.parametrize("forced", [True, False])
async def test_the_reason_is_an_overflow_or_somebodys_wish(forced: bool) -> None:  # noqa: FBT001 - a case
    """A compaction by hand has a reason of its own."""
    timeline = await talk(small_policy(max_tokens=4_000), *FULL)
    await (timeline.compact() if forced else timeline.render())
    start = (await told(timeline._store))[0]
    assert isinstance(start, CompactionStartEvent)
    assert start.reason == ("manual" if forced else "overflow")


@pytest.mark.shows("004-119")
async def test_a_cold_cache_and_another_clients_record_are_reasons_of_their_own() -> None:
    """Neither is an overflow, and nobody asked for either; of what was over at its import only the end is known."""
    timeline = await talk(
        small_policy(max_tokens=8_000), prompt(), *(b for n in range(30) for b in exchange(f"c{n}", 100))
    )
    await timeline.record_model_call(model="m", now=AT)
    await timeline.render(now=after(360))
    events = [event for event in await told(timeline._store) if isinstance(event, CompactionStartEvent)]
    assert [event.reason for event in events] == ["cold"]
    store = MemoryStore()
    await import_recording(store, recording(*TALK, ImportedCompaction("THE SUMMARY"), prompt(turn_id="turn_2")))
    [complete] = await told(store, "r")
    assert isinstance(complete, CompactionCompleteEvent)
    assert complete.reason == "imported"


async def test_a_context_that_the_model_refused_is_no_wish_of_somebody() -> None:
    """The compaction behind a refusal is an overflow, and is held against what the model takes."""
    timeline = await talk(small_policy(max_tokens=40_000), *FULL)

    async def call(context: Any) -> str:
        if context.account.sent > 3_000:
            raise RuntimeError("This model's maximum context length is 3000 tokens, you requested 3710 tokens")
        return "fine"

    def refused(error: BaseException) -> ContextLimit | None:
        return ContextLimit(3_000, 3_710) if "maximum context" in str(error) else None

    assert await timeline.retry_with_compaction(call, refused=refused) == "fine"
    start = next(event for event in await told(timeline._store) if isinstance(event, CompactionStartEvent))
    assert start.reason == "overflow"
    assert start.model_limit < 3_000


@pytest.mark.shows("004-123")
async def test_a_failure_may_be_tried_again_and_a_refusal_may_not() -> None:
    """A summarizer that is down is another thing than nothing to gain."""
    policy = small_policy(max_tokens=4_000, on_failure="unchanged")
    timeline = await talk(policy, *FULL, summarizer=Mute())
    with pytest.raises(SummarizerFailed):
        await timeline.compact()
    failed = (await told(timeline._store))[-1]
    assert isinstance(failed, CompactionErrorEvent)
    assert (failed.reason, failed.can_retry, failed.suggest_new_session) == ("summarizer", True, False)
    assert "out of service" in failed.error

    async def forbid(facts: dict[str, Any]) -> Skip:
        del facts
        return Skip("not now")

    vetoed = await talk(policy, *FULL, hooks=Hooks(on_before_compaction=forbid))
    await vetoed.render()
    [error] = [event for event in await told(vetoed._store) if isinstance(event, CompactionErrorEvent)]
    assert (error.error, error.can_retry) == ("The application forbade it. not now", False)
    small = await talk(policy, prompt())
    with pytest.raises(CompactionRefused):
        await small.compact()
    [refused] = await told(small._store)
    assert isinstance(refused, CompactionErrorEvent)
    assert (refused.reason, refused.can_retry, refused.suggest_new_session) == ("nothing_to_cover", False, False)


async def test_a_compaction_that_the_application_forbade_above_the_limit_suggests_no_new_session() -> None:
    """The compaction would make the context fit, and the application has only to allow it."""

    async def forbid(facts: dict[str, Any]) -> Skip:
        del facts
        return Skip("not now")

    timeline = await talk(small_policy(max_tokens=1_000), *FULL, hooks=Hooks(on_before_compaction=forbid))
    with pytest.raises(ContextOverflow):
        await timeline.render()
    [error] = [event for event in await told(timeline._store) if isinstance(event, CompactionErrorEvent)]
    assert (error.reason, error.suggest_new_session) == ("vetoed", False)


@pytest.mark.shows("004-123")
async def test_a_model_that_failed_is_told_where_another_summary_took_its_place() -> None:
    """The compaction is complete, by the extractive summarizer; what the model's own answer was not is said with it."""
    timeline = await talk(PRUNING, *[block for _ in range(4) for block in turn(1_500)], summarizer=Mute())
    await timeline.render()
    [complete] = [event for event in await told(timeline._store) if isinstance(event, CompactionCompleteEvent)]
    assert complete.was_summarized
    assert complete.can_retry
    assert "out of service" in str(complete.fallback_reason)
    assert complete.line().endswith(str(complete.fallback_reason))
    fine = await talk(PRUNING, *[block for _ in range(4) for block in turn(1_500)])
    await fine.render()
    [complete] = [event for event in await told(fine._store) if isinstance(event, CompactionCompleteEvent)]
    assert (complete.fallback_reason, complete.can_retry) == (None, False)


async def test_a_summary_that_a_redaction_wrote_anew_is_not_to_be_tried_again() -> None:
    """No summarizer failed: a front end that offered a retry would offer what brings nothing back."""
    timeline = await talk(PRUNING, *[block for _ in range(4) for block in turn(1_500)])
    await timeline.render()
    await timeline.redact("ar:turn_1.user.prompt", "a password")
    [complete] = [event for event in await told(timeline._store) if isinstance(event, CompactionCompleteEvent)]
    assert (complete.fallback_reason, complete.can_retry) == (WRITTEN_ANEW, False)


async def test_a_first_summary_that_was_cut_is_not_told_as_anothers() -> None:
    """The first summarizer wrote it: its line says what was done to it, and no more."""
    policy = policies.keep_ratio(counter="chars4")
    long = Scribe(answers=[words(2_000)])
    timeline = await talk(policy, *[block for _ in range(8) for block in turn(20_000)], summarizer=long)
    await timeline.compact()
    [complete] = [event for event in await told(timeline._store) if isinstance(event, CompactionCompleteEvent)]
    [written] = [summary.written_by for summary in timeline.window.summaries]
    assert written.summarizer == long.name
    assert "was cut to" in str(complete.fallback_reason)
    assert complete.line().endswith(f"; of its summary: {complete.fallback_reason}")


@pytest.mark.shows("004-123", "004-124")
async def test_a_context_that_cannot_be_made_to_fit_suggests_a_new_session() -> None:
    """The refusal says so, and the overflow has its figures; the same one is recorded once, by whomever."""
    timeline = await talk(small_policy(max_tokens=1_000), prompt(30), answer(1_200))
    for _ in range(3):
        with pytest.raises(ContextOverflow):
            await timeline.render(system="abcd" * 10)
    again = await opened(timeline._store, policy=small_policy(max_tokens=1_000))
    with pytest.raises(ContextOverflow):
        await again.render(system="abcd" * 10)
    error, overflow = await told(timeline._store)
    assert isinstance(error, CompactionErrorEvent)
    assert (error.suggest_new_session, error.can_retry) == (True, False)
    assert isinstance(overflow, ContextOverflowEvent)
    assert (overflow.current_tokens, overflow.limit) == (10 + 30 + 1_200, 1_000)
    assert overflow.percent_used == pytest.approx(124)
    assert overflow.reason == "messages"


async def test_a_prompt_that_leaves_no_room_is_told_like_any_overflow() -> None:
    """Once, with the figures of the fixed part, and until a render succeeds."""
    timeline = await talk(small_policy(max_tokens=1_000), prompt(30))
    for _ in range(2):
        with pytest.raises(BudgetImpossible) as caught:
            await timeline.render(system="Be brief. " * 400)
    with pytest.raises(BudgetImpossible):
        await timeline.render(system="Be brief. " * 400, record=False)
    [overflow] = await told(timeline._store)
    assert isinstance(overflow, ContextOverflowEvent)
    account = caught.value.account
    assert (overflow.reason, overflow.current_tokens, overflow.limit) == ("fixed_part", account["total"], 1_000)
    assert overflow.line().endswith("%), without any messages")
    await timeline.render(system="Be brief.")
    progress = Progress().after(overflow)
    assert progress.overflow is overflow
    assert progress.after((await told(timeline._store))[-1]).overflow is None


async def test_a_dry_run_that_overflows_tells_nothing() -> None:
    """What is not recorded did not happen."""
    timeline = await talk(small_policy(max_tokens=1_000), prompt(30), answer(1_200))
    version = timeline.version
    with pytest.raises(ContextOverflow):
        await timeline.render(record=False)
    assert (await told(timeline._store), timeline.version) == ([], version)


async def test_what_is_hidden_by_hand_is_no_compaction() -> None:
    """The stream reports the decisions of the engine."""
    timeline = await talk(small_policy(), prompt(), *exchange("a", 50))
    await timeline.hide("tc:turn_1.a.result")
    assert await told(timeline._store) == []


async def test_outputs_that_a_run_leaves_are_told_with_its_end() -> None:
    """Below the trigger too: it is neither an overflow nor a wish."""
    timeline = await talk(PRUNING, prompt(), *exchange("a", 2_000), *turn(), *turn())
    await timeline.append(*exchange("b", 100))
    await timeline.end_run()
    events = await told(timeline._store)
    assert kinds(events) == ["compaction-start", "compaction-prune", "compaction-complete"]
    assert isinstance(events[0], CompactionStartEvent)
    assert events[0].reason == "run_end"


async def test_a_log_of_before_tells_what_it_holds() -> None:
    """What older logs lack is 0; their hides have no figures of pruning, and yield no events."""
    timeline = await talk(PRUNING, prompt(), *exchange("a", 2_500), answer(3_000), *turn(), *turn(2_500))
    await timeline.render()
    added = {"pruned", "limit", "messages", "continues", "before_tokens", "pruned_tokens", "total"}
    older: list[LifecycleEvent] = []
    for event in await log_of(timeline._store):
        kept = {name: value for name, value in event.payload.dump().items() if name not in added}
        payload = decode_payload(event.type, event.schema_version, compact_json(kept))
        older += lifecycle_of(event.model_copy(update={"payload": payload}))
    assert [event.type for event in older] == [
        "compaction-start",
        "compaction-summarize",
        "compaction-complete",
        "context-usage",
    ]
    start, usage = older[0], older[3]
    assert isinstance(start, CompactionStartEvent)
    assert isinstance(usage, ContextUsageEvent)
    assert (start.tokens_before, start.model_limit, start.reason) == (0, 0, "overflow")
    assert (usage.current_tokens > 0, usage.percent_used, usage.is_warning) == (True, 0.0, False)


@pytest.mark.shows("004-86", "004-128", "R-004-35")
async def test_every_event_has_a_line_and_comes_back_from_its_json() -> None:
    """For a trace, and for a stream of server-sent events."""
    timeline = await talk(PRUNING, prompt(), *exchange("a", 2_500), answer(3_000), *turn(), *turn(2_500))
    await timeline.render()
    await timeline.append(prompt(9_000))
    with pytest.raises(ContextOverflow):
        await timeline.render()
    events = await told(timeline._store)
    assert {event.type for event in events} == {
        "compaction-start",
        "compaction-prune",
        "compaction-summarize",
        "compaction-complete",
        "compaction-error",
        "context-overflow",
        "context-usage",
    }
    adapter: TypeAdapter[LifecycleEvent] = TypeAdapter(LifecycleEvent)
    for event in events:
        assert adapter.validate_json(event.model_dump_json()) == event
        assert "\n" not in event.line()
    lines = {event.type: event.line() for event in events}
    assert {kind: line.partition(" ")[0] for kind, line in lines.items()} == {
        "compaction-start": "Compacting",
        "compaction-prune": "Pruned:",
        "compaction-summarize": "Summarizing:",
        "compaction-complete": "Compacted",
        "compaction-error": "Not",
        "context-overflow": "Overflow:",
        "context-usage": "Usage:",
    }


# What an interface shows


@pytest.mark.shows("004-125", "R-004-35")
async def test_the_phases_are_those_of_seed_004() -> None:
    """Pruning, summarizing, complete; the agent is compacting meanwhile, and per cent saved rises."""
    timeline = await talk(PRUNING, prompt(), *exchange("a", 2_500), answer(3_000), *turn(), *turn(2_500))
    await timeline.render()
    states = [Progress()]
    for event in await told(timeline._store):
        states.append(states[-1].after(event))
    assert [state.phase for state in states] == ["idle", "pruning", "pruning", "summarizing", "complete", "complete"]
    assert [state.status for state in states] == [None, *["compacting"] * 3, None, None]
    saved = [state.percent_saved for state in states]
    assert saved[:2] == [None, None]
    assert saved[2] is not None
    assert saved[4] is not None
    assert 0 < saved[2] < saved[4]
    start, *_, complete, _ = await told(timeline._store)
    assert isinstance(start, CompactionStartEvent)
    assert isinstance(complete, CompactionCompleteEvent)
    assert saved[4] == pytest.approx(100 * (1 - complete.tokens_after / start.tokens_before))
    assert (states[-1].compactions, states[-1].usage is not None) == (1, True)


@pytest.mark.shows("004-125")
async def test_an_error_ends_a_phase_and_the_next_start_takes_it_away() -> None:
    """The banner stays until something newer is to be said."""
    timeline = await talk(small_policy(max_tokens=4_000, on_failure="unchanged"), *FULL, summarizer=Mute())
    with suppress(SummarizerFailed):
        await timeline.compact()
    progress = Progress()
    for event in await told(timeline._store):
        progress = progress.after(event)
    assert (progress.phase, progress.status) == ("idle", None)
    assert progress.error is not None
    assert progress.after((await told(timeline._store))[0]).error is None


# Following


@pytest.mark.shows("004-86")
async def test_what_this_process_appends_is_told_at_once() -> None:
    """Also while the summary is still being written: nobody polls for it."""
    scribe = Interrupted(meanwhile=[])
    timeline = await talk(small_policy(max_tokens=4_000), *FULL, summarizer=scribe)
    stream = timeline.lifecycle(interval=LONG)
    first = asyncio.ensure_future(anext(stream))
    seen: list[str] = []

    async def look() -> None:
        seen.append((await first).type)
        seen.append((await anext(stream)).type)

    scribe.meanwhile.append(look)
    await timeline.render()
    assert seen == ["compaction-start", "compaction-summarize"]
    assert [event.type for event in await taken(stream, 2)] == ["compaction-complete", "context-usage"]


async def test_the_stream_is_the_same_live_and_afterwards_from_any_version() -> None:
    """A reader that goes on behind a version misses no event, and gets none twice."""
    timeline = await talk(small_policy(max_tokens=4_000))
    stream = follow(timeline._store, "c", interval=LONG)
    first = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    for _ in range(3):
        await timeline.append(*FULL)
        await timeline.render()
    whole = await told(timeline._store)
    assert [await first, *await taken(stream, len(whole) - 1)] == whole
    for version in {event.version for event in whole}:
        assert await told(timeline._store, after=version) == [event for event in whole if event.version > version]


async def test_a_store_is_followed_by_position() -> None:
    """Conversations come as they were written, each event once."""
    store = MemoryStore()
    stream = follow(store, after=0, interval=LONG)
    for name in "abab":
        timeline = await opened(store, name, policy=small_policy(max_tokens=4_000), summarizer=Scribe())
        await timeline.append(*FULL)
        await timeline.render()
    whole = await told(store, None)
    assert await taken(stream, len(whole)) == whole
    assert {event.conversation for event in whole} == {"a", "b"}
    assert [event.position for event in whole] == sorted(event.position for event in whole)


async def test_a_fork_tells_what_it_shares_under_its_parents_name() -> None:
    """Versions go on; what happened before the fork happened to the parent."""
    timeline = await talk(small_policy(max_tokens=4_000), *FULL)
    await timeline.render()
    fork = await timeline.fork()
    await fork.append(*FULL)
    await fork.render()
    events = await told(timeline._store, fork.id)
    assert [event.conversation for event in events[:4]] == ["c"] * 4
    assert {event.conversation for event in events[4:]} == {fork.id}
    assert await told(timeline._store, fork.id, after=fork.version - 1) == events[-1:]


async def test_another_process_sees_the_same_stream(tmp_path: Path) -> None:
    """A follower finds its appends by looking: no message between processes is needed."""
    code = """
import asyncio, sys
from timeline import Timeline, open_store, policies
from timeline.blocks import AssistantCompletion, UserPrompt

async def main():
    async with open_store(sys.argv[1]) as store:
        timeline = await Timeline.open(store, "c", policy=policies.cut_point(max_tokens=4_000, counter="chars4"))
        for _ in range(7):
            await timeline.append(UserPrompt(text="abc " * 30), AssistantCompletion(text="abc " * 500))
        await timeline.render()

asyncio.run(main())
"""
    file = tmp_path / "agent.db"
    async with open_store(file) as store:
        await opened(store)
        stream = follow(store, "c", after=0, interval=0.02)
        worker = await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(file))
        events = await taken(stream, 4)
        assert await worker.wait() == 0
        assert kinds(events) == ["compaction-start", "compaction-summarize", "compaction-complete"]
        assert await told(store) == events


async def test_a_slow_reader_holds_nothing() -> None:
    """Nothing is queued for it: what it has not read yet is read from the log."""
    timeline = await talk(small_policy(max_tokens=4_000))
    stream = timeline.lifecycle(after=0, interval=LONG)
    for number in range(500):
        await timeline.append(prompt(1))
        await timeline.render(system=f"prompt {number}")
    assert _ASLEEP == {}
    events = await taken(stream, 500)
    assert [event.version for event in events] == sorted({event.version for event in events})


async def test_leaving_the_stream_leaves_nothing_behind() -> None:
    """Closed, dropped or cancelled, whether it waits or not: no task, no waiter."""
    timeline = await talk(small_policy(max_tokens=4_000), *FULL)
    await timeline.render()
    async for _ in timeline.lifecycle(after=0, interval=LONG):
        break
    waiting = asyncio.ensure_future(anext(timeline.lifecycle(interval=LONG)))
    await asyncio.sleep(0.01)
    assert len(_ASLEEP) == 1
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    gc.collect()
    await asyncio.sleep(0)
    assert _ASLEEP == {}
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_the_stream_ends_when_the_store_is_closed(tmp_path: Path) -> None:
    """A follower needs no cancelling; one that begins with a closed store gets an error."""
    async with open_store(tmp_path / "agent.db") as store:
        timeline = await opened(store)
        stream = timeline.lifecycle(interval=0.01)
        end = asyncio.ensure_future(anext(stream, None))
        await asyncio.sleep(0.02)
    assert await end is None
    with pytest.raises(StoreClosed):
        await anext(timeline.lifecycle(after=0))


async def test_what_cannot_be_followed_is_refused() -> None:
    """A number that is none, and a conversation that is not there."""
    store = MemoryStore()
    with pytest.raises(ConversationNotFound):
        await anext(follow(store, "nobody"))
    with pytest.raises(InvalidArgument):
        follow(store, after=-1)
    with pytest.raises(InvalidArgument):
        follow(store, interval=0)
    with pytest.raises(InvalidArgument):
        recorded(store, after=True)


def test_the_stream_is_there_without_await(tmp_path: Path) -> None:
    """An ordinary loop over it; leaving the loop ends it."""
    with open_store_sync(tmp_path / "agent.db") as store:
        timeline = SyncTimeline.open(store, "c", policy=small_policy(max_tokens=4_000))
        timeline.append(*FULL)
        timeline.render()
        seen = []
        for event in timeline.lifecycle(after=0):
            seen.append(event.type)
            if event.type == "context-usage":
                break
        assert seen == ["compaction-start", "compaction-summarize", "compaction-complete", "context-usage"]
        assert store.head() == timeline.version
