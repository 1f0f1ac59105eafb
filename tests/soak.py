"""Many agents on one store for a while: each replays recorded conversations at the pace of an agent.

    python -m tests.soak postgresql://… --agents 2000 --minutes 20 [RECORDING …]

The agents are spread over processes. Each takes a step, waits, and takes the next one: it appends what a user or a tool
said, renders before each response, and appends that. They are found at work, as who comes by at any time would find
them: each comes to some place in its first conversation without waiting, and that is a long one more often than not,
for most of an agent's time goes to those. So the windows stay as large as they are, and memory with them. What was
acknowledged is compared with the store at the end, and every conversation is verified. Prints a report as JSON; the
exit status is 1 if something does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline import Timeline, open_store, policies
from timeline.blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt
from timeline.errors import BudgetError, ImportFailed
from timeline.events import BlockAppended
from timeline.fold.turns import RESPONSE_BLOCKS
from timeline.importers import read_recording

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from timeline.blocks import Block
    from timeline.ports import EventStore

ROOT: Final = Path(__file__).parent.parent
LIMIT: Final = 16_000
"""Tokens of a window: agents compact several times in a soak."""
SAMPLES: Final = 20
"""How often a process looks at its memory."""
_UNPLACED: Final = {"path": "", "turn_id": "", "at": None}
_PAGE: Final = resource.getpagesize()


class Pace(NamedTuple):
    """How many agents, for how many seconds, and the mean seconds between two steps of one."""

    agents: int
    seconds: float
    pause: float


@dataclass
class Report:
    """What one process, or all together, did.

    Attributes:
        versions: by conversation the last version that was acknowledged.
        appends: number of appends, without those before an agent was at work; ``events`` of the blocks in them,
            ``renders`` of recorded contexts.
        events: see ``appends``.
        renders: see ``appends``.
        waits: seconds of each append, as the agent saw it.
        memory: bytes of the process, at times as far from each other.
        windows: blocks in the windows of its agents, at the same times: they are what memory is used for.
        problems: what does not hold; empty in a sound run.
    """

    versions: dict[str, int] = field(default_factory=dict)
    appends: int = 0
    events: int = 0
    renders: int = 0
    waits: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    windows: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def wait(self, share: float) -> float:
        """Return a percentile of the appends' waits, in milliseconds."""
        ordered = sorted(self.waits)
        return 1_000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0

    def growth(self) -> float:
        """Return the memory at the end, in times of that in the middle, when all agents are at work."""
        return self.memory[-1] / self.memory[len(self.memory) // 2] if self.memory else 1.0


class Shift(NamedTuple):
    """The agents of one process: what they did, and the timeline that each works on now."""

    report: Report
    at_work: dict[str, Timeline]


Steps = list[list["Block"]]


def steps_of(files: Sequence[Path]) -> list[Steps]:
    """Return recordings as steps: what came from outside, then each response; without files, made-up ones."""
    found = [steps for file in files for steps in _recorded(file) if len(steps) > 2]
    return found or [list(_made_up(random.Random(seed))) for seed in range(8)]


def _recorded(file: Path) -> Iterator[Steps]:
    try:
        recordings = read_recording(file)
    except ImportFailed:
        return
    for recording in recordings:
        steps: Steps = []
        of = None
        for event in recording.events:
            if not isinstance(event.payload, BlockAppended):
                continue
            block = event.payload.block
            response = (block.response_id or event.key) if type(block) in RESPONSE_BLOCKS else ""
            if not steps or response != of:
                steps.append([])
            of = response
            steps[-1].append(block.model_copy(update=_UNPLACED))
        yield steps


def _made_up(draw: random.Random) -> Iterator[list[Block]]:
    yield [UserPrompt(text="Find out why the build fails, and mend it.")]
    for number in range(60):
        said = f"m{number}"
        yield [ToolCall(call_id=f"c{number}", name="bash", arguments={"command": f"make {number}"}, response_id=said)]
        yield [ToolResult(call_id=f"c{number}", text=" ".join(["word"] * draw.randint(20, 800)))]
    yield [AssistantCompletion(text="It is mended.", response_id="last")]


async def agent(store: EventStore, name: str, talks: Sequence[Steps], pace: Pace, shift: Shift) -> None:
    """Be one agent until the time is over: it begins its next conversation where one ends."""
    draw, until, report = random.Random(name), monotonic() + pace.seconds, shift.report
    await asyncio.sleep(draw.uniform(0, min(pace.pause, pace.seconds / 2)))
    number = 0
    while monotonic() < until:
        number += 1
        id_ = f"{name}.{number}"
        shift.at_work[name] = timeline = await Timeline.open(store, id_, policy=policies.balanced(max_tokens=LIMIT))
        talk, hurried = _found_at_work(draw, talks) if number == 1 else (draw.choice(talks), 0)
        for place, step in enumerate(talk):
            if monotonic() >= until:
                return
            if type(step[0]) in RESPONSE_BLOCKS:
                try:
                    await timeline.render(system="Be brief.")
                except BudgetError:
                    break  # a recorded block alone is above the limit of the soak
                report.renders += place >= hurried
            started = perf_counter()
            await timeline.append(*step)
            report.versions[id_] = timeline.version
            if place < hurried:
                continue
            report.waits.append(perf_counter() - started)
            report.appends += 1
            report.events += len(step)
            await asyncio.sleep(draw.expovariate(1 / pace.pause))


def _found_at_work(draw: random.Random, talks: Sequence[Steps]) -> tuple[Steps, int]:
    """Return the conversation that an agent is in at any one time, and how many of its steps lie behind it."""
    (talk,) = draw.choices(talks, [len(steps) for steps in talks])
    return talk, draw.randrange(len(talk))


async def _watch(shift: Shift, seconds: float) -> None:
    for _ in range(SAMPLES):
        await asyncio.sleep(seconds / (SAMPLES + 1))
        shift.report.memory.append(_resident())
        shift.report.windows.append(sum(len(timeline.window.items) for timeline in shift.at_work.values()))


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE


async def _play(url: str, name: str, talks: Sequence[Steps], pace: Pace) -> Report:
    shift = Shift(Report(), {})
    async with open_store(url) as store, asyncio.TaskGroup() as group:
        group.create_task(_watch(shift, pace.seconds))
        for number in range(pace.agents):
            group.create_task(agent(store, f"{name}.{number}", talks, pace, shift))
    return shift.report


def child() -> None:
    """Be one process of the soak."""
    url, name, agents, seconds, pause, *files = sys.argv[1:]
    pace = Pace(int(agents), float(seconds), float(pause))
    print(json.dumps(asdict(asyncio.run(_play(url, name, steps_of([Path(file) for file in files]), pace)))))


def soak(url: str, pace: Pace, files: Sequence[Path] = (), processes: int = 2) -> Report:
    """Let agents work on a store, then look at what they left: every conversation is verified.

    Args:
        url: the store.
        pace: of all agents together.
        files: recordings that they replay.
        processes: how many processes the agents are spread over.
    """
    share = str(-(-pace.agents // processes))
    command = [sys.executable, "-c", "from tests.soak import child; child()", url]
    arguments = [share, str(pace.seconds), str(pace.pause), *map(str, files)]
    children = [
        subprocess.Popen([*command, f"p{n}", *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for n in range(processes)
    ]
    whole = Report()
    for started in children:
        out, err = started.communicate()
        if started.returncode:
            whole.problems.append(err.decode(errors="replace").strip()[-2_000:])
            continue
        _add(whole, Report(**json.loads(out)))
    whole.problems += asyncio.run(_verified(url, whole.versions))
    return whole


def _add(whole: Report, part: Report) -> None:
    whole.versions |= part.versions
    whole.appends += part.appends
    whole.events += part.events
    whole.renders += part.renders
    whole.waits += part.waits
    whole.memory = [a + b for a, b in zip(whole.memory or [0] * SAMPLES, part.memory, strict=True)]
    whole.windows = [a + b for a, b in zip(whole.windows or [0] * SAMPLES, part.windows, strict=True)]


async def _verified(url: str, versions: dict[str, int]) -> list[str]:
    problems = []
    async with open_store(url) as store:
        held = {info.id: info.version async for info in store.conversations()}
        problems += [
            f"{id_}: acknowledged at {at}, held at {held.get(id_)}"
            for id_, at in versions.items()
            if held.get(id_) != at
        ]
        for id_ in held:
            found = await (await Timeline.open(store, id_, create=False)).verify()
            if not found.ok:
                problems.append(f"{id_}: {found}")
    return problems


def summary(report: Report, pace: Pace) -> dict[str, Any]:
    """Return the figures of a soak."""
    return {
        **pace._asdict(),
        "conversations": len(report.versions),
        "appends": report.appends,
        "appends_per_second": round(report.appends / pace.seconds, 1),
        "blocks": report.events,
        "renders": report.renders,
        "append_p50_ms": round(report.wait(0.5), 1),
        "append_p99_ms": round(report.wait(0.99), 1),
        "memory_mb": [round(size / 1e6) for size in report.memory],
        "memory_growth": round(report.growth(), 2),
        "blocks_in_windows": report.windows,
        "problems": report.problems[:20],
    }


def main() -> int:
    """Play a soak from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("url")
    parser.add_argument("recording", nargs="*", type=Path)
    parser.add_argument("--agents", type=int, default=2_000)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--pause", type=float, default=10.0, help="mean seconds between two steps of an agent")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_intermixed_args()
    pace = Pace(asked.agents, 60 * asked.minutes, asked.pause)
    report = soak(asked.url, pace, asked.recording, asked.processes)
    print(json.dumps(summary(report, pace), indent=2))
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
