"""Go back behind items of a session and on from there, in one append.

An application pops items, clears the session and puts a part of them back, has a callback give back an earlier history,
or resumes an earlier `RunState` again. What is left of the log then is abandoned, in the same conversation, and a
compaction that covers any of it is undone; what comes again as it was is shown again instead of being stored twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timeline.agent.messages import placed_in_turns
from timeline.integrations.openai_agents.branches import (
    Branch,
    answered_again,
    answering_again,
    behind_a_list,
    leaving,
    left_at_the_end,
    taking_up,
)
from timeline.integrations.openai_agents.history import stored_items, whole_history

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from timeline.blocks import Block
    from timeline.fold.turns import Turns
    from timeline.integrations.openai_agents.history import Stored
    from timeline.log.protocol import Departure, Draft
    from timeline.ports import EventStore
    from timeline.timeline import Timeline


class Popping:
    """Takes back the items of a session from the end, one after the other.

    An item that is gone stays in the log, with the decision that says so behind it: reading from the end each time
    would read all of these again. So what was read beside the newest item is kept for the next time, unless something
    else was appended meanwhile, and twice as many items are read when it is used up.
    """

    def __init__(self, timeline: Timeline, store: EventStore) -> None:
        self._timeline, self._store = timeline, store
        self._items: list[Stored] = []
        self._version = 0
        """Of the log whose newest items these are."""
        self._wanted = 1

    async def pop(self) -> Stored | None:
        """Abandon the newest item and return it; None where there is none."""
        await _carry_out(self._timeline, self._choose)
        found = self._items.pop() if self._items else None
        self._version = self._timeline.version
        return found

    async def _choose(self) -> Branch:
        moved = self._timeline.version != self._version
        if moved or not self._items:
            self._wanted = 1 if moved else 2 * self._wanted
            self._items = await stored_items(self._store, self._timeline.id, newest=self._wanted)
            self._version = self._timeline.version
        return Branch(leaving(self._items[-1:]), [])


async def leave_all(timeline: Timeline, store: EventStore) -> None:
    """Abandon all items of a session."""

    async def choose() -> Branch:
        return Branch(leaving(await stored_items(store, timeline.id)), [])

    await _carry_out(timeline, choose)


async def leave(timeline: Timeline, items: Sequence[Stored]) -> None:
    """Abandon items of a session."""

    async def choose() -> Branch:
        return Branch(leaving(items), [])

    await _carry_out(timeline, choose)


async def went_on_elsewhere(timeline: Timeline, store: EventStore, new: list[list[Block]]) -> bool:
    """Append items that take up again what was left, or that answer calls anew; return whether these are such.

    Nothing is appended where they are not: `ListFollower.append` takes them.
    """
    await timeline.catch_up()
    window = timeline.window
    if not left_at_the_end(window) and not answered_again(window, new):
        return False

    async def choose() -> Branch:
        if answered := answered_again(timeline.window, new):
            return answering_again(await whole_history(store, timeline.id), new, set(answered))
        return taking_up(timeline.window, new)

    await _carry_out(timeline, choose)
    return True


async def go_back_to(timeline: Timeline, store: EventStore, listed: Sequence[tuple[str, Any]], added: int) -> None:
    """Leave what the log has behind the end of a resumed run's list; take up the branch that the list is in.

    Args:
        timeline: the session's conversation.
        store: where it lives.
        listed: the run's items, each with its key.
        added: how many items the session got since a model was called.
    """

    async def choose() -> Branch:
        return Branch(behind_a_list(await whole_history(store, timeline.id), listed, added), [])

    await _carry_out(timeline, choose)


async def _carry_out(timeline: Timeline, choose: Callable[[], Awaitable[Branch]]) -> None:
    conversation = timeline._conversation  # noqa: SLF001 - of this library
    new: list[list[Block]] = []

    async def depart() -> Departure:
        branch = await choose()
        new[:] = branch.new
        return branch.departure

    async def place(turns: Turns) -> Sequence[Draft]:
        blocks = placed_in_turns(new, turns)
        return await conversation.drafts(blocks, conversation.new_ids(len(blocks), None), None)

    await conversation.log.go_back(depart, place, at=None, counter=conversation.counter.name)
