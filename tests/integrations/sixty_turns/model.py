"""The model of the scene: it works on whatever turn its newest prompt names, and says a word in each answer.

Every word is unique, so that a request shows which prompts, results and answers it knows of.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.integrations.contract.wire import sent_in
from tests.providers import Answer, Call, Trouble

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.providers import Asked, Step


class Plot(NamedTuple):
    """How long a scene is, and in which turn what happens.

    Attributes:
        turns: prompts before the application goes back.
        back_to: turns that are kept when it goes back to the middle.
        anew: turns from there.
        rejected_in: turns that begin with a prompt whose answer a guardrail rejects.
        refused_in: the turn whose first request is too large.
        dies_at_the_model: the turn in which the process is killed while it waits for the model.
        dies_in_the_tool: the turn in which it is killed in its tool.
    """

    turns: int
    back_to: int
    anew: int
    rejected_in: tuple[int, int]
    refused_in: int
    dies_at_the_model: int
    dies_in_the_tool: int


PLOTS: Final = {
    "sixty": Plot(60, 30, 12, rejected_in=(12, 44), refused_in=26, dies_at_the_model=21, dies_in_the_tool=47),
    "short": Plot(24, 12, 4, rejected_in=(4, 15), refused_in=8, dies_at_the_model=6, dies_in_the_tool=17),
}

GOING_ON: Final = "Continue from where you left off."
"""The prompt by which an application goes on with a run that broke off, where its framework has no other way."""

_TURN: Final = re.compile(r"Turn (\w+): ")


def prompt(turn: str) -> str:
    """Return what the user says in a turn."""
    return f"Turn {turn}: {asked(turn)}, please."


def asked(turn: str) -> str:
    """Return the word of a turn's prompt."""
    return f"amber{turn}x"


def worked(turn: str) -> str:
    """Return the word of a turn's tool results."""
    return f"birch{turn}x"


def answered(turn: str) -> str:
    """Return the word of a turn's answer; one that is written again adds another one."""
    return f"cedar{turn}x"


def anew(number: int) -> str:
    """Return the name of a turn after the application went back."""
    return f"anew{number}"


def result(step: str) -> str:
    """Return what the tool says of a step, whose name begins with the turn's."""
    return f"{worked(step.partition('.')[0])} of step {step}\n" + "a line of its output\n" * 30


@dataclass(slots=True)
class Worker:
    """Answers the requests of all processes of a scene.

    Attributes:
        plot: of the scene.
        die: kills the process that asks, where the scene wants it to die while it waits for the model.
        sent: the text of each request, system prompt included.
        done: replies of each turn.
        refused: how many requests were too large.
    """

    plot: Plot
    die: Callable[[], None]
    sent: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    _died: bool = False

    def __call__(self, request: Asked) -> Step:
        """Answer a request."""
        messages = sent_in(request)
        self.sent.append("\n".join(message.text for message in messages))
        named = [turn for message in messages if message.role == "user" for turn in _TURN.findall(message.text)]
        turn = named[-1]
        if turn == str(self.plot.refused_in) and not self.refused:
            self.refused += 1
            return Trouble("context_limit", limit=request.tokens - 1)
        if turn == str(self.plot.dies_at_the_model) and self.done[turn] == 1 and not self._died:
            self._died = True
            self.die()
            return Trouble("server")
        reply = self.done[turn]
        self.done[turn] += 1
        if reply >= (rounds := self._rounds(turn)):
            again = reply - rounds
            return Answer(f"{answered(turn)}{again or ''} is the answer.")
        steps = [f"{turn}.{reply}.{part}" for part in range(1 + reply % 2)]
        calls = tuple(Call("work", {"step": step}, f"call_{step.replace('.', '_')}") for step in steps)
        return Answer(f"Round {reply}." if reply % 2 else "", calls)

    def _rounds(self, turn: str) -> int:
        """Return how often a turn calls its tool: the last turn only talks, so that its answer can be written again."""
        number = int(re.sub(r"\D", "", turn))
        return 0 if turn.startswith("rejected") or turn == anew(self.plot.anew) else 1 + number % 3
