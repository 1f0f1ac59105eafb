"""The PostgreSQL store: opened by URL, written by one queue, read by a pool of connections.

It is made of parts over one `Database`. None of them knows the store.
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Self

from ..codec import NO_VALUES
from ..database_store import DatabaseStore
from ..durability import Durability, check_durability
from ..log_reader import LogReader
from ..settings import checked_retention
from .address import parse
from .appending import append_within
from .database import Database
from .forgetting import Forgetting
from .horizon import Horizon
from .log_rows import PostgresRows
from .proofs import Proofs
from .queries import Questions
from .scavenging import Scavenging
from .waking import Waking
from .writer import Figures, Writer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Collection, Mapping, Sequence
    from datetime import datetime

    from timeline.events.other_payloads import Retention
    from timeline.ports import (
        Appended,
        ErasureReport,
        Finding,
        ForksOnErase,
        Rehearsal,
        Removal,
        Rewriting,
        Snapshot,
    )

    from ..codec import Batch
    from .waking import Heard


_TYPE: Final = attrgetter("type")


class PostgresStore(DatabaseStore):
    """An `EventStore` in a schema of a PostgreSQL database. Open it by its URL with `timeline.open_store`.

    Attributes:
        database: its connections.
        where: names it in errors.
        waking: its wake-ups: it notifies other stores of its appends, and hears of theirs.
    """

    def __init__(self, database: Database) -> None:
        self.database: Database = database
        self.where: str = database.where
        self._horizon = horizon = Horizon(database)
        log = LogReader(PostgresRows(database, horizon))
        super().__init__(database, log, Questions(database, log))
        waking = Waking.of(database, horizon)
        self.waking: Waking = waking
        self._proofs = Proofs(database)
        self._scavenging = Scavenging(database)
        self._forgetting = Forgetting(database, log)

        def note(written: Sequence[tuple[Batch, Appended]]) -> None:
            waking.notify([(batch.conversation, map(_TYPE, batch.drafts)) for batch, _ in written])
            horizon.note(max([appended.position for _, appended in written]))

        self._writer = Writer(database, note)

    @classmethod
    async def open(cls, url: str, *, durability: Durability = "full", readonly: bool = False) -> Self:
        """Open a store; a schema that is missing or empty becomes a new one.

        Args:
            url: ``postgresql://user:password@host:port/database``. Settings of the store behind the question mark:
                ``schema``, ``tenant``, ``pgbouncer=true``, ``migrate=no`` (leave the schema as it is),
                ``partitions`` (of a new store).
            durability: ``full`` waits for the server's disk; ``normal`` loses at most the last second in a crash of it.
            readonly: do not write, and do not create anything.

        Raises:
            StoreUnavailable: the server cannot be reached.
            StoreTooOld: the schema needs a migration that may not be made here.
            StoreTooNew: a later version of this library wrote it.
            NotAStore: the schema holds an application's tables of the same names; it was not changed.
            StoreError: the URL cannot be used, or the server is too old or refused the role.
        """
        address = parse(url)
        check_durability(durability, address.where)
        database = Database(address, durability, readonly=readonly)
        await database.connect()
        return cls(database)

    @property
    def figures(self) -> Figures:
        """What the queue of appends did and holds."""
        return self._writer.figures

    async def horizon_lag(self) -> int:
        """Return the number of transactions behind the oldest one that runs, in any database of the server.

        Events above it are not in `read_all` yet; a transaction that stays open holds all readers of it up.
        """
        return await self._horizon.lag()

    async def horizon_age(self) -> int:
        """Return the seconds since the oldest transaction that writes began, in any database of the server.

        It is 0 without one, and for a role that may not see when the transactions of others began.
        """
        holder = await self._horizon.holder()
        return 0 if holder is None else holder.seconds or 0

    async def wakeups(self) -> AsyncIterator[Heard]:
        """Iterate over the hints of appends through other stores; see `WakingStore.wakeups`."""
        async for heard in self.waking.hear():
            yield heard

    def _append(self, batch: Batch) -> Awaitable[Appended]:
        self.database.check_writable()
        if not batch.drafts:
            return self.database.do(partial(append_within, batch=batch))
        return self._writer.append(batch)

    async def examine(self) -> list[Finding]:
        """Compare all that is derived from the log with the log, at one moment; see `Proofs.examine`."""
        return await self._proofs.examine()

    async def mend(self) -> list[Finding]:
        """Make anew what is derived from the log and differs from it, a batch at a time; see `Proofs.mend`."""
        return await self._proofs.mend()

    async def replace_waypoints(
        self,
        conversation: str,
        snapshots: Sequence[Snapshot],
        *,
        dropped: Collection[int] = (),
        expected: int | None = None,
    ) -> None:
        """Keep snapshots of the past in the places of others; see `Proofs.replace_waypoints`."""
        await self._proofs.replace_waypoints(conversation, snapshots, dropped, expected)

    async def replace_snapshot(
        self, conversation: str, snapshot: Snapshot | None, *, expected: int | None = None
    ) -> None:
        """Put a snapshot of the log in the place of the stored one; see `Proofs.replace_snapshot`."""
        await self._proofs.replace_snapshot(conversation, snapshot, expected)

    async def retention(self) -> Retention:
        """Return the setting for conversations that have none of their own; see `Scavenging.retention`."""
        return await self._scavenging.retention()

    async def set_retention(self, retention: Retention) -> None:
        """Set what holds for conversations that have no setting of their own.

        Raises:
            InvalidArgument: there is no such retention.
        """
        await self._scavenging.set_retention(checked_retention(retention))

    async def remove(self, conversation: str, *, after: int = 0, most: int = 1_000) -> Removal:
        """Remove at most ``most`` events behind version ``after``, in one transaction; see `Scavenging.remove`."""
        return await self._scavenging.remove(conversation, after, most)

    async def remove_values(self) -> tuple[int, int]:
        """Remove the content-addressed texts that no event and no snapshot names; return their number and bytes."""
        return await self._scavenging.remove_values()

    async def shrink(self) -> tuple[int, int] | None:
        """Rewrite the tables without what was removed; see `Scavenging.shrink`."""
        return await self._scavenging.shrink()

    async def rehearse(self, conversations: Collection[str]) -> Rehearsal:
        """Return what removing would do; see `Scavenging.rehearse`."""
        return await self._scavenging.rehearse(conversations)

    async def take_lease(self, runner: str, now: datetime, until: datetime) -> datetime | None:
        """Take, renew or give back the lease of scavenging; see `Scavenging.take_lease`."""
        return await self._scavenging.take_lease(runner, now, until)

    async def forks(self, conversation: str) -> dict[str, int]:
        """Return the conversation's own forks, each with the last version that both share."""
        return await self._forgetting.forks(conversation)

    async def rewrite(
        self, parts: Sequence[Rewriting], *, values: Mapping[str, str] = NO_VALUES, dropped: Collection[str] = ()
    ) -> dict[str, int]:
        """Overwrite payloads and snapshots, and append redactions, in one transaction; see `Forgetting.rewrite`."""
        return await self._forgetting.rewrite(parts, values, dropped)

    async def erase(
        self,
        conversation: str,
        *,
        forks: ForksOnErase = "refuse",
        reason: str = "",
        at: datetime | None = None,
    ) -> ErasureReport:
        """Erase a conversation, then rewrite the tables without it; see `Forgetting.erase`."""
        return await self._forgetting.erase(conversation, forks, reason, at)

    async def aclose(self) -> None:
        """Finish running writes, then close. A cancelled call continues to close; a second call waits for the end."""
        await self.database.aclose(first=self._finish)

    async def _finish(self) -> None:
        await self._writer.stop()
        await self.waking.aclose()
