"""`record="overlapped"`: a context is recorded while the model is called, and before its reply is."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.scenes import answer, opened, prompt
from timeline import policies, sync
from timeline.errors import StoreClosed, StoreError
from timeline.store.memory import MemoryStore
from timeline.store.sqlite.store import SQLiteStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from pathlib import Path

REPLY = {
    "id": "chatcmpl-1",
    "model": "gpt-4o",
    "choices": [{"message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
}


class HeldStore(MemoryStore):
    """A store that writes renders only once it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.go, self.refuses = asyncio.Event(), False

    async def append(self, conversation: str, events: Any, **options: Any) -> Any:
        """Append events; a render when its time has come."""
        if any(event.payload.type == "context.rendered" for event in events):
            await self.go.wait()
            if self.refuses:
                raise StoreError("the disk is full")
        return await super().append(conversation, events, **options)


class FullFile(SQLiteStore):
    """A store in a file whose disk has no room for a render."""

    async def append(self, conversation: str, events: Any, **options: Any) -> Any:
        """Append events; a render is refused."""
        if any(event.payload.type == "context.rendered" for event in events):
            raise StoreError("the disk is full")
        return await super().append(conversation, events, **options)


async def types_of(timeline: Timeline) -> list[str]:
    """Return the types of the newest events."""
    return [event.payload.type async for event in timeline._store.read(timeline.id)][1:]


async def test_the_context_comes_before_its_record_and_the_reply_waits_for_it() -> None:
    """The log has them in order, and the call names the context."""
    store = HeldStore()
    timeline = await opened(store)
    await timeline.append(prompt())
    context = await timeline.render(record="overlapped")
    request = context.request("openai_chat", model="gpt-4o")
    assert (context.recorded, request.context, "context.rendered" in await types_of(timeline)) == (None, None, False)
    reply = asyncio.ensure_future(timeline.record(REPLY, request=request))
    await asyncio.sleep(0.01)
    assert not reply.done()
    store.go.set()
    await reply
    assert (await types_of(timeline))[-3:] == ["context.rendered", "block.appended", "model.called"]
    call = await timeline.call(1)
    assert (call.context, call.text) == (request.answers, request.text)
    assert (await timeline.verify()).ok


async def test_an_overlapped_render_returns_the_bytes_of_a_recorded_one() -> None:
    """And is recorded in full, once."""
    one, other = await opened(MemoryStore()), await opened(MemoryStore())
    for timeline in (one, other):
        await timeline.append(prompt(), answer())
    overlapped, recorded = await one.render(record="overlapped"), await other.render()
    assert overlapped.neutral.canonical() == recorded.neutral.canonical()
    again = await one.render(record="overlapped")
    await one.catch_up()
    assert (await types_of(one)).count("context.rendered") == 1
    assert again.answered_as == overlapped.answered_as == recorded.recorded


async def test_a_render_that_decides_is_recorded_before_it_returns() -> None:
    """A decision changes the log, so there is nothing to overlap."""
    timeline = await opened(MemoryStore(), policy=policies.cut_point(max_tokens=3_000))
    for number in range(12):
        await timeline.append(prompt(number + 1, text="Write a card. " * 100), answer())
    context = await timeline.render(record="overlapped")
    assert context.decisions
    assert context.recorded == timeline.version


async def test_what_the_store_refuses_is_raised_by_what_waits_for_it() -> None:
    """Once; the reply is then recorded for itself."""
    store = HeldStore()
    timeline = await opened(store)
    await timeline.append(prompt())
    await timeline.render(record="overlapped")
    store.refuses = True
    store.go.set()
    with pytest.raises(StoreError, match="disk is full"):
        await timeline.record(REPLY)
    await timeline.record(REPLY)
    assert (await types_of(timeline))[-2:] == ["block.appended", "model.called"]


async def test_a_cancelled_wait_leaves_the_record_to_be_written() -> None:
    """The next call waits for it."""
    store = HeldStore()
    timeline = await opened(store)
    await timeline.append(prompt())
    context = await timeline.render(record="overlapped")
    waiting = asyncio.ensure_future(timeline.catch_up())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    store.go.set()
    await timeline.catch_up()
    assert context.answered_as == timeline.version


