"""Long windows are planned, counted and projected off the event loop; short ones where they are."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.scenes import AT, COUNTER
from timeline import policies
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.log.collector import collector_at_rest
from timeline.store.memory import MemoryStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.projection.context import RenderedContext

COLD = AT + timedelta(hours=2)
OUTPUT = "FAILED test_a.py::test_b assert 1 == 2\n" * 20


class WatchedCounter:
    """Counts quarters of characters, and notes which threads asked for it."""

    name = COUNTER.name

    def __init__(self) -> None:
        self.threads: list[int] = []

    def count(self, text: str) -> int:
        """Count a text."""
        self.threads.append(threading.get_ident())
        return COUNTER.count(text)

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Count texts."""
        return [self.count(text) for text in texts]

    def truncate(self, text: str, tokens: int) -> str:
        """Return a prefix."""
        return COUNTER.truncate(text, tokens)


async def long_log(counter: WatchedCounter, rounds: int = 500) -> Timeline:
    """Return a conversation with so many old results, whose cache is cold by `COLD`."""
    policy = policies.cut_point(max_tokens=400_000, counter="chars4")
    timeline = await Timeline.open(MemoryStore(), "c", policy=policy, counter=counter, now=AT)
    await timeline.append(UserPrompt(text="Make the tests pass."), now=AT)
    for first in range(0, rounds, 100):
        blocks = [
            block
            for n in range(first, first + 100)
            for block in (
                ToolCall(call_id=f"c{n}", name="bash", arguments={"command": f"pytest {n}"}, response_id=f"r{n}"),
                ToolResult(call_id=f"c{n}", name="bash", text=f"{n} {OUTPUT}"),
            )
        ]
        await timeline.append(*blocks, now=AT)
    await timeline.render(now=AT)
    return timeline


def shown(context: RenderedContext) -> list[str]:
    """Return what a context shows."""
    return [entry.text for entry in context.neutral.entries]


async def test_a_hide_of_a_long_window_counts_its_replacements_off_the_loop() -> None:
    """The loop's own thread counts a handful of texts: the notice, and the fixed part."""
    counter = WatchedCounter()
    timeline = await long_log(counter)
    counter.threads.clear()
    context = await timeline.render(now=COLD)
    own = counter.threads.count(threading.get_ident())
    assert [taken.kind for taken in context.decisions] == ["hidden"]
    assert own < 10 < len(counter.threads)


async def test_a_compaction_of_a_long_window_plans_and_writes_off_the_loop() -> None:
    """The extractive summary included."""
    counter = WatchedCounter()
    timeline = await long_log(counter)
    counter.threads.clear()
    [taken] = await timeline.compact(now=AT)
    assert taken.kind == "compacted"
    assert counter.threads.count(threading.get_ident()) < 10 < len(counter.threads)
    assert (await timeline.verify()).ok


async def test_the_loop_serves_others_while_a_long_window_is_hidden() -> None:
    """Another task of the loop runs many times before the hide is done."""
    timeline = await long_log(WatchedCounter())
    rendering = asyncio.ensure_future(timeline.render(now=COLD))
    turns = 0
    while not rendering.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 50
    assert (await rendering).decisions


async def test_what_is_appended_while_a_long_window_is_projected_is_shown_by_the_next_render() -> None:
    """A render shows one version, and verifies."""
    timeline = await long_log(WatchedCounter())
    rendering = asyncio.ensure_future(timeline.render(now=COLD))
    await asyncio.sleep(0.001)
    await timeline.append(UserPrompt(text="And now the docs."), now=COLD)
    await rendering
    assert shown(await timeline.render(now=COLD))[-1] == "And now the docs."
    assert (await timeline.verify()).ok


async def test_a_render_that_is_cancelled_on_its_way_leaves_nothing_half_done() -> None:
    """The next one decides the same and shows the same as one of another handle."""
    timeline = await long_log(WatchedCounter())
    for wait in (0.0, 0.001, 0.005, 0.02):
        rendering = asyncio.ensure_future(timeline.render(now=COLD))
        await asyncio.sleep(wait)
        if not rendering.cancel():
            break  # it was quicker
        with pytest.raises(asyncio.CancelledError):
            await rendering
    context = await timeline.render(now=COLD)
    other = await Timeline.open(timeline._store, "c", now=COLD)
    assert shown(context) == shown(await other.render(now=COLD))
    assert (await timeline.verify()).ok


ENGINE = """
import asyncio, threading
import toktok
from timeline.blocks import UserPrompt
from timeline.store.memory import MemoryStore
from timeline.timeline import Timeline

tables = toktok._Tokenizer

def started(*args):
    print(threading.current_thread() is threading.main_thread())
    return tables(*args)

async def main():
    toktok._Tokenizer = started
    timeline = await Timeline.open(MemoryStore(), "c")
    for text in texts:
        await timeline.append(UserPrompt(text=text))

asyncio.run(main())
"""


