"""Compare the summaries of two compactions of a log as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.errors import InvalidArgument
from timeline.events import CompactionCompleted
from timeline.events.addresses import Address
from timeline.log.blocks_by_name import find_block
from timeline.projection.summary_diff import SummaryDiff, SummaryRef, changed_lines

if TYPE_CHECKING:
    from timeline.log.blocks_by_name import FoundBlock
    from timeline.ports import EventStore


async def diff_summaries(store: EventStore, conversation: str, before: str, after: str) -> SummaryDiff:
    """Compare two summaries of a conversation, each named by its path or address.

    Raises:
        ConversationNotFound: there is no such conversation.
        BlockNotFound: it has no such block.
        InvalidArgument: a block is no summary.
    """
    old, new = await find_block(store, conversation, before), await find_block(store, conversation, after)
    sides = _ref("before", old), _ref("after", new)
    return SummaryDiff(*sides, lines=changed_lines(old.block.text, new.block.text))


def _ref(field: str, found: FoundBlock) -> SummaryRef:
    address, made = Address(found.event.version), found.event.payload
    if not isinstance(made, CompactionCompleted):
        raise InvalidArgument(
            field, f"{address} is not a summary but a {found.block.type}; `digests` lists the summaries"
        )
    return SummaryRef(str(address), found.block.path, made.round)
