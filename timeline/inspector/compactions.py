"""Compactions: what each one covered, what it kept, who wrote its summary and what that cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.blocks import instant_text
from timeline.events import CompactionCompleted, CompactionReverted, appended_block
from timeline.events.addresses import Address
from timeline.inspector.shapes import CompactionRow
from timeline.inspector.tally import cost_of

if TYPE_CHECKING:
    from timeline.events import Event
    from timeline.inspector.reader import Reader

_TYPES = ("compaction.completed", "compaction.reverted")


async def compaction_rows(reader: Reader, conversation: str) -> list[CompactionRow]:
    """Return the completed compactions of a conversation, oldest first, undone ones too.

    Raises:
        ConversationNotFound: there is no such conversation.
    """
    made: list[tuple[Event, CompactionCompleted]] = []
    reverted: dict[int, int] = {}
    async for event in reader.store.read(conversation, types=_TYPES):
        if isinstance(event.payload, CompactionCompleted):
            made.append((event, event.payload))
        elif isinstance(event.payload, CompactionReverted):
            reverted |= dict.fromkeys(event.payload.versions, event.version)
    superseded = {
        v: event.version
        for event, payload in reversed(made)
        for v in payload.covers.summaries
        if event.version not in reverted
    }
    turns = await _turns(reader, conversation, [payload for _, payload in made])
    return [_row(reader, e, payload, turns, reverted.get(e.version), superseded.get(e.version)) for e, payload in made]


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


def _row(
    reader: Reader,
    event: Event,
    made: CompactionCompleted,
    turns: dict[int, str],
    reverted_by: int | None,
    superseded_by: int | None,
) -> CompactionRow:
    ranges, by = made.covers.ranges, made.written_by
    saved = None if not made.before_tokens else round(1 - made.after_tokens / made.before_tokens, 4)
    return CompactionRow(
        number=made.round,
        version=event.version,
        at=instant_text(event.at),
        address=str(Address(event.version)),
        path=made.block.path,
        reason=made.reason,
        source=made.source,
        before_tokens=made.before_tokens,
        after_tokens=made.after_tokens,
        saved=saved,
        cut=ranges[-1][1] + 1 if ranges else None,
        split_turn_id=made.split_turn_id,
        covers=made.covers.model_dump(mode="json"),
        first_turn=turns.get(ranges[0][0]) if ranges else None,
        last_turn=turns.get(ranges[-1][1]) if ranges else None,
        covered_blocks=made.covered_blocks,
        covered_tokens=made.covered_tokens,
        carried=made.carried,
        target_missed=made.target_missed,
        summary_tokens=made.tokens,
        summarizer=by.summarizer,
        model=by.model,
        fallback_reason=by.fallback_reason,
        asked=by.asked,
        usage=by.usage,
        cost=cost_of(by.model or "", by.usage, reader.prices),
        duration=made.duration,
        unsaid=made.unsaid,
        reverted_by=reverted_by,
        superseded_by=superseded_by,
    )
