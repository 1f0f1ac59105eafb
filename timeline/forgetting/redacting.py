"""Redact: overwrite content where it is stored, write anew what was made of it, and leave no copy in the store's files.

A plan of everything is made first (`timeline.forgetting.redaction_plan`), and the store gets all new payloads at once.
Where another writer appended in between, the plan goes on from there, or is made again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline import checks
from timeline.errors import (
    BlockNotFound,
    ConversationErased,
    ConversationNotFound,
    HistoryUnavailable,
    UnderLegalHold,
    VersionConflict,
)
from timeline.forgetting.named_places import find_named_places
from timeline.forgetting.redaction_plan import RedactionPlan
from timeline.forgetting.redaction_report import rehearsed, scrubbed
from timeline.log.stored import busy
from timeline.ports import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from timeline.errors import TimelineError
    from timeline.forgetting.redaction_report import Written
    from timeline.ports import Clock, ErasureReport, EventStore

_TRIES: Final = 20
_OF_ONE: Final = (BlockNotFound, ConversationErased, ConversationNotFound, HistoryUnavailable, UnderLegalHold)
"""The errors that concern one conversation only: the others can still be redacted."""


async def redact(
    store: EventStore,
    conversation: str,
    places: str | Sequence[str],
    reason: str,
    *,
    text: str = "",
    now: datetime | None = None,
    clock: Clock | None = None,
    dry_run: bool = False,
) -> ErasureReport:
    """Erase the content of blocks, and everything made of it, for good; see `Timeline.redact`.

    Args:
        store: holds the conversation.
        conversation: its id.
        places: a path or an address, or several: of a block, or the address of any other event, or ``value:`` and the
            sha256 of a stored text, as `find_subject` lists them.
        reason: kept with the tombstone, and shown to the model in place of the content.
        text: words to take out of places that hold no block, and of all that quotes them.
        now: time of the event.
        clock: gives that time otherwise.
        dry_run: report what would be done, and leave the store as it is.

    Raises:
        BlockNotFound: there is no such place.
        InvalidArgument: a place holds no block, and no ``text`` says what is to go; or a text cannot be stored.
        UnderLegalHold: a legal hold is on the conversation, or on one that shares the block.
        StoreError: the store refused; nothing was erased.
    """
    checks.written("reason", reason)
    checks.written("text", text)
    named = [places] if isinstance(places, str) else list(places)
    if dry_run:
        plan = await _planned(store, conversation, named, reason, text)
        return await rehearsed(store, [plan.written({})])
    return await scrubbed(store, [await _written(store, conversation, named, reason, text, now, clock)])


async def redact_several(
    store: EventStore,
    places: Mapping[str, Sequence[str]],
    reason: str,
    *,
    text: str = "",
    on_refusal: Callable[[TimelineError], None],
    dry_run: bool = False,
) -> ErasureReport:
    """Redact places of several conversations, as `redact` does of one, and rewrite the store's files once.

    Each conversation is a transaction of its own. One that refuses does not keep the others from being redacted.

    Args:
        store: holds the conversations.
        places: the places by conversation.
        reason: see `redact`, as for ``text``.
        text: see ``reason``.
        on_refusal: called with the error of a conversation that is erased, is not there, or is under a legal hold, and
            of one that has no such place.
        dry_run: report what would be done, and leave the store as it is.

    Raises:
        InvalidArgument: see `redact`.
        StoreError: the store failed; what was redacted until then stays redacted.
    """
    checks.written("reason", reason)
    checks.written("text", text)
    written: list[Written] = []
    for conversation, named in places.items():
        try:
            if dry_run:
                plan = await _planned(store, conversation, named, reason, text)
                written.append(plan.written({}))
            else:
                written.append(await _written(store, conversation, named, reason, text))
        except _OF_ONE as refusal:
            on_refusal(refusal)
    return await (rehearsed if dry_run else scrubbed)(store, written)


async def _planned(
    store: EventStore, conversation: str, places: Sequence[str], reason: str, text: str
) -> RedactionPlan:
    named = await find_named_places(store, conversation, places, text)
    return await RedactionPlan(store, named, reason, text).made(conversation)


async def _written(  # noqa: PLR0917 - what `redact` is given
    store: EventStore,
    conversation: str,
    places: Sequence[str],
    reason: str,
    text: str,
    now: datetime | None = None,
    clock: Clock | None = None,
) -> Written:
    """Redact in the store; its files still hold the bytes."""
    plan: RedactionPlan | None = None
    for _ in range(_TRIES):
        try:
            if plan is None or not await plan.goes_on():
                plan = await _planned(store, conversation, places, reason, text)
            counts = await plan.carry_out(now, clock or SystemClock())
        except VersionConflict:
            continue
        except ConversationErased as erased:
            if erased.conversation == conversation:
                raise
            plan = None  # its parent was erased meanwhile, and it keeps a copy; or one of its forks was
            continue
        return plan.written(counts)
    raise busy(conversation)
