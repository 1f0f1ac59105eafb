"""Append disowned blocks, which never happened for the agent, together with their omission.

A framework may reject a model's reply, or leave the branch of its history that holds one. People see such blocks, with
the reason. No model is sent them, and no summary mentions them. ``reveal`` takes the omission back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from timeline.agent.messages import placed_in_turns
from timeline.blocks import stem
from timeline.events import BlocksHidden, Replacement, block_appended

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from timeline.blocks import Block
    from timeline.engine.conversation import Conversation
    from timeline.events import Payload


async def append_disowned(
    conversation: Conversation,
    messages: Sequence[Sequence[Block]],
    reason: Literal["rejected", "abandoned"],
    at: datetime | None,
) -> None:
    """Append the blocks of messages, omitted from their first version on.

    Raises:
        StoreError: the store refused; nothing was written, unless it is `AppendUncertain`.
    """
    log = conversation.log
    tokens = await conversation.count([block for blocks in messages for block in blocks])

    async def choose(time: datetime) -> Sequence[Payload]:
        turns = log.fold.turns
        blocks = placed_in_turns(messages, turns)
        taken = await log.paths_taken([stem(block, turns.turn_for(block)) for block in blocks])
        addressed = log.fold.address([(block, time) for block in blocks], avoid=taken)
        first = log.fold.version + 1
        omitted = tuple(Replacement(version=first + number) for number in range(len(addressed)))
        counter = conversation.counter.name
        appended = [block_appended(block, size, counter) for block, size in zip(addressed, tokens, strict=True)]
        return [*appended, BlocksHidden(mode="omit", reason=reason, blocks=omitted)]

    if tokens:
        await conversation.catch_up()
        await log.decide(choose, at=at)
