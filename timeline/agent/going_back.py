"""Go back behind a block of the log: it and all that follows leave the history, as where a user takes a turn back.

A framework that keeps a list shows by its list where it went back (`ListFollower`). A runtime that keeps none names the
block.

The log is read from its end, only as far as that takes: taking back a turn costs what the turn costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.agent.log_blocks import LogBlocks
from timeline.blocks import CONTINUES_KEY, RangeSummary, StageDigest, ToolResult, UserPrompt
from timeline.errors import BlockProtected, HistoryUnavailable
from timeline.events import BlockRedacted, appended_block
from timeline.log.blocks_by_name import find_block
from timeline.log.protocol import Departure

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from timeline.agent.divergence import LoggedBlock
    from timeline.blocks import Block
    from timeline.engine.conversation import Conversation
    from timeline.events import Event
    from timeline.fold.turns import Turns
    from timeline.log.protocol import Draft
    from timeline.ports import EventStore

_FIRST: Final = 64
"""Events of a log's end that are read first; where they do not say what leaves, each time twice as many are."""


class Leaving(NamedTuple):
    """The blocks that leave, by version.

    ``is_certain`` is False where events before those that were read may change it: they may hold the block itself, or
    the call of a result.
    """

    blocks: dict[int, Block]
    is_certain: bool


async def go_back(conversation: Conversation, path: str | None, at: datetime | None) -> list[Block]:
    """Omit a block and all that follows it as abandoned; return what left, in order. See `Timeline.go_back`.

    Raises:
        BlockNotFound: the conversation has no such block.
        BlockProtected: the block is a summary or a stage digest.
        HistoryUnavailable: `timeline scavenge` removed the block, or some of what follows it.
        StoreError: the store refused; nothing was written.
    """
    await conversation.catch_up()
    store, log = conversation.store, conversation.log
    version: int | None = None
    if path is not None:
        found = await find_block(store, conversation.id, path)
        _check(path, found.block)
        version = found.event.version
    info = await store.info(conversation.id)
    first = info.first_version
    if version is not None and version < first:  # a block that was carried or pinned is still there itself
        raise HistoryUnavailable(conversation.id, first - 1, first, info.version, scavenged=True)
    left: list[Block] = []

    async def choose() -> Departure:
        blocks = await left_at_the_end(store, conversation.id, version, first=first, last=log.fold.version)
        left[:] = blocks.values()
        return Departure(abandoned=tuple(blocks), behind=min(blocks, default=None))

    async def place(turns: Turns) -> Sequence[Draft]:
        del turns
        return []

    await log.go_back(choose, place, at=at, counter=conversation.counter.name)
    return left


async def left_at_the_end(
    store: EventStore, conversation: str, version: int | None, *, first: int, last: int, most: int = _FIRST
) -> dict[int, Block]:
    """Return what `blocks_left` returns of a whole log, from as much of its end as shows it.

    Args:
        store: holds the conversation.
        conversation: its id.
        version: of the block behind which it goes back; None for the newest shown prompt.
        first: the first version of the log that is there.
        last: the last one.
        most: number of events to begin with.
    """
    events: list[Event] = []
    begin = last + 1
    while begin > first:
        end, begin = begin - 1, max(first, last + 1 - most)
        events[:0] = [event async for event in store.read(conversation, after=begin - 1, until=end)]
        left = blocks_left(_from_a_beginning(events), version)
        if left.is_certain and begin > first:
            return left.blocks
        most *= 2
    return blocks_left(events, version).blocks


def _from_a_beginning(events: Sequence[Event]) -> Sequence[Event]:
    """Return events without those that may be inside a message or a response which begins before them."""
    blocks = (appended_block(event.payload) for event in events)
    return events[next((n for n, block in enumerate(blocks) if block is not None and _begins(block)), len(events)) :]


def _begins(block: Block) -> bool:
    """Return whether a block continues neither a message nor a response. A summary may stand inside either."""
    continues = block.response_id is not None or block.meta.get(CONTINUES_KEY)
    return not (continues or isinstance(block, RangeSummary))


def blocks_left(events: Sequence[Event], version: int | None) -> Leaving:
    """Return the shown blocks from a version on, by version; by default from the newest shown prompt on.

    A message leaves as a whole, and so does a response with its results: a block inside one stands for its beginning,
    and the late result of an earlier call stays with that call. Stage digests stay, since a rewind of the stage takes
    them back; so do redacted blocks, of which nothing is left that could leave.

    Args:
        events: a log, or the end of one from the beginning of a message on.
        version: of the block; None for the newest shown prompt.
    """
    log = LogBlocks()
    log.add(events)
    blocks = {event.version: block for event in events if (block := appended_block(event.payload)) is not None}
    known = {block.version: block for block in log.known()}
    erased = ((event.version, event.payload) for event in events if isinstance(event.payload, BlockRedacted))
    redacted = {payload.version for at, payload in erased if payload.version < at}  # one that came before erased none
    stay = {v for v, block in known.items() if not block.shown or v in redacted or isinstance(blocks[v], StageDigest)}
    if version is None:
        prompts = (v for v in known.keys() - stay if isinstance(blocks[v], UserPrompt))
        version = max(prompts, default=None)
    if version is None or version not in known:
        return Leaving({}, is_certain=False)
    start = _start_of_response(known[version], known.values()) or _start_of_message(version, blocks)
    following = [block for block in known.values() if block.version >= start]
    lacks_call = any(isinstance(blocks[block.version], ToolResult) and not block.group for block in following)
    begun = {block.group for block in known.values() if block.group and block.version < start}
    leaving = {
        block.version: blocks[block.version]
        for block in following
        if block.version not in stay and block.group not in begun
    }
    return Leaving(leaving, is_certain=not lacks_call)


def _start_of_response(block: LoggedBlock, known: Iterable[LoggedBlock]) -> int | None:
    """Return the version of the first block of the response that a block is part of, or answers; None of others."""
    return min(other.version for other in known if other.group == block.group) if block.group else None


def _start_of_message(version: int, blocks: dict[int, Block]) -> int:
    """Return the version of the first part of a message."""
    earlier = sorted((v for v in blocks if v <= version), reverse=True)
    return next((v for v in earlier if not blocks[v].meta.get(CONTINUES_KEY)), version)


def _check(path: str, block: Block) -> None:
    if isinstance(block, RangeSummary):
        raise BlockProtected(path, "it is a summary; go back to a block that was said, or undo its compaction")
    if isinstance(block, StageDigest):
        raise BlockProtected(path, "it is a stage digest; rewind its stage, or go back to a block that was said")
