"""Sixty turns of an agent with tools: refused once for its size, killed twice, resumed, regenerated from the middle.

Each process is a real one, which SIGKILL ends while it waits for the model, or in its tool. The provider is strict: it
lives on, and refuses what the real one would refuse.

    played = play("tests.integrations.contract.openai_agents:of_responses", tmp_path)
    played.check(has_guardrails=True)
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from tests.integrations.sixty_turns.model import (
    GOING_ON,
    PLOTS,
    Plot,
    Worker,
    anew,
    answered,
    asked,
    prompt,
    worked,
)
from tests.integrations.sixty_turns.program import DATABASE
from tests.providers import FakeProvider
from timeline import Timeline, open_store
from timeline.blocks import RangeSummary
from timeline.events import BlocksHidden, CompactionCompleted, appended_block

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.ports import EventStore

PROGRAM: Final = "tests.integrations.sixty_turns.program"
ROOT: Final = Path(__file__).parents[3]
KILLED: Final = -signal.SIGKILL
"""How a process ends that was killed."""


@dataclass(frozen=True, slots=True)
class Log:
    """What the log holds at the end.

    Attributes:
        compactions: how often it was compacted.
        said: the texts of all blocks, without summaries.
        omitted: the reasons of what is omitted, each with its texts.
        verifies: whether everything recorded can be built again.
    """

    compactions: int
    said: tuple[str, ...]
    omitted: dict[str, str]
    verifies: bool


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a scene.

    Attributes:
        plot: of the scene.
        sent: the text of each request that was in order.
        before: how many of them came before the application went back.
        invalid: what was wrong with the others.
        refused: how many were too large.
        ends: how the processes ended.
        log: at the end.
        forks: the logs of further conversations that the application went on in.
    """

    plot: Plot
    sent: tuple[str, ...]
    before: int
    invalid: tuple[str, ...]
    refused: int
    ends: tuple[int, ...]
    log: Log
    forks: tuple[Log, ...] = ()

    def check(self, *, has_guardrails: bool) -> None:
        """Check what every framework's agent owes."""
        self._check_the_runs()
        self._check_that_no_model_saw(has_guardrails=has_guardrails)
        self._check_that_nothing_was_lost(self.log)

    def check_of_a_fork(self) -> None:
        """Check what an agent owes whose framework goes back to the middle in a copy of the history."""
        self._check_the_runs()
        (fork,) = self.forks
        assert fork.verifies
        assert (leaked := _seen(self.sent[self.before :], self._abandoned())) == [], f"leaked: {leaked}"
        assert (leaked := _seen(fork.said, self._abandoned())) == [], f"leaked: {leaked}"
        first = f"{answered(anew(self.plot.anew))} is"
        assert first not in self.sent[-1]
        assert f"{answered(anew(self.plot.anew))}1 is" in self.sent[-1]
        assert first in fork.omitted["abandoned"]
        said = (
            *self.log.said,
            *(text for text in fork.said if any(anew(n) in text for n in range(1, self.plot.anew + 1))),
        )
        again = prompt(anew(self.plot.anew))  # the framework has no other way to another answer
        assert said.count(again) == 2
        assert said.count(GOING_ON) <= self.ends.count(KILLED)
        once = [text for text in said if text not in {again, GOING_ON}]
        self._check_that_nothing_was_lost(replace(self.log, said=(*once, again)))

    def _check_the_runs(self) -> None:
        assert self.ends == (KILLED, KILLED, 0, 0), self.ends
        assert self.invalid == (), self.invalid
        assert self.refused == 1
        assert self.log.compactions >= 5
        assert self.log.verifies

    def _check_that_no_model_saw(self, *, has_guardrails: bool) -> None:
        abandoned = self._abandoned()
        rejected = [answered(f"rejected{number}") for number in self.plot.rejected_in] if has_guardrails else []
        assert (leaked := _seen(self.sent, rejected)) == [], f"leaked: {leaked}"
        assert (leaked := _seen(self.sent[self.before :], abandoned)) == [], f"leaked: {leaked}"
        assert f"{answered(anew(self.plot.anew))} is" not in self.sent[-1]
        assert f"{answered(anew(self.plot.anew))}1 is" in self.sent[-1]
        assert _seen([self.log.omitted.get("abandoned", "")], abandoned) == abandoned
        assert _seen([self.log.omitted.get("rejected", "")], rejected) == rejected

    def _check_that_nothing_was_lost(self, log: Log) -> None:
        turns = [*map(str, range(1, self.plot.turns + 1)), *map(anew, range(1, self.plot.anew + 1))]
        said = "\n".join(log.said)
        lost = [word(turn) for turn in turns for word in (asked, answered) if word(turn) not in said]
        assert lost == [], f"lost: {lost}"
        often = Counter(text for text in log.said if text and not text.startswith("Round "))
        twice = [text for text, times in often.items() if times > 1]
        assert twice == [], f"twice: {twice}"

    def _abandoned(self) -> list[str]:
        """Return the words of the turns that are left when the application goes back to the middle."""
        left = [str(number) for number in range(self.plot.back_to + 1, self.plot.turns + 1)]
        return [word(turn) for turn in left for word in (asked, worked, answered)]


