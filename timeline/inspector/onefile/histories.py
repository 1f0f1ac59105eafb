"""How the state of each block changed, so that a file shows the log as it was at any version."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from timeline.events import BlockRedacted, BlocksHidden, BlocksRevealed, CompactionCompleted, CompactionReverted
from timeline.inspector.decided import TYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.events import Payload
    from timeline.inspector.decided import DecidedStates
    from timeline.inspector.reader import Reader

Change: TypeAlias = tuple[int, str | None, int | None, int]
"""Version, state from then on, version of the summary that covers the block, tokens that are sent of it."""


@dataclass(slots=True)
class Histories:
    """The changes of the blocks that changed.

    A compaction that integrates an earlier summary covers all that it covered: that is in ``superseded``, once, and not
    in each block.

    Attributes:
        changes: by version of the block.
        superseded: by version of a compaction the one that took its place, and until which version it counts.
    """

    changes: dict[int, list[Change]] = field(default_factory=dict)
    superseded: dict[int, tuple[int, int | None]] = field(default_factory=dict)


async def histories(reader: Reader, conversation: str, rows: list[dict[str, Any]]) -> Histories:
    """Return how the states of rows came to be.

    Of a log whose past was scavenged there is nothing: decisions are gone with it.
    """
    info = await reader.store.info(conversation)
    if info.first_version > 1:
        return Histories()
    making = _Making({row["version"]: row for row in rows if row["address"]})
    async for event in reader.store.read(conversation, types=TYPES):
        states = await reader.decisions.at(info, event.version)
        making.take(event.version, event.payload, states)
    return making.made


class _Making:
    def __init__(self, blocks: dict[int, dict[str, Any]]) -> None:
        self.made = Histories()
        self._blocks = blocks
        self._versions = sorted(blocks)
        self._undone: set[int] = set()
        self._now: dict[int, tuple[str | None, int | None]] = {}

    def take(self, version: int, payload: Payload, states: DecidedStates) -> None:
        """Take the next decision in."""
        match payload:
            case CompactionCompleted():
                self._compacted(version, payload)
            case CompactionReverted(versions=undone):
                self._undone.update(undone)
                superseded = self.made.superseded
                superseded |= {old: (by, version) for old, (by, _) in superseded.items() if by in undone}
        for block in self._touched(version, payload):
            if block in self._blocks and block <= version:
                self._change(version, block, *states.of(block), replaced=states.replaced(block))

    def _compacted(self, version: int, completed: CompactionCompleted) -> None:
        """Cover blocks, without a look at the state of each: there may be as many as the log has."""
        covers = completed.covers
        self.made.superseded |= dict.fromkeys(covers.summaries, (version, None))
        for first, last in covers.ranges:
            for block in self._between(first, last):
                if block not in completed.carried and block not in self._undone:
                    self._change(version, block, "covered", version)

    def _touched(self, version: int, payload: Payload) -> Sequence[int]:
        """Return the blocks whose states an event may change otherwise; an undo may change any."""
        match payload:
            case CompactionCompleted(covers=covers, carried=carried):
                return [*covers.summaries, *carried]
            case BlocksHidden(blocks=hidden):
                return [one.version for one in hidden]
            case BlocksRevealed(versions=shown):
                return shown
            case BlockRedacted(version=redacted):
                return [redacted]
            case _:
                return self._between(0, version)

    def _between(self, first: int, last: int) -> list[int]:
        return self._versions[bisect_left(self._versions, first) : bisect_right(self._versions, last)]

    def _change(self, version: int, block: int, state: str | None, by: int | None, *, replaced: int = 0) -> None:
        before = self._now.get(block, ("visible", None))
        if before == (state, by):
            return
        self._now[block] = (state, by)
        if before[0] == state == "covered" and before[1] is not None and self._stands_for(before[1]) == by:
            return
        sent = replaced if state in {"hidden", "abridged"} else self._sent(state, self._blocks[block])
        self.made.changes.setdefault(block, []).append((version, state, by, sent))

    def _stands_for(self, compaction: int) -> int:
        """Return the compaction that covers now what another one covered."""
        while compaction in self.made.superseded and self.made.superseded[compaction][1] is None:
            compaction = self.made.superseded[compaction][0]
        return compaction

    def _sent(self, state: str | None, row: dict[str, Any]) -> int:
        """Return the tokens that are sent of a block in a state; in the state that it has now they are the row's."""
        if state == row["state"]:
            return int(row["shown_tokens"] or 0)
        return int(row["tokens"] or 0) if state in {"visible", "carried"} else 0
