"""Times never go back in what a handle appends, whatever its clock does, and those that are given stay as given."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from hypothesis import event as note
from hypothesis import given
from hypothesis import strategies as st

from tests.invariants.places import new_store
from tests.invariants.playing import AT, run, search
from tests.invariants.strategies import small
from timeline.blocks import UserPrompt
from timeline.errors import BlockProtected, CompactionError, UndoUnavailable
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from datetime import datetime

    from timeline.ports import EventStore

Deed: TypeAlias = Literal["say", "two", "render", "compact", "undo", "call", "hide", "reopen"]
GIVEN: Final = timedelta(microseconds=7)
"""Marks a given time: the clock shows whole seconds."""


class Move(NamedTuple):
    """One thing that one of two handles does, the second that its clock then shows, and a given time."""

    second: bool
    deed: Deed
    clock: int
    given: int | None


@dataclass
class Stepping:
    """A clock that steps back and forth at each reading, and keeps what it showed."""

    steps: list[int] = field(default_factory=list)
    read: int = 0
    base: int = 0

    def now(self) -> datetime:
        """Return the next time."""
        self.read += 1
        return AT + timedelta(seconds=self.base + (self.read * 37) % 11 - 5)


MOVES = st.lists(
    st.builds(
        Move,
        st.booleans(),
        st.sampled_from(("say", "say", "say", "two", "render", "compact", "compact", "undo", "call", "hide", "reopen")),
        st.integers(-1_000, 1_000),
        st.none() | st.none() | st.integers(-2_000, 2_000),
    ),
    max_size=25,
)


async def _open(store: EventStore, clock: Stepping) -> Timeline:
    return await Timeline.open(store, "c", policy=small(1_000), clock=clock)


async def _do(timeline: Timeline, move: Move, at: datetime | None) -> None:
    long = UserPrompt(text="word " * 300)
    # The other handle may have covered the block that is to be hidden.
    with suppress(BlockProtected, CompactionError, UndoUnavailable):
        match move.deed:
            case "say":
                await timeline.append(long, now=at)
            case "two":
                await timeline.append(UserPrompt(text="a"), UserPrompt(text="b"), now=at)
            case "render":
                await timeline.render(now=at)
            case "compact":
                await timeline.compact(now=at, wait=False)
            case "undo":
                await timeline.undo_compaction(now=at)
            case "call":
                await timeline.record_model_call(model="m", now=at)
            case "hide":
                shown = [item for item in timeline.window.items if item.state == "visible" and not item.is_summary]
                if shown:
                    await timeline.hide(shown[0].block.path, now=at)
            case "reopen":
                await timeline.catch_up()


@search(150)
@given(MOVES)
def test_by_one_handle_times_never_decrease_with_the_version_unless_they_are_given(moves: list[Move]) -> None:
    """Under clocks that step back and forth, with two handles, after a reopening too."""

    async def story() -> None:
        store = await new_store()
        clocks = [Stepping(), Stepping()]
        handles = [await _open(store, clock) for clock in clocks]
        known = 1
        for move in moves:
            which = int(move.second)
            clocks[which].base = move.clock
            if move.deed == "reopen":
                handles[which] = await _open(store, clocks[which])
            at = None if move.given is None else AT + timedelta(seconds=move.given) + GIVEN
            await _do(handles[which], move, at)
            events = [event async for event in store.read("c", after=known - 1)]
            for before, new in pairwise(events):
                note(new.type)
                if at is None:
                    assert new.at >= before.at, (before.type, new.type)
                    assert new.at.microsecond == 0 or new.at == before.at
                else:
                    assert new.at == at, new.type
            known = events[-1].version
        blocks = [event async for event in store.read("c") if event.type == "block.appended"]
        assert all(event.payload.block.at == event.at for event in blocks)  # type: ignore[attr-defined]
        assert (await handles[0].verify()).ok

    run(story())
