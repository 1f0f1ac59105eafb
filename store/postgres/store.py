"""The PostgreSQL store: opened by URL, written by one queue, read by a pool of connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, get_args

from timeline.errors import StoreError

from .address import parse
from .database import Database, Durability

if TYPE_CHECKING:
    from types import TracebackType


class PostgresStore(Database):
    """An `EventStore` in a schema of a PostgreSQL database. Open it with `PostgresStore.open` or `timeline.open_store`."""

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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
