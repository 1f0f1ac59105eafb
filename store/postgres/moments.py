"""Read one moment of a PostgreSQL store with several statements, which no append or reader of others waits for."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ..failures import closed
from .failures import DRIVER_ERRORS, reading_only, store_error
from .reading import Reading

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .connections import Connection


class Moments(Reading):
    """A store whose parts read one moment, or write rows of older events."""

    @asynccontextmanager
    async def _moment(self) -> AsyncIterator[Connection]:
        """Open a transaction that reads the store as it is now, whatever comes meanwhile.

        It gets no number, so that it holds nobody up; only what VACUUM may free waits for its end.
        """
        self._check_open()
        pool = self._readers
        if pool is None:
            raise closed(self.where)
        try:
            async with (
                pool.acquire() as connection,
                connection.transaction(isolation="repeatable_read", readonly=True),
            ):
                if self.address.pgbouncer:
                    await connection.execute(self._begin)
                yield connection
        except DRIVER_ERRORS as error:
            raise store_error(error, self.where) from error

    def _check_writable(self) -> None:
        self._check_open()
        if self.read_only:
            raise reading_only(self.where)
