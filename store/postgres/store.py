"""The PostgreSQL store: opened by URL, written by one queue, read by a pool of connections."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Self, get_args

from timeline.errors import StoreError
from timeline.ports import Appended, Expected

from ..codec import NO_VALUES, encode, is_long
from .address import parse
from .appending import append_within
from .database import Durability
from .failures import append_uncertain, reading_only
from .proofs import Proofs
from .queries import Questions
from .writer import Figures, Uncertain, Writer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from timeline.events import NewEvent
    from timeline.events.chain import Seal
    from timeline.ports import Snapshot

    from ..codec import Batch
    from .address import Address


class PostgresStore(Questions, Proofs):
    """An `EventStore` in a schema of a PostgreSQL database; open it with `PostgresStore.open` or `open_store`."""

    def __init__(self, address: Address, durability: Durability = "full", *, readonly: bool = False) -> None:
        super().__init__(address, durability, readonly=readonly)
        self._writer = Writer(self, self._note)

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
            NotAStore: the schema holds other tables; it was not changed.
            StoreError: the URL cannot be used, or the server is too old or refused the role.
        """
        address = parse(url)
        if durability not in get_args(Durability):
            raise StoreError(f"{address.where}: durability is 'full' or 'normal', not {durability!r}.")
        store = cls(address, durability, readonly=readonly)
        await store._connect()
        return store

    @property
    def figures(self) -> Figures:
        """What the queue of appends did and holds."""
        return self._writer.figures

    async def append(
        self,
        conversation: str,
        events: Sequence[NewEvent],
        *,
        expected: int | Expected = Expected.ANY,
        values: Mapping[str, str] = NO_VALUES,
        snapshot: Snapshot | None = None,
        seals: Sequence[Seal] = (),
    ) -> Appended:
        """Append events at the end of a conversation, all of them or none; see `EventStore.append`.

        Appends that wait together share a statement; each is accepted or refused for itself. An append that is
        cancelled while it waits in the queue writes nothing; cancelled later, it is written whole.

        Raises:
            StoreBusy: too much waits to be written, or the append waited too long; nothing was written.
        """
        self._check_open()
        work = partial(encode, conversation, events, expected, values, snapshot, seals)
        if is_long(events):
            batch = await asyncio.to_thread(work)
            self._check_open()
        else:
            batch = work()
        if self.read_only:
            raise reading_only(self.where)
        if not batch.drafts:
            return await self.do(partial(append_within, batch=batch))
        try:
            return await self._writer.append(batch)
        except Uncertain as doubt:
            again: dict[str, Any] = {"conversation": conversation, "events": events, "expected": expected}
            again |= {"values": values, "snapshot": snapshot, "seals": seals}
            raise append_uncertain(doubt.error, self.where, again) from doubt

    def _note(self, batch: Batch, appended: Appended) -> None:
        del batch
        self._acknowledged = max(self._acknowledged, appended.position)

    async def _close(self) -> None:
        await self._writer.stop()
        await super()._close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
