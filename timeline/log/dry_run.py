"""Logs for dry runs: the same decisions and the same bytes as a stored log, and nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.errors import HistoryUnavailable
from timeline.events import CompactionCompleted, appended_block
from timeline.facts.of_items import WindowFacts
from timeline.facts.record import record_of
from timeline.log.first_message import FirstMessage
from timeline.log.history import asked_of, first_prompt, record_within
from timeline.ports import NO_MARK

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from timeline.events import Covers, Event, Payload
    from timeline.fold.fold import Fold
    from timeline.log.protocol import Decision
    from timeline.ports import EventStore, LeaseMark
    from timeline.queries import FactRecord


class FoldedLog:
    """A log without a store: an append goes into its fold only.

    Args:
        fold: the fold.
        now: time of the events that are appended without one; it reads no clock.
    """

    def __init__(self, fold: Fold, now: datetime) -> None:
        self._fold = fold
        self._now = now
        self._paths: set[str] = set()
        self._facts = WindowFacts()

    @property
    def fold(self) -> Fold:
        """The fold of the log, and of the events that this dry run would have appended."""
        return self._fold

    async def catch_up(self) -> None:
        """Stay where the dry run began; release another writer's lease, whose end would never come here."""
        self._fold.release()

    def mark_lease(self) -> LeaseMark:
        """Mark nothing: no other process sees a dry run."""
        return NO_MARK

    def holder_died(self, version: int, expires_at: datetime) -> bool:
        """Return False: `catch_up` releases every lease."""
        del version, expires_at
        return False

    async def since(self, version: int) -> list[Event]:
        """Return nothing: nobody else appends to a dry run."""
        del version
        return []

    async def paths_taken(self, stems: Collection[str]) -> set[str]:
        """Return the paths in use that begin with one of the stems."""
        return {path for path in self._paths if path.startswith(tuple(stems))}

    async def first_prompt(self) -> str | None:
        """Return what the user's first message says."""
        message = FirstMessage()
        for item in self._fold.window.items:
            if not item.disowned:
                message.take(item.version, item.block)
            if message.is_over:
                break
        return message.text

    async def fact_record(self, covers: Covers) -> FactRecord:
        """Return the record of the blocks in the window, and of those that this log has covered."""
        return self._facts.record(covers, self._fold.window.items)

    async def asked(self, covers: Covers) -> FactRecord:
        """Return the record of what the prompts in the window, and of those that this log has covered, ask for."""
        return record_of(self._facts.asked(covers, self._fold.window.items))

    async def commit(
        self,
        payloads: Sequence[Payload],
        *,
        at: datetime | None,
        expected: int | None = None,
        values: Mapping[str, str] | None = None,
        snapshot: bool = False,
    ) -> int:
        """Fold the payloads; return the version of the first one."""
        del expected, values, snapshot
        first = self._fold.version + 1
        for version, payload in enumerate(map(self._screened, payloads), start=self._fold.version + 1):
            self._leaving(payload)
            self._fold.apply(version, at or self._now, payload)
            if (block := appended_block(payload)) is not None:
                self._paths.add(block.path)
        return first

    def _screened(self, payload: Payload) -> Payload:
        """Return an event as it is folded."""
        return payload

    def _leaving(self, payload: Payload) -> None:
        """Keep the facts of what an event is about to take out of the window."""
        if isinstance(payload, CompactionCompleted):
            self._facts.cover(payload, self._fold.window.items)

    async def decide(
        self, choose: Decision, *, at: datetime | None, least: datetime | None = None, snapshot: bool = False
    ) -> bool:
        """Fold the chosen events; return whether there were any."""
        at = at or max(self._now, least or self._now)
        payloads = await choose(at)
        await self.commit(payloads, at=at, snapshot=snapshot)
        return bool(payloads)


class DryRunLog(FoldedLog):
    """A log that goes on from a stored one without writing to it: for ``record=False``, and for the past.

    Nothing that was appended behind the fold that it begins with is in view.

    Args:
        store: holds the log.
        fold: the fold to go on from.
        now: time of the events that are appended without one.
        screen: what the application's hook leaves of an event; a stored log keeps that, so this one shows it.
    """

    def __init__(
        self, store: EventStore, fold: Fold, now: datetime, screen: Callable[[Payload], Payload] | None = None
    ) -> None:
        super().__init__(fold, now)
        self._store, self._screen = store, screen
        self._begun = fold.version

    def _screened(self, payload: Payload) -> Payload:
        return payload if self._screen is None else self._screen(payload)

    def _leaving(self, payload: Payload) -> None:
        """Keep nothing: the store has the facts, and to take them here costs more than the rest of a compaction."""

    async def paths_taken(self, stems: Collection[str]) -> set[str]:
        """Return the paths in use that begin with one of the stems."""
        return await super().paths_taken(stems) | await self._taken_by_then(stems)

    async def _taken_by_then(self, stems: Collection[str]) -> set[str]:
        """Return the stored paths in use; if this log began in the past, without those that were given later."""
        conversation = self._fold.conversation
        taken = await self._store.paths_taken(conversation, stems)
        if not taken or (await self._store.info(conversation)).version <= self._begun:
            return taken
        return {path for path in taken if await self._version_of(path) <= self._begun}

    async def _version_of(self, path: str) -> int:
        try:
            found = await self._store.find(self._fold.conversation, path)
        except HistoryUnavailable as gone:  # a scavenged block keeps its path
            return gone.version
        return self._begun if found is None else found.version

    async def first_prompt(self) -> str | None:
        """Return what the user's first message says."""
        return await first_prompt(self._store, self._fold.conversation, self._begun)

    async def fact_record(self, covers: Covers) -> FactRecord:
        """Return the record that the store has: a dry run appends decisions, which make no facts."""
        return await record_within(self._store, self._fold.conversation, covers, until=self._begun)

    async def asked(self, covers: Covers) -> FactRecord:
        """Return the record of what the store's prompts ask for."""
        return await asked_of(self._store, self._fold.conversation, covers, until=self._begun)
