"""A conversation as a Markdown transcript: every block in full, under its turn, with its path and state."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from timeline.blocks import ToolCall
from timeline.cli.listing import text_of
from timeline.cli.rows import read_rows
from timeline.events import appended_block

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from timeline.blocks import Block
    from timeline.ports import EventStore

_TICKS: Final = re.compile(r"`{3,}")
_NAMES: Final = {
    "user.prompt": "User",
    "assistant.completion": "Assistant",
    "assistant.reasoning": "Reasoning",
    "react.tool.call": "Call",
    "react.tool.result": "Result",
    "conv.range.summary": "Summary",
    "note": "Note",
}


async def transcript(store: EventStore, conversation: str) -> AsyncIterator[str]:
    """Yield the transcript in parts, a block each.

    Raises:
        ConversationNotFound: there is no such conversation.
        StoreCorrupt: an event is damaged.
    """
    info = await store.info(conversation)
    window, rows, _ = await read_rows(store, conversation)
    paths = {row.version: row.path for row in rows}
    states = {row.version: (row.state or "lost", paths.get(row.covered_by or 0)) for row in rows}
    yield f"# {' '.join((info.title or conversation).split())}\n"
    yield f"Conversation `{conversation}`, version {info.version}; {window.tokens:,} tokens are in the window.\n"
    turn_id = ""
    async for event in store.read(conversation, until=window.version):
        block = appended_block(event.payload)
        if block is None:
            continue
        if block.turn_id != turn_id:
            turn_id = block.turn_id
            yield f"## {turn_id}\n"
        state, by = states[event.version]
        yield _section(block, state, by)


def _section(block: Block, state: str, covered_by: str | None) -> str:
    name = _NAMES.get(block.type, block.type)
    if isinstance(block, ToolCall):
        name = f"{name}: {block.name}"
    where = f"{state} by `{covered_by}`" if covered_by else state
    return f"### {name}\n\n`{block.path}` · {where}\n\n{_fenced(text_of(block))}\n"


def _fenced(text: str) -> str:
    """Fence a text, with more back-ticks than it holds itself."""
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in _TICKS.findall(text))])
    return f"{fence}\n{text}\n{fence}"
