"""The types of the driver's connections, which the parts of the store name in their signatures."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import asyncpg
    from asyncpg.pool import PoolConnectionProxy

    Lent: TypeAlias = PoolConnectionProxy[asyncpg.Record]
    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record] | Lent
    Pool: TypeAlias = asyncpg.Pool[asyncpg.Record]
