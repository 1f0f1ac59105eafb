"""Where a conversation is cut, and what a summary costs: seed 002's cut index selection with the repairs of ADR 0006.

Simpler than the engine: a summary has one length, none is refused for gaining too little, and notes of the client are
neither counted nor cut at.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.independent.items import Item, Settings, total, without_old_thoughts
from tests.independent.recordings import Block

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HISTORY, PREFIX, DIGEST = 800.0, 400.0, 300.0
"""Tokens that a summary may have: of what is over, of the beginning of a turn that goes on, of exact facts."""
WRITTEN: Final = 0.9
"""What a summary has of what it may have, as the lab's summaries do in the mean: its summarizer is not run here."""
PROMPT: Final = 500.0
"""Tokens that a summarizer is sent besides record and earlier summary: 1,500 characters of prompt, and a task."""
PREVIEW: Final = 400.0
"""Tokens of a preview."""
CARRIED: Final = 0.15
"""Share of the limit that carried prompts may have before they are previews."""
HALVINGS: Final = 4


class Asked(NamedTuple):
    """Tokens that were read and written for a summary."""

    read: float = 0.0
    written: float = 0.0


class Parts(NamedTuple):
    """The summary that stands: tokens of its two parts, and the turn that the second one is about."""

    history: float = 0.0
    prefix: float = 0.0
    turn: int = -1


@dataclass
class Cutter:
    """Makes the summaries of one conversation.

    Attributes:
        settings: of the policy.
        fixed: tokens of system prompt and tools.
    """

    settings: Settings
    fixed: float
    parts: Parts = field(default_factory=Parts)
    summaries: int = 0

    def due(self, items: Sequence[Item]) -> bool:
        """Say whether a request is above the trigger."""
        return self.fixed + total(items) > self.settings.trigger * self.settings.limit

    def cut(self, items: list[Item]) -> tuple[list[Item], Asked]:
        """Return what is shown behind a summary, and what that took; the same items where there is nothing to cut."""
        at = self._place(items)
        if at is None:
            return self._previewed(items), Asked()
        kept = items[at:]
        carried = self._carried(items, at)
        again = {item.number for item in carried}
        folded = [item for item in items[:at] if item.block.kind != "summary" and item.number not in again]
        asked = self._summarise(folded, split=kept[0].block.turn if kept[0].block.kind != "prompt" else None)
        self.summaries += 1
        size = self.parts.history + self.parts.prefix + WRITTEN * self._cap(DIGEST, 16)
        summary = Item(-self.summaries, Block("summary", 0, -1, -1), size)
        shown = without_old_thoughts([summary, *carried, *kept], 0)
        return self._previewed(shown), asked

    def _place(self, items: list[Item]) -> int | None:
        keep = self.settings.keep * (self.settings.limit - self.fixed)
        target = self.settings.target * self.settings.limit
        at = self._nearest(items, keep, target)
        for _ in range(HALVINGS):
            if at is None or self._left(items, at) <= target:
                break
            keep /= 2
            at = self._nearest(items, keep, target)
        return at

    def _nearest(self, items: list[Item], keep: float, target: float) -> int | None:
        """Return the seed's cut where it is legal, else the one before if that meets the target, else the one after."""
        legal = list(_legal(items))
        if not legal:
            return None
        start = len(items) - 1
        found = 0.0
        while start and found + _counted(items[start]) < keep:
            found += _counted(items[start])
            start -= 1
        chosen = next((at for at in range(start, len(items)) if _candidate(items[at])), len(items))
        earlier = [at for at in legal if at < chosen]
        if chosen not in legal and earlier and self._left(items, earlier[-1]) <= target:
            return earlier[-1]
        return next((at for at in legal if at >= chosen), legal[-1])

    def _left(self, items: list[Item], at: int) -> float:
        """Return the tokens of a request that is cut at a place, its summary as long as it may be."""
        split = items[at].block.kind != "prompt"
        caps = self._cap(HISTORY, 8) + self._cap(DIGEST, 16) + (self._cap(PREFIX, 16) if split else 0.0)
        return self.fixed + caps + total(self._carried(items, at)) + total(items[at:])

    def _carried(self, items: list[Item], at: int) -> list[Item]:
        """Return the prompts of the turn that a cut divides."""
        if items[at].block.kind == "prompt":
            return []
        turn = items[at].block.turn
        prompts = [item for item in items[:at] if item.block.kind == "prompt" and item.block.turn == turn]
        previewed = total(prompts) > CARRIED * self.settings.limit
        return [
            replace(item, form="carried", size=min(item.size, PREVIEW if previewed else item.size)) for item in prompts
        ]

    def _summarise(self, folded: list[Item], *, split: int | None) -> Asked:
        """Write a summary: of the same turn again the first part stays as it is; else all before becomes history."""
        before = self.parts
        prefix = 0.0 if split is None else WRITTEN * self._cap(PREFIX, 16)
        if split is not None and split == before.turn:
            self.parts = before._replace(prefix=prefix)
            return Asked(PROMPT + total(folded) + before.prefix, prefix)
        earlier = split is None or self.summaries > 0 or any(item.block.turn != split for item in folded)
        history = WRITTEN * self._cap(HISTORY, 8) if earlier else 0.0
        self.parts = Parts(history, prefix, -1 if split is None else split)
        prompts = PROMPT * (bool(history) + bool(prefix))
        return Asked(prompts + total(folded) + before.history + before.prefix, history + prefix)

    def _cap(self, tokens: float, part: int) -> float:
        """Return what a text may have: no more than a part of the room."""
        return min(tokens, (self.settings.limit - self.fixed) / part)

    def _previewed(self, items: list[Item]) -> list[Item]:
        """Return what is shown: above the trigger the largest items as previews, until the target is met."""
        shown = list(items)
        if not self.due(shown):
            return shown
        target = self.settings.target * self.settings.limit
        for at in sorted(range(len(items)), key=lambda at: -items[at].size):
            if self.fixed + total(shown) <= target or shown[at].size <= PREVIEW:
                break
            if shown[at].block.kind in {"prompt", "call", "result"}:
                shown[at] = replace(shown[at], size=PREVIEW, form="preview")
        return shown


def _legal(items: list[Item]) -> Iterator[int]:
    """Yield the places of cuts that divide no group and cover something that is new."""
    new = False
    for at, (before, item) in enumerate(pairwise(items), 1):
        new = new or not (before.block.kind == "summary" or before.form == "carried")
        if new and before.group != item.group and _candidate(item):
            yield at


def _candidate(item: Item) -> bool:
    return item.block.kind in {"prompt", "thought", "text", "call"}


def _counted(item: Item) -> float:
    return 0.0 if item.block.kind == "note" else item.size
