"""The log as rows with the state of each block at a version, and one block with its text piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic_core import to_json

from timeline.answers.about import about_event, text_of, with_unsaid
from timeline.blocks import ToolCall, ToolResult, instant_text
from timeline.errors import BlockNotFound
from timeline.events import (
    BlockAppended,
    BlockRedacted,
    BlocksHidden,
    CompactionCompleted,
    ModelCalled,
    appended_block,
)
from timeline.events.addresses import Address
from timeline.events.other_payloads import CompactionFailed
from timeline.facts.name_list import LISTS, asked_list, list_address
from timeline.fold.counts import plain_tokens
from timeline.fold.window import tombstone
from timeline.frozen import sha256_hex
from timeline.inspector.compactions import MOST_LISTED
from timeline.inspector.decided import FoldedStates
from timeline.inspector.pairs import partner_of, without_partner
from timeline.inspector.shapes import BlockText, LogRow, LogRows
from timeline.log.blocks_by_name import find_readable
from timeline.log.history import check_version, reverted_versions
from timeline.log.name_lists import read_list

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from timeline.blocks import Block
    from timeline.events import Event
    from timeline.inspector.asked import AskedBlock, AskedRows
    from timeline.inspector.decided import DecidedStates
    from timeline.inspector.reader import Reader
    from timeline.ports import ConversationInfo, EventStore

MOST_TEXT: Final = 200
"""Characters of a block's text in a row."""
MOST_FIELD: Final = 16_384
"""Bytes of a further field of a block, as JSON; of a larger one only the size is answered."""


async def list_rows(reader: Reader, asked: AskedRows) -> LogRows:
    """List events with the states of their blocks at a version."""
    store, id_ = reader.store, asked.id
    info = await store.info(id_)
    at = info.version if asked.at is None else asked.at
    await check_version(store, id_, at)
    until = min(at, asked.until) if asked.until is not None else at
    states = await states_at(reader, info, at)
    reasons = await redactions(store, id_)
    events: list[Event] = []
    async for event in store.read(id_, after=asked.after, until=until, page=asked.limit + 1):
        events.append(event)
        if len(events) > asked.limit:
            break
    more = len(events) > asked.limit
    events = events[: asked.limit]
    alone = await without_partner(store, id_, events)
    rows = [_row(event, states, reasons, alone) for event in events]
    return LogRows(
        conversation=id_,
        at_version=at,
        version=info.version,
        first_version=info.first_version,
        rows=tuple(rows),
        next_after=rows[-1].version if more else None,
    )


async def states_at(reader: Reader, info: ConversationInfo, at: int) -> DecidedStates | FoldedStates:
    """Return the states of a conversation's blocks at a version."""
    if info.first_version == 1:
        return await reader.decisions.at(info, at)
    fold = await reader.moments.fold(info.id, at)
    return FoldedStates(fold.window, await reverted_versions(reader.store, info.id, at))


async def redactions(store: EventStore, conversation: str) -> dict[int, str]:
    """Return the versions of all redacted blocks, each with the recorded reason."""
    return {
        event.payload.version: event.payload.reason
        async for event in store.read(conversation, types=["block.redacted"])
        if isinstance(event.payload, BlockRedacted) and event.payload.version
    }


