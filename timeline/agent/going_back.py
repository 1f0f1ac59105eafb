"""Go back behind a block of the log: it and all that follows leave the history, as where a user takes a turn back.

A framework that keeps a list shows by its list where it went back (`ListFollower`). A runtime that keeps none names the
block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.agent.log_blocks import LogBlocks
from timeline.blocks import CONTINUES_KEY, RangeSummary, StageDigest, UserPrompt
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
        blocks = blocks_left(await log.since(first - 1), version)
        left[:] = blocks.values()
        return Departure(abandoned=tuple(blocks), behind=min(blocks, default=None))

    async def place(turns: Turns) -> Sequence[Draft]:
        del turns
        return []

    await log.go_back(choose, place, at=at, counter=conversation.counter.name)
    return left


def blocks_left(events: Sequence[Event], version: int | None) -> dict[int, Block]:
    """Return the shown blocks from a version on, by version; by default from the newest shown prompt on.

    A message leaves as a whole, and so does a response with its results: a block inside one stands for its beginning,
    and the late result of an earlier call stays with that call. Stage digests stay, since a rewind of the stage takes
    them back; so do redacted blocks, of which nothing is left that could leave.
    """
    log = LogBlocks()
    log.add(events)
    blocks = {event.version: block for event in events if (block := appended_block(event.payload)) is not None}
    known = {block.version: block for block in log.known()}
    redacted = {event.payload.version for event in events if isinstance(event.payload, BlockRedacted)}
    stay = {v for v, block in known.items() if not block.shown or v in redacted or isinstance(blocks[v], StageDigest)}
    if version is None:
        prompts = (v for v in known.keys() - stay if isinstance(blocks[v], UserPrompt))
        version = max(prompts, default=None)
    if version is None:
        return {}
    start = _start_of_response(known[version], known.values()) or _start_of_message(version, blocks)
    begun = {block.group for block in known.values() if block.group and block.version < start}
    return {
        block.version: blocks[block.version]
        for block in known.values()
        if block.version >= start and block.version not in stay and block.group not in begun
    }


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
