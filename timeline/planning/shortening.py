"""Texts made short enough for a line; an ellipsis marks what is left out, so that no part passes for a whole."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.ports import TokenCounter

_ELLIPSIS: Final = "…"
_LOOKED_AT: Final = 2_000
"""Characters of a text that a line is made of: more than any line has room for."""
_SEPARATOR: Final = re.compile(r"[/\\]")


def one_line(text: str) -> str:
    """Return the beginning of a text on one line, all white space as single spaces."""
    line = " ".join(text[:_LOOKED_AT].split())
    return line if len(text) <= _LOOKED_AT else line + _ELLIPSIS


def cut_to(text: str, characters: int) -> str:
    """Return a text, or as much of its beginning as leaves room for the ellipsis in so many characters."""
    return text if len(text) <= characters else text[: characters - 1].rstrip() + _ELLIPSIS


def shortened(text: str, most: int, counter: TokenCounter) -> str:
    """Return a text, or as much of its beginning as fits ``most`` tokens with the ellipsis behind it."""
    return text if counter.count(text) <= most else _beginning(text, most, counter)


def _beginning(text: str, most: int, counter: TokenCounter) -> str:
    for room in range(most - 1, 0, -1):  # what the ellipsis adds depends on what it stands behind
        head = counter.truncate(text, room).rstrip()
        if head and counter.count(head + _ELLIPSIS) <= most:
            return head + _ELLIPSIS
    return ""


def shortened_path(path: str, most: int, counter: TokenCounter) -> str:
    """Return a file's path, or as many of its last folders as fit ``most`` tokens: the name says most."""
    if counter.count(path) <= most:
        return path
    starts = [separator.start() for separator in _SEPARATOR.finditer(path, 1)]
    ends = (_ELLIPSIS + path[start:] for start in starts)
    name = path[starts[-1] + 1 :] if starts else path
    return next((end for end in ends if counter.count(end) <= most), "") or _beginning(name, most, counter)


def room_in(line: Callable[[int], str], most: int, counter: TokenCounter) -> int:
    """Return the room that the open part of a line may take, for the line to count at most ``most`` tokens.

    Counts of parts do not add up exactly, so the line is made and counted. Negative where it is too long even without
    its open part.
    """
    room = most - counter.count(line(0))
    while room > 0 and (over := counter.count(line(room)) - most) > 0:
        room = max(0, room - over)
    return room
