"""Part a window into atomic groups, which no cut may divide, and rounds, the unit of cache points.

A group is a model response with its reasoning, calls and all their results; or a turn's opening (header, prompt,
attachments); or a single block. Indices are positions in ``window.items``.

No model answers with a thousand blocks at once, but a log may hold such a response, and no cut could then shorten its
window. So a response of that size is parted where none of its calls waits for a result, and each part is a group.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from timeline.blocks import Attachment, ToolCall, TurnHeader, UserPrompt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.fold.window import Item

LARGEST: Final = 1_000
"""A response of so many items is parted at the next place where that divides no call from its result."""

GroupKind: TypeAlias = Literal["summary", "opening", "response", "single"]


@dataclass(frozen=True, slots=True)
class Group:
    """Items that stay together, by position.

    ``pending``: one of its calls waits, or waited, for an approval. The result may come much later, so a cut may divide
    the group: the part before the cut is carried.
    """

    kind: GroupKind
    indices: tuple[int, ...]
    pending: bool = False

    @property
    def first(self) -> int:
        """Position of its first item."""
        return self.indices[0]

    @property
    def last(self) -> int:
        """Position of its last item."""
        return self.indices[-1]


def atomic_groups(items: Sequence[Item]) -> tuple[Group, ...]:
    """Return the groups of the items, ordered by first position."""
    members: dict[tuple[GroupKind, object], list[int]] = {}
    opening: tuple[str, int] | None = None
    parts = _Parts(items)
    for position, item in enumerate(items):
        block = item.block
        key: tuple[GroupKind, object]
        if isinstance(block, TurnHeader | UserPrompt | Attachment) and not item.carried:
            if opening is None or opening[0] != block.turn_id or isinstance(block, TurnHeader):
                opening = (block.turn_id, position)
            key = ("opening", opening[1])
        else:
            opening = None
            if item.is_summary:
                key = ("summary", position)
            elif item.response:
                key = ("response", parts.of(item))
            else:
                key = ("single", position)
        members.setdefault(key, []).append(position)
    return tuple(
        Group(kind, tuple(indices), any(_pending(items[i]) for i in indices)) for (kind, _), indices in members.items()
    )


class _Parts:
    """Parts the responses of a window. Ask it for each item once, in timeline order."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._is_large = len(items) > LARGEST
        self._answered = {item.answers for item in items} if self._is_large else set()
        self._newest = max((item.response for item in items), default=0)
        self._sizes: Counter[int] = Counter()
        self._waiting: Counter[int] = Counter()
        self._numbers: Counter[int] = Counter()

    def of(self, item: Item) -> object:
        """Return the key that the items of one part share."""
        response = item.response
        if not self._is_large:
            return response
        if self._sizes[response] >= LARGEST and not self._waiting[response]:
            self._numbers[response] += 1
            self._sizes[response] = 0
        self._sizes[response] += 1
        if item.answers is not None:
            self._waiting[response] -= 1
        elif isinstance(item.block, ToolCall) and (item.version in self._answered or self._may_be_answered(item)):
            self._waiting[response] += 1
        return response, self._numbers[response]

    def _may_be_answered(self, call: Item) -> bool:
        return call.response == self._newest or _pending(call)


def boundaries(items: Sequence[Item], groups: Sequence[Group]) -> list[bool]:
    """Return for each position whether a cut there divides no group. Pending groups do not count: they are carried."""
    divides = [0] * (len(items) + 1)
    for group in groups:
        if not group.pending:
            divides[group.first + 1] += 1
            divides[group.last + 1] -= 1
    legal: list[bool] = []
    depth = 0
    for position in range(len(items)):
        depth += divides[position]
        legal.append(depth == 0)
    return legal


def rounds(groups: Sequence[Group]) -> list[Group]:
    """Return the rounds, oldest first: one model response with its calls and their results."""
    return [group for group in groups if group.kind == "response"]


def _pending(item: Item) -> bool:
    return isinstance(item.block, ToolCall) and item.block.pending
