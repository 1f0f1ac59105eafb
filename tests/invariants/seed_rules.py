"""Seed 002's cut rules, written out once more from its words, and what makes a cut legal by the design's.

Positions are indices into the live blocks in timeline order; nothing of the planner is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.invariants import reference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.invariants.reference import LogLine
    from timeline.blocks import Block


def is_cut_point_block(block: Block) -> bool:
    """Rule 1, in its own order: two rejected types, four accepted ones, then the author decides."""
    if block.type in {"react.tool.result", "conv.range.summary"}:
        return False
    if block.type in {"user.prompt", "assistant.completion", "react.tool.call", "turn.header"}:
        return True
    if block.author in {"user", "assistant"}:
        return True
    return block.author != "" and block.author not in {"system", "tool"}


def is_message_block(block: Block) -> bool:
    """Rule 2: a tool result counts, otherwise the same as rule 1."""
    return block.type == "react.tool.result" or is_cut_point_block(block)


def is_turn_start(block: Block) -> bool:
    """Rule 4: a header, a prompt, or anything that the user said."""
    return block.type in {"turn.header", "user.prompt"} or block.author == "user"


def find_cut(blocks: Sequence[Block], tokens: Sequence[int], keep_recent_tokens: int) -> int | None:
    """Rule 3, between the last summary and the end."""
    begin = 1 + max((i for i, b in enumerate(blocks) if b.type == "conv.range.summary"), default=-1)
    accumulated = 0
    index = begin
    for i in reversed(range(begin, len(blocks))):
        if is_message_block(blocks[i]):
            accumulated += tokens[i]
        if accumulated >= keep_recent_tokens and is_message_block(blocks[i]):
            index = i
            break
    cut = next((i for i in range(index, len(blocks)) if is_cut_point_block(blocks[i])), None)
    while cut is not None and cut > begin and not is_message_block(blocks[cut - 1]):
        cut -= 1
    return cut


def legal_cuts(log: Sequence[LogLine]) -> list[int]:
    """List the positions before which a cut would be legal.

    It stands behind the last summary and what that one carried, with something to cover in between; the first message
    at or after it is a candidate; it begins a group and divides none. A group that waits, or waited, for an approval
    may be divided: its older part is carried. Where no candidate is left, the start of the newest group will do.
    """
    live, blocks, groups = reference.order(log), reference.blocks_of(log), reference.groups(log)
    bound = {v for v in live if blocks[v].type == "conv.range.summary" or reference.is_carried(log, v)}

    def waits(group: set[int]) -> bool:
        return any(getattr(blocks[v], "pending", False) for v in group)

    bounds: list[int] = []
    legal: list[int] = []
    for position, version in enumerate(live):
        before, kept = set(live[:position]), set(live[position:])
        parted = [group for group in groups if group & before and group & kept]
        if kept & bound or not before - bound or any(version in group or not waits(group) for group in parted):
            continue
        bounds.append(position)
        message = next((blocks[v] for v in live[position:] if is_message_block(blocks[v])), None)
        if message is not None and is_cut_point_block(message):
            legal.append(position)
    return legal or bounds[-1:]
