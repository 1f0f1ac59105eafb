"""Writers of messages, item by item, whose contexts share what is written already and can go back to a mark.

A writer that goes on from context to context has *settled* messages, which are read-only and part of every body. For
each body a branch of it writes the newest items. Where an older item changes, a copy that ends at a mark before it
takes the writer's place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self

from timeline.wire.groups import Ids
from timeline.wire.read_only import plain, read_only

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping, Sequence

    from timeline.wire.groups import Placed, Response
    from timeline.wire.media import Part

Message = dict[str, Any]


_OPEN: Final = 2
"""How many of the last messages may still change: one goes on, or the one before it and its results is given up."""


class WriterMark(NamedTuple):
    """Where a writer was at one time.

    Attributes:
        until: number of the first entry that was not written.
        messages: how many messages there were.
        last: the last of them, which may have changed since, as they were then.
        ids: see `Ids.mark`.
        parts: how many content parts there were.
    """

    until: int
    messages: int
    last: tuple[Message, ...]
    ids: tuple[int, int]
    parts: int = 0


class MessageWriter(ABC):
    """Writes messages; a written message never moves, and only the last ones may change.

    Args:
        model: the model that the request is for.

    Attributes:
        call_ids: the rules for ids of calls, of each wire.
        messages: what was written.
        ids: makes the ids of calls.
        shared: how many messages are read-only, and part of every body.
        is_branch: whether it was made for one body.
    """

    call_ids: ClassVar[tuple[re.Pattern[str], int]]

    def __init__(self, model: str) -> None:
        self._model = model
        self.ids: Ids = Ids(*self.call_ids)
        self.messages: list[Message] = []
        self.shared: int = 0
        self.is_branch: bool = False

    def another(self, ids: Ids) -> Self:
        """Return a writer of the same kind that has written nothing."""
        twin = type(self)(self._model)
        twin.ids = ids
        return twin

    @abstractmethod
    def add(self, item: Placed | Response) -> None:
        """Write a response with its results, or an entry addressed to the model."""

    def branch(self) -> Self:
        """Return a writer that goes on from here, and leaves this one as it is."""
        twin = self.another(self.ids.branch())
        twin.messages, twin.shared, twin.is_branch = [*self.messages], self.shared, True
        if self.messages:
            twin.messages[-1] = _opened(self.messages[-1])
        return twin

    def share(self, until: int) -> WriterMark:
        """Make what was written read-only, since each branch passes it on; the last messages stay open.

        Args:
            until: number of the first entry that is not written yet.

        Returns:
            A mark to come back to, see `cut`.
        """
        for number in range(self.shared, len(self.messages)):
            shared = read_only(self.messages[number])
            self.messages[number] = _opened(shared) if number == len(self.messages) - 1 else shared
        self.shared = max(0, len(self.messages) - _OPEN)
        last = (*map(_opened, self.messages[self.shared :]),)
        return WriterMark(until, len(self.messages), last, self.ids.mark())

    def cut(self, mark: WriterMark) -> Self:
        """Return a writer that wrote what this one had at a mark, and leave this one as it is."""
        twin = self.another(self.ids.cut(mark.ids))
        twin.shared = mark.messages - len(mark.last)
        twin.messages = [*self.messages[: twin.shared], *map(_opened, mark.last)]
        return twin

    def written(self) -> list[Message]:
        """Return the messages for a body; those that no other body has are copies of what the log holds."""
        if not self.is_branch:
            return self.messages
        return [*self.messages[: self.shared], *map(plain, self.messages[self.shared :])]


class PlacedWriter(MessageWriter):
    """Writes messages part by part, and knows where each entry's parts are: for wires with cache markers.

    A content part's position counts the parts of all messages, in order.

    Attributes:
        parts: how many parts were written.
        starts, earlier_starts: the position at which each message begins; the earlier ones are of a branch's origin.
        places, earlier_place: by entry number, the position of the entry's last part.
        reaches: for each of the first entries the highest position of a part of the entries up to it.
    """

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self.parts: int = 0
        self.earlier_starts: Sequence[int] = ()
        self.starts: list[int] = []
        self.earlier_place: Mapping[int, int] = {}
        self.places: dict[int, int] = {}
        self.reaches: list[int] = []

    def branch(self) -> Self:
        """Return a writer that goes on from here, and leaves this one as it is."""
        twin = super().branch()
        # Not copied: a copy of what grows with the conversation costs more than all that is new in it.
        twin.earlier_starts, twin.earlier_place, twin.reaches = self.starts, self.places, self.reaches
        twin.parts = self.parts
        return twin

    def share(self, until: int) -> WriterMark:
        """Make what was written read-only; return a mark to come back to. See `MessageWriter.share`."""
        for number in range(len(self.reaches), until):
            self.reaches.append(max(self.places.get(number, -1), self.reaches[-1] if self.reaches else -1))
        return super().share(until)._replace(parts=self.parts)

    def cut(self, mark: WriterMark) -> Self:
        """Return a writer that wrote what this one had at a mark, and leave this one as it is."""
        twin = super().cut(mark)
        twin.parts, twin.starts, twin.reaches = (
            mark.parts,
            self.starts[: mark.messages],
            self.reaches[: mark.until],
        )
        twin.places = {number: place for number, place in self.places.items() if place < mark.parts}
        return twin

    def reached(self, number: int) -> int:
        """Return the highest position of a part of the entries up to one; -1 where they have none."""
        known = self.reaches
        if number < len(known):
            return known[number]
        later = (self.places.get(n, self.earlier_place.get(n, -1)) for n in range(len(known), number + 1))
        return max([known[-1] if known else -1, *later])

    def part(self, position: int) -> Part:
        """Return the content part at a position."""
        message, place = self._find(position)
        part: Part = self.messages[message]["content"][place]
        return part

    def replace(self, position: int, part: Part) -> None:
        """Put another part at a position; its message becomes a new one."""
        message, place = self._find(position)
        self.change(message, place, part)

    def change(self, message: int, place: int, part: Part) -> None:
        """Put another part at a place of a message, which becomes a new one."""
        content = self.messages[message]["content"]
        self.messages[message] = {
            **self.messages[message],
            "content": [*content[:place], part, *content[place + 1 :]],
        }

    def _find(self, position: int) -> tuple[int, int]:
        """Return the message of the part at a position, and the part's place in it."""
        own, earlier = self.starts, self.earlier_starts
        if own and position >= own[0]:
            message = bisect_right(own, position) - 1
            return len(earlier) + message, position - own[message]
        message = bisect_right(earlier, position) - 1
        return message, position - earlier[message]

    def _put(self, role: str, part: Part, number: int | None, *, joined: bool) -> None:
        """Write a part of an entry: at the end of the last message where it is joined to one of its role."""
        if not joined or not self.messages or self.messages[-1]["role"] != role:
            self.starts.append(self.parts)
            self.messages.append({"role": role, "content": []})
        # Copied: arguments and signed parts are the log's, and what a caller changes in a body is the body's alone.
        self.messages[-1]["content"].append(plain(part))
        if number is not None:
            self.places[number] = self.parts
        self.parts += 1


def _opened(message: Message) -> Message:
    """Return a message to which content may be added; the parts in it are shared."""
    return {key: [*value] if isinstance(value, list) else value for key, value in message.items()}
