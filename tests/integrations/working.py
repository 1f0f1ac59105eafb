"""What an agent's tests share: a tool with much to say, a model that works for some rounds, and what a log holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.providers import Answer, Call
from timeline import policies
from timeline.events import appended_block

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.providers import Asked, FakeProvider
    from timeline.audit.verify import VerifyReport
    from timeline.blocks import Block
    from timeline.policy.model import Policy
    from timeline.ports import EventStore

MAX_TOKENS: Final = 2_400
"""What the policy allows, counted exactly; the fake counts a quarter of the characters of the whole body."""
ROUNDS: Final = 18


def small() -> Policy:
    """Return a policy under which `ROUNDS` rounds are compacted several times."""
    return policies.cut_point(max_tokens=MAX_TOKENS)


def bash(command: str) -> str:
    """Run a command."""
    return f"ran {command}\n" + "a line of its output\n" * 40


def working(rounds: int = ROUNDS, says: str = "Step") -> Callable[[Asked], Answer]:
    """Return a model that calls ``bash``, every second time twice at once, and then says that it is done.

    Args:
        rounds: calls before the last answer.
        says: what it says with most of its calls; nothing at all where it is empty.
    """

    def answer(asked: Asked) -> Answer:
        number = asked.number
        if number >= rounds:
            return Answer(f"Done after {number}.", cached_tokens=40)
        calls = tuple(Call("bash", {"command": f"pytest {number}.{part}"}) for part in range(1 + number % 2))
        return Answer(f"{says} {number}." if says and number % 3 else "", calls=calls)

    return answer


def recalling(path: str) -> Callable[[Asked], Answer]:
    """Return a model that works, and reads a path back when its context has been compacted.

    The request after it, number 13, has the answer.
    """
    work = working()

    def answer(asked: Asked) -> Answer:
        return Answer(calls=(Call("recall", {"path": path}),)) if asked.number == 12 else work(asked)

    return answer


async def blocks_in(store: EventStore, conversation: str) -> list[Block]:
    """Return all blocks that were appended to a conversation."""
    events = [event async for event in store.read(conversation)]
    return [block for event in events if (block := appended_block(event.payload)) is not None]


async def calls_in(store: EventStore, conversation: str) -> list[Any]:
    """Return all model calls of a conversation."""
    return [event.payload async for event in store.read(conversation, types=["model.called"])]


async def compactions_in(store: EventStore, conversation: str) -> int:
    """Return how often a conversation was compacted."""
    return len([event async for event in store.read(conversation, types=["compaction.completed"])])


def all_fine(report: VerifyReport, provider: FakeProvider) -> bool:
    """Say whether a log holds what it promises, and each request was one that the provider takes."""
    return report.ok and not provider.refused
