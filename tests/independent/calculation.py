"""What recorded conversations cost under no policy and under cut points, in base tokens.

A second opinion on the lab, written from the documents: it shares nothing with it, and imports nothing of the project.
A base token is the price of a token of input that no cache answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.independent.cache import KINDS, LONG, OUTPUT, SHORT, Cache, Piece
from tests.independent.cutting import Asked, Cutter
from tests.independent.hiding import GRACE, hide
from tests.independent.items import Item, Settings, newest_response
from tests.independent.resumed import with_rounds
from tests.independent.sizes import measured

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.independent.recordings import Call, Conversation

MOST_FIXED: Final = 1 / 2
"""Share of a limit above which the fixed part is replayed as CAPPED_FIXED of it (docs/lab.md, Method, 2)."""
CAPPED_FIXED: Final = 1 / 8
ROUNDS: Final = 4
"""The second marker stands so many rounds before the last (seed 002, cache points)."""


def cost(conversations: Iterable[Conversation], settings: Settings, *, cuts: bool, kept: str = "") -> float:
    """Return what conversations cost.

    Args:
        conversations: of one recording.
        settings: of the policy.
        cuts: the policy hides and cuts; else everything is sent.
        kept: how the provider keeps prompts, as in ``--cache``; empty for as it was recorded.
    """
    return sum(_cost(conversation, settings, cuts=cuts, kept=kept) for conversation in conversations)


def _cost(conversation: Conversation, settings: Settings, *, cuts: bool, kept: str) -> float:
    conversation, sizes = with_rounds(conversation, measured(conversation))
    limit = settings.limit
    fixed = sizes.fixed if sizes.fixed <= MOST_FIXED * limit else CAPPED_FIXED * limit
    recorded = LONG if 2 * sum(call.long for call in conversation.calls) > len(conversation.calls) else SHORT
    lifetime = KINDS[kept] if kept else recorded
    cache, cutter = Cache(lifetime), Cutter(settings, fixed)
    items: list[Item] = []
    known = 0
    whole = 0.0
    last: Call | None = None
    for call in conversation.calls:
        items += [Item(at, conversation.blocks[at], sizes.blocks[at]) for at in range(known, call.before)]
        known = call.before
        asked = Asked()
        if cuts and last and call.asked - last.asked >= lifetime.seconds + GRACE:
            items = hide(items, limit)
        if cuts and cutter.due(items):
            items, asked = cutter.cut(items)
        if last is None:
            of_head = min(call.read, sizes.fixed)
            cache.begin(of_head * fixed / max(1, sizes.fixed) + (0 if asked.written else call.read - of_head))
        pieces = [Piece("fixed", fixed), *(Piece((item.number, item.form), item.size) for item in items)]
        usage = cache.ask(pieces, _markers(items), call.model, call.asked, call.answered)
        whole += usage.cost(lifetime) + asked.read + OUTPUT * asked.written
        last = call
    return whole


def _markers(items: Sequence[Item]) -> list[int]:
    """Return the pieces behind which a prefix is kept: fixed part, turn before, some rounds before, last block."""
    turn, response = items[-1].block.turn, newest_response(items)
    places = {0, len(items)}
    for at, item in enumerate(items, 1):
        behind = items[at].block if at < len(items) else None
        if behind and item.block.turn < turn == behind.turn:
            places.add(at)
        if behind and item.block.response <= response - ROUNDS < behind.response:
            places.add(at)
    return sorted(places)