async def test_closing_the_store_waits_for_the_record() -> None:
    """As for any write that was begun."""
    store = HeldStore()
    timeline = await opened(store)
    await timeline.append(prompt())
    context = await timeline.render(record="overlapped")
    closing = asyncio.ensure_future(store.aclose())
    await asyncio.sleep(0.01)
    assert not closing.done()
    store.go.set()
    await closing
    assert context.answered_as == timeline.version == 3
    assert not store.late_writes


async def test_a_file_that_is_closed_at_once_holds_the_record(tmp_path: Path) -> None:
    """The close comes before the record has begun."""
    file = tmp_path / "agent.db"
    async with await SQLiteStore.open(file) as store:
        timeline = await Timeline.open(store, "c")
        await timeline.append(prompt())
        await timeline.render(record="overlapped")
    async with await SQLiteStore.open(file) as store:
        assert (await types_of(await Timeline.open(store, "c")))[-1] == "context.rendered"


@pytest.mark.parametrize("in_a_file", [True, False])
async def test_closing_the_store_raises_what_kept_the_record_from_being_written(
    tmp_path: Path, *, in_a_file: bool
) -> None:
    """The store is closed all the same, and nothing is left for the event loop to complain of."""
    complaints: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    store = await FullFile.open(tmp_path / "agent.db") if in_a_file else HeldStore()
    if isinstance(store, HeldStore):
        store.go.set()
        store.refuses = True
    timeline = await opened(store)
    await timeline.append(prompt())
    await timeline.render(record="overlapped")
    with pytest.raises(StoreError, match="disk is full"):
        await store.aclose()
    with pytest.raises(StoreClosed):
        await timeline.append(prompt(2))
    del timeline
    gc.collect()
    assert complaints == []


async def test_a_scavenge_can_be_tried_while_a_record_is_late() -> None:
    """It works on a copy of the store, to which nothing is written late."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.append(prompt())
    await timeline.render(record="overlapped")
    assert (await store.rehearse([timeline.id])).removals[timeline.id].events == 0
    assert len(store.late_writes) == 1
    await store.aclose()


def test_the_twin_without_await_overlaps_too() -> None:
    """Its loop writes the record while the program calls the model."""
    with sync.open_store("memory://") as store:
        timeline = sync.Timeline.open(store, "c")
        timeline.append(prompt())
        request = timeline.render(record="overlapped").request("openai_chat", model="gpt-4o")
        timeline.record(REPLY, request=request)
        assert timeline.call(1).text == request.text


KILLED = """
import asyncio, os, sys
from timeline import Timeline, open_store

async def main():
    store = await open_store(sys.argv[1])
    timeline = await Timeline.open(store, "c")
    await timeline.append({"type": "user.prompt", "text": "Build a flashcard app."})
    await timeline.render(record="overlapped")
    if sys.argv[2] == "later":
        await asyncio.sleep(0.2)
    os._exit(9)

asyncio.run(main())
"""


@pytest.mark.parametrize(("when", "recorded"), [("at once", 0), ("later", 1)])
async def test_a_crash_before_the_record_leaves_a_sound_log_without_it(
    tmp_path: Path, when: str, recorded: int
) -> None:
    """The context is not in it, nor anything half done; the next render goes on."""
    file = tmp_path / "agent.db"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(file), when], check=False)  # noqa: ASYNC221
    assert killed.returncode == 9
    store = await SQLiteStore.open(file)
    timeline = await Timeline.open(store, "c")
    assert (await types_of(timeline)).count("context.rendered") == recorded
    assert (await timeline.verify()).ok
    await timeline.render(record="overlapped")
    await timeline.record(REPLY)
    assert (await types_of(timeline))[-3:] == ["context.rendered", "block.appended", "model.called"]
    assert (await timeline.verify()).ok
    await store.aclose()
