"""The honest split: one half of the recordings is searched, the other is looked at once, with what was found."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

EVERY: Final = "all"
"""Recordings of every lifetime together."""
_DRAWS: Final = 100
"""Ways to draw the recordings anew: with more of them a decile moves in its third digit only."""
_SEED: Final = 7
"""The drawn recordings are the same each time."""


class Halves(NamedTuple):
    """Recordings by the lifetime of their cache: every other one of each lifetime is on either side."""

    searched: dict[str, list[str]]
    unseen: dict[str, list[str]]


def halves(files: Iterable[str], lifetime: Callable[[str], str]) -> Halves:
    """Split recordings: of each lifetime the first, third, fifth one and so on is searched, in the given order.

    Args:
        files: recordings.
        lifetime: returns for how long the provider kept a recording's cache.
    """
    alike: dict[str, list[str]] = {}
    for file in files:
        alike.setdefault(lifetime(file), []).append(file)
    return Halves(
        searched={kept: same[0::2] for kept, same in alike.items()},
        unseen={kept: same[1::2] for kept, same in alike.items()},
    )


def by_lifetime(half: dict[str, list[str]]) -> Iterator[tuple[str, list[str]]]:
    """Go through a half: all of its recordings, then those of each lifetime."""
    yield EVERY, [file for files in half.values() for file in files]
    yield from half.items()


def draws(files: Sequence[str]) -> Iterator[list[str]]:
    """Go through recordings that might have been drawn instead: as many, each put back. The same ones each time."""
    draw = random.Random(_SEED)
    return (draw.choices(files, k=len(files)) for _ in range(_DRAWS))


class Spread(NamedTuple):
    """A figure as measured, and its pessimistic decile over recordings that might have been drawn instead."""

    measured: float
    decile: float


def spread(figure: Callable[[Sequence[str]], float], files: Sequence[str], *, best: Callable[..., float]) -> Spread:
    """Measure a figure, and what it does not fall short of in nine of ten draws.

    Args:
        figure: of recordings; one that is given twice counts twice.
        files: the recordings that there are.
        best: `max` where more is better, `min` where less is.
    """
    drawn = sorted(map(figure, draws(files)))
    tenth = len(drawn) // 10
    return Spread(figure(files), drawn[tenth] if best is max else drawn[-1 - tenth])
