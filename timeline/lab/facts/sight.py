"""Where a context leaves the facts that its answer needs, and what it costs to get at them.

In sight, one read away, two away by a search, or gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from timeline.agent.recall import RecallTool
from timeline.blocks import RangeSummary
from timeline.errors import BlockNotFound
from timeline.events import BlockRedacted, BlocksHidden, BlocksRevealed, CompactionCompleted
from timeline.events.addresses import Address
from timeline.facts.full_record import read_back
from timeline.facts.name_list import asked_list, list_block, names_of
from timeline.lab.facts.needs import entry_strings
from timeline.lab.facts.printed import printed
from timeline.lab.facts.searching import RANKS, queries, searchable
from timeline.lab.segments import is_sent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from timeline.blocks import Block
    from timeline.events import Payload
    from timeline.facts.name_list import Listed, NamesOf
    from timeline.lab.facts.needs import Need, Needs
    from timeline.lab.facts.searching import Ranked
    from timeline.lab.replay_log import ReplayLog
    from timeline.ports import TokenCounter
    from timeline.projection.context import RenderedContext

Where: TypeAlias = Literal["seen", "reachable", "found", "gone"]
"""In sight; one read away; two away, by a search and a read of what it finds; or neither."""
ONE_READ: Final = 2_000
"""Most tokens of the one answer of the recall tool that counts."""


class FoundNeed(NamedTuple):
    """Where a need is; ``stale`` if the context shows only what a later state made wrong."""

    need: Need
    where: Where
    stale: bool


class Looked(NamedTuple):
    """Where the needs of a call are, and the tokens of each thing to read, or to find again, for those out of sight."""

    found: tuple[FoundNeed, ...] = ()
    reads: tuple[int, ...] = ()


class FactSight:
    """Follows a replay, and finds the needs of its calls in the contexts that a policy sends.

    Args:
        needs: of the recording.
        sizes: tokens of the recording's blocks, by their place.
        log: the log of the replay.
        counter: counts what the recall tool answers.
    """

    def __init__(self, needs: Needs, sizes: Sequence[int], log: ReplayLog, counter: TokenCounter) -> None:
        self._needs, self._sizes, self._log, self._counter = needs, sizes, log, counter
        self._blocks: dict[str, tuple[int, Block]] = {}
        self._version: dict[int, int] = {}
        self._names: dict[str, str] = {}
        self._compactions: dict[str, CompactionCompleted] = {}
        self._gone: set[int] = set()
        self._answers: dict[str, tuple[frozenset[str], int]] = {}
        self._named: dict[str, NamesOf] = {}
        self._ranking = _ranking()
        self._unranked: dict[str, Block] = {}
        self._hits: dict[str, tuple[int, list[str]]] = {}

    def take(self, place: int, version: int, block: Block) -> None:
        """Note a block of the recording: its place there, its version in the log, and itself with its path."""
        self._version[place] = version
        self._note(version, block)
        self._unranked[block.path] = block

    def decided(self, payloads: Iterable[Payload]) -> None:
        """Note decisions: summaries can be read back, and what is omitted or redacted cannot."""
        for payload in payloads:
            if isinstance(payload, CompactionCompleted):
                self._compactions[payload.block.path] = payload
                self._unranked[payload.block.path] = payload.block
            elif isinstance(payload, BlocksHidden) and payload.mode == "omit":
                self._gone.update(one.version for one in payload.blocks)
            elif isinstance(payload, BlocksRevealed):
                self._gone.difference_update(payload.versions)
            elif isinstance(payload, BlockRedacted):
                self._gone.add(payload.version)

    def _note(self, version: int, block: Block) -> None:
        self._blocks[block.path] = (version, block)
        self._names[f"@{version}"] = block.path

    async def look(self, position: int, context: RenderedContext) -> Looked:
        """Find the needs of the call at a place of the recording in the context that is sent for it."""
        needs = self._needs.of_call.get(position, ())
        if not needs:
            return Looked()
        neutral, held = context.neutral, self._needs.held
        sent = [entry for entry in neutral.entries if is_sent(entry, neutral.model)]
        shown = [held.within(text) for entry in sent for text in entry_strings(entry)]
        wanted = {need.fact for need in needs}
        missing = wanted.difference(*shown)
        reached, reads = await self._reached(missing, context) if missing else (set(), [])
        texts = [text for entry in sent for text in entry_strings(entry)]
        two_away = {
            need.fact
            for need in needs
            if need.fact in missing and need.fact not in reached and await self._is_found(need, needs, missing, texts)
        }
        found = [self._found(need, missing, reached, two_away) for need in needs]
        firsts = {need.first for need in needs if need.fact in missing and need.fact not in reached}
        return Looked(tuple(found), (*reads, *(self._sizes[first] for first in sorted(firsts))))

    async def _is_found(
        self, need: Need, needs: Sequence[Need], missing: Collection[str], shown: Sequence[str]
    ) -> bool:
        """Return whether a search leads to a fact: one read of one of its first hits brings it."""
        for query in queries(need, needs, missing, shown):
            for path in self._searched(query):
                if need.fact in (await self._answer(path))[0]:
                    return True
        return False

    def _searched(self, query: str) -> list[str]:
        """Return the paths of the first hits of a query in the log as it is now."""
        for path, block in self._unranked.items():
            self._ranking.add(path, searchable(block))
        self._unranked.clear()
        version = self._log.fold.version
        if query not in self._hits or self._hits[query][0] != version:
            self._hits[query] = version, self._ranking.best(query, RANKS)
        return self._hits[query][1]

    def _found(self, need: Need, missing: set[str], reached: set[str], two_away: set[str]) -> FoundNeed:
        if need.fact not in missing:
            return FoundNeed(need, "seen", stale=False)
        stale = any(self._is_shown(place) for place in need.before)
        where: Where = "reachable" if need.fact in reached else "found" if need.fact in two_away else "gone"
        return FoundNeed(need, where, stale)

    def _is_shown(self, place: int) -> bool:
        item = self._log.fold.live(self._version.get(place, 0))
        return item is not None and item.is_in_sight

    async def _reached(self, missing: set[str], context: RenderedContext) -> tuple[set[str], list[int]]:
        """Return the missing facts that one read each brings, and the tokens of the reads: the fewest, greedily."""
        for item in context.window.items:
            if item.is_summary and item.block.path not in self._blocks:
                self._note(item.version, item.block)
        paths = printed(context.neutral.entries, context.window.items, self._names)
        brings = {path: await self._answer(path) for path in sorted(paths)}
        left, reads = set(missing), []
        while left:
            best = max(brings.values(), key=lambda one: (len(one[0] & left), -one[1]), default=None)
            if best is None or not best[0] & left:
                break
            left -= best[0]
            reads.append(best[1])
        return missing - left, reads

    async def _answer(self, path: str) -> tuple[frozenset[str], int]:
        """Return the facts in the recall tool's first answer for a path, and the answer's tokens."""
        asked = asked_list(path)
        known = self._blocks.get(path) or self._blocks.get(asked[0] if asked is not None else "")
        if known is None or known[0] in self._gone:
            return frozenset(), 0
        if path not in self._answers:
            text = (await self._tool().look({"path": path})).text
            self._answers[path] = (self._needs.held.within(text), self._counter.count(text))
        return self._answers[path]

    def _tool(self) -> RecallTool:
        # Each time anew: one that is kept holds this, and the replay's log would wait for a whole collection.
        return RecallTool("anthropic", read=self._read, count=self._count, counter=self._counter, max_tokens=ONE_READ)

    async def _read(self, name: str) -> tuple[Address, Block]:
        asked = asked_list(name)
        if name not in self._blocks and asked is not None and asked[0] in self._compactions:
            return self._listed(*asked)
        if name not in self._blocks:
            raise BlockNotFound(self._log.fold.conversation, name)
        version, block = self._blocks[name]
        done = self._compactions.get(name)
        if done is not None and isinstance(block, RangeSummary):
            block = read_back(block, done.digest, self._log.everything(done.covers))
        return Address(version), block

    def _listed(self, summary: str, listed: Listed) -> tuple[Address, Block]:
        """Return a list of the names that a summary covers, as a log gives it."""
        version, block = self._blocks[summary]
        covers = self._compactions[summary].covers
        before = {v: path for path, (v, _) in self._blocks.items() if v in covers and v not in self._gone}
        names = ((v, self._names_of(before[v])) for v in sorted(before, reverse=True))
        return Address(version), list_block(block, names, listed)

    def _names_of(self, path: str) -> NamesOf:
        if path not in self._named:
            self._named[path] = names_of(self._blocks[path][1])
        return self._named[path]

    async def _count(self, blocks: Sequence[Block]) -> list[int]:
        return self._counter.count_many([block.countable() for block in blocks])


def _ranking() -> Ranked:
    from timeline import store  # noqa: PLC0415 - the lazy re-export: the core does not import the package

    return store.Ranking()


def counted(found: Sequence[FoundNeed]) -> dict[str, object]:
    """Return the figures of a call's needs, as fields of its row."""
    figures: dict[str, int] = {}
    classes: dict[str, tuple[int, int, int]] = {}
    for need, where, stale in found:
        one_read = where in {"seen", "reachable"}
        marks = (1, int(where == "seen"), int(one_read))
        name = f"{need.distance}/{need.kind}/{need.origin}"
        before = classes.get(name, (0, 0, 0))
        classes[name] = (before[0] + marks[0], before[1] + marks[1], before[2] + marks[2])
        further = {"found": int(where != "gone"), "scored": -1 if stale else int(one_read)}
        for state, mark in {**dict(zip(("facts", "seen", "reachable"), marks, strict=True)), **further}.items():
            key = f"{state}_{need.distance}"
            figures[key] = figures.get(key, 0) + mark
    return {**figures, "stale": sum(one.stale for one in found), "facts_by": dict(sorted(classes.items()))}
