"""From a call on: a stored conversation under another policy, limit or clock, and nothing is written."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.portable.test_stored import POLICY, exported, session
from timeline import Timeline, policies
from timeline.audit.replay import recorded_contexts
from timeline.lab.simulate import simulate, simulate_from
from timeline.lab.work import Options, Work, carry_out
from timeline.portable.stored import stored_conversation
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path


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
