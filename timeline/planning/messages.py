"""Messages: the units in which the published designs count (seeds 000, 001, 003, 004), told from the blocks.

A response's reasoning, text and calls are one message of the assistant; each result is one of the tool; a turn's
header, prompt and attachments are one of the user. What is omitted is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from timeline.blocks import Attachment, ToolResult, TurnHeader, UserPrompt
from timeline.fold.turns import RESPONSE_BLOCKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.blocks import Block
    from timeline.fold.window import Item

Role: TypeAlias = Literal["user", "assistant", "tool", "system"]
_OPENING: Final = (TurnHeader, UserPrompt, Attachment)


@dataclass(frozen=True, slots=True)
class Message:
    """One message: who says it, and the positions of its items."""

    role: Role
    indices: tuple[int, ...]


class Starts:
    """Says of each item of a window, in turn, whether a message begins with it."""

    def __init__(self) -> None:
        self._key: object = None
        self._prompted = False

    def at(self, item: Item, position: int) -> bool:
        """Say whether a message begins with an item; asked once for each that is not omitted, in order."""
        before, self._key = self._key, _key(item, position)
        is_prompt = type(item.block) is UserPrompt
        # A second prompt is a message of its own, even without an answer in between.
        begins = before != self._key or (is_prompt and self._prompted)
        self._prompted = is_prompt or (self._prompted and not begins)
        return begins


def messages(items: Sequence[Item]) -> list[Message]:
    """Part the items into messages, by first position."""
    parts: list[tuple[Role, list[int]]] = []
    starts = Starts()
    for position, item in enumerate(items):
        if item.omitted:
            continue
        if starts.at(item, position):
            parts.append((role_of(item.block), [position]))
        else:
            parts[-1][1].append(position)
    return [Message(role, tuple(indices)) for role, indices in parts]


def role_of(block: Block) -> Role:
    """Say whose message a block is part of."""
    if type(block) is ToolResult:
        return "tool"
    if type(block) in RESPONSE_BLOCKS:
        return "assistant"
    return "system" if block.type == "system.message" else "user"


def _key(item: Item, position: int) -> object:
    """Return what joins an item with its neighbours into one message."""
    if item.response and type(item.block) in RESPONSE_BLOCKS:
        return ("response", item.response)
    if isinstance(item.block, _OPENING):
        return ("opening", item.block.turn_id)
    return ("single", position)
