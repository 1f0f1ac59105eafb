"""Scripts: write a record out for a model that summarises it. Long texts are shortened."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final, Protocol

from timeline.blocks import Attachment, Reasoning, ToolCall, ToolResult, TurnHeader, UserPrompt
from timeline.frozen import canonical_json
from timeline.ports import HIDDEN_KEY

from .text import head_and_tail

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from timeline.blocks import Block

MESSAGE_CHARACTERS: Final = 2_000
RESULT_CHARACTERS: Final = 500
"""Characters of a message and of a tool's result that a model is shown (keep-last and prune-then-summarize designs)."""
CUT: Final = "\n[...truncated...]"
"""The end of a message that was cut (keep-last design)."""


class Script(Protocol):
    """A way to write out a record."""

    @property
    def separator(self) -> str:
        """The text between two entries."""
        ...

    def entries(self, blocks: Sequence[Block]) -> Iterator[str]:
        """Write blocks out as entries, between which the record may be divided into chunks."""
        ...


@dataclass(frozen=True, slots=True)
class BlockScript:
    """One line a block: its number from 1, its speaker, and its text, shortened in the middle."""

    separator: str = "\n---\n"

    def entries(self, blocks: Sequence[Block]) -> Iterator[str]:
        """Write each block out."""
        return (f"[{number}] {_told(block)}" for number, block in enumerate(blocks, start=1))


def _told(block: Block) -> str:
    if isinstance(block, ToolCall):
        return f"CALL: {block.name} {head_and_tail(_arguments(block), RESULT_CHARACTERS)} {block.text}".strip()
    text = block.text.strip() or f"({block.mime})"
    if isinstance(block, ToolResult):
        state = "ERROR" if block.is_error or block.exit_status else "RESULT"
        status = f" (exit {block.exit_status})" if block.exit_status is not None else ""
        return f"{state} {block.name}{status}: {head_and_tail(text, RESULT_CHARACTERS)}"
    return f"{block.author.upper()}: {head_and_tail(text, MESSAGE_CHARACTERS)}"


@dataclass(frozen=True, slots=True)
class MessageScript:
    """One entry a message, its parts under its role (keep-last and prune-then-summarize designs).

    Texts have named fields.

    Attributes:
        heading: text above a message; ``{number}`` counts from 0.
        call: text of a tool call, with ``{name}`` and ``{arguments}``.
        result: text of a tool's result, with ``{name}`` and ``{text}``.
        cleared: text of a result that is shown as its replacement.
        separator: text between two messages.
    """

    heading: str
    call: str
    result: str
    cleared: str
    separator: str = "\n\n---\n\n"

    def entries(self, blocks: Sequence[Block]) -> Iterator[str]:
        """Write each message out; a response's texts and calls are one message, and so are the blocks that open a turn.

        Reasoning is left out of a message, unless the message has nothing else.
        """
        said = [block for block in blocks if not isinstance(block, Reasoning)] or blocks
        for number, (key, parts) in enumerate(groupby(enumerate(said), lambda numbered: _message(*numbered))):
            heading = self.heading.format(number=number, role=key[0].upper())
            content = "\n".join(filter(None, (self._part(block) for _, block in parts)))
            shown = content if len(content) <= MESSAGE_CHARACTERS else content[:MESSAGE_CHARACTERS] + CUT
            yield f"{heading}\n{shown}"

    def _part(self, block: Block) -> str:
        if isinstance(block, ToolCall):
            return self.call.format(name=block.name, arguments=_arguments(block))
        if not isinstance(block, ToolResult):
            return block.text.strip() or f"({block.mime})"
        if HIDDEN_KEY in block.meta:
            return self.cleared.format(name=block.name)
        text = block.text
        shown = text if len(text) <= RESULT_CHARACTERS else f"{text[:RESULT_CHARACTERS]}..."
        return self.result.format(name=block.name, text=shown)


def _message(position: int, block: Block) -> tuple[str, object]:
    """Return the role of a block's message, and the key that joins neighbouring blocks into one message."""
    if isinstance(block, ToolResult):
        return "tool", position
    if isinstance(block, UserPrompt | Attachment | TurnHeader):
        return "user", ("turn", block.turn_id or position)
    return block.author, block.response_id or position


def _arguments(call: ToolCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else canonical_json(call.arguments)


BY_BLOCK: Final = BlockScript()
NUMBERED: Final = MessageScript(
    heading="[{number}] {role}:",
    call="[Tool: {name}({arguments})]",
    result="[Result: {text}]",
    cleared="[Result: cleared]",
)
"""The keep-last design's (its formatMessagesForSummary)."""
CONTINUATION: Final = MessageScript(
    heading="{role}:",
    call="[Called {name} with: {arguments}]",
    result="[{name} result: {text}]",
    cleared="[{name} result: cleared]",
)
"""The prune-then-summarize design's (its messagesToText)."""
