"""Where a newer snapshot of a conversation says otherwise than the log, which keeps what an earlier one said.

A client that writes its file anew as a whole takes out what the user went back behind: an answer that was written
again, a question that was edited. The log cannot know whether such a block was left or merely trimmed, or whether an
application of its own appended it. So nothing is omitted here: the report names each block, and people decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timeline.events import BlockAppended

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from timeline.blocks import Block
    from timeline.importers.recording import Report
    from timeline.ports import EventStore
    from timeline.timeline import Timeline


async def note_rewritten(
    store: EventStore,
    timeline: Timeline,
    said: Mapping[UUID, Block],
    report: Report,
    *,
    known: AbstractSet[UUID],
    let_in: Callable[[Block], Block],
) -> None:
    """Report the blocks that a context may show and that a snapshot no longer has, or has with other content.

    What is missing is no finding where the snapshot has nothing new: then the log merely knows more than it.

    Args:
        store: the store of the log.
        timeline: the conversation, before the snapshot's events are appended.
        said: the blocks of the snapshot by the ids of their events.
        report: receives the findings.
        known: the ids that the log has.
        let_in: makes of a block what would be stored of it.
    """
    shown = {item.version for item in timeline.window.items if item.state not in {"omitted", "redacted"}}
    has_news = not said.keys() <= known
    async for event in store.read(timeline.id, types=["block.appended"]):
        if event.version not in shown or not isinstance(event.payload, BlockAppended):
            continue
        block = said.get(event.id)
        if block is None:
            if has_news:
                report.note("left_out", 0, f"@{event.version} {event.payload.block.path}")
        elif _content(let_in(block)) != _content(event.payload.block):
            report.note("rewritten", 0, f"@{event.version} {event.payload.block.path}")


def _content(block: Block) -> dict[str, Any]:
    """Return what a block says, without its place in the log."""
    return block.model_dump(exclude={"path", "turn_id", "at", "meta"})
