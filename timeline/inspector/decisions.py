"""Decisions from the page, where they are allowed: each is a call of the library, and an event of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import timeline
from timeline.errors import InvalidArgument
from timeline.inspector.shapes import About, Decided, DecidedBlock
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from timeline.fold.window import Item
    from timeline.inspector.asked import AskedDecision, AskedNothing
    from timeline.inspector.reader import Reader

_MOST: Final = 500


async def show_about(reader: Reader, asked: AskedNothing) -> About:
    """Return which library answers, and which decisions it takes here."""
    del asked
    return About(name="timeline-engine", version=timeline.__version__, decisions=tuple(sorted(reader.allow)))


async def decide(reader: Reader, conversation: str, asked: AskedDecision) -> Decided:
    """Take a decision about a conversation, and return what it changed.

    Raises:
        ConversationNotFound: there is no such conversation.
        BlockNotFound: it has no such block.
        BlockProtected: the block does not allow the decision now.
        CompactionRefused: there is nothing worth compacting.
        UndoUnavailable: there is no compaction to undo.
        InvalidArgument: the decision needs a block.
        StoreReadOnly: the store is only read.
    """
    handle = await Timeline.open(reader.store, conversation, create=False)
    before = {item.version: item for item in handle.window.items}
    reverted: list[int] = []
    match asked.decision:
        case "compact":
            await handle.compact(instructions=asked.instructions)
        case "undo":
            reverted = await handle.undo_compaction(asked.version, cascade=asked.cascade)
        case "fork":
            branch = await handle.fork(at=asked.at, call=asked.call, conversation=asked.new_id)
            return _decided(branch, asked, [], [])
        case "hide":
            await handle.hide(_block(asked), mode=asked.mode, text=asked.text)
        case "reveal":
            await handle.reveal(_block(asked))
        case "pin":
            await handle.pin(_block(asked))
        case "unpin":
            await handle.unpin(_block(asked))
    changed = [item for item in handle.window.items if item != before.get(item.version)]
    return _decided(handle, asked, changed, reverted)


def _block(asked: AskedDecision) -> str:
    if asked.block is None:
        raise InvalidArgument("block", f"name the block to {asked.decision}, by its path or address")
    return asked.block


def _decided(handle: Timeline, asked: AskedDecision, changed: list[Item], reverted: list[int]) -> Decided:
    return Decided(
        conversation=handle.id,
        version=handle.version,
        decision=asked.decision,
        blocks=tuple(
            DecidedBlock(
                version=item.version,
                path=item.block.path,
                state=item.state,
                pinned=item.pinned,
                tokens=item.tokens,
                shown_tokens=item.shown_tokens,
            )
            for item in changed[:_MOST]
        ),
        blocks_left_out=max(0, len(changed) - _MOST),
        reverted=tuple(reverted),
    )
