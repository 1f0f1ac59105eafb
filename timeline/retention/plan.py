"""Which conversations may be scavenged, and why the others stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from timeline.errors import StoreCorrupt
from timeline.log.history import load_fold
from timeline.retention.setting import kept

if TYPE_CHECKING:
    from datetime import datetime

    from timeline.ports import EventStore, Removal

Stays: TypeAlias = Literal["", "keep", "legal_hold", "compacting", "damaged", "fork", "window"]
"""Why something stays: nothing does (``""``); the retention; a hold; a compaction in progress; a window that cannot be
read; a fork that shares it; nothing that may go lies before the window."""

SOMETHING_MAY_GO: Final[frozenset[Stays]] = frozenset({"", "fork", "window"})
"""Nothing forbids to remove something, whether or not anything was there to remove."""
REASONS: Final[dict[Stays, str]] = {
    "": "what lies before its window goes",
    "keep": "its retention is keep",
    "legal_hold": "it is under a legal hold",
    "compacting": "a compaction is in progress",
    "damaged": "its window cannot be read; `timeline verify` says more",
    "fork": "a fork shares what lies before its window",
    "window": "nothing more before its window can go",
}


async def stays(store: EventStore, conversation: str, now: datetime) -> Stays:
    """Return why nothing of a conversation may be removed; empty where something may be.

    Raises:
        ConversationNotFound: there is no such conversation.
    """
    setting = await kept(store, conversation)
    if setting.legal_hold:
        return "legal_hold"
    if setting.retention == "keep":
        return "keep"
    return await hindrance(store, conversation, now)


async def hindrance(store: EventStore, conversation: str, now: datetime) -> Stays:
    """Return what keeps a conversation from being scavenged whatever its retention is; empty for nothing."""
    try:
        lease = (await load_fold(store, conversation)).window.lease
    except StoreCorrupt:
        return "damaged"
    return "compacting" if lease is not None and lease.expires_at > now else ""


def nothing_went(removal: Removal) -> Stays:
    """Return why a removal found nothing to remove."""
    return "fork" if removal.fork is not None and not removal.last else "window"
