"""Blocks by their words, a row each, with the model call that said them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.audit.calls import answered_by
from timeline.audit.recorded_calls import recorded_calls
from timeline.blocks import instant_text
from timeline.events.addresses import Address
from timeline.fold.turns import RESPONSE_BLOCKS
from timeline.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from timeline.audit.recorded_calls import RecordedCall
    from timeline.ports import EventStore

_RESPONSES: Final = {cls.model_fields["type"].default for cls in RESPONSE_BLOCKS}
"""Types of the blocks that a model call gives."""


class FoundRow(Frozen):
    """A found block, by path and by address (``cards@152``).

    The snippet marks its hits with ``«`` and ``»``; a larger rank is a better match; ``call`` is the number of the
    model call whose response the block is part of, or null; ``reverted_by`` is of a summary the version of the event
    that undid its compaction, or null.
    """

    conversation: str
    version: int
    at: str
    type: str
    path: str
    address: str
    snippet: str
    rank: float
    call: int | None
    reverted_by: int | None


async def found_rows(
    store: EventStore, text: str, filters: Mapping[str, Any], most: int | None
) -> AsyncIterator[FoundRow]:
    """Iterate over the blocks that contain all words of a text, the best first.

    Raises:
        InvalidFilter: the text contains no word.
        ConversationNotFound: there is no such conversation.
        SearchUnavailable: SQLite has no full-text search here.
    """
    number = 0
    calls: dict[str, list[RecordedCall]] = {}
    async for found in store.search(text, **filters):
        if number == most:
            return
        number += 1
        said_by: int | None = None
        if found.type in _RESPONSES:
            if found.conversation not in calls:
                calls[found.conversation] = await recorded_calls(store, found.conversation)
            said_by = await answered_by(store, found.conversation, calls[found.conversation], found.version)
        yield FoundRow(
            conversation=found.conversation,
            version=found.version,
            at=instant_text(found.at),
            type=found.type,
            path=found.path,
            address=str(Address(found.version, found.conversation)),
            snippet=found.snippet,
            rank=found.rank,
            call=said_by,
            reverted_by=found.reverted_by,
        )
