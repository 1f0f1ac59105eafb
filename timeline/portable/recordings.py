"""Append a recording that an importer read to a conversation, each event once.

The id of every event is derived from the recording, so that importing a file twice adds nothing, and importing a file
that has grown adds the new events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from timeline.blocks import RangeSummary, stem
from timeline.events import (
    BlockAppended,
    BlocksHidden,
    CompactionCompleted,
    Replacement,
    SummaryParts,
    WrittenBy,
    derived_event_id,
)
from timeline.facts.record_lines import unsaid
from timeline.facts.said import searchable_line
from timeline.fold.groups import atomic_groups, boundaries
from timeline.importers.recording import ImportedCompaction, ImportedHide
from timeline.log.history import asked_of
from timeline.log.protocol import Draft
from timeline.planning.covered_digest import build_digest
from timeline.planning.hidden_requests import left_unsaid
from timeline.planning.summary_block import HEADING, covered_figures, free_summary_path, with_meta
from timeline.portable.snapshots import LoggedEvents
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from uuid import UUID

    from timeline.events import Payload
    from timeline.fold.window import Item
    from timeline.importers.recording import RecordedEvent, Recording
    from timeline.ports import EventStore, Hooks

_BATCH = 500
"""Events in one append."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import: the conversation, the events added, the events known from before, and the report."""

    id: str
    events: int
    known: int
    report: dict[str, Any]

    def dump(self) -> dict[str, Any]:
        """Return the stable JSON shape of `timeline import --json`."""
        return {"id": self.id, "events": self.events, "known": self.known, "report": self.report}


