"""Part a window into messages, the units in which the published designs count.

For most designs these are one message each:

- of the assistant: the reasoning, text and calls of a response;
- of the tool: each result;
- of the user: a turn's header, prompt and attachments, or the parts that came as one message;
- a summary, with one message more for the question before it and one for the answer behind it, where its form has them.

Blocks that are omitted, or shown in the tail, are in no message. For the cut-point design [cut_point] a message is a
block: a candidate, before which a cut may be placed, or a result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from timeline.blocks import (
    Attachment,
    ToolResult,
    TurnHeader,
    UserPrompt,
    form_of,
)
from timeline.fold.turns import RESPONSE_BLOCKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.blocks import Block
    from timeline.fold.window import Item


Role: TypeAlias = Literal["user", "assistant", "tool", "system"]
_OPENING: Final = (TurnHeader, UserPrompt, Attachment)


@dataclass(frozen=True, slots=True)
class Message:
    """One message: its role, and the positions of its items."""

    role: Role
    indices: tuple[int, ...]


class Starts:
    """Follows the items of a window, and finds those that begin a message."""

    def __init__(self) -> None:
        self._key: object = None
        self._prompted = False
        self._before: Item | None = None

    def at(self, item: Item, position: int) -> bool:
        """Return whether an item begins a message. Call it once for each item that is sent, in order."""
        previous, self._before = self._before, item
        is_prompt = type(item.block) is UserPrompt
        if item.continues(previous):
            self._prompted = self._prompted or is_prompt
            return False
        before, self._key = self._key, _key(item, position)
        # A second prompt is a message of its own, even without an answer in between.
        begins = before != self._key or (is_prompt and self._prompted)
        self._prompted = is_prompt or (self._prompted and not begins)
        return begins


def messages(items: Sequence[Item]) -> list[Message]:
    """Return the messages of the items, ordered by first position."""
    parts: list[tuple[Role, list[int]]] = []
    starts = Starts()
    for position, item in enumerate(items):
        if item.unsent:
            continue
        if starts.at(item, position):
            parts += [(message_role(item.block), [position]) for _ in range(1 + around(item.block))]
        else:
            parts[-1][1].append(position)
    return [Message(role, tuple(indices)) for role, indices in parts]


def around(block: Block) -> int:
    """Return the number of messages that are sent around a block: a summary's question and answer."""
    form = form_of(block)
    return 0 if form is None else sum(bool(form.get(key)) for key in ("question", "answer"))


def message_role(block: Block) -> Role:
    """Return the role of the message that a block is part of."""
    if type(block) is ToolResult:
        return "tool"
    if type(block) in RESPONSE_BLOCKS:
        return "assistant"
    return "system" if block.type == "system.message" else "user"


def _key(item: Item, position: int) -> object:
    """Return the key that an item shares with its neighbours in the same message."""
    if item.response and type(item.block) in RESPONSE_BLOCKS:
        return ("response", item.response)
    if isinstance(item.block, _OPENING):
        return ("opening", item.block.turn_id)
    return ("single", position)


_NEVER: Final = frozenset({"react.tool.result", "conv.range.summary"})


_ALWAYS: Final = frozenset({"user.prompt", "assistant.completion", "react.tool.call", "turn.header"})


def is_candidate(block: Block) -> bool:
    """Return whether a cut may be placed before a block, as in the cut-point design [cut_point]."""
    if block.type in _NEVER:
        return False
    return block.type in _ALWAYS or (bool(block.author) and block.author not in {"system", "tool"})


def is_message(block: Block) -> bool:
    """Return whether a block counts towards the recent tokens, as in the cut-point design [cut_point]."""
    return block.type == "react.tool.result" or is_candidate(block)


def is_turn_start(block: Block) -> bool:
    """Return whether a block opens a turn, as in the cut-point design [cut_point]."""
    return block.type in {"turn.header", "user.prompt"} or block.author == "user"
