"""The events of a conversation as rows with states: one pass over the log that keeps no block's body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from timeline.blocks import ToolCall, ToolResult
from timeline.cli.output import brief
from timeline.events import (
    BlockAppended,
    CompactionCompleted,
    CompactionFailed,
    ContextRendered,
    ModelCalled,
    UnknownPayload,
    appended_block,
    instant_text,
)
from timeline.fold.fold import Fold
from timeline.fold.states import states_of
from timeline.history import reverted_versions

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.cli.shapes import EventRow
    from timeline.events import Event, Payload
    from timeline.fold.window import State, Window
    from timeline.ports import EventStore

_ABOUT: Final = 160
"""Columns of a block's text that are kept for a person to know it by."""


@dataclass(slots=True)
class Row:
    """An event, and its state once the whole log is known. ``about`` is for people: what it says, in brief."""

    version: int
    at: str
    type: str
    about: str
    path: str | None = None
    turn_id: str | None = None
    call_id: str | None = None
    tokens: int | None = None
    state: State | None = None
    covered_by: int | None = None

    def dump(self) -> EventRow:
        """Return the stable JSON shape of `timeline show --json`."""
        return {
            "version": self.version,
            "at": self.at,
            "type": self.type,
            "path": self.path,
            "state": self.state,
            "covered_by": self.covered_by,
            "turn_id": self.turn_id,
            "call_id": self.call_id,
            "tokens": self.tokens,
        }


async def read_rows(store: EventStore, conversation: str) -> tuple[Window, list[Row]]:
    """Read a whole conversation; return its window and a row for every event.

    Raises:
        ConversationNotFound: there is no such conversation.
        StoreCorrupt: an event is damaged.
    """
    fold = Fold(conversation, await reverted_versions(store, conversation))
    rows: list[Row] = []
    async for event in store.read(conversation):
        fold.apply(event.version, event.at, event.payload)
        rows.append(_row(event))
    window = fold.window
    state = states_of(window)
    for row in rows:
        if row.path is not None:
            row.state, row.covered_by = state(row.version)
    return window, rows


def _row(event: Event) -> Row:
    block = appended_block(event.payload)
    row = Row(event.version, instant_text(event.at), event.type, "")
    if block is None:
        row.about = _about_event(event.payload)
        return row
    row.type, row.path, row.turn_id, row.call_id = block.type, block.path, block.turn_id, block.call_id
    row.tokens = _tokens(event.payload)
    row.about = about_block(block, _ABOUT)
    return row


def _tokens(payload: Payload) -> int | None:
    if isinstance(payload, BlockAppended | CompactionCompleted):
        return payload.tokens
    tokens = payload.data.get("tokens") if isinstance(payload, UnknownPayload) else None
    return tokens if isinstance(tokens, int) else None


def about_block(block: Block, cells: int) -> str:
    """Say in one line what a block is."""
    match block:
        case ToolCall():
            arguments = block.arguments
            values = arguments if isinstance(arguments, str) else ", ".join(f"{k}={v}" for k, v in arguments.items())
            return brief(f"{block.name}({values})", cells)
        case ToolResult():
            return brief(f"{'error: ' if block.is_error else ''}{block.text}", cells)
        case _:
            return brief(block.text or ("(data)" if block.data is not None else ""), cells)


def _about_event(payload: Payload) -> str:
    match payload:
        case ContextRendered():
            return f"{payload.tokens:,} tokens, fingerprint {payload.fingerprint[:12]}"
        case ModelCalled():
            used = payload.usage
            read = used.input_tokens + used.cache_read_tokens + used.cache_write_5m_tokens + used.cache_write_1h_tokens
            return f"{payload.model or 'a model'}: {read:,} tokens in, {used.output_tokens:,} out"
        case CompactionFailed():
            return f"{payload.reason}: {brief(payload.detail, 80)}"
        case _:
            return ""
