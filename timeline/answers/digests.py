"""Compactions by what they covered, a row each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timeline.blocks import instant_text
from timeline.events.addresses import Address
from timeline.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from timeline.ports import EventStore
    from timeline.queries import StoredDigest


class DigestRow(Frozen):
    """A compaction: its number, path and address of its summary, its coverage (``ranges``, ``summaries``) and digest.

    ``matched`` has the entries of the digest that the filters select, and is empty if no filter selects entries.
    ``reverted_by`` is the version of the event that undid the compaction, or None. ``duration`` is how many seconds it
    took, or None where that was not measured. ``unsaid`` are the versions of the covered prompts of which something
    asked is neither said nor listed behind it.
    """

    conversation: str
    version: int
    at: str
    compaction_number: int
    path: str
    address: str
    covers: dict[str, Any]
    digest: dict[str, Any]
    matched: dict[str, Any]
    before_tokens: int
    after_tokens: int
    reverted_by: int | None
    duration: float | None
    unsaid: tuple[int, ...]


def digest_row(digest: StoredDigest) -> DigestRow:
    """Return the row of a found compaction."""
    return DigestRow(
        conversation=digest.conversation,
        version=digest.version,
        at=instant_text(digest.at),
        compaction_number=digest.compaction_number,
        path=digest.path,
        address=str(Address(digest.version, digest.conversation)),
        covers=digest.covers.model_dump(mode="json"),
        digest=digest.digest.dump(),
        matched=digest.matched.dump(),
        before_tokens=digest.before_tokens,
        after_tokens=digest.after_tokens,
        reverted_by=digest.reverted_by,
        duration=digest.duration,
        unsaid=digest.unsaid,
    )


async def digest_rows(store: EventStore, filters: Mapping[str, Any]) -> AsyncIterator[DigestRow]:
    """Iterate over the compactions that meet every filter of `Queries.digests`, oldest first.

    Raises:
        InvalidFilter: the store cannot use a filter.
        ConversationNotFound: there is no such conversation.
    """
    async for digest in store.digests(**filters):
        yield digest_row(digest)
