"""Divide the rows of a Claude Code session into its branches: each way through it is a conversation of its own.

A prompt that goes on from an earlier row begins a branch, which shares the rows up to there. A prompt that goes on from
the end of an older branch continues that one. The oldest branch has the session's id, every other one the id of the
prompt that begins it, so that importing a session that has grown, in any branch, adds to the conversations imported
before. Which rows a prompt leaves behind, `claude_branches` finds.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

from timeline.importers.claude_branches import CONVERSATION, Branches, numbers_in
from timeline.wire.foreign import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from timeline.importers.lines import Record


class SessionPath:
    """One way through a session.

    Attributes:
        begins: uuid of the prompt that begins it; empty for the oldest.
        parent: the way that it leaves; None for the oldest.
        line: where it begins in the file.
        own: positions of the rows that were written while it was the newest, in order.
        rows: all of its rows, with the bit of each position.
    """

    def __init__(self, begins: str, parent: SessionPath | None, line: int, shared: int) -> None:
        self.begins = begins
        self.parent = parent
        self.line = line
        self.own: list[int] = []
        self.rows = self._from_others = shared

    @cached_property
    def shared(self) -> tuple[int, ...]:
        """Positions of the rows that it has from others, in order."""
        return tuple(numbers_in(self._from_others))

    @cached_property
    def _shared(self) -> frozenset[int]:
        return frozenset(self.shared)

    def shares(self, position: int) -> bool:
        """Return whether a row of it is in another way, too, and was written there."""
        return position in self._shared

    def id_in(self, session: str) -> str:
        """Return the id of its conversation."""
        return f"{session}.branch-{self.begins}" if self.begins else session


def is_boundary(row: dict[str, Any]) -> bool:
    """Return whether a row marks a compaction or a microcompaction."""
    return row.get("type") == "system" and str(row.get("subtype")).endswith("compact_boundary")


def paths_of(records: Sequence[Record]) -> list[SessionPath]:
    """Return the ways through a session, the one that was written last first.

    Args:
        records: the rows of the file, in order.
    """
    divided = _Divided(records)
    for position in range(len(records)):
        divided.read(position)
    return sorted(divided.paths, key=lambda path: path.own[-1:], reverse=True)


class _Divided:
    """Follows a session row by row.

    A row beside the conversation goes with the row of it before them: it is left and taken up with that. The mark of a
    compaction, and what follows it, go with its summary.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records
        self._links = Branches()
        self._owners: list[str] = []
        """By position, the row of the conversation that a row goes with."""
        self._owned: defaultdict[str, set[int]] = defaultdict(set)
        """By row of the conversation, the positions of the rows that go with it."""
        self._view = 0
        """What is in the client's context, with the bit of each position."""
        self._writers: dict[int, SessionPath] = {}
        """By position, the way that was the newest one when a row was written."""
        self._newest = SessionPath("", None, records[0].line if records else 0, 0)
        self._waiting: list[int] = []
        """A compaction's mark and what follows it, until its summary."""
        self.paths = [self._newest]

    def read(self, position: int) -> None:
        """Read a row."""
        row = self._records[position].value
        is_side = row.get("isSidechain") is True
        if not is_side:
            change = self._links.change_by(row)
            if change is not None:
                for number in numbers_in(change.left | change.again):
                    self._show(self._owned[self._links.uuid_of(number)], is_left=bool(change.left >> number & 1))
                self._turn(position)
            self._links.add(row)
        if text_of(row, "type") in CONVERSATION and not is_side:
            self._own(position, text_of(row, "uuid"))
            for waiting in self._waiting:
                self._own(waiting, self._owners[-1])
            self._waiting = []
        else:
            self._own(position, self._owners[-1] if self._owners else "")
            if self._waiting or (is_boundary(row) and "microcompactMetadata" not in row):
                self._waiting.append(position)
        self._write(position)

    def _own(self, position: int, owner: str) -> None:
        """Let a row go with another one from now on."""
        if position < len(self._owners):
            self._owned[self._owners[position]].discard(position)
            self._owners[position] = owner
        else:
            self._owners.append(owner)
        self._owned[owner].add(position)
        self._show((position,), is_left=self._links.has_left(owner))

    def _show(self, positions: Iterable[int], *, is_left: bool) -> None:
        for position in positions:
            self._view |= 1 << position
            if is_left:
                self._view ^= 1 << position

    def _turn(self, position: int) -> None:
        """Go on from what is in view: on the way that ends there, or else on a new one."""
        record, before = self._records[position], self._rows_before(position)
        if before:
            self._newest.own = [n for n in self._newest.own if n not in before]
        moved = sum(1 << n for n in before)
        self._newest.rows &= ~moved
        view = self._view & ~moved
        last = view.bit_length() - 1
        writer = self._writers[last] if view else self.paths[0]
        if writer.own[-1:] == [last] and writer.rows == view:
            self._newest = writer
        else:
            self._newest = SessionPath(text_of(record.value, "uuid"), writer, record.line, view)
            self.paths.append(self._newest)
        for n in before:
            self._write(n)

    def _write(self, position: int) -> None:
        self._newest.own.append(position)
        self._newest.rows |= 1 << position
        self._writers[position] = self._newest

    def _rows_before(self, position: int) -> list[int]:
        """Return the rows right before a prompt that goes back by which it is linked: they belong to what it begins.

        They are the client's own messages and what a hook said. All of them go with the prompt from now on.
        """
        row, found = self._records[position].value, list[int]()
        for n in reversed(self._newest.own):
            other = self._records[n].value
            if text_of(other, "type") in CONVERSATION and other.get("isMeta") is not True:
                break
            if text_of(other, "uuid") == text_of(row, "parentUuid"):
                found.insert(0, n)
                self._own(n, text_of(self._records[position].value, "uuid"))
                row = other
        return found
