"""A provider's prompt cache, by markers or by itself: docs/lab.md, Method, 4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

LOOKBACK: Final = 20
"""Blocks that are walked back from a marker to find what was kept."""
READ, OUTPUT = 0.1, 5.0
"""Prices in base tokens: of a token that is read, and of one that is answered."""
_MINIMA: Final = {
    "claude-opus-4-5": 4_096,
    "claude-opus-4-6": 4_096,
    "claude-haiku-4-5": 4_096,
    "claude-sonnet-4-6": 2_048,
}


class Lifetime(NamedTuple):
    """How a provider keeps a prefix.

    Attributes:
        seconds: after its last use.
        write: what a token costs that is written for so long.
        by: what is kept: the prefixes in front of a marker, all by themselves, or nothing.
    """

    seconds: float
    write: float
    by: str = "markers"


SHORT, LONG = Lifetime(300.0, 1.25), Lifetime(3_600.0, 2.0)
KINDS: Final = {"5m": SHORT, "1h": LONG, "automatic": Lifetime(300.0, 1.0, "itself"), "none": Lifetime(300.0, 1.0, "")}
"""By the words of ``timeline lab --cache``."""
AUTOMATIC_LEAST, STEP = 1_024, 128
"""Tokens of the shortest prefix that is kept without a marker, and of the steps that it is read in."""


class Piece(NamedTuple):
    """A block of a request: what it says, as a value that equals no other saying, and its tokens."""

    says: Hashable
    size: float


class Usage(NamedTuple):
    """Tokens of a request, by what the cache did with them."""

    read: float
    written: float
    uncached: float

    def cost(self, lifetime: Lifetime) -> float:
        """Return what the request costs, in base tokens."""
        return READ * self.read + lifetime.write * self.written + self.uncached


class Cache:
    """What a provider holds of the requests of one conversation."""

    def __init__(self, lifetime: Lifetime) -> None:
        self._lifetime = lifetime
        self._kept: dict[Hashable, float] = {}
        self._begun = 0.0

    def begin(self, tokens: float) -> None:
        """Let the first request find so many tokens, which another conversation left."""
        self._begun = tokens

    def ask(self, pieces: Sequence[Piece], marks: Sequence[int], model: str, asked: float, answered: float) -> Usage:
        """Send a request.

        Args:
            pieces: what it holds, the fixed part first.
            marks: places of the pieces that a marker stands on, in order.
            model: that is called: models share nothing.
            asked: when it is sent; seconds.
            answered: when the last of its answer came; seconds.
        """
        if not self._lifetime.by:
            return Usage(0.0, 0.0, sum(piece.size for piece in pieces))
        names: list[Hashable] = []
        sums: list[float] = []
        name: Hashable = model
        for piece in pieces:
            name = hash((name, piece.says))
            names.append(name)
            sums.append((sums[-1] if sums else 0.0) + piece.size)
        if self._lifetime.by == "itself":
            return self._ask_plainly(names, sums, asked, answered)
        least = next((tokens for known, tokens in _MINIMA.items() if model.startswith(known)), 1_024)
        marks = [mark for mark in marks if sums[mark] >= least]
        near = {at for mark in marks for at in range(max(0, mark - LOOKBACK), mark + 1)}
        since = asked - self._lifetime.seconds
        found = [at for at in near if names[at] in self._kept and self._kept[names[at]] >= since]
        read = max(found, default=-1)
        for at in [*marks, *(at for at in range(read + 1) if names[at] in self._kept)]:
            self._kept[names[at]] = answered
        hit, end = sums[read] if read >= 0 else 0.0, sums[marks[-1]] if marks else 0.0
        hit = max(hit, self._begun if self._begun >= least else 0.0)
        self._begun = 0.0
        return Usage(hit, max(0.0, end - hit), sums[-1] - max(end, hit))

    def _ask_plainly(self, names: list[Hashable], sums: list[float], asked: float, answered: float) -> Usage:
        """Send a request to a provider that keeps each prefix and finds the longest by itself."""
        since = asked - self._lifetime.seconds
        found = (at for at, name in enumerate(names) if self._kept.get(name, -1.0) >= since)
        read = max(found, default=-1)
        self._kept |= dict.fromkeys(
            (name for name, size in zip(names, sums, strict=True) if size >= AUTOMATIC_LEAST), answered
        )
        hit = sums[read] // STEP * STEP if read >= 0 else 0.0
        hit = max(hit, self._begun if self._begun >= AUTOMATIC_LEAST else 0.0)
        self._begun = 0.0
        return Usage(hit, 0.0, sums[-1] - hit)
