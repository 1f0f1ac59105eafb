"""The part of a PostgreSQL store that removes history; see `timeline.ports.Scavenging`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import asyncpg

from timeline.frozen import sha256_hex

from ..failures import checked_id
from ..settings import PROOF, RETENTION, TURN, in_the_way, lease
from . import rehearsing, table_files
from .facts import reach
from .failures import DRIVER_ERRORS, store_error
from .keeping import take_turn
from .removing import drop_unnamed, remove, unnamed_values
from .statements import OWN
from .table_files import SETTING

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from timeline.events.other_payloads import Retention
    from timeline.ports import Rehearsal, Removal

    from .connections import Connection
    from .database import Database

_SET: Final = (
    "INSERT INTO settings (name, value) SELECT * FROM unnest($1::text[], $2::text[])"
    " ON CONFLICT (name, tenant) DO UPDATE SET value = excluded.value"
)
_UNSET: Final = f"DELETE FROM settings WHERE name = $1 AND {OWN}"  # noqa: S608 - own condition


class Scavenging:
    """`timeline.ports.Scavenging`, but for its reads of the log."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def retention(self) -> Retention:
        """Return the setting for conversations that have none of their own; see `Scavenging.retention`."""
        rows = await self._database.rows(SETTING, RETENTION)
        return "window" if rows and rows[0][0] == "window" else "keep"

    async def set_retention(self, retention: Retention) -> None:
        """Set what holds for conversations that have no setting of their own."""
        names, values = [RETENTION, f"{RETENTION}{PROOF}"], [retention, sha256_hex(retention)]
        await self._database.do(lambda connection: connection.execute(_SET, names, values))

    async def remove(self, conversation: str, after: int, most: int) -> Removal:
        """Remove at most ``most`` events behind version ``after``, in one transaction; see `Scavenging.remove`."""
        schema = self._database.address.schema
        checked_id(conversation)

        async def work(connection: Connection) -> Removal:
            await reach(connection)  # what came meanwhile: of what goes its facts are all that is left
            done = await remove(connection, conversation, after, most, self._database.address)
            if done.events:
                await table_files.note_removal(connection, schema, before)
            return done

        self._database.check_writable()
        before = await table_files.size_now(self._database)
        await self._database.do(reach)
        return await self._database.do(work)

    async def remove_values(self) -> tuple[int, int]:
        """Remove the content-addressed texts that no event and no snapshot names; return their number and bytes.

        The log is read before the lock that appends wait for, and behind it only what came since.
        """
        schema = self._database.address.schema
        self._database.check_writable()
        before = await table_files.size_now(self._database)

        async def work(connection: Connection) -> tuple[int, int]:
            await take_turn(connection)
            sizes = await drop_unnamed(connection, await unnamed_values(connection))
            if sizes:
                await table_files.note_removal(connection, schema, before)
            return len(sizes), sum(sizes)

        return await self._database.do(work)

    async def shrink(self) -> tuple[int, int] | None:
        """Rewrite the tables without what was removed; see `Scavenging.shrink` and `store.postgres.table_files`."""
        self._database.check_writable()
        return await table_files.shrink(self._database)

    async def rehearse(self, conversations: Collection[str]) -> Rehearsal:
        """Return what removing would do; see `Scavenging.rehearse` and `store.postgres.rehearsing`.

        Where the tables are too large to be rewritten while agents wait, or are not the role's, the bytes of the texts
        that go are subtracted.
        """
        conversations = [checked_id(conversation) for conversation in conversations]
        async with self._database.moment() as connection:
            found = await rehearsing.counted(connection, conversations, self._database.address)
            small = not self._database.read_only and await rehearsing.is_small(
                connection, self._database.address.schema
            )
        if not small:
            return found
        try:
            return replace(found, after=await self._measured(conversations))
        except asyncpg.InsufficientPrivilegeError:
            return found  # no temporary tables for this role
        except DRIVER_ERRORS as error:
            raise store_error(error, self._database.where) from error

    async def _measured(self, conversations: Collection[str]) -> int:
        connection = await self._database.connected()
        transaction = connection.transaction(isolation="repeatable_read")
        try:
            await transaction.start()
            await connection.execute(self._database.begin)
            try:
                return await rehearsing.measured(connection, conversations, self._database.address)
            finally:
                await transaction.rollback()
        finally:
            await connection.close()

    async def take_lease(self, runner: str, now: datetime, until: datetime) -> datetime | None:
        """Take, renew or give back the lease of scavenging; see `Scavenging.take_lease`."""

        async def work(connection: Connection) -> datetime | None:
            await take_turn(connection)
            if (end := in_the_way(await connection.fetchval(SETTING, TURN), runner, now)) is not None:
                return end
            if until > now:
                await connection.execute(_SET, [TURN], [lease(runner, until)])
            else:
                await connection.execute(_UNSET, TURN)
            return None

        return await self._database.do(work)
