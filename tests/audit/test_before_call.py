from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.portable.test_stored import POLICY, session
from tests.scenes import answer, prompt
from timeline import Timeline, policies
from timeline.audit.before_call import version_before_call
from timeline.errors import CallNotFound, HistoryUnavailable, InvalidArgument
from timeline.lab.simulate import simulate
from timeline.portable.stored import stored_conversation
from timeline.retention import scavenge
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline.ports import EventStore


def reply(text: str, number: int) -> dict[str, Any]:
    """Return a chat completion."""
    return {"id": f"r{number}", "choices": [{"message": {"role": "assistant", "content": text}}]}


async def simulated(store: EventStore) -> str:
    """Simulate a session that is compacted several times, and return its id."""
    return (await simulate(store, session(), POLICY)).id


async def test_the_store_and_the_whole_log_give_the_same_version_for_every_call() -> None:
    """One reads what lies between two calls, the other has it all."""
    store = MemoryStore()
    id_ = await simulated(store)
    stored = await stored_conversation(store, id_)
    for number in range(1, 16):
        assert await version_before_call(store, id_, number) == stored.before_call(number)


async def test_a_fork_from_a_call_renders_the_context_that_the_call_was_sent() -> None:
    """Under the same policy at the same time the same decisions follow, and the same blocks are shown."""
    store = MemoryStore()
    id_ = await simulated(store)
    timeline = await Timeline.open(store, id_)
    recorded = [e async for e in store.read(id_, types=["context.rendered"])]
    for number in (1, 5, 9, 15):
        branch = await timeline.fork(call=number, conversation=f"from {number}")
        context = await branch.render(now=recorded[number - 1].at)
        past = await timeline.at(recorded[number - 1].version - 1)
        assert {block.path: block.state for block in context.blocks} == {
            item.block.path: item.state for item in past.window.items
        }


async def test_a_refused_call_and_its_retry_begin_at_the_same_version() -> None:
    """Both were asked with the same past."""
    timeline = await Timeline.open(MemoryStore(), "c", policy=POLICY)
    await timeline.append(prompt())
    await timeline.render()
    await timeline.record_model_call(error="500")
    await timeline.record(reply("Yes.", 1))
    versions = [await version_before_call(timeline._store, "c", number) for number in (1, 2)]
    assert versions == [2, 2]


async def test_a_fork_may_have_a_policy_of_its_own_from_its_beginning() -> None:
    """The conversation that it came from keeps its own."""
    store = MemoryStore()
    id_ = await simulated(store)
    timeline = await Timeline.open(store, id_)
    branch = await timeline.fork(call=5, policy=policies.keep_last(max_tokens=50_000))
    again = await Timeline.open(store, branch.id)
    assert again.policy == policies.keep_last(max_tokens=50_000)
    assert (await Timeline.open(store, id_)).policy == POLICY


async def test_a_fork_begins_at_a_version_or_at_a_call_not_at_both() -> None:
    """Both name one place."""
    store = MemoryStore()
    timeline = await Timeline.open(store, await simulated(store))
    with pytest.raises(InvalidArgument, match="give one of them"):
        await timeline.fork(at=3, call=2)
    for unknown in (0, 99):
        with pytest.raises(CallNotFound):
            await timeline.fork(call=unknown)


@pytest.mark.parametrize("rendered", [True, False])
async def test_a_reply_recorded_behind_its_call_is_part_of_what_the_next_call_answers(rendered: bool) -> None:  # noqa: FBT001
    """Some frameworks append the messages behind the call, and ask again right away."""
    store = MemoryStore()
    timeline = await Timeline.open(store, "c", policy=POLICY)
    await timeline.append(prompt())
    for n in range(3):
        if rendered:
            await timeline.render()
        await timeline.record_model_call(model="m", response_id=f"r{n}")
        await timeline.append(answer(text=f"part {n}", response_id=f"r{n}"))
    stored = await stored_conversation(store, "c")
    for number in (1, 2, 3):
        branch = await timeline.fork(call=number)
        told = [item.block.text for item in branch.window.items[1:]]
        assert told == [f"part {n}" for n in range(number - 1)]
        assert stored.before_call(number) == await version_before_call(store, "c", number)


async def test_a_call_whose_past_was_scavenged_begins_nowhere() -> None:
    """Its prompt is still there, but a fork from there would be one from the first call."""
    store = MemoryStore()
    id_ = await simulated(store)
    whole = [await version_before_call(store, id_, number) for number in range(1, 16)]
    timeline = await Timeline.open(store, id_)
    await timeline.set_retention("window")
    await scavenge(store)
    first = (await store.info(id_)).first_version
    left = [call.number async for call in timeline.calls()]
    gone = [number for number in left if whole[number - 1] < first]
    assert 0 < len(gone) < len(left)
    for number in gone:
        with pytest.raises(HistoryUnavailable, match=f"Version {whole[number - 1]} .* removed by `timeline scavenge`"):
            await timeline.fork(call=number)
    there = [number for number in left if number not in gone]
    assert [await version_before_call(store, id_, n) for n in there] == [whole[n - 1] for n in there]
    assert (await store.info((await timeline.fork(call=15)).id)).base == whole[14]
