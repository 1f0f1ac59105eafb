"""Read the list of names at a summary's address, from the blocks that the log has now.

No list has names from blocks that were redacted, scavenged, omitted or hidden by hand. The newest blocks are read
first, in slices, and only as many as are searched for names. So a long history costs no more than a part of it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from timeline.events import BlockRedacted, BlocksHidden, BlocksRevealed, appended_block
from timeline.facts.name_list import SCANNED, list_block, names_of
from timeline.log.off_loop import off_loop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from timeline.blocks import Block
    from timeline.events import Covers
    from timeline.facts.name_list import Listed, NamesOf
    from timeline.ports import EventStore

_SLICE: Final = 1_000
"""Versions that are read at a time."""
_BY_HAND: Final = "manual"
"""The reason of a hide that an application asked for: the model may not be meant to see the block."""
_MARKS: Final = ("block.redacted", "blocks.hidden", "blocks.revealed")


async def read_list(store: EventStore, conversation: str, summary: Block, covers: Covers, listed: Listed) -> Block:
    """Return a list of the names before a summary.

    Args:
        store: holds the conversation.
        conversation: its id.
        summary: the summary's block.
        covers: the versions that it covers.
        listed: the kind of list.
    """
    covers = covers.without(await _left_out(store, conversation))
    found = [named async for named in _newest_first(store, conversation, covers)]
    return await off_loop(len(found), partial(list_block, summary, found, listed))


async def _left_out(store: EventStore, conversation: str) -> set[int]:
    """Return the versions of the blocks that are redacted, and of those that are omitted or hidden by hand."""
    redacted: set[int] = set()
    hidden: set[int] = set()
    async for event in store.read(conversation, types=_MARKS):
        match event.payload:
            case BlockRedacted(version=version):
                redacted.add(version)
            case BlocksHidden(blocks=blocks) as hide if hide.mode == "omit" or hide.reason == _BY_HAND:
                hidden.update(block.version for block in blocks)
            case BlocksRevealed(versions=versions):
                hidden.difference_update(versions)
            case _:
                pass
    return redacted | hidden


async def _newest_first(store: EventStore, conversation: str, covers: Covers) -> AsyncIterator[tuple[int, NamesOf]]:
    left = SCANNED
    for first, last in sorted(covers.ranges, reverse=True):
        for end in range(last, first - 1, -_SLICE):
            begin = max(first, end - _SLICE + 1)
            read = store.read(conversation, after=begin - 1, until=end, types=["block.appended"])
            blocks = [(event.version, block) async for event in read if (block := appended_block(event.payload))]
            for version, named in await off_loop(len(blocks), partial(_named, blocks)):
                yield version, named
                left -= named.characters
            if left <= 0:
                return


def _named(blocks: Sequence[tuple[int, Block]]) -> list[tuple[int, NamesOf]]:
    return [(version, names_of(block)) for version, block in reversed(blocks)]
