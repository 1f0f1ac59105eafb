"""From a call on: a stored conversation under another policy, limit or clock, and nothing is written."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.portable.test_stored import POLICY, exported, session
from tests.scenes import call, prompt, result
from timeline import Timeline, policies
from timeline.audit.replay import recorded_contexts
from timeline.events import ModelCalled
from timeline.lab.simulate import simulate, simulate_from
from timeline.lab.work import Options, Work, carry_out
from timeline.portable.stored import stored_conversation
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.ports import EventStore


def anthropic_reply(number: int) -> dict[str, Any]:
    """Return a response that calls a tool."""
    called = {"type": "tool_use", "id": f"c{number}", "name": "run", "input": {"n": number}}
    usage = {"input_tokens": 9, "output_tokens": 2}
    return {"id": f"m{number}", "type": "message", "role": "assistant", "model": "m", "content": [called]} | {
        "usage": usage,
        "stop_reason": "tool_use",
    }


async def asked(store: EventStore, rounds: int = 8) -> str:
    """Store a session whose requests are recorded, with a refused call in it, and return its id."""
    timeline = await Timeline.open(store, "asked", policy=policies.balanced(max_tokens=20_000))
    await timeline.append(prompt())
    for n in range(rounds):
        context = await timeline.render(system="S")
        request = context.request("anthropic", model="m", max_tokens=100)
        if n == rounds // 2:
            await timeline.record_model_call(error="500", request=request)
        await timeline.record(anthropic_reply(n), request=request)
        await timeline.append(result(f"c{n}", 700))
    return timeline.id


@pytest.mark.parametrize("number", [1, 5, 9, 15])
async def test_under_the_same_policy_the_same_follows(number: int) -> None:
    """As many contexts are left as calls, and each shows the blocks that it showed before."""
    store = MemoryStore()
    run = await simulate(store, session(), POLICY, system="S")
    stored = await stored_conversation(store, run.id)
    again = await simulate_from(store, stored, POLICY, call=number)
    assert again.renders == 16 - number
    first, second = [(await recorded_contexts(store, id_))[-again.renders :] for id_ in (run.id, again.id)]
    assert [context.at for context in first] == [context.at for context in second]
    assert [context.rendered.system for context in first] == [context.rendered.system for context in second]
    for one, other in zip(first, second, strict=True):
        windows = [
            (await (await Timeline.open(store, id_)).at(context.rendered.version)).window
            for id_, context in ((run.id, one), (again.id, other))
        ]
        assert [i.block.path for i in windows[0].items] == [i.block.path for i in windows[1].items]
        assert [i.state for i in windows[0].items] == [i.state for i in windows[1].items]


async def test_another_policy_decides_from_the_call_on_and_not_before() -> None:
    """What the log decided before stays; only decisions behind the call are counted."""
    store = MemoryStore()
    run = await simulate(store, session(), POLICY)
    stored = await stored_conversation(store, run.id)
    version = stored.before_call(9)
    before = sum(e.type == "compaction.completed" for e in stored.events[:version])
    again = await simulate_from(store, stored, policies.keep_last(max_tokens=100_000), call=9)
    whole = [event.type async for event in store.read(again.id)]
    assert (again.compactions, whole.count("compaction.completed")) == (0, before)
    assert before > 0


async def test_pauses_are_stretched_from_the_call_on() -> None:
    """With none, everything happens at the time of the call."""
    store = MemoryStore()
    run = await simulate(store, session(), POLICY)
    stored = await stored_conversation(store, run.id)
    began = stored.events[stored.before_call(9) - 1].at
    none = await simulate_from(store, stored, POLICY, call=9, pauses=0)
    twice = await simulate_from(store, stored, POLICY, call=9, pauses=2)
    assert {e.at async for e in store.read(none.id) if e.version > stored.before_call(9)} == {began}
    last = [event.at async for event in store.read(run.id)][-1]
    assert [event.at async for event in store.read(twice.id)][-1] - began == 2 * (last - began)
    assert last - began > timedelta(0)


async def test_a_lab_run_from_the_first_call_equals_one_of_the_whole_log(tmp_path: Path) -> None:
    """An empty past changes nothing but that decisions of the log are known."""
    store = MemoryStore()
    run = await simulate(store, session(), POLICY)
    file = str(await exported(store, [run.id], tmp_path))
    whole, first = (
        carry_out(Work(file=file, policy=POLICY, name="p", options=Options(call=call))) for call in (None, 1)
    )
    assert [row.model_dump() for row in whole.runs[0].rows] == [row.model_dump() for row in first.runs[0].rows]


async def test_a_lab_run_from_a_call_numbers_its_rows_on_and_finds_the_cache_warm(tmp_path: Path) -> None:
    """The provider still holds what the call before was sent."""
    store = MemoryStore()
    run = await simulate(store, session(20, 1_500), policies.cut_point(max_tokens=60_000))
    file = str(await exported(store, [run.id], tmp_path))
    options = Options(call=15, price_as="claude-opus-4-5")
    none = policies.keep_last(max_tokens=200_000)
    (found,) = carry_out(Work(file=file, policy=none, name="p", options=options)).runs
    assert [row.number for row in found.rows] == list(range(15, 22))
    assert found.rows[0].read > 0
    assert found.totals.calls == 7


async def test_a_recording_has_no_past_to_begin_behind(tmp_path: Path) -> None:
    """Only a log says what was decided before a call."""
    file = tmp_path / "chat.json"
    file.write_text('[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]')
    outcome = carry_out(Work(file=str(file), policy=POLICY, name="p", options=Options(call=2)))
    assert outcome.failure is not None
    assert "Leave out --call" in outcome.failure.message


@pytest.mark.parametrize("number", [None, 1, 3, 6])
async def test_a_kept_run_of_recorded_requests_is_sound_and_its_calls_answer_its_own_contexts(
    number: int | None,
) -> None:
    """What the source log was sent is not what the run would send."""
    store = MemoryStore()
    stored = await stored_conversation(store, await asked(store))
    if number is None:
        run = await simulate(store, stored.recording, POLICY)
    else:
        run = await simulate_from(store, stored, POLICY, call=number)
    report = await (await Timeline.open(store, run.id)).verify()
    assert (report.ok, report.problems) == (True, ())
    own = [event async for event in store.read(run.id) if event.version > (await store.info(run.id)).base]
    renders = [event.version for event in own if event.type == "context.rendered"]
    called = [event.payload for event in own if isinstance(event.payload, ModelCalled)]
    assert [one.answers for one in called if not one.error] == renders[: len(called)]
    assert [one.answers for one in called if one.error] == [None] * (len(called) - len(renders))
    assert {one.request for one in called} == {None}


async def test_a_call_recorded_before_its_reply_answers_the_context_of_that_reply() -> None:
    """Some frameworks append the messages behind the call."""
    store = MemoryStore()
    timeline = await Timeline.open(store, "c", policy=POLICY)
    await timeline.append(prompt())
    for n in range(3):
        await timeline.render()
        await timeline.record_model_call(model="m", response_id=f"r{n}")
        await timeline.append(call(f"c{n}", response_id=f"r{n}"), result(f"c{n}"))
    run = await simulate(store, (await stored_conversation(store, "c")).recording, POLICY)
    events = [event async for event in store.read(run.id)]
    renders = [event.version for event in events if event.type == "context.rendered"]
    answers = [event.payload.answers for event in events if isinstance(event.payload, ModelCalled)]
    assert answers == renders
    assert len(renders) == run.renders == 3
