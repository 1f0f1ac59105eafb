"""Take out of a framework's entries what they repeat in a form of their own, where no search for a quote finds it.

A framework keeps a call's arguments one by one, however short, and a result as the parts or the object that the tool
gave. It keeps summaries that it was handed, answers of the recall tool, and beginnings of prompts as titles. Claude
Code keeps a second copy of each result beside the message, in the tool's own form: a file without the numbers of its
lines, two outputs apart from each other, or a whole file where an edit shows a part.
"""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import ToolCall, ToolResult
from timeline.content.server_words import as_tool_block
from timeline.events import BlocksHidden, appended_block
from timeline.events.addresses import Address
from timeline.fold.window import TOMBSTONE
from timeline.forgetting.quotes import LEAST
from timeline.frozen import compact_json, strings_in
from timeline.wire.foreign import arguments_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from timeline.blocks import Block
    from timeline.events import Payload
    from timeline.events.other_payloads import FrameworkEntry, FrameworkRecord
    from timeline.forgetting.quotes import Quotes
    from timeline.forgetting.recalls import Recalls

_CALL_IDS: Final = ("id", "tool_use_id", "tool_call_id")
"""Keys under which a part of a message names its call."""
_ARGUMENTS: Final = ("input", "args")
"""Keys of a call's arguments: an object, or its JSON text."""
_CONTENT: Final = "content"
"""Key of a result's content: a text, parts, or any JSON."""
_METADATA: Final = "metadata"
"""Key of what a tool returned beside the content, for the application alone."""
_COPY: Final = "toolUseResult"
_KEPT: Final = frozenset({"type", "agentId"})
"""Fields of Claude Code's copy by which the client, and an import, find what belongs together."""


class FrameworkCopies:
    """Takes copies out of the entries and records that frameworks keep in one conversation.

    Args:
        blocks: the redacted blocks.
        quotes: their texts.
        recalls: finds answers of the recall tool that repeat them, or what was made of them.
    """

    def __init__(self, blocks: Iterable[Block], quotes: Quotes, recalls: Recalls) -> None:
        self._quotes = quotes
        self._recalls = recalls
        self._of_calls: dict[str, list[ToolCall | ToolResult]] = {}
        """The redacted calls and results, by the ids of the calls."""
        self._anew: dict[str, str] = {}
        """What summaries, answers and replacements say from now on, by what they said."""
        self._longest_first: list[str] = []
        """What they said: a summary goes whole, before the prompt that it repeats."""
        for block in map(as_tool_block, blocks):
            if isinstance(block, ToolCall | ToolResult):
                self._of_calls.setdefault(block.call_id, []).append(block)

    def write_anew(self, old: Payload, new: Payload) -> None:
        """Take note that an event is written anew: a framework may have been handed the text that it had."""
        for before, after in _texts(old, new):
            said = before.strip()
            if len(said) >= LEAST and before != after:
                if said not in self._anew:
                    insort(self._longest_first, said, key=_by_length)
                self._anew[said] = after.strip()

    def out_of(self, kept: FrameworkEntry | FrameworkRecord) -> FrameworkEntry | FrameworkRecord:
        """Return what a framework keeps without these copies."""
        row = _row_in(kept.data)
        data: Any = kept.data if row is None else row
        left = self._without_copy(self._without(data))
        if left == data:
            return kept
        return kept.model_copy(update={"data": left if row is None else json.dumps(left)})

    def _without(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self._without(item) for item in value]
        if isinstance(value, dict):
            return {key: self._without(item) for key, item in value.items()} | self._emptied_part(value)
        return value

    def _text(self, text: str) -> str:
        fitting = bisect_left(self._longest_first, -len(text), key=_by_length)
        for before in islice(self._longest_first, fitting, None):
            text = text.replace(before, self._anew[before])
        is_copy = self._recalls.is_answer(text) or self._quotes.begin_with(text) or self._quotes.left(text)
        return TOMBSTONE if is_copy else text

    def _emptied_part(self, part: dict[str, Any]) -> dict[str, Any]:
        """Return the emptied fields of a part of a message that is a redacted call, or a redacted result.

        A provider may give an id twice, so the part has to say the same as the block.
        """
        emptied: dict[str, Any] = {}
        for block in self._blocks_of(part.get(key) for key in _CALL_IDS):
            if isinstance(block, ToolCall):
                same = (
                    name for name in _ARGUMENTS if name in part and _is_same(arguments_of(part[name]), block.arguments)
                )
                emptied |= {name: "{}" if isinstance(part[name], str) else {} for name in same}
            elif _CONTENT in part and _is_in(part[_CONTENT], block):
                emptied |= {_CONTENT: TOMBSTONE} | ({_METADATA: None} if _METADATA in part else {})
        return emptied

    def _blocks_of(self, ids: Iterable[Any]) -> Iterator[ToolCall | ToolResult]:
        for id_ in ids:
            if isinstance(id_, str):
                yield from self._of_calls.get(id_, ())

    def _without_copy(self, row: Any) -> Any:
        """Return a line of Claude Code's without its second copy; that of an edit repeats the call, too."""
        if not isinstance(row, dict) or _COPY not in row:
            return row
        is_theirs = any(True for _ in self._blocks_of(strings_in(row.get("message"))))
        return {**row, _COPY: _emptied(row[_COPY])} if is_theirs else row


def _by_length(text: str) -> int:
    return -len(text)


def _row_in(data: Any) -> dict[str, Any] | None:
    """Return the line that an entry keeps as JSON text, since the database has no form for it; None for other data."""
    row: Any = None
    if isinstance(data, str):
        with suppress(ValueError):
            row = json.loads(data)
    return row if isinstance(row, dict) else None


def _texts(old: Payload, new: Payload) -> Iterator[tuple[str, str]]:
    """Yield the texts of an event that a context shows, each with what is in its place."""
    before, after = appended_block(old), appended_block(new)
    if before is not None and after is not None:
        yield before.text, after.text
    elif isinstance(old, BlocksHidden) and isinstance(new, BlocksHidden):
        for was, now in zip(old.blocks, new.blocks, strict=True):
            if str(Address(was.version)) in was.text:  # a text without an address may stand for other blocks as well
                yield was.text, now.text


def _is_same(kept: Any, said: Any) -> bool:
    """Return whether what an entry keeps is what a call said, but for what an earlier redaction took out."""
    if isinstance(kept, str) and TOMBSTONE in kept:
        return True
    if isinstance(kept, dict) and isinstance(said, dict) and len(kept) == len(said):
        return all(_is_same(part, said[key]) if key in said else TOMBSTONE in key for key, part in kept.items())
    if isinstance(kept, list) and isinstance(said, list) and len(kept) == len(said):
        return all(_is_same(one, other) for one, other in zip(kept, said, strict=True))
    return bool(kept == said)


def _is_in(content: Any, result: ToolResult) -> bool:
    """Return whether a result says what a part of a message does, as one text or in parts."""
    if compact_json(content) == result.text:
        return True
    said = [result.text, *strings_in(result.data)]
    return any(text.strip() and any(text in each for each in said) for text in strings_in(content))


def _emptied(value: Any) -> Any:
    if isinstance(value, list):
        return [_emptied(item) for item in value]
    if isinstance(value, dict):
        return {key: item if key in _KEPT else _emptied(item) for key, item in value.items()}
    return TOMBSTONE if isinstance(value, str) and value else value