async def import_recording(
    store: EventStore,
    recording: Recording,
    *,
    hooks: Hooks | None = None,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Imported:
    """Append a recording to the conversation of its id, compactions of the recorded client included.

    Args:
        store: the store to append to.
        recording: a recording from an importer.
        hooks: of which ``on_append`` sees all that is stored, as in `Timeline.open`.
        on_progress: called with the number of events appended or known.

    Raises:
        StoreError: an append failed; the batches acknowledged before it are stored.
    """
    at = recording.events[0].at if recording.events else None
    timeline = await Timeline.open(
        store,
        recording.id,
        title=recording.title,
        parent=recording.parent,
        source=recording.report.format,
        hooks=hooks,
        now=at,
    )
    events = await _placed(store, timeline, recording, hooks)
    known = await append_recorded(store, timeline, events, on_progress=on_progress)
    return Imported(recording.id, len(recording.events) - known, known, recording.report.dump())


async def _placed(
    store: EventStore, timeline: Timeline, recording: Recording, hooks: Hooks | None
) -> tuple[RecordedEvent, ...]:
    """Return the events of a recording as the log has them; of a snapshot report what the log has otherwise."""
    if not recording.is_snapshot:
        return recording.events
    known = await LoggedEvents.of(store, timeline.id)
    shown = {item.version for item in timeline.window.items if item.state not in {"omitted", "redacted"}}
    screen = hooks.on_append if hooks is not None else None
    known.note(recording.events, shown, recording.report, screen or (lambda block: block))
    return known.placed(recording.events)


async def append_recorded(
    store: EventStore,
    timeline: Timeline,
    events: Sequence[RecordedEvent],
    *,
    on_progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Append the events that the log does not have yet, and return how many it has.

    Raises:
        StoreError: an append failed; the batches acknowledged before it are stored.
    """
    ids = [derived_event_id(event.at, timeline.id, event.key) for event in events]
    known = await store.known_ids(timeline.id, ids)
    new = [(event, id_) for event, id_ in zip(events, ids, strict=True) if id_ not in known]
    batch: list[tuple[RecordedEvent, UUID]] = []
    for done, (event, id_) in enumerate(new):
        if isinstance(event.payload, ImportedCompaction | ImportedHide):
            await _extend(timeline, batch)
            batch = []
            await _decide(store, timeline, event, id_)
            continue
        batch.append((event, id_))
        if len(batch) >= _BATCH:
            await _extend(timeline, batch)
            batch = []
            on_progress(done)
    await _extend(timeline, batch)
    on_progress(len(new))
    return len(known)


async def drafts_of(timeline: Timeline, events: Sequence[tuple[RecordedEvent, UUID]]) -> list[Draft]:
    """Count the tokens of a recording's blocks and return drafts of its events, except for compactions and hides."""
    blocks = [e.payload.block for e, _ in events if isinstance(e.payload, BlockAppended)]
    sizes = iter(await timeline.count(blocks))
    drafts: list[Draft] = []
    for event, id_ in events:
        payload = event.payload
        if isinstance(payload, BlockAppended):
            block = payload.block if payload.block.at else payload.block.model_copy(update={"at": event.at})
            drafts.append(Draft(id_, event.at, block, next(sizes)))
        elif not isinstance(payload, ImportedCompaction | ImportedHide):
            drafts.append(Draft(id_, event.at, payload=payload))
    return drafts


async def _extend(timeline: Timeline, events: Sequence[tuple[RecordedEvent, UUID]]) -> None:
    if events:
        await timeline.extend(await drafts_of(timeline, events))


async def _decide(store: EventStore, timeline: Timeline, event: RecordedEvent, id_: UUID) -> None:
    """Append a compaction or a hide of the recorded client, even one that changes nothing."""
    match event.payload:
        case ImportedHide():
            payload: Payload = _hide(timeline, event.payload)
        case ImportedCompaction():
            turn_id = timeline.window.turn_id or "turn_0"
            taken = await store.paths_taken(timeline.id, [stem(RangeSummary(turn_id=turn_id))])
            compaction = _compaction(timeline, event.payload, event.at, free_summary_path(turn_id, taken), turn_id)
            asked = await asked_of(store, timeline.id, compaction.covers)
            lost = unsaid(asked, searchable_line([event.payload.summary]))
            payload = compaction.model_copy(update={"unsaid": lost})
        case _:
            raise TypeError(f"{type(event.payload).__name__} is no decision of a recorded client")
    await timeline.decide([payload], at=event.at, ids=[id_])


def _hide(timeline: Timeline, recorded: ImportedHide) -> BlocksHidden:
    wanted = set(recorded.call_ids)
    items = [i for i in timeline.window.items if i.answers is not None and i.block.call_id in wanted]
    texts = [f"[cleared by the recorded client: {item.block.path}]" for item in items]
    blocks = tuple(
        Replacement(version=item.version, text=text, tokens=timeline.counter.count(text))
        for item, text in zip(items, texts, strict=True)
    )
    lost = left_unsaid(timeline.window.items, blocks)
    return BlocksHidden(reason="imported", counter=timeline.counter.name, blocks=blocks, unsaid=lost)


def _compaction(
    timeline: Timeline, recorded: ImportedCompaction, at: datetime, path: str, turn_id: str
) -> CompactionCompleted:
    """Return the compaction of a recorded client: its summary covers everything before it but the kept blocks."""
    window = timeline.window
    cut = _cut(window.items, recorded.kept_blocks)
    covered = [item for item in window.items[:cut] if not item.is_summary]
    kept = window.items[cut:]
    divided = kept[0].block.turn_id if kept and any(i.block.turn_id == kept[0].block.turn_id for i in covered) else None
    text = f"{HEADING}\n\n{recorded.summary}"
    tokens = timeline.counter.count(text)
    event = CompactionCompleted(
        block=RangeSummary(turn_id=turn_id, text=text, at=at, path=path),
        tokens=tokens,
        counter=timeline.counter.name,
        covers=window.covers_between(0, cut),
        parts=SummaryParts(history=recorded.summary),
        split_turn_id=divided,
        round=window.compactions + 1,
        reason="imported",
        source="imported",
        before_tokens=window.tokens,
        after_tokens=tokens + sum(item.shown_tokens for item in kept),
        written_by=WrittenBy(summarizer="imported"),
        digest=build_digest(covered),
        **covered_figures(window.summaries, covered),
    )
    return with_meta(event, window.summaries, covered, trigger=recorded.trigger, recorded_tokens=recorded.pre_tokens)


def _cut(items: Sequence[Item], kept: int) -> int:
    """Return the position of the first kept block; a position inside a group moves to the group's beginning."""
    cut = max((n for n, item in enumerate(items, start=1) if item.is_summary), default=0)
    cut = max(cut, len(items) - kept)
    legal = [*boundaries(items, atomic_groups(items)), True]
    while not legal[cut]:
        cut -= 1
    return cut
