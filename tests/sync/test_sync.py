"""The blocking face: every public method of the asynchronous one, from any thread, with nothing left behind."""

from __future__ import annotations

import asyncio
import inspect
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from tests.scenes import AT, exchange, prompt, small_policy, turn
from tests.sdks import ANTHROPIC_EVENTS, CHAT_EVENTS, anthropic_message
from timeline import policies, sync
from timeline.agent.recall import RecallTool
from timeline.agent.step_hook import StepHook
from timeline.agent.streaming import StreamRecording
from timeline.blocks import ToolCall, UserPrompt
from timeline.errors import (
    BlockNotFound,
    ConversationNotFound,
    HistoryUnavailable,
    InvalidBlock,
    StoreClosed,
    StoreError,
)
from timeline.events.other_payloads import CompactionFailed
from timeline.ports import EventStore
from timeline.store.sqlite.store import SQLiteStore
from timeline.summarizers import CallableSummarizer
from timeline.timeline import Timeline
from timeline.view import TimelineView
from timeline.wire.refusals import ContextLimit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from timeline.projection.context import RenderedContext

FACES: list[tuple[type, type]] = [
    (sync.Timeline, Timeline),
    (sync.TimelineView, TimelineView),
    (sync.Store, EventStore),
    (sync.RecallTool, RecallTool),
    (sync.StepHook, StepHook),
]
IN_THE_CALLERS_THREAD = {"take", "save", "aclose"}
"""What an iteration or a ``with`` block does by itself."""


def public(cls: type) -> dict[str, Any]:
    """Return the public methods and properties of a class."""
    return {name: member for name, member in inspect.getmembers(cls) if not name.startswith("_")}


@pytest.fixture
def store() -> Iterator[sync.Store]:
    """Yield an open store in memory."""
    with sync.open_store("memory://") as store:
        yield store


@pytest.mark.parametrize(("face", "behind"), FACES, ids=lambda cls: cls.__name__)
def test_no_public_method_is_missing(face: type, behind: type) -> None:
    """Whatever is added to a class is added here in one line: ``name = blocking(Class.name)``."""
    missing = public(behind).keys() - public(face).keys() - IN_THE_CALLERS_THREAD
    assert not missing, f"add to timeline/sync/__init__.py, class {face.__name__}: {sorted(missing)}"


@pytest.mark.parametrize(("face", "behind"), FACES, ids=lambda cls: cls.__name__)
def test_signatures_and_docstrings_are_those_of_the_methods_behind(face: type, behind: type) -> None:
    """Help and editors say the same of both; none of the blocking ones is to be awaited."""
    for name, member in public(face).items():
        if not inspect.isfunction(member) or name not in public(behind):
            continue
        assert inspect.signature(member) == inspect.signature(public(behind)[name]), name
        assert member.__doc__ == public(behind)[name].__doc__, name
        assert not inspect.iscoroutinefunction(member), name
        assert not inspect.isasyncgenfunction(member), name


def test_a_recording_has_what_a_stream_recording_has() -> None:
    """Iterated over and entered like it, without await."""
    assert public(StreamRecording).keys() - IN_THE_CALLERS_THREAD <= public(sync.Recording).keys()


def test_a_conversation_without_await(tmp_path: Path) -> None:
    """Append, render, compact, read, verify, look through the store: all as ordinary calls."""
    with sync.open_store(tmp_path / "agent.db") as store:
        timeline = sync.Timeline.open(store, "c", policy=small_policy(max_tokens=3_000))
        timeline.append(prompt(50))
        for number in range(30):
            timeline.append(*exchange(f"c{number}", 100))
        assert timeline.render(system="You help.", now=AT).decisions
        assert timeline.read("tc:turn_1.c1.result").call_id == "c1"
        assert timeline.verify().ok
        assert (timeline.id, timeline.policy.max_tokens, timeline.counter.name) == ("c", 3_000, "chars4")
        assert timeline.window.version == timeline.version
    with sync.open_store(tmp_path / "agent.db", readonly=True) as store:
        assert [info.id for info in store.conversations()] == ["c"]
        assert sum(event.type == "block.appended" for event in store.read("c")) == 61


def test_errors_come_through_as_they_are(store: sync.Store) -> None:
    """The one error tree, with its facts."""
    timeline = sync.Timeline.open(store, "c")
    with pytest.raises(BlockNotFound) as caught:
        timeline.read("ar:turn_9.user.prompt")
    assert caught.value.path == "ar:turn_9.user.prompt"
    with pytest.raises(ConversationNotFound):
        sync.Timeline.open(store, "other", create=False)
    with pytest.raises(InvalidBlock):
        timeline.append({"type": "user.prompt", "text": 1})
    with pytest.raises(StoreError), sync.open_store("mongodb://x"):
        pass


