"""Part a window into atomic groups, which no cut may divide, and rounds, the unit of cache points.

A group is a model response with its reasoning, calls and all their results; or a turn's opening (header, prompt,
attachments); or a single block. Indices are positions in ``window.items``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from timeline.blocks import Attachment, ToolCall, TurnHeader, UserPrompt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.fold.window import Item

GroupKind: TypeAlias = Literal["summary", "opening", "response", "single"]


@dataclass(frozen=True, slots=True)
class Group:
    """Items that stay together, by position.

    ``pending``: one of its calls waits, or waited, for an approval. Its result may come much later, so a cut in between
    does not move away from the group: it carries the part before the cut.
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
                key = ("response", item.response)
            else:
                key = ("single", position)
        members.setdefault(key, []).append(position)
    return tuple(
        Group(kind, tuple(indices), any(_pending(items[i]) for i in indices)) for (kind, _), indices in members.items()
    )


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
