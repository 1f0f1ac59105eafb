"""Many writers: appends that wait together, two processes on one file, and compactions all the while."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.scenes import AT, opened, prompt, small_policy, turn
from timeline.blocks import UserPrompt
from timeline.errors import PathTaken, TimelineError
from timeline.events import NewEvent, appended_block, event_id
from timeline.events.other_payloads import HookFailed
from timeline.store.memory import MemoryStore
from timeline.store.sqlite.store import SQLiteStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from timeline.ports import Appended

TASKS = 64
MANY = 1_000
"""Appends that never pause: while a compaction is planned in a thread, some hundred come before its turn."""

WRITER = """
import asyncio, json, sys
from timeline import Timeline, open_store
from timeline.blocks import UserPrompt
from timeline import policies

async def main(db, name, tasks, each):
    async with open_store(db) as store:
        timeline = await Timeline.open(store, "busy", policy=policies.cut_point(counter="chars4"))
        acknowledged = []
        async def write(task):
            for n in range(each):
                (block,) = await timeline.append(UserPrompt(text=f"{name} {task} {n} " + "word " * 40))
                acknowledged.append([block.path, block.text.split(" word")[0]])
        await asyncio.gather(*(write(task) for task in range(tasks)))
        print(json.dumps(acknowledged))

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
"""


class Counting(MemoryStore):
    """A store that yields before it appends, as one on a disk does, and counts its appends."""

    appends = 0

    async def append(self, conversation: str, events: Sequence[NewEvent], **rest: Any) -> Appended:
        """Append as ever, a moment later."""
        await anyio.lowlevel.checkpoint()
        self.appends += 1
        return await super().append(conversation, events, **rest)


async def test_appends_that_wait_for_one_another_are_written_together() -> None:
    """Sixty-four appends at once are a few transactions; each caller gets its own block back, in the order asked."""
    store = Counting()
    timeline = await opened(store)
    before = store.appends
    got = await asyncio.gather(*(timeline.append(UserPrompt(text=f"{n}"), now=AT) for n in range(TASKS)))
    assert [block.text for [block] in got] == [f"{n}" for n in range(TASKS)]
    assert store.appends - before <= 3
    assert [item.block.text for item in timeline.window.items] == [f"{n}" for n in range(TASKS)]


async def test_one_refused_append_takes_nothing_of_its_company_with_it() -> None:
    """Of appends that wait together, the one whose path is in use is refused; all others are stored."""
    timeline = await opened(Counting())
    await timeline.append(prompt(path="ar:mine.user.prompt", turn_id="mine"), now=AT)
    asked = [UserPrompt(text=f"{n}") for n in range(5)]
    asked[2] = UserPrompt(text="2", path="ar:mine.user.prompt")
    got = await asyncio.gather(*(timeline.append(block, now=AT) for block in asked), return_exceptions=True)
    assert [type(answer) for answer in got] == [list, list, PathTaken, list, list]
    assert [item.block.text for item in timeline.window.items[1:]] == ["0", "1", "3", "4"]


async def test_a_cancelled_append_leaves_its_company_alone() -> None:
    """The append that writes for all may be cancelled, or one that waits: the others are stored all the same."""
    timeline = await opened(Counting())
    tasks = [asyncio.create_task(timeline.append(UserPrompt(text=f"{n}"), now=AT)) for n in range(6)]
    await anyio.lowlevel.checkpoint()
    tasks[1].cancel()
    tasks[3].cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    stored = [item.block.text for item in timeline.window.items]
    acknowledged = [answer[0].text for answer in done if isinstance(answer, list)]
    assert acknowledged == ["0", "2", "4", "5"]
    assert [text for text in stored if text in acknowledged] == acknowledged
    assert len(set(stored)) == len(stored)
    assert (await timeline.verify()).ok


class Held(MemoryStore):
    """A store that has appends of several events, but answers them only when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.may_answer = asyncio.Event(), asyncio.Event()

    async def append(self, conversation: str, events: Sequence[NewEvent], **rest: Any) -> Appended:
        """Append as ever, and answer later."""
        await anyio.lowlevel.checkpoint()
        appended = await super().append(conversation, events, **rest)
        if len(events) > 1:
            self.written.set()
            await self.may_answer.wait()
        return appended


