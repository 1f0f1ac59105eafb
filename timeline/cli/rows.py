"""Read a conversation as rows, one an event, with the state of each: one pass over the log that keeps no bodies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from timeline.answers.about import ABOUT, about_block, about_event, with_unsaid
from timeline.answers.listed import EventRow
from timeline.blocks import RangeSummary, ToolCall, instant_text
from timeline.display.brief import brief
from timeline.events import (
    BlockAppended,
    BlocksHidden,
    CompactionCompleted,
    ContextRendered,
    ModelCalled,
    UnknownPayload,
    appended_block,
)
from timeline.events.other_payloads import (
    CompactionFailed,
)
from timeline.fold.counts import plain_tokens, plainly
from timeline.fold.states import states_of
from timeline.fold.turns import Turns
from timeline.log.history import base_fold, check_version, read_folding, reverted_versions
from timeline.log.stopwatch import spelled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.events import Event, Payload
    from timeline.fold.window import Item, State, Window
    from timeline.ports import EventStore


@dataclass(slots=True)
class Row:
    """An event, and its state once the whole log is known.

    Not part of the JSON: ``about``, the beginning of its text or of its replacement's; ``tool``, the name of the tool
    that it calls; ``round``, the number of the model response that it belongs to (0 for none); ``shown``, the tokens
    that the model sees of it; ``order``, its place in the timeline.
    """

    version: int
    at: str
    type: str
    about: str
    path: str | None = None
    turn_id: str | None = None
    call_id: str | None = None
    tokens: int | None = None
    duration: float | None = None
    state: State | None = None
    covered_by: int | None = None
    unsaid: list[int] | None = None
    tool: str = ""
    round: int = 0
    shown: int = 0
    order: tuple[int, int] = (0, 1)

    def dump(self) -> EventRow:
        """Return the stable JSON shape of `timeline show --json`."""
        return EventRow(
            version=self.version,
            at=self.at,
            type=self.type,
            path=self.path,
            state=self.state,
            covered_by=self.covered_by,
            turn_id=self.turn_id,
            call_id=self.call_id,
            tokens=self.tokens,
            duration=self.duration,
            unsaid=tuple(self.unsaid or ()),
        )


class Listing(NamedTuple):
    """A whole conversation: its window, a row for every event that is there, and the newest recorded context.

    ``scavenged`` is the number of events that are not there any more.
    """

    window: Window
    rows: list[Row]
    rendered: ContextRendered | None
    scavenged: int = 0


async def read_rows(store: EventStore, conversation: str, *, until: int | None = None) -> Listing:
    """Read a whole conversation, or its past up to a version."""
    if until is None:  # what is undone from here on is not in it: the fold must know each undo beforehand
        until = (await store.info(conversation)).version
    else:
        await check_version(store, conversation, until)
    taken_back = await reverted_versions(store, conversation, until)
    fold = await base_fold(store, conversation, until=until, without=taken_back)
    turns = Turns()
    rows: list[Row] = []
    rendered: ContextRendered | None = None
    async for event in read_folding(store, conversation, fold, until=until):
        rows.append(_row(event, turns))
        if isinstance(event.payload, ContextRendered):
            rendered = event.payload
    window = replace(fold.window, items=tuple(plainly(item) for item in fold.window.items))
    state = states_of(window, taken_back)
    live = {item.version: item for item in window.items}
    for row in rows:
        if row.path is not None:
            row.state, row.covered_by = state(row.version)
            _show_live(row, live.get(row.version))
            if row.version in taken_back:
                row.shown, row.about = 0, brief(f"(taken back) {row.about}", ABOUT)
    return Listing(window, rows, rendered, sum((await store.scavenged(conversation)).values()))


def _row(event: Event, turns: Turns) -> Row:
    block = appended_block(event.payload)
    row = Row(event.version, instant_text(event.at), event.type, "", order=(event.version, 1))
    if isinstance(event.payload, CompactionCompleted | CompactionFailed | ModelCalled):
        row.duration = event.payload.duration
    if block is None:
        row.about = about_event(event.payload)
        if isinstance(event.payload, BlocksHidden):
            _report(row, event.payload.unsaid)
        return row
    row.type, row.path, row.turn_id, row.call_id = block.type, block.path, block.turn_id, block.call_id
    row.tokens = row.shown = _tokens(event.payload) or 0
    row.about = about_block(block, ABOUT)
    if took := spelled(row.duration):
        row.about = brief(f"(in {took}) {row.about}", ABOUT)
    if isinstance(event.payload, CompactionCompleted):
        _report(row, event.payload.unsaid)
    if isinstance(block, ToolCall):
        row.tool = block.name
    if not isinstance(block, RangeSummary):
        row.round, _ = turns.advance(block, block.turn_id, event.version)
    return row


def _report(row: Row, unsaid: Sequence[int]) -> None:
    """Put what a decision left unsaid into its row."""
    if unsaid:
        row.unsaid = list(unsaid)
        row.about = brief(with_unsaid(row.about, unsaid), ABOUT)


def _show_live(row: Row, item: Item | None) -> None:
    """Set what a row shows of a live block: the replacement of a hidden one, else its text."""
    if item is None:
        return
    row.shown, row.order = item.shown_tokens, item.order
    replacement = item.replacement
    if replacement is not None:
        text = replacement.text or ", ".join(f"{name}={value}" for name, value in (replacement.arguments or {}).items())
        row.about = brief(f"(of {item.tokens:,}) {text}", ABOUT)
    elif item.redacted:
        row.about = brief(item.block.text, ABOUT)


def _tokens(payload: Payload) -> int | None:
    if isinstance(payload, BlockAppended | CompactionCompleted):
        return plain_tokens(payload.tokens, payload.counter)
    tokens = payload.data.get("tokens") if isinstance(payload, UnknownPayload) else None
    return tokens if isinstance(tokens, int) else None
