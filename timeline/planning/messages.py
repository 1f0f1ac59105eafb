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


def messages(items: Sequence[Item]) -> list[Message]:
    """Part the items into messages, by first position."""
    parts: list[tuple[Role, list[int]]] = []
    key: object = None
    for position, item in enumerate(items):
        if item.omitted:
            continue
        before, key = key, _key(item, position)
        # A second prompt is a message of its own, even without an answer in between.
        if before == key and not (type(item.block) is UserPrompt and _holds_prompt(items, parts[-1][1])):
            parts[-1][1].append(position)
        else:
            parts.append((role_of(item.block), [position]))
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


def _holds_prompt(items: Sequence[Item], positions: Sequence[int]) -> bool:
    return any(type(items[p].block) is UserPrompt for p in positions)
