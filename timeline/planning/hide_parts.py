"""Plan which parts to leave out where a provider refused the request because of them.

The text beside a picture or document stays. Of all pictures and documents the newest stay, which an agent still looks
at; one that the provider named is left out, however new it is. Signed reasoning is left out as a whole: what one
account, platform or model signed is refused together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.blocks import Reasoning
from timeline.content.media_tokens import image_count, media_characters
from timeline.events import BlocksHidden, Replacement
from timeline.fold.window import replaced
from timeline.planning.costs import costs_of
from timeline.planning.hidden_requests import left_unsaid
from timeline.planning.plans import HideDecision

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from timeline.blocks import Block
    from timeline.fold.window import Item, Window
    from timeline.policy.model import Policy
    from timeline.ports import TokenCounter

REFUSED: Final = "refused"
"""The reason of these hides."""
MOST_KEPT: Final = 10
"""Most pictures and documents that stay: half of the 20 above which Anthropic takes fewer pixels of each."""
_TAIL: Final = 64
"""A picture is recognised by so many last characters of its base64, since each wire gives it another form."""


def plan_media(
    window: Window,
    policy: Policy,
    counter: TokenCounter,
    *,
    crowd: bool,
    named: Collection[str],
    most: int | None = None,
) -> HideDecision | None:
    """Plan to show blocks without their pictures and documents; None where none can be left out.

    Args:
        window: the blocks.
        policy: gives the costs.
        counter: counts what is shown instead.
        crowd: all of them together were refused. The older ones are left out, so that at most half of them, half of
            their bytes, and `MOST_KEPT` stay.
        named: texts of what the provider named. Where no block has it, the older ones are left out, too.
        most: how many pictures and documents the provider takes, if it said so.
    """
    shown = [(item, size) for item in window.items if (size := _size(item))]
    tails = {text[-_TAIL:] for text in named if len(text) >= _TAIL}
    chosen = [item for item, _ in shown if any(tail in text for text in _strings(item.block.data) for tail in tails)]
    if crowd or not chosen:
        known_by_name = {item.version for item in chosen}
        chosen += [item for item in _older(shown, most) if item.version not in known_by_name]
    chosen = sorted((item for item in chosen if not item.keeps), key=lambda item: item.version)
    if not chosen:
        return None
    blocks = tuple(_replacement(item, window.address_of(item), counter) for item in chosen)
    return _decision(window, policy, counter, chosen, blocks)


def plan_reasoning(window: Window, policy: Policy, counter: TokenCounter) -> HideDecision | None:
    """Plan to show nothing of the reasoning that is signed or encrypted; None where there is none."""
    chosen = [
        item
        for item in window.items
        if isinstance(item.block, Reasoning) and item.block.data and item.is_in_sight and not item.keeps
    ]
    blocks = tuple(Replacement(version=item.version) for item in chosen)
    return _decision(window, policy, counter, chosen, blocks) if chosen else None


def _decision(
    window: Window, policy: Policy, counter: TokenCounter, chosen: Sequence[Item], blocks: tuple[Replacement, ...]
) -> HideDecision:
    known = costs_of(window.items, policy)
    freed = known.freed([(item, replaced(item, r)) for item, r in zip(chosen, blocks, strict=True)])
    unsaid = left_unsaid(window.items, blocks)
    event = BlocksHidden(reason=REFUSED, blocks=blocks, counter=counter.name, unsaid=unsaid)
    return HideDecision(event, sum(known.tokens), freed)


def outweighs_text(window: Window) -> bool:
    """Return whether pictures and documents are more than half of the characters that are in sight."""
    media = sum(map(_size, window.items))
    return media > sum(len(item.block.text) for item in window.items if item.is_in_sight)


def _size(item: Item) -> int:
    """Return the characters of the pictures and documents that an item shows."""
    return media_characters(item.block) if item.is_in_sight else 0


def _older(shown: Sequence[tuple[Item, int]], limit: int | None) -> list[Item]:
    """Return the blocks to show without their parts, oldest first: all but the newest that may stay."""
    most, room = min(MOST_KEPT, len(shown) // 2), sum(size for _, size in shown) // 2
    kept = parts = 0
    for item, size in reversed(shown):
        room -= size
        parts += max(1, image_count(item.block))
        if kept == most or room < 0 or (limit is not None and parts > limit):
            break
        kept += 1
    return [item for item, _ in shown[: len(shown) - kept]]


def _replacement(item: Item, address: str, counter: TokenCounter) -> Replacement:
    """Return the block's own text, and a line in place of what is left out."""
    line = f"[{_named(item.block)} left out: the provider refused the request with it] {address}".rstrip()
    text = "\n".join(filter(None, (item.block.text, line)))
    return Replacement(version=item.version, text=text, tokens=counter.count(text))


def _named(block: Block) -> str:
    pictures = image_count(block)
    file = str(block.meta.get("file") or "")
    return file or ("document" if not pictures else "picture" if pictures == 1 else f"{pictures} pictures")


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inner for text in _strings(each)]