def play(
    agent: str, folder: Path, *, wire: Literal["openai", "anthropic"] = "openai", source: str = "", plot: str = "sixty"
) -> Played:
    """Play a scene: two processes that are killed, one that takes the last turns, and one that goes back.

    Args:
        agent: the module and function of a `MakesAgents`.
        folder: empty; the application's.
        wire: whose base URL the agent is given.
        source: a folder that the processes import from as well.
        plot: which of `PLOTS`.
    """
    process = 0

    def die() -> None:
        os.kill(process, signal.SIGKILL)

    worker = Worker(PLOTS[plot], die)
    ends: list[int] = []
    before = 0
    path = {"PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), source)))}
    with FakeProvider(worker) as provider:
        url = provider.openai_url if wire == "openai" else provider.url
        command = [sys.executable, "-m", PROGRAM, agent, str(folder), url, plot]
        streams: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        with subprocess.Popen(command, cwd=ROOT, env={**os.environ, **path}, text=True, **streams) as program:
            assert program.stdout is not None
            for act in ("work", "work", "work", "back"):
                before = len(worker.sent)
                print(act, file=program.stdin, flush=True)
                process = int(program.stdout.readline())
                ends.append(int(program.stdout.readline()))
            _, told = program.communicate()
            assert {*ends} <= {0, KILLED}, told
    return Played(
        PLOTS[plot],
        tuple(worker.sent),
        before,
        tuple(provider.refused),
        worker.refused,
        tuple(ends),
        *asyncio.run(_logs(folder / DATABASE)),
    )


async def _logs(database: Path) -> tuple[Log, tuple[Log, ...]]:
    """Read the log that an application began with, and those that it went on in."""
    async with open_store(database) as store:
        infos = [info async for info in store.conversations()]
        first, *forks = [await _log(store, info.id) for info in sorted(infos, key=lambda info: info.created_at)]
    return first, tuple(forks)


async def _log(store: EventStore, conversation: str) -> Log:
    timeline = await Timeline.open(store, conversation, create=False)
    events = [event async for event in store.read(conversation)]
    blocks = {event.version: block for event in events if (block := appended_block(event.payload)) is not None}
    omitted: defaultdict[str, str] = defaultdict(str)
    for event in events:
        if isinstance(event.payload, BlocksHidden):
            gone = "\n".join(blocks[hidden.version].text for hidden in event.payload.blocks)
            omitted[event.payload.reason] += f"{gone}\n"
    return Log(
        compactions=sum(isinstance(event.payload, CompactionCompleted) for event in events),
        said=tuple(block.text for block in blocks.values() if not isinstance(block, RangeSummary)),
        omitted=dict(omitted),
        verifies=(await timeline.verify()).ok,
    )


def _seen(texts: Sequence[str], words: Sequence[str]) -> list[str]:
    return [word for word in words if any(word in text for text in texts)]
