"""A session that goes on from another file: docs/lab.md, Method, 2.

What its first call reports above a usual head is what was said before, in rounds of a call and its result.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tests.independent.recordings import Block, Conversation
from tests.independent.sizes import Sizes

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_HEAD, USUAL_HEAD = 48_000, 42_000
ROUND: Final = 500
"""Tokens that a round has at least."""
OF_CALL: Final = 0.2


def with_rounds(conversation: Conversation, sizes: Sizes) -> tuple[Conversation, Sizes]:
    """Return a conversation with the rounds that its file lacks, and the sizes of all blocks."""
    if sizes.fixed <= MOST_HEAD:
        return conversation, sizes
    before = sizes.fixed - USUAL_HEAD
    rounds = max(1, round(before / max(ROUND, sum(sizes.blocks) / len(conversation.calls))))
    blocks = [
        *_before(rounds),
        *(replace(b, turn=b.turn + 1, response=b.response + rounds) for b in conversation.blocks),
    ]
    calls = [replace(call, before=call.before + 2 * rounds + 1) for call in conversation.calls]
    of_round = [before / rounds * OF_CALL, before / rounds * (1 - OF_CALL)]
    return Conversation(blocks, calls), Sizes([0.0, *(of_round * rounds), *sizes.blocks], USUAL_HEAD)


def _before(rounds: int) -> Iterator[Block]:
    yield Block("prompt", 0, 1, -1)
    for number in range(rounds):
        yield Block("call", 0, 1, number)
        yield Block("result", 0, 1, number)
