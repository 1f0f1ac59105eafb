"""What nobody holds any more is gone at once: no conversation, and no error, waits for the garbage collector.

A window holds the texts of its blocks. One that is part of a cycle stays until Python looks through all objects of the
process, which a process with many objects seldom does.
"""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.lab.talks import work
from tests.scenes import AT, Scribe, answer, exchange, prompt, small_policy, turn
from timeline import Timeline, open_store, policies
from timeline.errors import CompactionRefused, PathTaken, SummarizerFailed, VersionConflict
from timeline.events import BlockAppended, NewEvent, event_id, new_event
from timeline.lab.facts.needs import needs_of
from timeline.lab.prices import packaged_prices
from timeline.lab.replay import Run, replay
from timeline.lab.sizes import measure
from timeline.policy.files import find_policy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    from timeline.ports import EventStore, Summary, SummaryRequest

POLICIES: Final = ("none", "balanced", "pi", "gemini-cli", "cut_point", "prune_then_summarize")
"""Between them they hide, leave out of new results, compact, and are refused."""


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    """Let nothing be collected while a test runs."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[EventStore]:
    """A file, which holds no blocks as objects."""
    async with await open_store(tmp_path / "a.db") as store:
        yield store


class Batch(list[NewEvent]):
    """Events of an append that can be watched."""


class Failing:
    """A summarizer that fails, with an error of its own each time."""

    name: str = "failing"

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Fail."""
        raise SummarizerFailed([f"nothing about {len(request.blocks)} blocks"])


async def ended(work: Awaitable[Any]) -> type[Exception]:
    """Return the type of the error that something ends with. `pytest.raises` would keep the error itself."""
    try:
        await work
    except Exception as error:  # noqa: BLE001 - the test looks at its type
        return type(error)
    raise AssertionError("it did not end with an error")


async def gone(held: weakref.ref[Any]) -> None:
    """Wait until something is gone: the thread that writes may be about to let go of it."""
    for _ in range(500):
        if held() is None:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{held()} is still there")


def left_of(timeline: Timeline) -> Callable[[], int]:
    """Return what says how much of a conversation is still there: its handle, and the blocks of its window."""
    held: list[weakref.ref[Any]] = [weakref.ref(timeline), *(weakref.ref(i.block) for i in timeline.window.items)]
    return lambda: sum(one() is not None for one in held)


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_conversation_that_is_dropped_is_gone(policy: str, store: EventStore) -> None:
    """A server that opens a conversation for each request holds those that are under way."""
    chosen = find_policy(policy, max_tokens=12_000).model_copy(update={"output_reserve": 0, "safety_buffer": 0})
    timeline = await Timeline.open(store, "c", policy=chosen, summarizer=Scribe("Summary."))
    for number in range(12):
        await timeline.append(prompt(200), *exchange(f"k{number}", 400), answer(20))
        await timeline.render(system="You help.")
    left = left_of(timeline)
    assert left() > 1
    del timeline
    assert left() == 0


async def test_a_compaction_that_is_refused_holds_nothing(store: EventStore) -> None:
    """The refusal goes through frames that hold the window."""
    timeline = await Timeline.open(store, "c", policy=small_policy())
    await timeline.append(*turn())
    assert await ended(timeline.compact()) is CompactionRefused
    left = left_of(timeline)
    del timeline
    assert left() == 0


async def test_a_summary_that_failed_holds_nothing(store: EventStore) -> None:
    """The failure goes through frames that hold the request, with every text that was to be summarised."""
    policy = policies.cut_point(max_tokens=20_000).model_copy(update={"on_failure": "unchanged"})
    timeline = await Timeline.open(store, "c", policy=policy, summarizer=Failing())
    for number in range(4):
        await timeline.append(prompt(2_000), *exchange(f"k{number}", 2_000), answer(20))
    assert await ended(timeline.compact()) is SummarizerFailed
    left = left_of(timeline)
    del timeline
    assert left() == 0


async def test_an_append_that_is_refused_holds_nothing(store: EventStore) -> None:
    """So does what the database said about it."""
    timeline = await Timeline.open(store, "c", policy=small_policy())
    [block] = await timeline.append(prompt())
    again = prompt(path=block.path)
    refused = weakref.ref(again)
    assert await ended(timeline.append(again)) is PathTaken
    del again
    await gone(refused)


async def test_an_append_that_came_second_holds_nothing(store: EventStore) -> None:
    """Two writers of one conversation take turns at this."""
    timeline = await Timeline.open(store, "c", policy=small_policy())
    await timeline.append(prompt())
    late = BlockAppended(block=prompt(path="ar:late"), tokens=5, counter="chars4")
    batch = Batch([new_event(event_id(AT), AT, late)])
    refused = weakref.ref(batch)
    assert await ended(store.append("c", batch, expected=1)) is VersionConflict
    del batch
    await gone(refused)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("with_facts", [False, True])
async def test_a_replay_is_gone_when_it_is_over(policy: str, *, with_facts: bool) -> None:
    """A comparison of many policies holds one replay at a time."""
    measured = measure(work(30, pauses={9: 400.0}).recording())
    runs: list[weakref.ref[Run]] = []

    async def lead(run: Run) -> None:
        runs.append(weakref.ref(run))

    needs = needs_of(measured) if with_facts else None
    await replay(measured, find_policy(policy, max_tokens=24_000), packaged_prices().price_of, needs=needs, lead=lead)
    assert [run() for run in runs] == [None]
