from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import given

from tests.invariants.checks import folded
from tests.invariants.places import new_store
from tests.invariants.playing import AT, play, read_log, run, search
from tests.invariants.strategies import LOGS, Step, small
from tests.invariants.watched import Watched
from tests.scenes import first_step
from timeline.blocks import AssistantCompletion, Note, ToolCall, ToolResult, UserPrompt
from timeline.events.encoding import encode_payload
from timeline.planning.account import FixedPart
from timeline.planning.planned import PlannedSteps
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from timeline.blocks import Block


async def _written(steps: list[Step]) -> list[str]:
    """Play steps with a render after each; return what the log then holds, without ids and times of writing."""
    store = await new_store()
    watched = Watched(store, await Timeline.open(store, "c", policy=small(), now=AT))
    for step in steps:
        await watched.play(step)
        await watched.outcome()
    return [encode_payload(payload) for _, payload, _ in await read_log(store, "c")]


@search(20)
@given(LOGS)
def test_the_same_steps_write_the_same_log(steps: list[Step]) -> None:
    """Plans, summaries, previews and fingerprints depend on nothing but the log and the policy."""
    assert run(_written(steps)) == run(_written(steps))


@search(20)
@given(LOGS)
def test_the_same_window_gets_the_same_plan(steps: list[Step]) -> None:
    """Planning a window twice, and planning the fold of its log, gives the same decision."""

    async def story() -> None:
        store = await new_store()
        timeline = await Timeline.open(store, "c", policy=small(), now=AT)
        await play(timeline, store, steps)
        again = folded(await read_log(store, "c"))
        first, second, third = (
            PlannedSteps().plan(
                first_step(timeline.policy), window, FixedPart(system=50), timeline.policy, timeline.counter
            )
            for window in (timeline.window, timeline.window, again.window)
        )
        assert first == second == third

    run(story())


def conversation() -> list[Block]:
    """Return a conversation that compacts several times: pins, parallel calls, files, failing commands."""
    blocks: list[Block] = [Note(text="Never push to main.")]
    for number in range(8):
        blocks.append(UserPrompt(text=f"task {number} " * 20))
        for step in range(4):
            ids = [f"c{number}_{step}_{i}" for i in range(3)]
            said = f"r{number}_{step}"
            blocks.append(AssistantCompletion(text=f"I look at part {step}.", response_id=said))
            for id_ in ids:
                arguments: Any = {"path": f"src/{id_}.py"}
                blocks.append(ToolCall(call_id=id_, name="read_file", arguments=arguments, response_id=said))
            blocks += [ToolResult(call_id=i, name="read_file", text="line of code\n" * 30) for i in reversed(ids)]
    return blocks


def test_the_hash_seed_of_the_process_changes_nothing() -> None:
    """No decision and no byte depends on the order of a set: processes with other hash seeds write the same log."""
    script = (
        "from tests.invariants.test_determinism import _written, conversation\n"
        "from tests.invariants.strategies import Say\n"
        "from timeline.frozen import sha256_hex\n"
        "import asyncio\n"
        "log = asyncio.run(_written([Say((block,)) for block in conversation()]))\n"
        "print(len(log), sum('covers' in line for line in log), sha256_hex(''.join(log)))\n"
    )
    root = Path(__file__).parents[2]
    told = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(told) == 1, told
    events, compactions, _ = next(iter(told)).split()
    assert int(events) > 200
    assert int(compactions) > 2
