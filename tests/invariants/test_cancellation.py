from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING

import anyio
import pytest

from tests.depth import sampled
from tests.invariants.cancelling import Play, Scene, Story, by_scope, by_task, cancel_everywhere, exchange
from tests.invariants.playing import AT
from timeline.blocks import UserPrompt
from timeline.errors import CompactionError
from timeline.store import open_store
from timeline.store.memory import MemoryStore
from timeline.usage import Usage

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.timeline import Timeline


async def nothing(scene: Scene) -> None:
    """Begin with an empty conversation."""
    del scene


async def grown(scene: Scene) -> None:
    """Begin with a conversation that is nearly full."""
    for number in range(3):
        await scene.append(*exchange(number, 200))


async def compacted(scene: Scene) -> None:
    """Begin with one that was compacted."""
    await grown(scene)
    await scene.mine.compact(now=AT)
    await scene.other._log.catch_up()


async def appending(scene: Scene) -> None:
    """Append alone, then together with others on both timelines."""
    await scene.append(*exchange(1, 5))
    async with anyio.create_task_group() as group:
        for timeline in (scene.mine, scene.mine, scene.other, scene.mine):
            group.start_soon(_say, scene, timeline)
    await scene.append(UserPrompt(text="last"), timeline=scene.other)


async def _say(scene: Scene, timeline: Timeline) -> None:
    await scene.append(UserPrompt(text="at once"), timeline=timeline)


async def rendering(scene: Scene) -> None:
    """Render above the trigger, record the call, and render again when the cache is cold."""
    await scene.append(*exchange(4, 250))
    await scene.mine.render(now=AT)
    await scene.mine.record_model_call(Usage(cache_write_5m_tokens=1), now=AT)
    await scene.append(*exchange(5, 60))
    await scene.mine.render(now=AT + timedelta(seconds=400))


async def compacting(scene: Scene) -> None:
    """Compact, and take it back."""
    await scene.mine.compact(now=AT)
    await scene.append(UserPrompt(text="between"))
    await scene.mine.undo_compaction(now=AT)


async def compacting_together(scene: Scene) -> None:
    """Compact through both timelines at once while a third task appends."""
    async with anyio.create_task_group() as group:
        group.start_soon(_compact, scene.mine)
        group.start_soon(_compact, scene.other)
        group.start_soon(_say, scene, scene.mine)


async def _compact(timeline: Timeline) -> None:
    with suppress(CompactionError):
        await timeline.compact(wait=False, now=AT)


async def following_an_undo(scene: Scene) -> None:
    """Take a compaction back, and catch up with it on the other timeline."""
    await scene.mine.undo_compaction(now=AT)
    await scene.append(UserPrompt(text="seen?"), timeline=scene.other)
    await scene.other.render(now=AT)


async def forking(scene: Scene) -> None:
    """Fork twice, go on in the first fork, and compact there."""
    fork = await scene.mine.fork(at=6, conversation="fork", now=AT)
    await fork.append(*exchange(7, 300), now=AT)
    await _compact(fork)
    await scene.mine.fork(now=AT)
    await scene.append(UserPrompt(text="in the parent"))


async def deciding(scene: Scene) -> None:
    """Hide, reveal, pin and unpin by path, and look back."""
    path = "tc:turn_1.c0.result"
    await scene.mine.hide(path, now=AT)
    await scene.other.reveal(path, now=AT)
    await scene.mine.pin(path, now=AT)
    await scene.other.unpin(path, now=AT)
    await scene.mine.hide(path, mode="omit", now=AT)
    await (await scene.mine.at(4)).render(now=AT)


@sampled
@pytest.mark.parametrize(
    ("prepared", "story", "play"),
    [
        (nothing, appending, by_task),
        (nothing, appending, by_scope),
        (grown, rendering, by_task),
        (grown, rendering, by_scope),
        (grown, compacting, by_task),
        (grown, compacting_together, by_task),
        (grown, compacting_together, by_scope),
        (compacted, following_an_undo, by_scope),
        (grown, forking, by_scope),
        (grown, deciding, by_task),
    ],
)
async def test_a_story_can_be_cancelled_at_every_await(prepared: Story, story: Story, play: Play) -> None:
    """Wherever it ends: what was acknowledged is there once, no lease stays behind, all verifies, work goes on."""
    assert await cancel_everywhere(MemoryStore, story, prepared=prepared, play=play) > 10


@sampled
@pytest.mark.parametrize(
    ("prepared", "story", "play"),
    [(nothing, appending, by_scope), (grown, rendering, by_task), (compacted, following_an_undo, by_scope)],
)
async def test_a_story_can_be_cancelled_at_every_await_on_a_file(
    prepared: Story, story: Story, play: Play, tmp_path: Path
) -> None:
    """The same with a database that writes in a thread of its own, where a cancelled append may still go through."""
    numbers = count()
    opening = lambda: open_store(tmp_path / f"{next(numbers)}.db")  # noqa: E731 - one line, used once
    assert await cancel_everywhere(opening, story, prepared=prepared, play=play) > 10