def _row(
    event: Event, states: DecidedStates | FoldedStates, reasons: Mapping[int, str], alone: Collection[int]
) -> LogRow:
    payload = event.payload
    block = appended_block(payload)
    duration = payload.duration if isinstance(payload, CompactionCompleted | CompactionFailed | ModelCalled) else None
    unsaid = payload.unsaid if isinstance(payload, CompactionCompleted | BlocksHidden) else ()
    at = instant_text(event.at)
    if block is None:
        return LogRow(
            version=event.version,
            at=at,
            checksum=event.checksum,
            type=event.type,
            duration=duration,
            unsaid=unsaid[-MOST_LISTED:],
            text=with_unsaid(about_event(payload), unsaid)[:MOST_TEXT],
        )
    if event.version in reasons:
        block = tombstone(block, reasons[event.version])
    state, covered_by = states.of(event.version)
    text = text_of(block)
    tokens = None
    if isinstance(payload, BlockAppended | CompactionCompleted):
        tokens = plain_tokens(payload.tokens, payload.counter)
    return LogRow(
        version=event.version,
        at=at,
        checksum=event.checksum,
        type=block.type,
        path=block.path,
        address=str(Address(event.version)),
        state=state,
        covered_by=covered_by,
        role=block.author,
        turn_id=block.turn_id,
        response_id=block.response_id,
        call_id=block.call_id,
        tool=block.name if isinstance(block, ToolCall | ToolResult) else None,
        failed=isinstance(block, ToolResult) and block.failed,
        orphan=event.version in alone,
        tokens=tokens,
        shown_tokens=states.shown(event.version, block, tokens or 0),
        duration=duration,
        unsaid=unsaid[-MOST_LISTED:],
        text=text[:MOST_TEXT],
        left_out=max(0, len(text) - MOST_TEXT),
    )


async def show_block(reader: Reader, asked: AskedBlock) -> BlockText:
    """Return a piece of a block's text, and its other fields; at a summary's address with ``.paths``, a list of names.

    Raises:
        BlockNotFound: it has no such block, nor such a list.
    """
    store = reader.store
    try:
        found = await find_readable(store, asked.id, asked.address)
    except BlockNotFound:
        listed = await _list_of_names(store, asked)
        if listed is None:
            raise
        return listed
    event, block = found.event, found.block
    reasons = await redactions(store, found.conversation)
    if event.version in reasons:
        block = tombstone(block, reasons[event.version])
    text = text_of(block)
    piece = text[asked.offset : asked.offset + asked.limit]
    end = asked.offset + len(piece)
    fields, left_out = fields_of(block)
    has_lists = isinstance(event.payload, CompactionCompleted) and event.version not in reasons
    # An answer that is kept for good has none: a result may come later.
    partner = None if asked.checksum else await partner_of(store, asked.id, block)
    return BlockText(
        conversation=found.conversation,
        version=event.version,
        at=instant_text(event.at),
        checksum=event.checksum,
        address=str(Address(event.version)),
        path=block.path,
        type=block.type,
        text=piece,
        offset=asked.offset,
        characters=len(text),
        next_offset=end if piece and end < len(text) else None,
        block=fields,
        left_out=left_out,
        partner=str(Address(partner)) if partner else None,
        lists=tuple(list_address(asked.address, one) for one in LISTS) if has_lists else (),
    )


async def _list_of_names(store: EventStore, asked: AskedBlock) -> BlockText | None:
    """Return a piece of the list that is behind a summary's address; None where the address is none of a list.

    What is redacted later goes from the list, so that it has the checksum of its text, and not that of an event.
    """
    wanted = asked_list(asked.address)
    if wanted is None:
        return None
    try:
        found = await find_readable(store, asked.id, wanted[0])
    except BlockNotFound:
        return None
    done = found.event.payload
    if not isinstance(done, CompactionCompleted) or found.event.version in await redactions(store, found.conversation):
        return None
    block = await read_list(store, found.conversation, found.block, done.covers, wanted[1])
    piece = block.text[asked.offset : asked.offset + asked.limit]
    end = asked.offset + len(piece)
    return BlockText(
        conversation=found.conversation,
        version=found.event.version,
        at=instant_text(found.event.at),
        checksum=sha256_hex(block.text),
        address=list_address(wanted[0], wanted[1]),
        path=block.path,
        type=block.type,
        text=piece,
        offset=asked.offset,
        characters=len(block.text),
        next_offset=end if piece and end < len(block.text) else None,
        block={},
        left_out={},
        list_of=wanted[0],
    )


def fields_of(block: Block) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the stored fields of a block besides its text, and the sizes of those that are too large."""
    kept: dict[str, Any] = {}
    left_out: dict[str, int] = {}
    for name, value in block.dump().items():
        if name == "text":
            continue
        size = len(to_json(value))
        if size > MOST_FIELD:
            left_out[name] = size
        else:
            kept[name] = value
    return kept, left_out