@pytest.mark.parametrize("texts", ["['a b ' * 50_000]", "['a b ' * 400] * 100"], ids=["long", "many"])
def test_a_tokenizer_starts_off_the_loop(texts: str) -> None:
    """It takes as long as a hundred appends, and other conversations go on meanwhile."""
    ended = subprocess.run(
        [sys.executable, "-c", f"texts = {texts}\n{ENGINE}"], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "False\n"


async def test_dry_runs_under_pressure_write_each_replacement_once() -> None:
    """A loop that records nothing plans the same hides each time; only what is new is counted."""
    counter = WatchedCounter()
    timeline = await long_log(counter)
    counter.threads.clear()
    first = await timeline.render(now=COLD, record=False)
    counted = len(counter.threads)
    again = await timeline.render(now=COLD, record=False)
    assert len(counter.threads) - counted < 20 < counted
    assert shown(first) == shown(again) == shown(await timeline.render(now=COLD))


async def test_the_collector_rests_while_a_long_window_is_worked_on() -> None:
    """It would walk all objects of the process in the midst of it, while the loop waits."""
    thresholds = gc.get_threshold()
    seen: set[int] = set()

    class Looking(WatchedCounter):
        def count(self, text: str) -> int:
            if threading.current_thread() is not threading.main_thread():
                seen.add(gc.get_threshold()[0])
            return super().count(text)

    timeline = await long_log(Looking())
    seen.clear()
    await timeline.compact(now=AT)
    assert 0 in seen  # the summarizer has a thread of its own, in which nothing is changed
    assert gc.get_threshold() == thresholds


def test_what_an_application_sets_while_the_collector_rests_stays() -> None:
    """Its thresholds are its own; one that switched the collector off finds it so."""
    thresholds = gc.get_threshold()
    try:
        with collector_at_rest():
            gc.set_threshold(5_000, 20, 20)
        assert gc.get_threshold() == (5_000, 20, 20)
        gc.disable()
        with collector_at_rest():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
        gc.set_threshold(*thresholds)


def test_the_collector_rests_for_one_piece_of_work_at_a_time() -> None:
    """Pieces that overlap would keep it from working for ever."""
    thresholds = gc.get_threshold()
    first, second = collector_at_rest(), collector_at_rest()
    with first:
        second.__enter__()
        assert gc.get_threshold()[0] == 0
    assert gc.get_threshold() == thresholds
    second.__exit__(None, None, None)
    assert gc.get_threshold() == thresholds


RESTED = """
import gc
from timeline.log.collector import collector_at_rest

begun, frozen = [], FROZEN
if frozen:
    gc.freeze()
before = gc.get_freeze_count()
gc.callbacks.append(lambda phase, info: begun.append(info["generation"]) if phase == "start" else None)
for _ in range(2):
    with collector_at_rest():
        made = [[] for _ in range(50_000)]
    more = [[] for _ in range(100)]
print(bool(begun), gc.get_freeze_count() > before / 2)
"""
"""In a process of its own: this one keeps what collecting the tests made from the collector."""


@pytest.mark.parametrize(("frozen", "told"), [(False, "False False"), (True, "True True")], ids=["plain", "frozen"])
def test_what_was_made_while_the_collector_rested_is_old_afterwards(frozen: bool, told: str) -> None:  # noqa: FBT001 - a parameter
    """A collection of the young objects would walk all of it while every thread waits.

    It does where an application keeps objects from the collector, as a server before it forks: they stay kept.
    """
    code = RESTED.replace("FROZEN", str(frozen))
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == told


LEFT_BEHIND = """
import gc, sys, weakref
from timeline.log.collector import collector_at_rest

class Knot:
    def __init__(self):
        self.own, self.more = self, [[] for _ in range(100)]

alive, size, times = weakref.WeakSet(), int(sys.argv[1]), int(sys.argv[2])
for _ in range(times):
    with collector_at_rest():
        made = [[] for _ in range(size)]
    for _ in range(5):
        alive.add(Knot())
print(len(alive))
"""


@pytest.mark.parametrize(("size", "times"), [(100, 4_000), (5_000, 4_000)], ids=["short", "long"])
def test_what_is_left_between_two_rests_is_collected_however_many_there_are(size: int, times: int) -> None:
    """Making objects old sets Python's counts back: a process with many agents never looked at older garbage again."""
    command = [sys.executable, "-c", LEFT_BEHIND, str(size), str(times)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(ended.stdout) < 5 * times / 2


def test_a_process_without_a_collector_gets_no_collection() -> None:
    """Who switches it off does so for all of the process."""
    code = "import gc; gc.disable()\n" + LEFT_BEHIND
    ended = subprocess.run([sys.executable, "-c", code, "20000", "100"], capture_output=True, text=True, check=True)
    assert int(ended.stdout) == 500


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_process_that_is_forked_meanwhile_collects() -> None:
    """It has no thread that would end the rest."""
    thresholds = gc.get_threshold()
    with collector_at_rest():
        child = os.fork()
        if not child:
            os._exit(0 if gc.get_threshold() == thresholds else 1)
        _, status = os.waitpid(child, 0)
    assert status == 0
