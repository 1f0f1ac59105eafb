"""The contract's model: it answers by a script, and judges each request as a provider would."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TOOL: Final = "work"
"""Name of the only tool; its only argument is ``step``, a text."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A message as the model received it.

    Attributes:
        role: who speaks.
        text: what is said.
        calls: ids of the calls that a message of the assistant makes.
        answers: id of the call that a message of a tool answers.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    calls: tuple[str, ...] = ()
    answers: str = ""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call of the tool."""

    step: str
    id: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model answers: a text, calls, or that the request is too large, as its provider says it.

    Both figures are what the provider reports; no token comes from a cache.
    """

    text: str = ""
    calls: tuple[ToolUse, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    too_large: bool = False


Script: TypeAlias = "Callable[[int, Sequence[Sent]], Reply]"
"""Gets the number of the request, from 0, and its messages."""


@dataclass(slots=True)
class ScriptedModel:
    """Answers by a script.

    Attributes:
        script: what it answers; a test sets it before the first run.
        limit: most characters of a request; a longer one is too large.
        requests: the messages of each answered request.
        refused: how many were too large.
        problems: what no provider takes: a call without its result right behind it, a result without its call, an id
            that is used twice.
    """

    script: Script
    limit: int | None = None
    requests: list[tuple[Sent, ...]] = field(default_factory=list)
    refused: int = 0
    problems: list[str] = field(default_factory=list)

    def asked(self, messages: Sequence[Sent]) -> Reply:
        """Answer a request. A driver calls it for each request that the framework sends."""
        self.problems += [f"request {len(self.requests)}: {problem}" for problem in _problems(messages)]
        if self.limit is not None and sum(len(message.text) for message in messages) > self.limit:
            self.refused += 1
            return Reply(too_large=True)
        reply = self.script(len(self.requests), messages)
        self.requests.append(tuple(messages))
        return reply

    def saw(self, number: int) -> list[str]:
        """Return the texts of a request without those of the system; negative numbers count from the end."""
        return [message.text for message in self.requests[number] if message.role != "system"]


def _problems(messages: Sequence[Sent]) -> list[str]:
    found: list[str] = []
    waiting: set[str] = set()
    for message in messages:
        if message.role == "tool":
            if message.answers not in waiting:
                found.append(f"a result of {message.answers!r}, which no call in front of it waits for")
            waiting.discard(message.answers)
            continue
        if waiting:
            found.append(f"no results of {sorted(waiting)}")
        waiting = {*message.calls}
        if len(waiting) < len(message.calls):
            found.append(f"one id for several calls: {message.calls}")
    return [*found, *([f"no results of {sorted(waiting)}"] if waiting else [])]
