"""Simulating a policy on a recording: the honest way to try it on real input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.portable.recordings import TALK, recording
from tests.scenes import Scribe, after, answer, call, log_of, payloads_of, prompt, result, small_policy, words
from timeline import Timeline, policies
from timeline.blocks import ToolResult
from timeline.importers import ImportedCompaction, ImportedHide
from timeline.lab.simulate import simulate, unpaired
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline.importers import Recording

POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=400)


def long_session(rounds: int = 12, size: int = 600) -> Recording:
    """Return one prompt and many rounds, as an autonomous session has them."""
    things: list[Any] = [prompt(turn_id="turn_1")]
    for n in range(rounds):
        things += [call(f"c{n}", turn_id="turn_1", response_id=f"m{n}"), result(f"c{n}", size, turn_id="turn_1")]
    return recording(*things, answer(turn_id="turn_1", response_id="last"))


async def test_the_new_conversation_has_an_id_of_its_own() -> None:
    """Of recording and policy; a second run gets the next free one."""
    store = MemoryStore()
    first = await simulate(store, recording(*TALK), POLICY)
    second = await simulate(store, recording(*TALK), POLICY)
    assert (first.id, second.id) == ("r.cut_point-4000", "r.cut_point-4000~2")


async def test_it_renders_before_each_recorded_call_at_the_recorded_time() -> None:
    """A context for each response, recorded when the response was, and before its blocks."""
    store = MemoryStore()
    run = await simulate(store, recording(*TALK), POLICY, system="S")
    log = await log_of(store, run.id)
    assert [event.type for event in log] == [
        "conversation.opened",
        "block.appended",
        "context.rendered",
        "block.appended",
        "model.called",
        "block.appended",
        "context.rendered",
        "block.appended",
    ]
    assert [event.at for event in log if event.type == "context.rendered"] == [after(1), after(4)]
    assert run.renders == 2


async def test_a_response_of_several_blocks_is_one_call() -> None:
    """Parallel calls were one request; without response ids each run of blocks counts by itself."""
    batch = [call(c, turn_id="turn_1", response_id="m1") for c in "abc"]
    results = [result(c, turn_id="turn_1") for c in "abc"]
    run = await simulate(MemoryStore(), recording(prompt(turn_id="turn_1"), *batch, *results), POLICY)
    assert run.renders == 1


async def test_what_the_recorded_client_compacted_and_hid_is_ignored() -> None:
    """The policy makes its own decisions on all that was said."""
    store = MemoryStore()
    things = (
        *TALK,
        ImportedHide(("a",)),
        ImportedCompaction("THEIRS"),
        prompt(turn_id="turn_2"),
        answer(turn_id="turn_2"),
    )
    run = await simulate(store, recording(*things), POLICY)
    assert (run.compactions, run.hides) == (0, 0)
    timeline = await Timeline.open(store, run.id)
    assert len(timeline.window.items) == 6
    assert "THEIRS" not in str(timeline.window.items)


async def test_numbers_that_new_results_leave_out_are_no_hidden_blocks() -> None:
    """Nothing gave way: all of such a result is in sight, as a replay of the log counts it, too."""
    printed = "\n".join(f"{number:6}\tline {number} of the file that is read" for number in range(1, 80))
    read = [
        call("a", turn_id="turn_1", response_id="m1"),
        ToolResult(call_id="a", text=printed, turn_id="turn_1"),
        answer(turn_id="turn_1", response_id="m2"),
    ]
    store = MemoryStore()
    run = await simulate(store, recording(prompt(turn_id="turn_1"), *read), policies.none(line_numbers={}))
    assert (await Timeline.open(store, run.id)).window.items[2].state == "abridged"
    assert run.hides == 0


async def test_a_session_that_overflows_its_budget_is_compacted_and_sound() -> None:
    """No orphan, no hole, no compaction without progress, nothing above the limit; all of it verified."""
    store, scribe = MemoryStore(), Scribe()
    run = await simulate(store, long_session(), POLICY, summarizer=scribe)
    assert run.compactions >= 2
    assert run.renders == 13
    assert (run.orphans, run.uncovered, run.no_progress, run.over_limit, run.typed_errors) == (0, 0, 0, 0, 0)
    assert 0 < run.largest <= 4_000
    assert len(scribe.asked) == run.compactions
    report = await (await Timeline.open(store, run.id)).verify()
    assert (report.ok, report.renders, report.compactions) == (True, run.renders, run.compactions)


async def test_each_compaction_is_a_step_with_its_figures() -> None:
    """What was compacted and why."""
    store = MemoryStore()
    run = await simulate(store, long_session(), POLICY, summarizer=Scribe())
    completed = await payloads_of(store, "compaction.completed", run.id)
    assert [step["summary_path"] for step in run.steps] == [payload.block.path for payload in completed]
    first = run.steps[0]
    assert first["before_tokens"] - first["after_tokens"] == completed[0].before_tokens - completed[0].after_tokens
    assert (first["reason"], first["compaction_number"], first["split_turn_id"]) == ("over_trigger", 1, "turn_1")
    assert (first["carried"], first["summarizer"]) == (1, "scribe")


async def test_a_render_that_is_refused_is_a_typed_error_of_the_run() -> None:
    """The run goes on; the error is listed with the largest group of the window."""
    store = MemoryStore()
    things = (
        prompt(turn_id="turn_1"),
        answer(5_000, turn_id="turn_1", response_id="m1"),
        answer(turn_id="turn_1", response_id="m2"),
    )
    run = await simulate(store, recording(*things), policies.none(counter="chars4", max_tokens=4_000))
    assert (run.renders, run.typed_errors) == (1, 1)
    [error] = run.errors
    assert (error["type"], error["largest_group"]) == ("ContextOverflow", 5_000)


async def test_system_prompt_and_tools_are_part_of_every_context() -> None:
    """Recordings hold none, so the caller gives them."""
    store = MemoryStore()
    run = await simulate(store, recording(*TALK), POLICY, system=words(100), tools=[{"name": "run"}])
    rendered = await payloads_of(store, "context.rendered", run.id)
    assert all(payload.system and payload.tools for payload in rendered)
    assert rendered[0].tokens > 100


async def test_progress_is_told_by_event() -> None:
    """From one to all."""
    told: list[int] = []
    await simulate(MemoryStore(), recording(*TALK), POLICY, on_progress=told.append)
    assert told == [1, 2, 3, 4, 5]


async def test_the_dump_has_the_documented_keys() -> None:
    """The stable shape of the command's JSON."""
    run = await simulate(MemoryStore(), recording(*TALK), POLICY)
    assert list(run.dump())[:8] == [
        "id",
        "renders",
        "compactions",
        "hides",
        "orphans",
        "uncovered",
        "no_progress",
        "over_limit",
    ]
    assert run.dump()["typed_errors"] == 0


async def test_an_empty_recording_is_an_empty_run() -> None:
    """Nothing to render."""
    run = await simulate(MemoryStore(), recording(), POLICY)
    assert (run.renders, run.compactions, run.uncovered) == (0, 0, 0)


async def test_unpaired_counts_what_the_provider_would_refuse() -> None:
    """A sound context has none, dead and orphan calls included."""
    things = (
        prompt(turn_id="turn_1"),
        call("dead", turn_id="turn_1", response_id="m1"),
        answer(turn_id="turn_1", response_id="m2"),
        result("lost", turn_id="turn_1"),
        prompt(turn_id="turn_2"),
    )
    store = MemoryStore()
    run = await simulate(store, recording(*things), POLICY)
    context = await (await Timeline.open(store, run.id)).render(record=False)
    assert (run.orphans, unpaired(context)) == (0, 0)


async def test_what_a_simulation_takes_today_is_no_duration_of_its_log() -> None:
    """Its times are the recording's alone."""
    store = MemoryStore()
    run = await simulate(store, long_session(), POLICY, summarizer=Scribe())
    compactions = await payloads_of(store, "compaction.completed", run.id)
    assert compactions
    assert {(done.duration, done.written_by.duration) for done in compactions} == {(None, None)}
