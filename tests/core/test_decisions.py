"""What the application decides by path: hide, reveal, pin, unpin (design, section 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from tests.scenes import AT, COUNTER, Scribe, after, exchange, log_of, opened, payloads_of, prompt, small_policy, turn
from timeline import Timeline, open_store
from timeline.errors import BlockNotFound, BlockProtected, InvalidBlock
from timeline.events import ModelCalled, event_id
from timeline.policy.model import Hiding
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.ports import EventStore

POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=400, hiding=Hiding(intact=1))
RESULT = "tc:turn_1.a.result"


async def begun(store: EventStore) -> Timeline:
    """Return a conversation with a large result."""
    timeline = await opened(store, policy=POLICY, summarizer=Scribe())
    await timeline.append(prompt(), *exchange("a", 1_000), *turn())
    return timeline


def state_of(timeline: Timeline, path: str) -> str:
    """Return the state of a live block."""
    return next(item.state for item in timeline.window.items if item.block.path == path)


async def test_a_hidden_block_is_sent_as_its_replacement_and_read_in_full(tmp_path: Path) -> None:
    """In this process and the next one."""
    async with open_store(str(tmp_path / "a.db")) as store:
        timeline = await begun(store)
        await timeline.hide(RESULT, now=AT)
    async with open_store(str(tmp_path / "a.db")) as store:
        timeline = await opened(store, policy=POLICY)
        context = await timeline.render(now=AT)
        [entry] = [e for e in context.neutral.entries if e.path == RESULT]
        assert entry.text == "[run(): 1000 tokens, ok, hidden] @4"
        assert context.account.by_category["hidden"] == COUNTER.count(entry.text)
        assert (await timeline.read(RESULT)).text == "abc " * 1_000
        assert (await timeline.verify()).ok


async def test_a_decision_is_one_event_with_its_time() -> None:
    """The log says who hid it: the application."""
    store = MemoryStore()
    timeline = await begun(store)
    await timeline.hide(RESULT, now=after(7))
    event = (await log_of(store))[-1]
    [hidden] = await payloads_of(store, "blocks.hidden")
    assert (event.type, event.at, hidden.reason) == ("blocks.hidden", after(7), "manual")


async def test_the_policys_cap_holds_for_what_is_hidden_by_hand() -> None:
    """Without hiding in the policy, the default one."""
    long = {"command": "make " + "part " * 90}
    for hiding, most in ((Hiding(replacement_tokens=30), 30), (None, 60)):
        policy = POLICY.model_copy(update={"hiding": hiding})
        timeline = await opened(MemoryStore(), policy=policy)
        await timeline.append(prompt(), *exchange("a", 1_000, name="bash", arguments=long), *turn())
        await timeline.hide(RESULT, now=AT)
        await timeline.hide("tc:turn_1.a.call", now=AT)
        assert most - 5 <= timeline.window.items[1].shown_tokens <= most
        assert timeline.window.items[2].shown_tokens <= most


async def test_an_omitted_group_is_not_sent_and_comes_back_whole() -> None:
    """Call and result together; no interrupted call is left behind."""
    timeline = await begun(MemoryStore())
    await timeline.hide(RESULT, mode="omit", now=AT)
    context = await timeline.render(now=AT)
    assert not any(entry.path.startswith("tc:") for entry in context.neutral.entries)
    assert "interrupted" not in str(context.to_anthropic())
    await timeline.reveal("tc:turn_1.a.call", now=AT)
    assert state_of(timeline, RESULT) == state_of(timeline, "tc:turn_1.a.call") == "visible"
    assert (await timeline.verify()).ok


async def test_what_was_revealed_is_not_hidden_by_itself_any_more() -> None:
    """Not by the clock; only by hand again."""
    timeline = await opened(MemoryStore(), policy=POLICY)
    await timeline.append(
        prompt(), *exchange("a", 500, response_id="a"), *exchange("b", 500, response_id="b"), prompt()
    )
    await timeline.decide([ModelCalled()], at=AT, ids=[event_id(AT)])
    await timeline.render(now=after(400))
    assert state_of(timeline, RESULT) == "hidden"
    await timeline.reveal(RESULT, now=after(400))
    await timeline.render(now=after(4_000))
    assert state_of(timeline, RESULT) == "visible"
    await timeline.hide(RESULT, now=after(4_000))
    assert state_of(timeline, RESULT) == "hidden"


async def test_a_pinned_group_is_carried_by_a_compaction() -> None:
    """Behind the summary, until it is unpinned."""
    timeline = await begun(MemoryStore())
    await timeline.pin(RESULT, now=AT)
    await timeline.append(*turn(1_500), *turn(1_500), *turn(400))
    await timeline.render(now=AT)
    assert state_of(timeline, RESULT) in {"carried", "hidden"}
    await timeline.unpin(RESULT, now=AT)
    await timeline.append(*turn(1_500), *turn(1_500), *turn(400))
    await timeline.render(now=AT)
    assert RESULT not in {item.block.path for item in timeline.window.items}
    assert (await timeline.verify()).ok


async def test_a_pinned_block_is_not_hidden_by_the_clock() -> None:
    """A pin is stronger than age."""
    timeline = await opened(MemoryStore(), policy=POLICY)
    await timeline.append(
        prompt(), *exchange("a", 500, response_id="a"), *exchange("b", 500, response_id="b"), prompt()
    )
    await timeline.decide([ModelCalled()], at=AT, ids=[event_id(AT)])
    await timeline.pin(RESULT, now=AT)
    assert (await timeline.render(now=after(400))).decisions == ()


@pytest.mark.parametrize("decision", ["hide", "reveal", "pin", "unpin"])
async def test_a_path_that_is_not_there_is_not_found(decision: str) -> None:
    """Nothing is written."""
    store = MemoryStore()
    timeline = await begun(store)
    length = len(await log_of(store))
    with pytest.raises(BlockNotFound) as missing:
        await getattr(timeline, decision)("tc:turn_9.x.result", now=AT)
    assert missing.value.path == "tc:turn_9.x.result"
    assert len(await log_of(store)) == length


@pytest.mark.parametrize("decision", ["hide", "reveal", "pin", "unpin"])
async def test_a_covered_block_is_protected(decision: str) -> None:
    """It is not shown; the error says what would bring it back."""
    timeline = await begun(MemoryStore())
    await timeline.append(*turn(1_500), *turn(400))
    await timeline.compact(now=AT)
    with pytest.raises(BlockProtected, match="a summary covers it") as covered:
        await getattr(timeline, decision)(RESULT, now=AT)
    assert covered.value.path == RESULT


async def test_a_refused_decision_writes_nothing() -> None:
    """The error is all that is left of it."""
    store = MemoryStore()
    timeline = await begun(store)
    length = len(await log_of(store))
    with pytest.raises(BlockProtected):
        await timeline.reveal(RESULT, now=AT)
    with pytest.raises(InvalidBlock):
        await timeline.hide(RESULT, mode="omit", text="x", now=AT)
    assert len(await log_of(store)) == length


async def test_a_decision_is_about_the_log_as_it_is() -> None:
    """A block that another writer appended can be named at once."""
    store = MemoryStore()
    timeline = await begun(store)
    other = await opened(store, policy=POLICY)
    await other.append(prompt(), *exchange("b", 700))
    await timeline.pin("tc:turn_3.b.result", now=AT)
    assert [item.block.path for item in timeline.window.items if item.pinned] == [
        "tc:turn_3.b.call",
        "tc:turn_3.b.result",
    ]


async def test_decisions_of_many_tasks_are_all_made(tmp_path: Path) -> None:
    """Each one on top of the other, appends between them."""
    async with open_store(str(tmp_path / "a.db")) as store:
        timeline = await opened(store, policy=POLICY)
        rounds = [block for n in range(8) for block in exchange(f"r{n}", 50, response_id=f"r{n}")]
        await timeline.append(prompt(), *rounds)
        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(timeline.hide, f"tc:turn_1.r{number}.result")
                group.start_soon(timeline.append, prompt(1))
        assert sum(item.state == "hidden" for item in timeline.window.items) == 8
        assert (await timeline.verify()).ok
