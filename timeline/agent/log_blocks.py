"""The blocks of a log as a framework's list is compared with them, read event by event."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from timeline.agent.deduplication import TextsInOne, content_key, cut_calls
from timeline.agent.divergence import LoggedBlock
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
from timeline.fold.window import FRAMEWORK_ID, TOMBSTONE
from timeline.frozen import sha256_hex

if TYPE_CHECKING:
    from collections.abc import Iterable

    from timeline.blocks import Block
    from timeline.events import Event

_IN_LISTS: Final = (UserPrompt, AssistantCompletion, Reasoning, ToolCall, ToolResult, Attachment)
"""The kinds of blocks that the lists of earlier releases brought, which did not mark them."""


class LogBlocks:
    """Reads a log into `LoggedBlock` blocks.

    Summaries are left out. Calls in which a response was cut off come behind it, as a framework's message has them.
    """

    def __init__(self) -> None:
        self._blocks: list[LoggedBlock] = []
        self._versions: set[int] = set()
        self._left: set[int] = set()
        """Versions of the blocks that are abandoned."""
        self._cut: list[LoggedBlock] = []
        self._response: str | None = None
        self._group = 0
        self._calls: dict[str, int] = {}
        self._is_marked = False
        self._keys: set[str] = set()
        self._texts = TextsInOne()
        self._tombstones: dict[tuple[str, str | None], str] = {}
        """The key of each redacted block, by its type and what identifies its place."""
        self._named_tombstones: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        """The keys of the redacted blocks of a framework's message, by their type and the message's id."""

    def __len__(self) -> int:
        return len(self._blocks) + len(self._cut)

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

    def known(self) -> list[LoggedBlock]:
        """Return the blocks. A call in which a response was cut off is shown where the response's block is."""
        known = [*self._blocks, *self._cut]
        return [b._replace(shown=False) if b.version in self._left else b for b in known] if self._left else known

    def keys_of(self, blocks: Iterable[tuple[Block, str]]) -> list[str]:
        """Return the content keys of a list's blocks; for a block that was redacted here, the key of its tombstone.

        Otherwise a framework that still has redacted content would bring it back. A call or result is recognised by its
        id, another block by its message's id, or else by its type and the block before it.

        Args:
            blocks: each with the id of its message; empty where it has none.
        """
        keys: list[str] = []
        before: str | None = None
        seen: Counter[tuple[str, str]] = Counter()
        for block, id_ in blocks:
            key = content_key(block)
            if key not in self._keys:
                key = self._texts.first_of(key) or self._tombstone(block, id_, before, seen) or key
            keys.append(key)
            before = key
        return keys

    def _tombstone(self, block: Block, id_: str, before: str | None, seen: Counter[tuple[str, str]]) -> str | None:
        """Return the key of the tombstone in a block's place; ``seen`` counts those that a message's id led to."""
        named = self._named_tombstones.get((block.type, id_), []) if id_ and block.call_id is None else []
        number = seen[block.type, id_]
        if number < len(named):
            seen[block.type, id_] += 1
            return named[number]
        return self._tombstones.get((block.type, block.call_id or before))

    def _add(self, version: int, block: Block) -> None:
        if block.response_id != self._response or block.response_id is None:
            self._blocks += self._cut
            self._cut, self._response = [], block.response_id
            self._group += 1
        id_ = block.meta.get(FRAMEWORK_ID)
        self._is_marked = self._is_marked or id_ is not None
        owned = id_ is not None or (not self._is_marked and isinstance(block, _IN_LISTS))
        key = content_key(block)
        if block.text == TOMBSTONE and "redacted" in block.meta:
            key = sha256_hex(f"{key} {version}")  # tombstones look alike
            self._tombstones[block.type, block.call_id or (self._blocks[-1].key if self._blocks else None)] = key
            self._named_tombstones[block.type, str(id_ or "")].append(key)
        self._keys.add(key)
        self._texts.add(block)
        known = LoggedBlock(version, key, str(id_ or ""), owned=owned, group=self._group_of(block, self._group))
        self._versions.add(version)
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
        if shown:
            self._left.difference_update(versions)
        else:
            self._left.update(self._versions.intersection(versions))
