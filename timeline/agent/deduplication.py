"""Alignment: which blocks of a message list are in the log already, told by what they say and in which order.

Lists of messages carry no ids, and a log's blocks come in several ways: as messages, as a recorded reply, one by one.
What they have in common is their content, so that is what is compared; repeated content is told apart by its order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from timeline.blocks import AssistantCompletion, RangeSummary, ToolCall, ToolResult
from timeline.frozen import canonical_json, sha256_hex
from timeline.wire.responses import calls_cut_off

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from timeline.blocks import Block


def signature(block: Block) -> str:
    """Return what a block says, as a hash: two blocks of one signature say the same to a model.

    White space at the end of an answer is nothing that is said: frameworks strip it, and so does a wire that must.
    """
    text = block.text.rstrip() if isinstance(block, AssistantCompletion) else block.text
    said: list[Any] = [block.type, text, block.data]
    if isinstance(block, ToolCall | ToolResult):
        said.append(block.call_id)
    if isinstance(block, ToolCall):
        said += [block.name, block.arguments]
    return sha256_hex(canonical_json(said))


def signatures(blocks: Iterable[Block]) -> Iterator[str]:
    """Return the signatures of a log's blocks in order: summaries left out, calls that were cut off among them."""
    cut: list[Block] = []
    response: str | None = None
    for block in blocks:
        if isinstance(block, RangeSummary):
            continue
        if block.response_id != response:
            yield from map(signature, cut)
            cut, response = [], block.response_id
        if not isinstance(block, AssistantCompletion) or block.text:
            yield signature(block)
        cut += _cut_calls(block)
    yield from map(signature, cut)


def _cut_calls(block: Block) -> list[Block]:
    """Return the calls that were cut off with an interrupted response; in its messages they stand at the end."""
    return [
        ToolCall.model_validate({**call, "name": call.get("name") or "unknown"})
        for call in calls_cut_off(block)
        if call.get("call_id")
    ]


class Places:
    """Things in a row that is gone through once, however often each stands in it."""

    def __init__(self, things: Iterable[Hashable]) -> None:
        self._places: defaultdict[Hashable, list[int]] = defaultdict(list)
        for place, thing in enumerate(things):
            self._places[thing].append(place)
        self._behind = 0

    def next(self, thing: Hashable) -> int | None:
        """Go to the first place of a thing behind the last that was gone to; None, and no step, where there is none."""
        own = self._places.get(thing, [])
        found = bisect_left(own, self._behind)
        if found == len(own):
            return None
        self._behind = own[found] + 1
        return own[found]


def unknown(messages: Sequence[Sequence[Block]], known: Iterable[str]) -> list[list[Block]]:
    """Return the blocks of messages that are not known, message by message, those without any left out.

    Args:
        messages: the blocks of each message, in order.
        known: signatures of what is in the log, in its order. A block is known where its signature comes behind that
            of the last known block before it.
    """
    places = Places(known)
    new = [[block for block in blocks if places.next(signature(block)) is None] for blocks in messages]
    return [blocks for blocks in new if blocks]
