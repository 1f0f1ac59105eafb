"""Measure what a context shows, which hidden files its answer needed, and whether calls and results were divided.

**Recall need.** A need is a file that a tool call of the answer names (to read, write or edit it) while an earlier
block of the conversation holds content of it: the result of a call that read it or a part of it, the call that wrote
all of it, an attachment. Failed calls hold none. It is a hidden need if the answered context does not show the newest
such block in full. Only files that tools name as such count: the files that a shell command reads are not parsed from
its text.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, NamedTuple

from timeline.blocks import Attachment, Reasoning, ToolCall, ToolResult
from timeline.facts.tool_use import tool_use
from timeline.fold.window import unsent_calls
from timeline.lab.segments import Thoughts, is_sent
from timeline.planning.hide import holds_whole_file
from timeline.projection.project import entries_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.fold.fold import Fold
    from timeline.fold.window import Item
    from timeline.lab.shown import ShownContext


class Seen(NamedTuple):
    """What a context shows.

    Attributes:
        shown: tokens of the messages that are sent.
        visible: tokens of the blocks that are in sight, summaries left out: they are sent in full, or what is left out
            of them is sent with an earlier block (`timeline.planning.abridge`). A thought that the provider does not
            take back, because the prefix before it was rewritten or because it is not signed, is not sent.
        needs, hidden_needs: files that the answer's calls name and that were seen before, and how many of them were not
            in sight.
        orphans: results without their call, or calls without a result although there is one.
    """

    shown: int
    visible: int
    needs: int
    hidden_needs: int
    orphans: int


class Sight:
    """Follows a conversation block by block, and measures its contexts.

    Args:
        thoughts: knows which of the conversation's a model takes back.
    """

    def __init__(self, thoughts: Thoughts) -> None:
        self._thoughts = thoughts
        self._newest: dict[str, int] = {}
        self._calls: dict[int, ToolCall] = {}
        self._pairs: dict[int, int] = {}
        self._visible = self._orphans = 0
        self._model = ""

    def copy(self) -> Sight:
        """Return an independent copy."""
        twin = copy(self)
        twin._newest, twin._calls = {**self._newest}, {**self._calls}  # noqa: SLF001 - of its own class
        twin._pairs = {**self._pairs}  # noqa: SLF001 - of its own class
        return twin

    def take(self, fold: Fold) -> None:
        """Note the newest block of a fold."""
        item = fold.live(fold.version)
        if item is None:
            return
        block = item.block
        self._visible += item.tokens if _is_sent(item, self._model) else 0
        if isinstance(block, ToolCall):
            self._calls[item.version] = block
        elif isinstance(block, Attachment):
            self._newest[str(block.meta.get("file") or block.path)] = item.version
        elif isinstance(block, ToolResult) and item.answers is not None:
            self._pairs |= {item.answers: item.version, item.version: item.answers}
            self._answered(block, item.version, item.answers)

    def _answered(self, result: ToolResult, version: int, called: int) -> None:
        call = self._calls.pop(called, None)
        use = None if call is None else tool_use(call)
        if call is None or use is None or result.failed:
            return
        if use.kind == "read":
            self._newest |= dict.fromkeys(use.subjects, version)
        elif use.kind == "write" and holds_whole_file(call):
            self._newest |= dict.fromkeys(use.subjects, called)

    def look(self, shown: ShownContext, fold: Fold, answer: Sequence[ToolCall], *, decided: bool) -> Seen:
        """Measure a context.

        Args:
            shown: what the context shows.
            fold: the fold that it was rendered from.
            answer: the tool calls of the response to it, before any of them is noted with `take`.
            decided: whether something was hidden or covered since the last context; appended blocks are shown in full.
        """
        if decided or shown.window.model != self._model:
            self._model = shown.window.model
            items = shown.window.items
            unsent = self._thoughts.unsent(shown.entries, self._model)
            in_full = (item for item in items if item.is_in_sight and not item.is_summary)
            self._visible = sum(item.tokens for item in in_full if item.block.path not in unsent)
            self._orphans = self._divided(items)
        uses = [use for call in answer if (use := tool_use(call)) is not None and use.kind in {"read", "write"}]
        files = [file for use in uses for file in use.subjects if file in self._newest]
        hidden = sum(not _shows(fold, self._newest[file]) for file in files)
        return Seen(shown.messages, self._visible, len(files), hidden, self._orphans)

    def _divided(self, items: Sequence[Item]) -> int:
        """Count the results that are sent without their call, and the calls without their result."""
        gone = unsent_calls(items)
        sent = {item.version for item in items if not item.omitted and item.version not in gone}
        return sum(self._pairs[version] not in sent for version in sent if version in self._pairs)


def _is_sent(item: Item, model: str) -> bool:
    """Return whether a block that was just appended is sent: all are, except for unsigned thoughts."""
    return not isinstance(item.block, Reasoning) or all(
        is_sent(entry, model) for entry in entries_of(item, loose=False)
    )


def _shows(fold: Fold, version: int) -> bool:
    item = fold.live(version)
    return item is not None and item.is_in_sight
