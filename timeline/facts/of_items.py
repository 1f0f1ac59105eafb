"""Facts of a window's items, and of those that compactions took out of it.

A log without a store keeps no covered blocks: their facts are taken when they are covered.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final, Protocol

from timeline.blocks import ToolCall, ToolResult, parse_instant
from timeline.facts.extracting import facts_named, facts_of_result
from timeline.facts.requests import users_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from timeline.blocks import Block
    from timeline.events import CompactionCompleted, Covers
    from timeline.facts.model import Fact

_MADE_KNOWN: Final = itemgetter(0)
"""Orders facts by the version of the event that made them known."""
_UNDATED: Final = parse_instant("0001-01-01T00:00:00Z")


class Item(Protocol):
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
        """Whether it never happened, for the agent."""
        ...


class Calls:
    """Calls by their version, path and id, to find the one that a result answers."""

    def __init__(self) -> None:
        self._by_version: dict[int, tuple[int, ToolCall]] = {}
        self._by_path: dict[str, tuple[int, ToolCall]] = {}
        self._by_id: dict[str, tuple[int, ToolCall]] = {}

    def add(self, version: int, call: ToolCall) -> None:
        """Take a call, in the order of the log."""
        self._by_version[version] = self._by_path[call.path] = self._by_id[call.call_id] = (version, call)

    def answered(self, item: Item) -> tuple[int, ToolCall] | None:
        """Return the call of a result, and its version: by its path, or the newest earlier one with its id."""
        if item.answers is not None:
            return self._by_version.get(item.answers)
        beside = self._by_path.get(f"{item.block.path.removesuffix('.result')}.call")
        return beside or self._by_id.get(item.block.call_id or "")


def facts_of(items: Iterable[Item], calls: Calls | None = None) -> list[tuple[int, Fact]]:
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


class WindowFacts:
    """The facts of a log that is only folded: those of its window, and those that were taken when it was covered."""

    def __init__(self) -> None:
        self._calls = Calls()
        self._covered: list[tuple[int, Fact]] = []

    def cover(self, compaction: CompactionCompleted, items: Sequence[Item]) -> None:
        """Keep the facts of the items that a compaction is about to take out of the window."""
        carried = set(compaction.carried)
        leaving = [i for i in items if i.version in compaction.covers and i.version not in carried]
        self._covered += facts_of(leaving, self._calls)

    def within(self, covers: Covers, items: Sequence[Item]) -> list[Fact]:
        """Return the facts of the blocks of these versions, in the order of the log."""
        live = facts_of(items, self._calls)
        known = sorted((*self._covered, *live), key=_MADE_KNOWN)
        return [fact for _, fact in known if fact.version in covers]

    def asked(self, covers: Covers, items: Sequence[Item]) -> list[Fact]:
        """Return what users ask for in the blocks of these versions, in the order of the log."""
        live = facts_of(item for item in items if users_words(item.block))
        known = sorted((*self._covered, *live), key=_MADE_KNOWN)
        return [fact for _, fact in known if fact.kind == "request" and fact.version in covers]
