"""Place a newer snapshot of a conversation in the log that has an earlier one: what is known, and what is otherwise.

A client that writes its file anew as a whole takes out what the user went back behind: an answer that was written
again, a question that was edited. The log cannot know whether such a block was left or merely trimmed, or whether an
application of its own appended it. So nothing is omitted here: the report names each block, and people decide.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self

from timeline.events import BlockAppended, derived_event_id
from timeline.fold.turns import turn_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from uuid import UUID

    from timeline.blocks import Block
    from timeline.events import Event
    from timeline.importers.recording import RecordedEvent, Report
    from timeline.ports import EventStore

_KEY: Final = (1 << 80) - 1
"""The part of a derived id that does not depend on the event's time."""


@dataclass(frozen=True, slots=True)
class LoggedEvents:
    """The events of a conversation before a snapshot is appended, by what does not change of their ids.

    ``conversation`` is the conversation's id; a time that was derived from a message's position changes where earlier
    messages were taken out.
    """

    conversation: str
    events: Mapping[int, Event]

    @classmethod
    async def of(cls, store: EventStore, conversation: str) -> Self:
        """Read them.

        Raises:
            StoreError: the store cannot be read.
        """
        return cls(conversation, {_key(event.id): event async for event in store.read(conversation)})

    def event(self, recorded: RecordedEvent) -> Event | None:
        """Return the event of the log that a recorded one is; None for a new one."""
        return self.events.get(_key(derived_event_id(recorded.at, self.conversation, recorded.key)))

    def placed(self, snapshot: Sequence[RecordedEvent]) -> tuple[RecordedEvent, ...]:
        """Return a snapshot's events, those that are known with their times, new ones in turns that the log has not.

        A turn of which the log has a block is that turn; any other one comes behind the log's newest.
        """
        blocks = [block for event in self.events.values() if (block := _block(event.payload)) is not None]
        if not blocks:
            return tuple(snapshot)
        newest = max((turn_number(block.turn_id) or 0 for block in blocks), default=0)
        turns: dict[str, str] = {}
        for recorded in snapshot:
            known, own = self.event(recorded), _block(recorded.payload)
            stored = None if known is None else _block(known.payload)
            if own is not None and stored is not None:
                turns.setdefault(own.turn_id, stored.turn_id)
        placed = []
        for recorded in snapshot:
            if (known := self.event(recorded)) is not None:
                placed.append(replace(recorded, at=known.at))
                continue
            own = _block(recorded.payload)
            if own is not None and own.turn_id not in turns:
                newest += 1
                turns[own.turn_id] = f"turn_{newest}"
            placed.append(recorded if own is None else _in_turn(recorded, own, turns[own.turn_id]))
        return tuple(placed)

    def note(
        self, snapshot: Sequence[RecordedEvent], shown: set[int], report: Report, let_in: Callable[[Block], Block]
    ) -> None:
        """Report the blocks that a context may show and that a snapshot no longer has, or has with other content.

        What is missing is no finding where the snapshot has nothing new: then the log merely knows more than it.

        Args:
            snapshot: its events.
            shown: the versions of the blocks that a context may show.
            report: receives the findings.
            let_in: makes of a block what would be stored of it.
        """
        has_news = any(self.event(recorded) is None for recorded in snapshot)
        by_event = {id(known): recorded for recorded in snapshot if (known := self.event(recorded)) is not None}
        for event in self.events.values():
            stored = _block(event.payload)
            if event.version not in shown or stored is None:
                continue
            recorded = by_event.get(id(event))
            own = None if recorded is None else _block(recorded.payload)
            if own is None:
                if has_news:
                    report.note("left_out", 0, f"@{event.version} {stored.path}")
            elif _content(let_in(own)) != _content(stored):
                report.note("rewritten", 0, f"@{event.version} {stored.path}")


def _key(id_: UUID) -> int:
    return id_.int & _KEY


def _block(payload: object) -> Block | None:
    return payload.block if isinstance(payload, BlockAppended) else None


def _in_turn(recorded: RecordedEvent, block: Block, turn: str) -> RecordedEvent:
    moved = BlockAppended(block=block.model_copy(update={"turn_id": turn}), tokens=0, counter="")
    return replace(recorded, payload=moved)


def _content(block: Block) -> dict[str, Any]:
    """Return what a block says, without its place in the log."""
    return block.model_dump(exclude={"path", "turn_id", "at", "meta"})
