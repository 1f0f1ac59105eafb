"""Read the items of a session from its conversation's log, from the newest back."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.agent.deduplication import content_key
from timeline.blocks import Reasoning
from timeline.events import DISOWNED, BlockRedacted, BlocksHidden, BlocksRevealed, appended_block
from timeline.fold.window import tombstone
from timeline.frozen import canonical_json, sha256_hex
from timeline.integrations.openai_agents.items import KEY, items_of
from timeline.log.in_turns import in_turns
from timeline.log.off_loop import off_loop

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from timeline.blocks import Block
    from timeline.events import Event
    from timeline.ports import EventStore

POPPED: Final = "session.popped"
"""Reason of the decisions by which earlier releases took items back; now they are abandoned."""

_GONE: Final = DISOWNED | {POPPED}
_TYPES: Final = ("block.appended", "block.redacted", "blocks.hidden", "blocks.revealed")
_FIRST_READ: Final = 4
"""Events that are read at first for each item that is wanted."""


class Stored(NamedTuple):
    """An item of the log.

    Attributes:
        item: as it was added.
        versions: of its blocks.
        key: hash of its content.
        response: id of the model's response that it is a part of; empty for none.
        gone: why the session does not have it any more; empty where it has.
        gone_at: version of the event that says so; 0 for none.
    """

    item: dict[str, Any]
    versions: tuple[int, ...]
    key: str
    response: str = ""
    gone: str = ""
    gone_at: int = 0


async def whole_history(store: EventStore, conversation: str) -> list[Stored]:
    """Return all items that a conversation ever had, oldest first, those that are gone from it too.

    Raises:
        StoreError: the store cannot be read.
    """
    events = await _events(store, conversation, 0)
    return await off_loop(len(events), partial(_read, events, whole=True))


async def stored_items(
    store: EventStore, conversation: str, *, newest: int | None = None, after: int = 0
) -> list[Stored]:
    """Return the items of a conversation, oldest first; those that are gone from it are left out.

    Args:
        store: where it lives.
        conversation: its id.
        newest: how many are wanted, the newest; all unless given. The cost is that of reading these alone.
        after: only what was appended after this version.

    Raises:
        StoreError: the store cannot be read.
    """
    if newest is None:
        events = await _events(store, conversation, after)
        return await off_loop(len(events), partial(_items, events, whole=True))
    version = (await store.info(conversation)).version
    span = max(newest, 1) * _FIRST_READ
    while True:
        start = max(after, version - span)
        events = await _events(store, conversation, start)
        items = await off_loop(len(events), partial(_items, events, whole=start == after))
        if len(items) >= newest or start == after:
            return items[max(0, len(items) - newest) :]
        span *= 4


async def _events(store: EventStore, conversation: str, after: int) -> list[Event]:
    """Return the events behind a version that say what the items are."""
    return [event async for event in in_turns(store.read(conversation, after=after, types=_TYPES))]


def key_of(blocks: Sequence[Block]) -> str:
    """Return the hash of an item's content, which does not depend on the ids that a provider gives."""
    return sha256_hex(canonical_json([_said(block) for block in blocks]))


def _said(block: Block) -> Any:
    if isinstance(block, Reasoning):
        data = block.data if isinstance(block.data, dict) else {}
        return [block.text, data.get("encrypted_content")]
    return content_key(block)


def _items(events: Sequence[Event], *, whole: bool) -> list[Stored]:
    """Return the items of events that are not gone."""
    return [stored for stored in _read(events, whole=whole) if not stored.gone]


def _read(events: Sequence[Event], *, whole: bool) -> list[Stored]:
    """Return the items of events; where these do not begin the log, the rest of an item cut in two is left out."""
    gone: dict[int, tuple[str, int]] = {}
    erased: dict[int, str] = {}
    for event in events:
        if isinstance(event.payload, BlocksHidden) and event.payload.reason in _GONE:
            gone |= {block.version: (event.payload.reason, event.version) for block in event.payload.blocks}
        elif isinstance(event.payload, BlocksRevealed):
            gone = {version: why for version, why in gone.items() if version not in event.payload.versions}
        elif isinstance(event.payload, BlockRedacted):
            erased[event.payload.version] = event.payload.reason
    blocks: list[Block] = []
    versions: dict[int, int] = {}
    for event in events:
        block = appended_block(event.payload)
        if block is None or (not whole and not blocks and block.meta.get(KEY) == {}):
            continue
        block = tombstone(block, erased[event.version]) if event.version in erased else block
        versions[id(block)] = event.version
        blocks.append(block)
    return [_stored(item, own, [versions[id(block)] for block in own], gone) for item, own in items_of(blocks)]


def _stored(
    item: dict[str, Any], blocks: Sequence[Block], versions: Sequence[int], gone: Mapping[int, tuple[str, int]]
) -> Stored:
    why, at = gone.get(versions[0], ("", 0))
    return Stored(item, tuple(versions), key_of(blocks), blocks[0].response_id or "", why, at)
