"""The blocks of a log as a framework's list is compared with them, read event by event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.agent.deduplication import content_key, cut_calls
from timeline.agent.divergence import Known
from timeline.blocks import (
    AssistantCompletion,
    Attachment,
    RangeSummary,
    Reasoning,
    ToolCall,
    ToolResult,
    UserPrompt,
)
from timeline.events import DISOWNED, BlocksHidden, BlocksRevealed, appended_block

if TYPE_CHECKING:
    from collections.abc import Iterable

    from timeline.blocks import Block
    from timeline.events import Event

FRAMEWORK_ID: Final = "framework_id"
"""The key in a block's ``meta`` of the id that a framework gave its message; empty where it gave none that lasts.

A block that a framework's list brought has the key in any case."""
_IN_LISTS: Final = (UserPrompt, AssistantCompletion, Reasoning, ToolCall, ToolResult, Attachment)
"""The kinds of blocks that the lists of earlier releases brought, which did not mark them."""


class LogBlocks:
    """Reads a log into `Known` blocks.

    Summaries are left out; calls in which a response was cut off are in, behind it, as a framework's message has them.
    """

    def __init__(self) -> None:
        self._blocks: list[Known] = []
        self._places: dict[int, int] = {}
        self._cut: list[Known] = []
        self._response: str | None = None
        self._group = 0
        self._calls: dict[str, int] = {}
        self._is_marked = False

    def add(self, events: Iterable[Event]) -> None:
        """Read the next events."""
        for event in events:
            block = appended_block(event.payload)
            if block is not None and not isinstance(block, RangeSummary):
                self._add(event.version, block)
            elif isinstance(event.payload, BlocksHidden) and event.payload.reason in DISOWNED:
                self._show([hidden.version for hidden in event.payload.blocks], shown=False)
            elif isinstance(event.payload, BlocksRevealed):
                self._show(event.payload.versions, shown=True)

    def known(self) -> list[Known]:
        """Return the blocks."""
        return [*self._blocks, *self._cut]

    def _add(self, version: int, block: Block) -> None:
        if block.response_id != self._response or block.response_id is None:
            self._blocks += self._cut
            self._cut, self._response = [], block.response_id
            self._group += 1
        id_ = block.meta.get(FRAMEWORK_ID)
        self._is_marked = self._is_marked or id_ is not None
        owned = id_ is not None or (not self._is_marked and isinstance(block, _IN_LISTS))
        known = Known(
            version, content_key(block), str(id_ or ""), owned=owned, group=self._group_of(block, self._group)
        )
        self._places[version] = len(self._blocks)
        self._blocks.append(known)
        cut = (known._replace(key=content_key(call), owned=False) for call in cut_calls(block))
        self._cut += cut

    def _group_of(self, block: Block, newest: int) -> int:
        """Return the number of the response that a block is part of, or that it answers."""
        if isinstance(block, ToolResult):
            return self._calls.get(block.call_id, 0)
        if isinstance(block, ToolCall):
            self._calls[block.call_id] = newest
        return newest if block.response_id is not None or isinstance(block, ToolCall) else 0

    def _show(self, versions: Iterable[int], *, shown: bool) -> None:
        for version in versions:
            if (place := self._places.get(version)) is not None:
                self._blocks[place] = self._blocks[place]._replace(shown=shown)
