"""Scripts: write a record out for a model that summarises it.

Texts are whole, except in the scripts of the two designs that say how much of a message and of a result is shown. What
does not fit a model's window is asked about in chunks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final, Protocol

from timeline.blocks import Attachment, Reasoning, ToolCall, ToolResult, TurnHeader, UserPrompt
from timeline.frozen import compact_json
from timeline.ports import HIDDEN_KEY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from timeline.blocks import Block

_MOST_MESSAGE: Final = 2_000
_MOST_RESULT: Final = 500
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
    """One line a block: its number from 1, its speaker, and its whole text."""

    separator: str = "\n---\n"

    def entries(self, blocks: Sequence[Block]) -> Iterator[str]:
        """Write each block out."""
        return (f"[{number}] {_entry(block)}" for number, block in enumerate(_named(blocks), start=1))


def _entry(block: Block) -> str:
    if isinstance(block, ToolCall):
        return f"CALL: {block.name} {_arguments(block)} {block.text}".strip()
    text = block.text.strip() or f"({block.mime})"
    if isinstance(block, ToolResult):
        state = "ERROR" if block.failed else "RESULT"
        status = f" (exit {block.exit_status})" if block.exit_status is not None else ""
        return f"{state} {block.name}{status}: {text}"
    return f"{block.author.upper()}: {text}"


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
        message_characters, result_characters: most characters of a message and of a result; None writes them whole.
    """

    heading: str
    call: str
    result: str
    cleared: str
    separator: str = "\n\n---\n\n"
    message_characters: int | None = None
    result_characters: int | None = None

    def entries(self, blocks: Sequence[Block]) -> Iterator[str]:
        """Write each message out; a response's texts and calls are one message, and so are the blocks that open a turn.

        Reasoning is left out of a message, unless the message has nothing else.
        """
        spoken = [block for block in _named(blocks) if not isinstance(block, Reasoning)] or blocks
        for number, (key, parts) in enumerate(groupby(enumerate(spoken), lambda numbered: _message(*numbered))):
            heading = self.heading.format(number=number, role=key[0].upper())
            content = "\n".join(filter(None, (self._part(block) for _, block in parts)))
            yield f"{heading}\n{_cut(content, self.message_characters, CUT)}"

    def _part(self, block: Block) -> str:
        if isinstance(block, ToolCall):
            return self.call.format(name=block.name, arguments=_arguments(block))
        if not isinstance(block, ToolResult):
            return block.text.strip() or f"({block.mime})"
        if HIDDEN_KEY in block.meta:
            return self.cleared.format(name=block.name)
        return self.result.format(name=block.name, text=_cut(block.text, self.result_characters, "..."))


def _named(blocks: Sequence[Block]) -> list[Block]:
    """Return blocks whose results have their call's name where they have none of their own, as in most providers'."""
    names = {block.call_id: block.name for block in blocks if isinstance(block, ToolCall)}
    return [
        block.model_copy(update={"name": names.get(block.call_id, "")})
        if isinstance(block, ToolResult) and not block.name
        else block
        for block in blocks
    ]


def _cut(text: str, most: int | None, ending: str) -> str:
    return text if most is None or len(text) <= most else text[:most] + ending


def _message(position: int, block: Block) -> tuple[str, object]:
    """Return the role of a block's message, and the key that joins neighbouring blocks into one message."""
    if isinstance(block, ToolResult):
        return "tool", position
    if isinstance(block, UserPrompt | Attachment | TurnHeader):
        return "user", ("turn", block.turn_id or position)
    return block.author, block.response_id or position


def _arguments(call: ToolCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else compact_json(call.arguments)


BY_BLOCK: Final = BlockScript()
WHOLE: Final = MessageScript(
    heading="[{number}] {role}:",
    call="[Tool: {name}({arguments})]",
    result="[Result: {text}]",
    cleared="[Result: cleared]",
)
"""Numbered messages, each whole."""
NUMBERED: Final = replace(WHOLE, message_characters=_MOST_MESSAGE, result_characters=_MOST_RESULT)
"""The keep-last design's (its formatMessagesForSummary)."""
CONTINUATION: Final = MessageScript(
    heading="{role}:",
    call="[Called {name} with: {arguments}]",
    result="[{name} result: {text}]",
    cleared="[{name} result: cleared]",
    result_characters=_MOST_RESULT,
)
"""The prune-then-summarize design's (its messagesToText)."""