def test_leaving_ends_the_loop_and_its_thread(tmp_path: Path) -> None:
    """After an error in the block, too; what is called afterwards says that the store is closed."""
    before = set(threading.enumerate())
    with suppress(ZeroDivisionError), sync.open_store(tmp_path / "agent.db") as store:
        timeline = sync.Timeline.open(store, "c")
        events = store.read("c")
        assert next(events).version == 1
        raise ZeroDivisionError
    for thread in set(threading.enumerate()) - before:  # one that was told to end may still be at its last steps
        thread.join(10)
    assert set(threading.enumerate()) <= before
    for call in (lambda: timeline.append(prompt()), lambda: timeline.window, lambda: list(store.search("x"))):
        with pytest.raises(StoreClosed, match=r"timeline\.sync is closed"):
            call()
    with pytest.raises(StoreClosed), timeline.run():
        pass
    events.close()  # type: ignore[attr-defined]  # an iterator that was left half-way is closed in silence


@pytest.mark.parametrize("end", ["", "os.fork() or sys.exit()"])
def test_a_program_that_never_leaves_the_block_exits(tmp_path: Path, end: str) -> None:
    """A store for the life of a program, with an iteration left half way: nothing waits for the loop at the end."""
    script = f"""
import os, sys
from timeline import sync

opened = sync.open_store(sys.argv[1])
store = opened.__enter__()
sync.Timeline.open(store, "c").append({{"type": "user.prompt", "text": "one"}})
begun = store.read("c", page=1)
print(next(begun).version, flush=True)
{end}
"""
    quiet = "ignore::DeprecationWarning:__main__"  # from Python 3.12 on, of any fork beside a thread
    done = subprocess.run(
        [sys.executable, "-W", quiet, "-c", script, str(tmp_path / "agent.db")],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    with sync.open_store(tmp_path / "agent.db") as store:
        assert store.info("c").version == 2


def test_a_store_that_was_closed_inside_says_so(store: sync.Store) -> None:
    """The asynchronous store's own error, as long as its loop runs."""
    timeline = sync.Timeline.open(store, "c")
    store.aclose()
    with pytest.raises(StoreClosed):
        timeline.append(prompt())


def test_threads_may_share_one_conversation(tmp_path: Path) -> None:
    """Every append of every thread is in the log once."""
    with sync.open_store(tmp_path / "agent.db") as store:
        timeline = sync.Timeline.open(store, "c", policy=policies.cut_point())
        with ThreadPoolExecutor(8) as threads:
            texts = [f"{n}" for n in range(80)]
            list(threads.map(lambda text: timeline.append(UserPrompt(text=text)), texts))
        assert sorted(item.block.text for item in timeline.window.items) == sorted(texts)
        assert timeline.verify().ok


async def test_inside_a_running_loop_nothing_waits_for_ever(tmp_path: Path) -> None:
    """It blocks that loop for the time of the call, as any ordinary function does."""
    with sync.open_store(tmp_path / "agent.db") as store:
        timeline = sync.Timeline.open(store, "c")
        timeline.append(prompt())
        assert len(timeline.render().blocks) == 1


def test_a_fork_and_a_past_moment_block_too(store: sync.Store) -> None:
    """What is given back is a blocking face as well."""
    timeline = sync.Timeline.open(store, "c")
    timeline.append(prompt(text="One."))
    branch, past = timeline.fork(conversation="d"), timeline.at(timeline.version)
    branch.append(prompt(text="Two."))
    timeline.hide("ar:turn_1.user.prompt")
    assert [item.block.text for item in branch.window.items] == ["One.", "Two."]
    assert past.render().blocks[0].state == "visible"
    assert timeline.render().blocks[0].state == "hidden"


def test_an_iteration_may_be_left_half_way(store: sync.Store) -> None:
    """The store stays usable."""
    timeline = sync.Timeline.open(store, "c")
    timeline.append(*(prompt() for _ in range(5)))
    assert [event.version for event, _ in zip(store.read("c", page=2), range(3), strict=False)] == [1, 2, 3]
    assert len(list(store.read_all())) == 6


def test_methods_that_one_kind_of_store_has_are_there(tmp_path: Path) -> None:
    """A store's own coroutines and iterators block too; what it has not is an attribute error."""

    class Special(SQLiteStore):
        async def size(self, more: int) -> int:
            return self.file.stat().st_size + more

        async def names(self) -> Any:
            async for info in self.conversations():
                yield info.id

    with sync.open_store(tmp_path / "agent.db") as store:
        sync.Timeline.open(store, "c")
        store._inner.__class__ = Special
        assert store.size(1) > 1
        assert list(store.names()) == ["c"]
        with pytest.raises(AttributeError, match="nonsense"):
            store.nonsense()


def test_an_ordinary_function_calls_the_model(store: sync.Store) -> None:
    """It may use the conversation itself, and is called again with a smaller context."""
    timeline = sync.Timeline.open(store, "c", policy=small_policy(max_tokens=8_000))
    timeline.append(prompt(50))
    for number in range(40):
        timeline.append(*exchange(f"c{number}", 100))
    seen: list[int] = []

    def call(context: RenderedContext) -> str:
        seen.append(context.account.sent)
        if len(seen) == 1:
            raise MemoryError
        return timeline.read("tc:turn_1.c0.result").path

    def refused(error: BaseException) -> ContextLimit | None:
        return ContextLimit() if isinstance(error, MemoryError) else None

    assert timeline.retry_with_compaction(call, refused=refused) == "tc:turn_1.c0.result"
    assert seen[1] <= 0.7 * seen[0]


def test_replies_and_streams_are_recorded(store: sync.Store) -> None:
    """A stream is read in the caller's thread; one that breaks is recorded as far as it came."""
    timeline = sync.Timeline.open(store, "c")
    seen: list[Any] = []
    blocks = timeline.record_stream(ANTHROPIC_EVENTS, on_event=seen.append)
    assert timeline.record(anthropic_message()) == blocks
    assert seen == ANTHROPIC_EVENTS
    with timeline.recording(CHAT_EVENTS) as recording:
        for event in recording:
            if event == CHAT_EVENTS[1]:
                break
    assert [block.meta for block in recording.blocks] == [{"interrupted": True}]
    with suppress(ZeroDivisionError), timeline.recording(CHAT_EVENTS[:3]) as broken:
        next(broken)
        next(broken)
        raise ZeroDivisionError
    assert [block.text for block in broken.blocks] == ["I look "]


def test_the_recall_tool_answers(store: sync.Store) -> None:
    """Schema and name are plain attributes."""
    timeline = sync.Timeline.open(store, "c")
    timeline.append(prompt(text="Hello."))
    tool = timeline.recall_tool("openai_chat", max_tokens=500)
    assert (tool.name, tool.max_tokens, tool.schema["type"]) == ("recall", 500, "function")
    asked: Any = {"path": "ar:turn_1.user.prompt"}
    assert tool.handle(asked).endswith("Hello.")
    assert tool.answer(ToolCall(call_id="r", name="recall", arguments=asked)).text == tool.handle(asked)


def test_an_agent_loop_without_await(store: sync.Store) -> None:
    """Prepare and finish steps, end a run, ask for the state: all as ordinary calls."""
    timeline = sync.Timeline.open(store, "c", policy=policies.prune_then_summarize(max_tokens=20_000))
    hook = timeline.step_hook("anthropic", system="You code.")
    with timeline.run():
        [message] = hook.prepare_step(messages=[{"role": "user", "content": "hi"}])["messages"]
        assert message["role"] == "user"
        hook.on_step_finish(anthropic_message())
    assert hook.context is not None
    assert timeline.tools_in_use() == ("bash",)
    assert timeline.still_used(["bash", "other"]) == ["bash"]
    assert timeline.compaction_state(now=AT).count == 0
    assert timeline.end_run() == []
    cut = anthropic_message() | {"id": "msg_2", "stop_reason": "max_tokens"}
    assert timeline.after_length_stop(cut).exit == "max_tokens"
    timeline.use_policy(small_policy())
    assert timeline.policy == small_policy()


def test_a_store_is_scavenged_without_a_loop(store: sync.Store) -> None:
    """As with `await`: a rehearsal, then the real run, then a typed error for what is gone."""
    timeline = sync.Timeline.open(store, "cards", policy=policies.cut_point(max_tokens=4_000))
    for number in range(12):
        timeline.append({"type": "user.prompt", "text": f"Write card {number}. " * 60})
        timeline.render()
    store.set_retention("window")
    would_go = sync.rehearse(store)
    assert would_go.events > 0
    assert sync.scavenge(store, ["cards"]) == would_go
    assert sum(store.scavenged("cards").values()) == would_go.events
    with pytest.raises(HistoryUnavailable, match="scavenge"):
        timeline.read("ar:turn_1.user.prompt")


def test_an_interrupt_ends_the_call_that_it_interrupts(store: sync.Store) -> None:
    """The compaction went on behind it, and held up the next one until its model had answered."""
    asked: list[str] = []

    async def model(prompt: str) -> str:
        asked.append(prompt)
        if len(asked) == 1:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            await asyncio.sleep(30)
        return "## Summary"

    timeline = sync.Timeline.open(store, "c", policy=small_policy(), summarizer=CallableSummarizer(model))
    timeline.append(*turn(1_500), *turn(1_500), *turn(100))
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        timeline.compact()
    [taken] = timeline.compact()
    assert (taken.kind, time.monotonic() - began < 20) == ("compacted", True)
    [failed] = store.read("c", types=["compaction.failed"])
    assert isinstance(failed.payload, CompactionFailed)
    assert failed.payload.reason == "cancelled"
