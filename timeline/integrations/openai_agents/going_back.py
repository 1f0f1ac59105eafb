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


async def leave_newest(timeline: Timeline, store: EventStore) -> Stored | None:
    """Abandon the newest item of a session and return it; None where it has none."""
    found: list[Stored] = []

    async def choose() -> Branch:
        found[:] = await stored_items(store, timeline.id, newest=1)
        return Branch(leaving(found), [])

    await _carry_out(timeline, choose)
    return found[0] if found else None


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
        if answered_again(timeline.window, new):
            return answering_again(await whole_history(store, timeline.id), new)
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
