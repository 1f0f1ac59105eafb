"""Simulate a provider's prompt cache: what each request reads, writes and pays, and why a prefix was lost.

Pure: requests in, charges out. A prefix is identified by a hash chain over its segments, so that the time for a call
depends on its own length, not on the calls before it. The rules are data (`timeline.lab.prices`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from timeline.lab.prices import Price

BreakCause: TypeAlias = Literal[
    "gap",  # it expired: the provider no longer kept it
    "model",  # another model: it has a cache of its own
    "tools",
    "system",
    "compaction",
    "undo",
    "hide",
    "below_minimum",  # the request is shorter than the shortest prefix that the provider keeps
    "lookback",  # the prefix is the same, but no marker was near enough to find it
    "other",  # something else was rewritten: a late result, reasoning that may not be sent any more
]
CHANGES: Final = ("compaction", "undo", "hide")
"""The decisions that a request may report since the one before it; of several the first explains a broken prefix."""
Change: TypeAlias = Literal["compaction", "undo", "hide"]


class Segment(NamedTuple):
    """A block of a request as the provider's cache sees it: equal hashes are equal bytes."""

    hash: int
    tokens: int


class CacheRequest(NamedTuple):
    """One call of a model.

    Attributes:
        start: when it was sent, in seconds.
        end: when its answer was complete.
        model: the called model.
        segments: tools, system prompt and messages, in the order of the wire.
        tools, system: the number of segments of the tools, which come first, and of the system prompt after them.
        markers: positions of the segments with a cache marker, rising.
        long: how many markers, from the first one on, ask for the long time: providers require this order.
        changes: the decisions since the request before it.
        known: for a conversation's first request, the tokens at its front that another conversation left in the cache.
    """

    start: float
    end: float
    model: str
    segments: tuple[Segment, ...]
    tools: int = 0
    system: int = 0
    markers: tuple[int, ...] = ()
    long: int = 0
    changes: frozenset[Change] = frozenset()
    known: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of the whole input."""
        return sum(segment.tokens for segment in self.segments)

    @property
    def all_long(self) -> bool:
        """Whether every marker asks for the long time."""
        return 0 < len(self.markers) <= self.long

    def is_long(self, place: int) -> bool:
        """Return whether the marker at a place asks for the long time."""
        return place in self.markers[: self.long]


class Charge(NamedTuple):
    """The cost of a call.

    Attributes:
        read: tokens read from the cache.
        written: tokens written to the cache; ``written_long`` of them for the long time.
        uncached: the other tokens of the input.
        units: the input's cost in base tokens, see `Price.units`.
        money: the same in US dollars.
        lost: tokens that the request before it left in the cache, and that this one did not read.
        cause: why they were lost; None if none were.
        collapsed: whether more than half of the cached tokens were lost.
    """

    read: int
    written: int
    uncached: int
    units: float
    money: float
    lost: int = 0
    cause: BreakCause | None = None
    collapsed: bool = False
    written_long: int = 0


@dataclass(slots=True)
class _Before:
    """The previous request: its prefixes, which the next one extends, and how much of it was left in the cache.

    Attributes:
        least: tokens of its shortest kept prefix, for a provider that keeps every prefix by itself; None for a provider
            that keeps the prefixes with a marker.
    """

    request: CacheRequest
    chain: list[int]
    sums: list[int]
    cached: int
    kept_until: float
    least: int | None

    def keeps(self, place: int) -> bool:
        """Return whether the prefix up to a place is kept without a marker."""
        return self.least is not None and self.sums[place] >= self.least

    def kept_with(self, request: CacheRequest, same: int) -> int:
        """Return how many of the prefixes shared with the next request are kept without an entry of their own."""
        return same if self.least is not None and self.request.model == request.model else 0


@dataclass(slots=True)
class PromptCache:
    """The cache of one conversation. Requests must come in the order of their times.

    Attributes:
        price_of: returns the price of a model by its name.
    """

    price_of: Callable[[str], Price]
    _kept: dict[tuple[str, int], float] = field(default_factory=dict)
    _before: _Before | None = None

    def copy(self) -> PromptCache:
        """Return an independent copy."""
        before = self._before
        kept = None if before is None else replace(before, chain=[*before.chain], sums=[*before.sums])
        return replace(self, _kept={**self._kept}, _before=kept)

    def call(self, request: CacheRequest) -> Charge:
        """Return the charge of the next request, and keep its prefixes."""
        price = self.price_of(request.model)
        chain, sums, same = self._prefixes(request)
        total = sums[-1] if sums else 0
        by_markers = price.rule.match == "markers"
        places = request.markers[-price.rule.markers :] if by_markers and price.rule.markers else ()
        found = self._found(request, price, chain, places) if by_markers else self._longest(request, chain, same)
        read = 0 if found < 0 else sums[found] - sums[found] % price.rule.granularity
        if self._before is None:
            read = max(read, min(request.known, total))
        if read < price.minimum:
            read = 0
        kept = [p for p in places if sums[p] >= price.minimum]
        last = (sums[kept[-1]] if kept else 0) if by_markers else (total if total >= price.minimum else 0)
        written = max(0, last - read) if by_markers else 0
        uncached = total - read - written
        self._keep(request, price, chain, kept)
        until = request.end + price.rule.seconds(long=request.all_long)
        written_long = max(0, max((sums[p] for p in kept if request.is_long(p)), default=0) - read)
        units = price.units(read=read, written=written, uncached=uncached, written_long=written_long)
        expected = 0 if self._before is None else self._before.cached
        lost = expected - read if expected - read > price.rule.granularity else 0
        cause = self._cause(request, price, same, total) if lost else None
        cached = last if by_markers else last - last % price.rule.granularity
        self._before = _Before(request, chain, sums, cached, until, None if by_markers else price.minimum)
        collapsed = lost * 2 > expected
        return Charge(read, written, uncached, units, price.money(units), lost, cause, collapsed, written_long)

    def _prefixes(self, request: CacheRequest) -> tuple[list[int], list[int], int]:
        """Return the hash and the tokens of each prefix, and how many segments equal the previous request's."""
        segments, before = request.segments, self._before
        same = 0 if before is None else _same(segments, before.request.segments)
        chain, sums = ([], []) if before is None else (before.chain, before.sums)
        if before is not None and before.least is not None:
            self._note(before, before.kept_with(request, same))
        del chain[same:], sums[same:]
        link, tokens = (chain[-1], sums[-1]) if same else (0, 0)
        for segment in segments[same:]:
            link = hash((link, segment.hash))
            tokens += segment.tokens
            chain.append(link)
            sums.append(tokens)
        return chain, sums, same

    def _note(self, before: _Before, first: int) -> None:
        """Add entries for a request's prefixes from one on: the next request does not keep those along with its own."""
        for place in range(first, len(before.chain)):
            if before.keeps(place):
                self._kept[before.request.model, before.chain[place]] = before.kept_until

    def _keep(self, request: CacheRequest, price: Price, chain: Sequence[int], places: Iterable[int]) -> None:
        """Keep the prefix in front of each marker for the marker's time; a prefix that is read is kept once more."""
        for place in places:
            key = request.model, chain[place]
            until = request.end + price.rule.seconds(long=request.is_long(place))
            self._kept[key] = max(until, self._kept.get(key, until))

    def _found(self, request: CacheRequest, price: Price, chain: Sequence[int], places: Iterable[int]) -> int:
        """Return the place of the longest prefix that a marker finds by walking back; -1 for none."""
        lookback, best = price.rule.lookback, -1
        for place in reversed([*places]):
            least = best if lookback is None else max(best, place - lookback - 1)
            best = next((p for p in range(place, least, -1) if self._holds(chain[p], request)), best)
        return best

    def _longest(self, request: CacheRequest, chain: Sequence[int], same: int) -> int:
        """Return the place of the longest prefix that is in the cache; -1 for none."""
        before = self._before
        shared = 0 if before is None else before.kept_with(request, same)
        noted = next((p for p in range(len(chain) - 1, shared - 1, -1) if self._holds(chain[p], request)), -1)
        if noted >= 0 or before is None or not shared:
            return noted
        return shared - 1 if before.keeps(shared - 1) and request.start <= before.kept_until else -1

    def _holds(self, link: int, request: CacheRequest) -> bool:
        until = self._kept.get((request.model, link))
        return until is not None and request.start <= until

    def _cause(self, request: CacheRequest, price: Price, same: int, total: int) -> BreakCause:
        """Return why a prefix was lost. Causes that would have lost it in any case come first."""
        before = self._before
        if before is None or before.request.model != request.model:
            return "model"
        if request.start > before.kept_until:
            return "gap"
        if total < price.minimum:
            return "below_minimum"
        if same and before.sums[same - 1] >= before.cached:
            return "lookback"
        if same < max(request.tools, before.request.tools):
            return "tools"
        if same < max(request.tools + request.system, before.request.tools + before.request.system):
            return "system"
        return next((change for change in CHANGES if change in request.changes), "other")


def _same(segments: tuple[Segment, ...], before: tuple[Segment, ...]) -> int:
    """Return how many leading segments two requests share, searching from the end, where most differences are."""
    shorter = same = min(len(segments), len(before))
    step = 1
    while segments[:same] != before[:same]:
        same, step = max(0, same - step), 2 * step
    while same < shorter and segments[same] == before[same]:
        same += 1
    return same


def charges(requests: Iterable[CacheRequest], price_of: Callable[[str], Price]) -> list[Charge]:
    """Return what each of a conversation's requests costs, in order."""
    cache = PromptCache(price_of)
    return [cache.call(request) for request in requests]
