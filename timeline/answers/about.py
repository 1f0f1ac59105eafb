"""Describe blocks and events in one line, and return a block as a person reads it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from timeline.blocks import ToolCall, ToolResult
from timeline.display.brief import brief
from timeline.display.controls import escape_controls
from timeline.events import (
    BlockRedacted,
    BlocksHidden,
    BlocksPinned,
    BlocksRevealed,
    BlocksUnpinned,
    CompactionReverted,
    ContextRendered,
    ConversationOpened,
    ModelCalled,
    PolicyChanged,
)
from timeline.events.addresses import listed_addresses
from timeline.events.other_payloads import (
    CompactionBoundary,
    CompactionFailed,
    FrameworkEntry,
    FrameworkRecord,
    PolicyOverridden,
    PrefixChanged,
    StageApproved,
    StageEntered,
    StageRewound,
    ToolsChanged,
)
from timeline.frozen import canonical_json
from timeline.log.stopwatch import with_duration
from timeline.projection.explain import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.blocks import Block
    from timeline.events import Payload

ABOUT: Final = 160
"""How many columns of a block's text a row keeps, so that a person recognises the block."""


def text_of(block: Block) -> str:
    """Return a block as a person reads it: its text, a call's name and arguments, or data if it has no text."""
    if isinstance(block, ToolCall):
        arguments = block.arguments
        shown = arguments if isinstance(arguments, str) else escape_controls(_indented(arguments))
        return "\n".join(filter(None, [f"{block.name} {shown}", block.text]))
    if block.text or block.data is None:
        return block.text
    return canonical_json(block.data)


def _indented(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def about_block(block: Block, cells: int) -> str:
    """Describe a block in one line."""
    match block:
        case ToolCall():
            arguments = block.arguments
            values = arguments if isinstance(arguments, str) else ", ".join(f"{k}={v}" for k, v in arguments.items())
            return brief(f"{block.name}({values})", cells)
        case ToolResult():
            return brief(f"{'error: ' if block.failed else ''}{block.text}", cells)
        case _:
            return brief(block.text or ("(data)" if block.data is not None else ""), cells)


def with_unsaid(text: str, versions: Sequence[int]) -> str:
    """Return the description of a decision, behind the addresses of the prompts that it leaves something of unsaid."""
    return f"(unsaid: {listed_addresses(versions)}) {text}" if versions else text


def about_event(payload: Payload) -> str:  # noqa: C901, PLR0912 - one case an event type
    """Describe an event that appends no block in one line."""
    match payload:
        case ContextRendered():
            return f"{payload.tokens:,} tokens, fingerprint {payload.fingerprint[:12]}"
        case ModelCalled():
            used = payload.usage
            sizes = f"{used.sent_tokens:,} tokens in, {used.output_tokens:,} out"
            ended = f"failed: {brief(payload.error, 80)}" if payload.error else sizes
            return with_duration(f"{payload.model or 'a model'}: {ended}", payload.duration)
        case CompactionBoundary():
            sizes = f"{payload.before_tokens:,} -> {payload.after_tokens:,} tokens"
            return f"behind {payload.compaction}: {counted(payload.messages, 'message', 'messages')}, {sizes}"
        case PrefixChanged() | ToolsChanged():
            return f"{(payload.before or 'none')[:12]} -> {(payload.after or 'none')[:12]}"
        case BlocksHidden():
            versions = ", ".join(str(replacement.version) for replacement in payload.blocks)
            return f"{payload.state} ({payload.reason}): {versions}"
        case BlocksRevealed() | BlocksPinned() | BlocksUnpinned() | CompactionReverted():
            return ", ".join(map(str, payload.versions))
        case BlockRedacted():
            return f"{payload.version or 'words'} {payload.reason}"
        case StageEntered():
            return brief(payload.label or payload.stage, ABOUT)
        case StageApproved():
            where = counted(payload.count, "message", "messages")
            where += f", {payload.first} to {payload.last}" if payload.count else ""
            return brief(f"{payload.label or payload.stage} ({where}): {payload.decision}", ABOUT)
        case StageRewound():
            return brief(f"back to {payload.stage}", ABOUT)
        case ConversationOpened() | PolicyChanged() | PolicyOverridden():
            return "" if payload.origin is None else f"policy {brief(payload.origin.in_words(), 80)}"
        case FrameworkEntry():
            return f"{payload.framework} {payload.key}"
        case FrameworkRecord():
            return f"{payload.framework}{'' if payload.data is not None else ', deleted'}"
        case CompactionFailed():
            return f"{with_duration(payload.reason, payload.duration)}: {brief(payload.detail, 80)}"
        case _:
            return ""
