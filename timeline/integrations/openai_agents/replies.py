"""Replies of the model that the SDK has not accepted yet: what it adds to the session is accepted, the rest rejected.

Guardrails look at a reply when the model has given it. The SDK adds to its session what passed them, and sometimes
something else in its place; of what it rejects it says nothing to the session.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from timeline.blocks import ToolCall
from timeline.integrations.openai_agents.model_calls import ended

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from timeline.blocks import Block
    from timeline.integrations.openai_agents.model_calls import TaskOf


@dataclass(slots=True, eq=False)
class Reply:
    """A reply, and what of it was not accepted yet.

    Attributes:
        run: the SDK's context of the run, by which it is known; None where nobody named it.
        task_of: returns the task of the run.
        response_id: of the response.
        left: the items that were not accepted, each with its key and its blocks.
    """

    run: object
    task_of: TaskOf
    response_id: str
    left: list[tuple[str, list[Block]]]

    def is_final(self) -> bool:
        """Return whether it is an answer: a reply with calls may wait for an approval, and be accepted much later."""
        return not any(isinstance(block, ToolCall) for _, blocks in self.left for block in blocks)


class Replies:
    """The replies of a session that are not wholly accepted."""

    def __init__(self) -> None:
        self._open: list[Reply] = []

    def add(self, reply: Reply) -> None:
        """Take a new reply."""
        if reply.left:
            self._open.append(reply)

    def accept(self, key: str) -> str | None:
        """Take an accepted item out of the reply that it belongs to; return the id of the response, if it is of one."""
        for reply in self._open:
            for number, (own, _) in enumerate(reply.left):
                if own == key:
                    del reply.left[number]
                    self._open = [each for each in self._open if each.left]
                    return reply.response_id
        return None

    def passed_over(self, run: object, listed: Collection[str]) -> list[list[Block]]:
        """Return what a run goes on without: it calls the model again, and neither added nor lists it."""
        return self._rejected(lambda reply: reply.run is run, listed)

    def left_behind(self, *, also_calls: bool, going_on: object = None) -> list[list[Block]]:
        """Return what runs left that are over.

        Args:
            going_on: the SDK's context of a run that is not, if one asks: it reads the session between its steps, too.
            also_calls: also replies with calls: those of a run that waits for an approval may still be accepted.
        """

        def is_over(reply: Reply) -> bool:
            is_asking = going_on is not None and reply.run is going_on
            return ended(reply.task_of()) and not is_asking and (also_calls or reply.is_final())

        return self._rejected(is_over, ())

    def _rejected(self, is_over: Callable[[Reply], bool], listed: Collection[str]) -> list[list[Block]]:
        rejected: list[list[Block]] = []
        for reply in self._open:
            if is_over(reply):
                rejected += [blocks for key, blocks in reply.left if key not in listed]
                reply.left = [(key, blocks) for key, blocks in reply.left if key in listed]
        self._open = [reply for reply in self._open if reply.left]
        return rejected


def of_response(blocks: Sequence[Block], response_id: str) -> list[Block]:
    """Return the blocks of an item as parts of a response."""
    return [block.model_copy(update={"response_id": response_id}) for block in blocks]
