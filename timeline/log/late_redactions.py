"""Repeat in a new fork what its parent redacted while the fork began, which the redaction itself could not know of."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from timeline.display.logs import logger_of
from timeline.errors import StoreError
from timeline.events import event_ids, new_event
from timeline.fold.snapshot import take_snapshot
from timeline.log.history import fold_past
from timeline.log.wakeups import notify
from timeline.ports import Rewriting

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from timeline.events import BlockRedacted
    from timeline.ports import EventStore, Snapshot

_LOGGER: Final = logger_of("timeline")


async def repeat_in_fork(
    store: EventStore, fork: str, redacted: Sequence[BlockRedacted], *, began: int, at: datetime
) -> None:
    """Append redactions to a fork, and put a snapshot of its parent as it reads now in the place of the first one.

    The first snapshot was made of the parent as it read before, and may quote what was redacted since.

    Args:
        store: holds the fork.
        fork: its id.
        redacted: what its parent redacted meanwhile.
        began: the last version of the fork's first append, and of its first snapshot.
        at: time of the events.

    Raises:
        VersionConflict: the fork itself was redacted meanwhile.
        StoreError: the store failed.
    """
    info = await store.info(fork)
    parent = fork if info.parent is None else info.parent.conversation
    twin = (await fold_past(store, parent, info.base)).copy(fork)
    async for event in store.read(fork, after=info.base, until=began):
        twin.apply(event.version, event.at, event.payload)
    ids = event_ids(at, len(redacted))
    events = [new_event(id_, at, payload) for id_, payload in zip(ids, redacted, strict=True)]
    await store.rewrite([Rewriting(fork, info.version, events, {}, (), partial(_instead, take_snapshot(twin)))])
    notify(store, fork, events)


async def leave_no_copy(store: EventStore, fork: str) -> None:
    """Rewrite the store's files without the snapshot that was replaced; if that is refused, warn with the cure."""
    try:
        await store.shrink()
    except StoreError as refusal:  # the fork has begun, and its log is right
        cure = "the store's files may still hold what was redacted; repeat `timeline redact --yes`"
        _LOGGER.warning("fork %s began while its parent was redacted: %s (%s)", fork, cure, refusal)


def _instead(snapshot: Snapshot, stored: Snapshot) -> Snapshot:
    """Return what takes the place of a stored snapshot: the one of its version, or else itself."""
    return snapshot if snapshot.version == stored.version else stored
