"""What was done, named and asked for, a row each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timeline.blocks import instant_text
from timeline.events.addresses import Address
from timeline.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from timeline.ports import EventStore
    from timeline.queries import StoredFact


class FactRow(Frozen):
    """A fact: one thing that was done or named, with the block to read by path and by address (``cards@152``).

    ``covered``: a compaction in force covers that block. ``source`` is ``digest`` where only the entry of a digest is
    left of it.
    """

    conversation: str
    kind: str
    subject: str
    tool: str
    exit_status: int | None
    failed: bool
    at: str
    path: str
    version: int
    address: str
    detail: str
    covered: bool
    source: str


def fact_row(fact: StoredFact) -> FactRow:
    """Return the row of a found fact."""
    return FactRow(
        conversation=fact.conversation,
        kind=fact.kind,
        subject=fact.subject,
        tool=fact.tool,
        exit_status=fact.exit_status,
        failed=fact.failed,
        at=instant_text(fact.at),
        path=fact.path,
        version=fact.version,
        address=str(Address(fact.version, fact.conversation)),
        detail=fact.detail,
        covered=fact.covered,
        source=fact.source,
    )


async def fact_rows(store: EventStore, filters: Mapping[str, Any]) -> AsyncIterator[FactRow]:
    """Iterate over the facts that meet every filter of `Queries.facts`, by their place in the log.

    Raises:
        InvalidFilter: the store cannot use a filter.
        ConversationNotFound: there is no such conversation.
    """
    async for fact in store.facts(**filters):
        yield fact_row(fact)
