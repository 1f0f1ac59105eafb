"""What a window adds up to, and the same some appends later, without a look at the window.

A window may have a hundred thousand items. Appends only add to its figures; behind a decision they are made anew.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from timeline.blocks import RangeSummary, StageDigest, ToolCall, ToolResult
from timeline.events import (
    BlockAppended,
    BlockRedacted,
    BlocksHidden,
    BlocksPinned,
    BlocksRevealed,
    BlocksUnpinned,
    CompactionCompleted,
    CompactionReverted,
    UnknownPayload,
)
from timeline.fold.counts import plain_tokens, plainly
from timeline.planning.costs import CATEGORIES, category_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from timeline.events import Event
    from timeline.fold.fold import Fold
    from timeline.fold.state import FoldState
    from timeline.fold.turns import Turns

_CHANGING: Final = (
    BlockRedacted,
    BlocksHidden,
    BlocksPinned,
    BlocksRevealed,
    BlocksUnpinned,
    CompactionCompleted,
    CompactionReverted,
    UnknownPayload,
)
"""Events behind which the figures are made anew."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a window.

    Attributes:
        version: of the last event; ``at`` is its time.
        by_role: tokens as shown, by kind of block.
        blocks: how many are in each state; ``tokens`` are their own. What live summaries cover is ``covered``.
        window_start: the lowest version of a visible block that is not carried; None where there is none.
        summary: version of the newest live summary; 0 without one.
        open_calls: versions of the calls that may still get a result.
        turn_id: the current turn.
        state: the small fields of the window.
    """

    version: int
    at: datetime | None
    by_role: Mapping[str, int]
    blocks: Mapping[str, int]
    tokens: Mapping[str, int]
    window_start: int | None
    summary: int
    open_calls: tuple[int, ...]
    turn_id: str
    state: FoldState

    @classmethod
    def of(cls, fold: Fold) -> Figures:
        """Return the figures of a fold's window, in one pass over its items."""
        window = fold.window
        kinds, blocks, tokens = Counter[str](), Counter[str](), Counter[str]()
        start, summary = window.version + 1, 0
        waiting, answered = list[int](), set[int | None]()
        for item in map(plainly, window.items):
            state, block = item.state, item.block
            kind = type(block)
            blocks[state] += 1
            tokens[state] += item.tokens
            plain = state == "visible" and kind is not StageDigest
            kinds[category_of(item)] += item.tokens if plain else item.shown_tokens
            if isinstance(block, ToolCall):
                if (item.response == window.response or block.pending) and not item.disowned:
                    waiting.append(item.version)
            elif kind is ToolResult:
                answered.add(item.answers)
            if kind is RangeSummary:
                summary = max(summary, item.version)
            elif item.version < start and not item.carried:
                start = item.version
        for made in window.summaries:
            blocks["covered"] += made.covered_blocks
            tokens["covered"] += made.covered_tokens
        return cls(
            version=window.version,
            at=fold.at,
            by_role=kinds,
            blocks=blocks,
            tokens=tokens,
            window_start=start if start <= window.version else None,
            summary=summary,
            open_calls=tuple(version for version in waiting if version not in answered),
            turn_id=window.turn_id,
            state=window.state,
        )


class Growing:
    """Figures that follow the events behind them, for as long as nothing is decided.

    The turns are the caller's, of a fold or by themselves.

    Args:
        figures: those of a version.
    """

    def __init__(self, figures: Figures) -> None:
        self._base = figures
        self._at = figures.at
        self._version = figures.version
        self._kinds = Counter(figures.by_role)
        self._visible = self._tokens = 0
        self._start = figures.window_start
        self._state = figures.state

    def take(self, event: Event) -> bool:
        """Take up the next event; return whether that could be done."""
        payload = event.payload
        if isinstance(payload, _CHANGING):
            return False
        if isinstance(payload, BlockAppended):
            block = payload.block
            if isinstance(block, StageDigest | RangeSummary):
                return False
            tokens = plain_tokens(payload.tokens, payload.counter)
            self._kinds[CATEGORIES.get(block.type, "other")] += tokens
            self._visible += 1
            self._tokens += tokens
            self._start = event.version if self._start is None else self._start
        else:
            self._state = self._state.after(event.version, event.at, payload)
        self._version, self._at = event.version, event.at
        return True

    def figures(self, turns: Turns) -> Figures:
        """Return the figures of the last event that was taken up, with the turns of the same version."""
        base = self._base
        known = set(base.open_calls)
        waiting = (
            version
            for calls in turns.calls.values()
            for version, response, waits in calls
            if (response == turns.waited_for or waits) and (version > base.version or version in known)
        )
        return Figures(
            version=self._version,
            at=self._at,
            by_role=self._kinds,
            blocks={**base.blocks, "visible": base.blocks.get("visible", 0) + self._visible},
            tokens={**base.tokens, "visible": base.tokens.get("visible", 0) + self._tokens},
            window_start=self._start,
            summary=base.summary,
            open_calls=tuple(sorted(waiting)),
            turn_id=turns.turn_id,
            state=self._state,
        )
