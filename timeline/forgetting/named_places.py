"""Find what a redaction names: blocks, events that hold none, scavenged blocks, and stored texts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from timeline.errors import HistoryUnavailable, InvalidArgument
from timeline.events import CompactionCompleted, appended_block
from timeline.events.addresses import parse_address
from timeline.log.blocks_by_name import FoundBlock, find_block

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.blocks import Block
    from timeline.events import Event
    from timeline.ports import EventStore

VALUE: Final = "value:"
"""What the name of a content-addressed text begins with; its sha256 follows."""
ERASE: Final = "`timeline erase {}` removes the conversation"
"""The cure where a name stays: a template for the conversation's id."""


@dataclass(slots=True)
class NamedPlaces:
    """What is to be redacted, as it was found in the conversation that was asked about."""

    blocks: dict[int, Block] = field(default_factory=dict)
    events: set[int] = field(default_factory=set)
    """Versions of events that hold no block, but words to take out."""
    scavenged: dict[int, str] = field(default_factory=dict)
    """By version, the paths of scavenged blocks of which facts, or answers of the recall tool, are left."""
    values: dict[str, str] = field(default_factory=dict)
    """Content-addressed texts by hash."""

    @property
    def paths(self) -> dict[int, str]:
        """The paths of the blocks by version, scavenged ones included."""
        return {version: block.path for version, block in self.blocks.items()} | self.scavenged

    @property
    def versions(self) -> list[int]:
        """The versions of everything but stored texts, rising."""
        return sorted({*self.blocks, *self.events, *self.scavenged})


async def find_named_places(store: EventStore, conversation: str, places: Sequence[str], text: str) -> NamedPlaces:
    """Find places of a conversation, as `timeline.forgetting.redact` takes them.

    Args:
        store: holds the conversation.
        conversation: its id.
        places: the places.
        text: the words to take out of what holds no block; empty where none are given.

    Raises:
        BlockNotFound: there is no such place.
        InvalidArgument: a place holds no block, or a summary, and there is no ``text``; or it is the conversation.
    """
    found = NamedPlaces()
    addresses = {place: parse_address(place) for place in places}
    versions = {address.version for address in addresses.values() if address is not None}
    plain = {event.version: event for event in await store.read_versions(conversation, sorted(versions))}
    for place in places:
        if place.startswith(VALUE):
            hash_ = place.removeprefix(VALUE)
            values = await store.values([hash_])
            found.values |= values
            continue
        if place == conversation:
            raise InvalidArgument("path", f"{place!r} is the conversation's id, which stays; {ERASE.format(place)}")
        address = addresses[place]
        event = None if address is None else plain.get(address.version)
        if event is not None and appended_block(event.payload) is None:
            if not text:
                raise InvalidArgument("path", f"{place!r} is not a block: give the words to take out of it as `text`")
            found.events.add(event.version)
            continue
        try:
            block = await _block_at(store, conversation, place, None if address and address.conversation else event)
        except HistoryUnavailable as gone:
            if not gone.scavenged:
                raise
            found.scavenged[gone.version] = await _path_of(store, conversation, gone.version)
            continue
        if isinstance(block.event.payload, CompactionCompleted):
            if not text:
                raise InvalidArgument("path", f"{place!r} is a summary: redact what it was made of, or give `text`")
            found.events.add(block.event.version)
        else:
            found.blocks[block.event.version] = block.block
    return found


async def _block_at(store: EventStore, conversation: str, place: str, event: Event | None) -> FoundBlock:
    """Return the block of a place, of which the event may have been read."""
    block = None if event is None else appended_block(event.payload)
    if event is None or block is None:
        return await find_block(store, conversation, place)
    return FoundBlock(conversation, event, block)


async def _path_of(store: EventStore, conversation: str, version: int) -> str:
    """Return the path of a block that was scavenged: its event keeps that."""
    async for event in store.chained(conversation, after=version - 1, page=1):
        return event.path or ""
    return ""
