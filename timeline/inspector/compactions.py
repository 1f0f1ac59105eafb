"""Compactions: what each one covered, what it kept, who wrote its summary and what that cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.blocks import instant_text
from timeline.errors import BlockNotFound
from timeline.events import CompactionCompleted, CompactionReverted, appended_block
from timeline.events.addresses import Address
from timeline.events.other_payloads import CompactionFailed
from timeline.inspector.asked import MOST_CHARACTERS
from timeline.inspector.shapes import Compaction, CompactionRow, Compactions, FailureRow
from timeline.inspector.tally import cost_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from timeline.events import Event
    from timeline.inspector.asked import AskedCompaction, AskedConversation
    from timeline.inspector.reader import Reader
    from timeline.lab.prices import PriceTable

_TYPES = ("compaction.completed", "compaction.reverted")


MOST_LISTED: Final = 100
"""Versions of a list in a row."""


async def list_compactions(reader: Reader, asked: AskedConversation) -> Compactions:
    """List the compactions of a conversation, and those that were refused or failed."""
    rows, failures = await compaction_rows(reader, asked.id), await _failures(reader, asked.id)
    return Compactions(conversation=asked.id, compactions=tuple(rows), failures=tuple(failures))


async def show_compaction(reader: Reader, asked: AskedCompaction) -> Compaction:
    """Return a compaction with its summary, the digest of what it covered, and what failed before it.

    Raises:
        BlockNotFound: it has no compaction of that version.
    """
    rows = await compaction_rows(reader, asked.id)
    versions = [row.version for row in rows]
    if asked.version not in versions:
        near = [str(Address(v)) for v in sorted(versions, key=lambda v: abs(v - asked.version))[:3]]
        raise BlockNotFound(asked.id, str(Address(asked.version)), near, problem="it is not a compaction")
    [event] = await reader.store.read_versions(asked.id, [asked.version])
    card = _card(event, rows, await _failures(reader, asked.id))
    if card is None:
        raise BlockNotFound(asked.id, str(Address(asked.version)), problem="it is no longer a compaction")
    return card.model_copy(update={"conversation": asked.id})  # a fork's card may be of what it shares


async def all_compactions(reader: Reader, conversation: str) -> list[Compaction]:
    """Return every compaction of a conversation, as `show_compaction` does, for the price of one reading."""
    rows, failures = await compaction_rows(reader, conversation), await _failures(reader, conversation)
    read = reader.store.read(conversation, types=["compaction.completed"])
    cards = [_card(event, rows, failures) async for event in read]
    return [card for card in cards if card is not None]


def _card(event: Event, rows: list[CompactionRow], failures: list[FailureRow]) -> Compaction | None:
    """Return a compaction of a conversation; None if a later version of the library overwrote it in the meantime."""
    made = event.payload
    if not isinstance(made, CompactionCompleted) or event.version not in {row.version for row in rows}:
        return None
    return compaction_card(event.conversation, event.version, made, rows, failures)


def compaction_card(
    conversation: str,
    version: int,
    made: CompactionCompleted,
    rows: Sequence[CompactionRow],
    failures: Sequence[FailureRow] = (),
) -> Compaction:
    """Return a compaction with its summary and digest; ``rows`` are all of the conversation."""
    versions = [row.version for row in rows]
    place = versions.index(version)
    since = versions[place - 1] if place else 0
    return Compaction(
        conversation=conversation,
        compaction=rows[place],
        text=made.block.text[:MOST_CHARACTERS],
        left_out=max(0, len(made.block.text) - MOST_CHARACTERS),
        history=made.parts.history[:MOST_CHARACTERS],
        turn_prefix=made.parts.turn_prefix[:MOST_CHARACTERS],
        digest=made.digest.dump(),
        chain=_chain(rows, version),
        next_version=versions[place + 1] if place + 1 < len(versions) else None,
        failures=tuple(one for one in failures if since < one.version < version),
        written_by=made.written_by.model_dump(mode="json"),
    )


def _chain(rows: Sequence[CompactionRow], version: int) -> tuple[int, ...]:
    """Return the versions of the compactions that led to one, that one last."""
    by_version = {row.version: row for row in rows}
    found, waiting = set[int](), [version]
    while waiting:
        one = waiting.pop()
        if one in by_version and one not in found:
            found.add(one)
            waiting += by_version[one].covers["summaries"]
    return tuple(sorted(found))


async def _failures(reader: Reader, conversation: str) -> list[FailureRow]:
    return [
        FailureRow(
            version=event.version,
            at=instant_text(event.at),
            reason=event.payload.reason,
            detail=event.payload.detail,
            duration=event.payload.duration,
        )
        async for event in reader.store.read(conversation, types=["compaction.failed"])
        if isinstance(event.payload, CompactionFailed)
    ]


async def compaction_rows(reader: Reader, conversation: str) -> list[CompactionRow]:
    """Return the completed compactions of a conversation, oldest first, undone ones too."""
    made: list[tuple[Event, CompactionCompleted]] = []
    reverted: dict[int, int] = {}
    async for event in reader.store.read(conversation, types=_TYPES):
        if isinstance(event.payload, CompactionCompleted):
            made.append((event, event.payload))
        elif isinstance(event.payload, CompactionReverted):
            reverted |= dict.fromkeys(event.payload.versions, event.version)
    superseded: dict[int, int] = {}
    for event, payload in made:
        if event.version not in reverted:
            superseded = dict.fromkeys(payload.covers.summaries, event.version) | superseded
    turns = await _turns(reader, conversation, [payload for _, payload in made])
    return [
        _row(reader, event, payload, turns).model_copy(
            update={"reverted_by": reverted.get(event.version), "superseded_by": superseded.get(event.version)}
        )
        for event, payload in made
    ]


async def newest_compaction(reader: Reader, conversation: str, version: int) -> CompactionRow | None:
    """Return the compaction of a version, which is the newest one in force."""
    for event in await reader.store.read_versions(conversation, [version]):
        if isinstance(event.payload, CompactionCompleted):
            return _row(reader, event, event.payload, await _turns(reader, conversation, [event.payload]))
    return None


async def _turns(reader: Reader, conversation: str, made: list[CompactionCompleted]) -> dict[int, str]:
    """Return the turns of the first and the last covered version of each compaction, as far as these are there."""
    ends = {
        v
        for payload in made
        for v in (payload.covers.ranges[0][0], payload.covers.ranges[-1][1])
        if payload.covers.ranges
    }
    found: dict[int, str] = {}
    for event in await reader.store.read_versions(conversation, ends):
        if (block := appended_block(event.payload)) is not None:
            found[event.version] = block.turn_id
    return found


def _row(reader: Reader, event: Event, made: CompactionCompleted, turns: dict[int, str]) -> CompactionRow:
    return compaction_row(event.version, instant_text(event.at), made, turns, reader.prices)


def compaction_row(
    version: int, at: str, made: CompactionCompleted, turns: Mapping[int, str], prices: PriceTable
) -> CompactionRow:
    """Return the row of a compaction.

    Args:
        version: of its event.
        at: its time.
        made: what it did.
        turns: turns of the first and last versions that it covers, as far as these are known.
        prices: what tokens cost.
    """
    ranges, by = made.covers.ranges, made.written_by
    saved = None if not made.before_tokens else round(1 - made.after_tokens / made.before_tokens, 4)
    return CompactionRow(
        compaction_number=made.round,
        version=version,
        at=at,
        address=str(Address(version)),
        path=made.block.path,
        reason=made.reason,
        source=made.source,
        before_tokens=made.before_tokens,
        after_tokens=made.after_tokens,
        saved_share=saved,
        cut=ranges[-1][1] + 1 if ranges else None,
        split_turn_id=made.split_turn_id,
        covers=made.covers.model_dump(mode="json"),
        first_turn_id=turns.get(ranges[0][0]) if ranges else None,
        last_turn_id=turns.get(ranges[-1][1]) if ranges else None,
        covered_blocks=made.covered_blocks,
        covered_tokens=made.covered_tokens,
        carried=made.carried[-MOST_LISTED:],
        target_missed=made.target_missed,
        summary_tokens=made.tokens,
        summarizer=by.summarizer,
        model=by.model,
        fallback_reason=by.fallback_reason,
        asked=by.asked,
        usage=by.usage,
        cost=cost_of(by.model or "", by.usage, prices),
        duration=made.duration,
        unsaid=made.unsaid[-MOST_LISTED:],
        left_out={
            name: len(versions) - MOST_LISTED
            for name, versions in (("carried", made.carried), ("unsaid", made.unsaid))
            if len(versions) > MOST_LISTED
        },
        reverted_by=None,
        superseded_by=None,
    )
