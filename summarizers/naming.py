"""Names that the work is about: identifiers in the calls and prompts of a record, by how many of these name them.

What a later step needs is above all what steps before it named, and a name in an edit says more of a change than the
file alone.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from .text import LINES_REMEMBERED, head_and_tail

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME: Final = re.compile(
    r"(?<![\w/])(?:[A-Za-z][^\W_]*+_\w*+(?<=[A-Za-z0-9])|[a-z]+[A-Z][A-Za-z0-9]*|[A-Z][a-z0-9]+[A-Z][A-Za-z0-9]*)"
    r"(?![\w/\u2026]|\[\u2026)"  # behind a name that is cut there is an ellipsis
)
_READ: Final = 8_000
"""Characters of a text whose names are counted, so that a giant argument cannot slow a summary."""
_LONGEST: Final = 48
_OF_A_FILE: Final = 6
"""The most names that a changed file is listed with."""


@dataclass(slots=True)
class Names:
    """The names of a record.

    Attributes:
        times: in how many calls and prompts each one is.
        in_file: for each changed file the names in its changes, in the order of their texts.
    """

    times: Counter[str] = field(default_factory=Counter)
    in_file: dict[str, dict[str, None]] = field(default_factory=dict)

    def take(self, value: Any, file: str = "") -> None:
        """Take the names of a prompt's text or of a call's arguments; ``file`` is the one that the call changes."""
        found = dict.fromkeys(name for text in _texts(value) for name in NAME.findall(text) if len(name) <= _LONGEST)
        self.times.update(found.keys())
        if file:
            self.in_file.setdefault(file, {}).update(found)

    def names_for(self, file: str) -> str:
        """Return the names to list for a changed file: those that most calls and prompts name, the newest first."""
        newest = [name for name in reversed(self.in_file.get(file, {})) if name not in file]
        best = sorted(newest, key=lambda name: -self.times[name])[:_OF_A_FILE]
        return ", ".join(f"`{name}`" for name in best)

    def weight(self, line: str) -> float:
        """Return how much a line says about the work: each of its names that several calls and prompts name counts."""
        return sum(min(self.times.get(name, 0) - 1, 4) / 4 for name in _names_in(line) if name in self.times)


@lru_cache(maxsize=LINES_REMEMBERED)
def _names_in(line: str) -> frozenset[str]:
    return frozenset(NAME.findall(line))


def _texts(value: Any) -> Iterator[str]:
    waiting, room = [value], _READ
    while waiting and room > 0:
        value = waiting.pop()
        if isinstance(value, str):
            text = head_and_tail(value, room)
            room -= len(text)
            yield text
        elif isinstance(value, dict):
            waiting.extend(reversed(value.values()))
        elif isinstance(value, list):
            waiting.extend(reversed(value))