async def test_a_task_that_is_cancelled_while_it_writes_for_all_leaves_their_answers_alone() -> None:
    """A cancelled task, unlike a cancelled scope, reaches into shields; the company still gets its blocks, once."""
    store = Held()
    timeline = await opened(store)
    tasks = [asyncio.create_task(timeline.append(UserPrompt(text=f"{n}"), now=AT)) for n in range(5)]
    await store.written.wait()  # the first one has the lock, and writes for all
    tasks[0].cancel()
    await anyio.lowlevel.checkpoint()
    store.may_answer.set()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(done[0], asyncio.CancelledError)
    assert [answer[0].text for answer in done if isinstance(answer, list)] == ["1", "2", "3", "4"]
    assert [item.block.text for item in timeline.window.items] == ["0", "1", "2", "3", "4"]


class Contested(MemoryStore):
    """A store in which another writer is faster, so many times."""

    faster = 0

    async def append(self, conversation: str, events: Sequence[NewEvent], **rest: Any) -> Appended:
        """Let the other writer append first."""
        if self.faster:
            other = HookFailed(hook="other", error="")
            self.faster -= 1
            await super().append(conversation, [NewEvent(id=event_id(AT), at=AT, payload=other)])
        return await super().append(conversation, events, **rest)


async def test_an_append_follows_a_busy_writer_for_a_while() -> None:
    """Another process that never pauses wins many races in a row; that is no reason to give up at once."""
    store = Contested()
    timeline = await opened(store)
    store.faster = 100
    await timeline.append(prompt(), now=AT)
    assert timeline.version == 102


DECISIONS: dict[str, Callable[[Timeline, str], Awaitable[object]]] = {
    "compact": lambda timeline, _: timeline.compact(now=AT),
    "hide": lambda timeline, path: timeline.hide(path, now=AT),
    "pin": lambda timeline, path: timeline.pin(path, now=AT),
    "undo": lambda timeline, _: timeline.undo_compaction(now=AT),
}


@pytest.mark.parametrize("kind", DECISIONS)
async def test_a_decision_has_its_turn_among_appends_that_never_pause(kind: str) -> None:
    """Who appends in a loop, one task or four, holds up nobody's decision for more than an append."""
    store = Counting()
    timeline = await opened(store, policy=small_policy(max_tokens=4_000, keep_recent_tokens=400))
    await timeline.append(*turn(1_500), *turn(400), now=AT)
    if kind == "undo":
        await timeline.compact(now=AT)
    path = timeline.window.items[-1].block.path
    store.appends = 0

    async def append_on() -> None:
        while store.appends < MANY:
            await timeline.append(prompt(), now=AT)

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(append_on)
        await anyio.lowlevel.checkpoint()
        await DECISIONS[kind](timeline, path)
        assert store.appends < MANY
    assert (await timeline.verify()).ok


@pytest.mark.timeout(120)
async def test_two_processes_append_while_a_third_compacts(tmp_path: Path) -> None:
    """Each acknowledged block is in the log once, versions have no gap, and every block is covered or in view."""
    db, each = tmp_path / "busy.db", 3
    store = await SQLiteStore.open(db)
    policy = small_policy(max_tokens=20_000)
    timeline = await Timeline.open(store, "busy", policy=policy, now=AT)
    writers = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", WRITER, str(db), name, str(TASKS), str(each), stdout=asyncio.subprocess.PIPE
        )
        for name in ("left", "right")
    ]
    outputs = [asyncio.create_task(writer.communicate()) for writer in writers]
    compactions = 0
    while not all(output.done() for output in outputs):
        try:
            compactions += bool(await timeline.compact())
        except TimelineError:  # nothing worth covering yet
            await anyio.sleep(0.02)
    acknowledged = [row for output in outputs for row in json.loads((await output)[0])]
    report = await timeline.verify()
    events = [event async for event in store.read("busy")]
    await store.aclose()
    assert compactions > 0
    assert [event.version for event in events] == list(range(1, len(events) + 1))
    appended = [appended_block(event.payload) for event in events if event.type == "block.appended"]
    written = sorted((block.path, block.text.split(" word")[0]) for block in appended if block is not None)
    assert written == sorted((path, text) for path, text in acknowledged)
    assert len(written) == 2 * TASKS * each
    assert report.ok, report.problems
