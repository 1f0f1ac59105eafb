"""Write a conversation as a Markdown transcript: every block under its turn, with its path and state."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from timeline.answers.about import text_of
from timeline.audit.redacting import eraser_of
from timeline.blocks import ToolCall
from timeline.cli.rows import read_rows
from timeline.display.controls import show_controls
from timeline.events import appended_block
from timeline.events.addresses import Address
from timeline.frozen import canonical_json
from timeline.log.undisturbed import check_undisturbed, seen
from timeline.portable.exporting import AGAIN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from timeline.audit.redacting import Eraser
    from timeline.blocks import Block
    from timeline.events import Payload
    from timeline.fold.window import Item, Window
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


async def transcript(
    store: EventStore, conversation: str, *, limit: int | None = None, only_window: bool = False
) -> AsyncIterator[str]:
    """Yield the transcript in parts, one a block; control characters are visible, in a file too.

    Args:
        store: the store of the conversation.
        conversation: its id.
        limit: the most characters of a block; None for all.
        only_window: leave out blocks that the model does not see now, and show replacements as it sees them.

    Raises:
        RemovedMeanwhile: content was removed while the transcript was written.
    """
    before = await seen(store, conversation)
    info = await store.info(conversation)
    eraser = await eraser_of(store, conversation)
    window, rows, _, scavenged = await read_rows(store, conversation)
    paths = {row.version: row.path for row in rows}
    states = {row.version: (row.state or "lost", paths.get(row.covered_by or 0)) for row in rows}
    title, name = eraser.title(info.title) or conversation, show_controls(conversation)
    yield f"# {show_controls(' '.join(title.split()))}\n"
    yield f"Conversation `{name}`, version {info.version}; {window.tokens:,} tokens are in the window.\n"
    if scavenged and not only_window:
        yield f"{scavenged:,} events before the window were scavenged and are missing here.\n"
    blocks = _in_window if only_window else _all
    turn_id = ""
    async for version, block, text in blocks(store, window, eraser):
        if block.turn_id != turn_id:
            turn_id = block.turn_id
            yield f"## {show_controls(turn_id)}\n"
        state, by = states[version]
        yield show_controls(_section(Address(version), block, state, by, _cut(text, limit)))
    await check_undisturbed(store, conversation, before, AGAIN)


async def _all(store: EventStore, window: Window, eraser: Eraser) -> AsyncIterator[tuple[int, Block, str]]:
    async for event in store.read(window.conversation, until=window.version):
        block = appended_block(eraser.erase(event.version, event.payload) or event.payload)
        if block is not None:
            yield event.version, block, text_of(block)


async def _in_window(store: EventStore, window: Window, eraser: Eraser) -> AsyncIterator[tuple[int, Block, str]]:
    """Yield the blocks of the window in its order, each as the model sees it."""
    erased: dict[int, Payload] = {}
    async for event in store.read(window.conversation, until=window.version):
        if (left := eraser.erase(event.version, event.payload)) is not None:
            erased[event.version] = left
    for item in window.items:
        if not item.omitted and not (item.in_tail and item.superseded):
            left = erased.get(item.version)
            block = (appended_block(left) if left is not None else None) or item.block
            yield item.version, block, _shown(item) if left is None else text_of(block)


def _shown(item: Item) -> str:
    if item.replacement is None:
        return text_of(item.block)
    return item.replacement.text or canonical_json(item.replacement.arguments or {})


def _cut(text: str, limit: int | None) -> str:
    if limit is None or len(text) <= limit:
        return text
    return f"{text[:limit]}\n… {len(text) - limit:,} more characters"


def _section(address: Address, block: Block, state: str, covered_by: str | None, text: str) -> str:
    name = _NAMES.get(block.type, block.type)
    if isinstance(block, ToolCall):
        name = f"{name}: {block.name}"
    where = f"{state} by `{covered_by}`" if covered_by else state
    return f"### {name}\n\n`{address}` · `{block.path}` · {where}\n\n{_fenced(text)}\n"


def _fenced(text: str) -> str:
    """Fence a text with more back-ticks than the text itself contains."""
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in _TICKS.findall(text))])
    return f"{fence}\n{text}\n{fence}"
