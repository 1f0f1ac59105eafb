"""What a conversation is to keep: its own setting, or else the store's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, get_args

from timeline.events.other_payloads import Retention, RetentionSet

if TYPE_CHECKING:
    from timeline.ports import EventStore

RETENTIONS: Final[tuple[str, ...]] = get_args(Retention)


class Kept(NamedTuple):
    """What a conversation is to keep.

    Attributes:
        retention: what holds: ``keep`` or ``window``.
        own: the conversation's own setting; None where the store's holds.
        legal_hold: whether nothing may be removed, whatever the retention is.
    """

    retention: Retention
    own: Retention | None = None
    legal_hold: bool = False


async def kept(store: EventStore, conversation: str) -> Kept:
    """Return what a conversation is to keep: by its newest setting, a fork's shared past included.

    Raises:
        ConversationNotFound: there is no such conversation.
    """
    newest = RetentionSet()
    async for event in store.read(conversation, types=["retention.set"]):
        if isinstance(event.payload, RetentionSet):
            newest = event.payload
    return Kept(newest.retention or await store.retention(), newest.retention, newest.legal_hold)
