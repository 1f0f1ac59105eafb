"""The processes of the application: each goes on where the last one ended, with what is in its folder and nothing else.

    python -m tests.integrations.sixty_turns.program MODULE:FUNCTION FOLDER URL sixty|short

Each line of standard input is an act, ``work`` or ``back``, and is played by a process that is forked from this one:
what they import, a framework above all, takes more time than what they do. The process prints its id, this one how it
ended.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from tests.integrations.sixty_turns.model import (
    PLOTS,
    Plot,
    anew,
    prompt,
    result,
)
from timeline import open_store
from timeline.integrations.testing import DrivenAgent
from timeline.policies import cut_point

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.policy.model import Policy
    from timeline.ports import EventStore

DATABASE: Final = "agent.db"
PLACES: Final = "places.json"
"""The place where each turn ended, and None for one that is under way; places are what JSON can hold."""
MAX_TOKENS: Final = 2_400


class MakesAgents(Protocol):
    """Makes the agent of a framework, which keeps its history in the folder, or in the store."""

    def __call__(
        self, folder: Path, url: str, store: EventStore, policy: Policy, tool: Callable[[str], Any]
    ) -> DrivenAgent:
        """Return the agent.

        Args:
            folder: where the application keeps its files, between processes too.
            url: base URL of the provider, for a client of OpenAI's.
            store: given to the adapter.
            policy: given to the adapter.
            tool: a function named ``work``.
        """


class Application:
    """What the application does in one process."""

    def __init__(self, agent: DrivenAgent, plot: Plot, folder: Path) -> None:
        self._agent = agent
        self._plot = plot
        self._file = folder / PLACES
        self._places: list[Any] = json.loads(self._file.read_text()) if self._file.exists() else []

    async def work(self) -> None:
        """Finish the turn that broke off, if one did, and take the others."""
        if self._places and self._places[-1] is None:
            await self._agent.resume()
            self._places.pop()
            await self._end()
        for number in range(len(self._places) + 1, self._plot.turns + 1):
            if number in self._plot.rejected_in and type(self._agent).run_rejected is not DrivenAgent.run_rejected:
                await self._agent.run_rejected(prompt(f"rejected{number}"))
            self._keep(None)
            await self._agent.run(prompt(str(number)))
            self._places.pop()
            await self._end()

    async def back(self) -> None:
        """Go on from the middle, otherwise, and have the newest answer written again."""
        await self._agent.run(prompt(anew(1)), place=self._places[self._plot.back_to - 1])
        for number in range(2, self._plot.anew + 1):
            await self._agent.run(prompt(anew(number)))
        await self._agent.regenerate()
        await self._agent.run(prompt("last1"))

    async def _end(self) -> None:
        self._keep(await self._agent.place())

    def _keep(self, place: Any) -> None:
        self._places.append(place)
        self._file.write_text(json.dumps(self._places))


async def play(makes: MakesAgents, folder: Path, url: str, act: str, plot: Plot) -> None:
    """Play one process."""
    died = folder / "died"

    def work(step: str) -> str:
        """Do a step of the work."""
        if step.startswith(f"{plot.dies_in_the_tool}.") and not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return result(step)

    async with open_store(folder / DATABASE) as store:
        agent = makes(folder, url, store, cut_point(max_tokens=MAX_TOKENS), work)
        application = Application(agent, plot, folder)
        await (application.back() if act == "back" else application.work())


def main(named: str, folder: Path, url: str, plot: Plot) -> None:
    """Play the acts of standard input."""
    module, _, function = named.partition(":")
    makes: MakesAgents = getattr(import_module(module), function)
    for line in sys.stdin:
        process = os.fork()
        if not process:
            print(os.getpid(), flush=True)
            asyncio.run(play(makes, folder, url, line.strip(), plot))
            return
        _, status = os.waitpid(process, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], PLOTS[sys.argv[4]])
