"""Decisions from the page, where they are allowed: each is a call of the library, and an event of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import timeline
from timeline.answers.listed import DecidedBlock
from timeline.errors import InvalidArgument
from timeline.inspector.rehearsal import rehearse
from timeline.inspector.shapes import About, Decided
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from timeline.fold.window import Window
    from timeline.inspector.asked import AskedDecision, AskedNothing
    from timeline.inspector.reader import Reader

_MOST: Final = 500


async def show_about(reader: Reader, asked: AskedNothing) -> About:
    """Return which library answers, and which decisions it takes here."""
    del asked
    return About(name="timeline-engine", library_version=timeline.__version__, decisions=tuple(sorted(reader.allow)))


async def decide(reader: Reader, conversation: str, asked: AskedDecision) -> Decided:
    """Take a decision about a conversation, or try it, and return what it changes."""
    handle = await Timeline.open(reader.store, conversation, create=False)
    if asked.decision == "fork":
        return await _fork(reader, handle, asked)
    before, version = handle.window, handle.version
    if asked.dry_run:
        tried = await rehearse(reader.store, handle, asked)
        return _decided(asked, before, _Behind(handle.id, version, tried.window, tried.reverted))
    reverted = await _take(handle, asked)
    return _decided(asked, before, _Behind(handle.id, handle.version, handle.window, reverted))


async def _fork(reader: Reader, handle: Timeline, asked: AskedDecision) -> Decided:
    if asked.dry_run:
        tried = await rehearse(reader.store, handle, asked)
        behind = _Behind(tried.conversation, tried.base, tried.window, [], tried.base)
        return _decided(asked, handle.window, behind)
    branch = await handle.fork(at=asked.at, call=asked.call, conversation=asked.new_id)
    base = (await reader.store.info(branch.id)).base
    return _decided(asked, handle.window, _Behind(branch.id, branch.version, branch.window, [], base))


async def _take(handle: Timeline, asked: AskedDecision) -> list[int]:
    """Take a decision about this conversation; return the versions of the compactions that it undid."""
    match asked.decision:
        case "undo":
            return await handle.undo_compaction(asked.version, cascade=asked.cascade)
        case "compact":
            await handle.compact(instructions=asked.instructions)
        case "hide":
            await handle.hide(block_of(asked), mode=asked.mode, text=asked.text)
        case "reveal":
            await handle.reveal(block_of(asked))
        case "pin":
            await handle.pin(block_of(asked))
        case _:
            await handle.unpin(block_of(asked))
    return []


def block_of(asked: AskedDecision) -> str:
    """Return the block that a decision is about.

    Raises:
        InvalidArgument: it names none.
    """
    if asked.block is None:
        raise InvalidArgument("block", f"name the block to {asked.decision}, by its path or address")
    return asked.block


class _Behind(NamedTuple):
    """A conversation behind a decision, or as it would be: of a fork, the fork; ``base`` is what both share."""

    conversation: str
    version: int
    window: Window
    reverted: list[int]
    base: int | None = None


def _decided(asked: AskedDecision, before: Window, behind: _Behind) -> Decided:
    after = behind.window
    known = {item.version: item for item in before.items}
    there = {item.version for item in after.items}
    changed = [] if asked.decision == "fork" else [item for item in after.items if item != known.get(item.version)]
    return Decided(
        conversation=behind.conversation,
        version=behind.version,
        decision=asked.decision,
        blocks=tuple(DecidedBlock.of(item) for item in changed[:_MOST]),
        blocks_left_out=max(0, len(changed) - _MOST),
        reverted=tuple(behind.reverted),
        dry_run=asked.dry_run,
        gone=len(known.keys() - there),
        before_tokens=before.tokens,
        after_tokens=after.tokens,
        base=behind.base,
    )
