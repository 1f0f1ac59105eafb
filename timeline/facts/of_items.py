"""Facts of a window's items, and of those that compactions took out of it.

A log without a store keeps no covered blocks: their facts are taken when they are covered.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from timeline.blocks import ToolCall, ToolResult, parse_instant
from timeline.facts.answers import asks_user
from timeline.facts.call_versions import CallVersions
from timeline.facts.extracting import facts_named, facts_of_result
from timeline.facts.requests import is_users
from timeline.facts.running import PlacedFact, RunningRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from timeline.blocks import Block
    from timeline.events import CompactionCompleted, Covers
    from timeline.facts.model import Fact
    from timeline.facts.running import Place
    from timeline.queries import FactRecord

_MADE_KNOWN: Final = itemgetter(0)
"""Orders facts by the version of the event that made them known."""
_UNDATED: Final = parse_instant("0001-01-01T00:00:00Z")


class WindowItem(Protocol):
    """What is needed of a `timeline.fold.window.Item`."""

    @property
    def version(self) -> int:
        """Version of the event that appended it."""
        ...

    @property
    def block(self) -> Block:
        """The block as it was appended."""
        ...

    @property
    def answers(self) -> int | None:
        """Version of the call that a result answers; None for a late one."""
        ...

    @property
    def redacted(self) -> bool:
        """Whether its content was erased."""
        ...

    @property
    def disowned(self) -> bool:
        """Whether it never happened for the agent."""
        ...


ItemT = TypeVar("ItemT", bound=WindowItem)


class Calls:
    """Calls by their version, to find the one that a result answers."""

    def __init__(self) -> None:
        self._calls: dict[int, ToolCall] = {}
        self._versions = CallVersions()

    def add(self, version: int, call: ToolCall) -> None:
        """Take a call, in the order of the log."""
        self._calls[version] = call
        self._versions.add(version, call)

    def answered(self, item: WindowItem) -> tuple[int, ToolCall] | None:
        """Return the call of a result, and its version: the one that the fold names, or else one of `CallVersions`."""
        version = self._versions.answered(item.block) if item.answers is None else item.answers
        call = None if version is None else self._calls.get(version)
        return None if version is None or call is None else (version, call)


def facts_of(items: Iterable[WindowItem], calls: Calls | None = None) -> list[tuple[int, Fact]]:
    """Return the facts of items in their order, each with the version of the event that made it known.

    What a call did is known with its result; a redacted block gives no facts, nor does one that never happened for the
    agent.

    Args:
        items: some items, in timeline order.
        calls: takes the calls among them, and knows earlier ones.
    """
    calls = Calls() if calls is None else calls
    facts: list[tuple[int, Fact]] = []
    for item in items:
        if item.redacted or item.disowned:
            continue
        block, at = item.block, item.block.at or _UNDATED
        if isinstance(block, ToolCall):
            calls.add(item.version, block)
        elif isinstance(block, ToolResult) and (call := calls.answered(item)) is not None:
            facts += ((item.version, fact) for fact in facts_of_result(call[1], call[0], block, item.version, at))
        facts += ((item.version, fact) for fact in facts_named(block, item.version, at))
    return facts


def said_by_users(items: Iterable[ItemT], wanted: Callable[[ItemT], bool]) -> Iterator[tuple[ItemT, ToolCall | None]]:
    """Yield the wanted items in which a user says something, each with the call that it answers; None for a prompt.

    Args:
        items: some items, in timeline order, with the calls of the results among them, since the tool of a call decides
            whether its result is an answer.
        wanted: which of them to look at.
    """
    calls = Calls()
    for item in items:
        block = item.block
        if type(block) is ToolCall:  # not isinstance: on pydantic classes it costs more than the rest of this
            calls.add(item.version, block)
        elif wanted(item):
            _, call = (isinstance(block, ToolResult) and calls.answered(item)) or (0, None)
            if is_users(block, call):
                yield item, call


def requests_of(items: Sequence[ItemT], wanted: Callable[[ItemT], bool]) -> list[tuple[int, Fact]]:
    """Return what users ask for in the wanted ones of some items, each with the version of the event that says it."""
    said = {item.version for item, _ in said_by_users(items, wanted)}
    facts = facts_of(item for item in items if item.version in said or _asks(item.block))
    return [(version, fact) for version, fact in facts if fact.kind == "request"]


def _asks(block: Block) -> bool:
    return isinstance(block, ToolCall) and asks_user(block.name)


class WindowFacts:
    """The facts of a log that is only folded: those of the window, and those taken from blocks as they were covered."""

    def __init__(self) -> None:
        self._calls = Calls()
        self._covered: list[tuple[int, Fact]] = []
        self._compacted = _Compacted()

    def cover(self, compaction: CompactionCompleted, items: Sequence[WindowItem]) -> None:
        """Keep the facts of the items that a compaction is about to take out of the window."""
        carried = set(compaction.carried)
        leaving = [i for i in items if i.version in compaction.covers and i.version not in carried]
        facts = facts_of(leaving, self._calls)
        self._covered += facts
        self._compacted.leave(facts)

    def within(self, covers: Covers, items: Sequence[WindowItem]) -> list[Fact]:
        """Return the facts of the blocks of these versions, in the order of the log."""
        live = facts_of(items, self._calls)
        known = sorted((*self._covered, *live), key=_MADE_KNOWN)
        return [fact for _, fact in known if fact.version in covers]

    def record(self, covers: Covers, items: Sequence[WindowItem]) -> FactRecord:
        """Return the record of the blocks of these versions: what `record_of` makes of the facts within them.

        If the versions include those of the last record, as from one compaction to the next, only the new ones are
        merged. Otherwise, as behind an undo, all are merged from the start.
        """
        live = [*_placed(facts_of(items, self._calls))]
        if not self._compacted.leads_to(covers, live):
            self._compacted = _Compacted()
            self._compacted.leave(self._covered)
        return self._compacted.record(covers, live)

    def asked(self, covers: Covers, items: Sequence[WindowItem]) -> list[Fact]:
        """Return what users ask for in the blocks of these versions, in the order of the log."""
        live = requests_of(items, lambda item: item.version in covers)
        known = sorted((*self._covered, *live), key=_MADE_KNOWN)
        return [fact for _, fact in known if fact.kind == "request" and fact.version in covers]


class _Compacted:
    """The record of a log's newest compaction, which the next one may continue.

    A compaction asks for its record before it takes its blocks out of the window. So facts that were merged while their
    blocks were live come here once more when the blocks leave. The record cannot be continued if a merged fact has
    neither left the window nor stayed in it unchanged.
    """

    def __init__(self) -> None:
        self._covers: Covers | None = None
        self._running = RunningRecord()
        self._waiting: list[PlacedFact] = []
        self._live: dict[Place, Fact] = {}

    def leave(self, facts: Iterable[tuple[int, Fact]]) -> None:
        """Take the facts of blocks that leave the window."""
        for placed in _placed(facts):
            if self._live.get(placed.place) == placed.fact:
                del self._live[placed.place]
            else:
                self._waiting.append(placed)

    def leads_to(self, covers: Covers, live: Iterable[PlacedFact]) -> bool:
        """Return whether the record of these versions, with these facts of live blocks, continues this one."""
        if self._covers is None:
            return True
        unchanged = sum(self._live.get(place) == fact for place, fact in live)
        return unchanged == len(self._live) and covers.includes(self._covers)

    def record(self, covers: Covers, live: Iterable[PlacedFact]) -> FactRecord:
        """Merge what is new in these versions, live blocks included; return the record."""
        new = [placed for placed in live if placed.place not in self._live]
        within = [placed for placed in new if placed.fact.version in covers]
        self._live.update(within)
        waiting, self._waiting, self._covers = self._waiting, [], covers
        for placed in waiting:
            (within if placed.fact.version in covers else self._waiting).append(placed)
        for placed in within:
            self._running.take(placed)
        return self._running.record()


def _placed(facts: Iterable[tuple[int, Fact]]) -> Iterator[PlacedFact]:
    """Yield facts with their places; those that one event made known come one after another."""
    last = number = 0
    for version, fact in facts:
        number = number + 1 if version == last else 0
        last = version
        yield PlacedFact((version, number), fact)
