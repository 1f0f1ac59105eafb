"""Drawing a window as a strip: a mark for every so many tokens, turn by turn, told apart by what becomes of them."""

from __future__ import annotations

import sys
from itertools import groupby
from typing import TYPE_CHECKING, Final

from timeline.cli.output import paint, state_colour

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.fold.window import Item, Window

_MARKS: Final = {"covered": "░", "summary": "▓", "carried": "◆", "visible": "█"}
_ASCII: Final = {"covered": ".", "summary": "S", "carried": "P", "visible": "#"}
_COLOURS: Final = {"covered": "covered", "summary": "hidden", "carried": "carried", "visible": "visible"}


def legend(tokens: int) -> str:
    """Say what the marks mean, and how many tokens one of them is."""
    words = {"covered": "will be covered", "summary": "summary", "carried": "carried prompt", "visible": "kept"}
    signs = "   ".join(f"{_mark(kind)} {word}" for kind, word in words.items())
    return f"{signs}   (a mark is about {tokens} tokens)"


def before(window: Window, after: Window, tokens: int) -> str:
    """Draw a window as it was before a compaction: what the window after it no longer holds is covered."""
    kept = {item.version: _kind(item) for item in after.items}
    return _strip(window, tokens, lambda item: kept.get(item.version, "covered"))


def strip(window: Window, tokens: int) -> str:
    """Draw a window."""
    return _strip(window, tokens, _kind)


def _kind(item: Item) -> str:
    if item.is_summary:
        return "summary"
    return "carried" if item.carried else "visible"


def _strip(window: Window, tokens: int, kind_of: Callable[[Item], str]) -> str:
    parts: list[str] = []
    for turn_id, members in groupby(window.items, key=lambda i: "summary" if i.is_summary else i.block.turn_id):
        turn = list(members)
        runs = [(kind, sum(i.shown_tokens for i in run)) for kind, run in groupby(turn, key=kind_of)]
        marks = "".join(_mark(kind) * max(1, round(size / tokens)) for kind, size in runs)
        parts.append(f"{turn_id.replace('_', ' ')} {marks}")
    return "  ".join(parts)


def _mark(kind: str) -> str:
    """Return the sign of a kind, in its colour; letters where the output cannot hold blocks."""
    signs = _MARKS if (sys.stdout.encoding or "").lower().startswith("utf") else _ASCII
    return paint(signs[kind], state_colour(_COLOURS[kind]))
