"""The part of a PostgreSQL store that overwrites what was appended; see `timeline.ports.Forgetting`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from timeline.blocks import instant_text
from timeline.errors import StoreError

from ..erasures import check_erasure, erasure_report
from ..rewriting import encoded
from . import table_files
from .erasing import erase
from .keeping import forks_of
from .overwriting import rewrite

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from timeline.ports import ErasureReport, ForksOnErase, Rewriting

    from ..erasures import Erasing
    from ..log_reader import LogReader
    from .connections import Connection
    from .database import Database

LOG: Final = (
    "the server's write-ahead log up to {} holds it until the server writes over those segments, and so do what it "
    "archived of them, a standby that is behind, and what the server logged of statements with their parameters"
)


class Forgetting:
    """`timeline.ports.Forgetting`."""

    def __init__(self, database: Database, reader: LogReader) -> None:
        self._database, self._reader = database, reader

    async def forks(self, conversation: str) -> dict[str, int]:
        """Return the conversation's own forks, each with the last version that both share."""
        key = await self._reader.key(conversation)
        async with self._database.moment() as connection:
            return {fork.id: fork.base for fork in await forks_of(connection, [key])}

    async def rewrite(
        self, parts: Sequence[Rewriting], values: Mapping[str, str], dropped: Collection[str]
    ) -> dict[str, int]:
        """Overwrite payloads and snapshots, and append redactions, in one transaction; see `Forgetting.rewrite`."""
        self._database.check_writable()
        rows = await encoded(parts)
        before = await table_files.size_now(self._database)

        async def work(connection: Connection) -> dict[str, int]:
            done = await rewrite(connection, rows, values, dropped, self._database.address)
            await table_files.note_removal(connection, self._database.address.schema, before)
            return done

        return await self._database.do(work)

    async def erase(self, conversation: str, forks: ForksOnErase, reason: str, at: datetime | None) -> ErasureReport:
        """Erase a conversation, then rewrite the tables without it; see `Forgetting.erase`."""
        self._database.check_writable()
        check_erasure(conversation, forks, reason)
        moment = instant_text(at or datetime.now(UTC))
        before = await table_files.size_now(self._database)

        async def work(connection: Connection) -> Erasing:
            done = await erase(connection, conversation, forks, reason, moment)
            await table_files.note_removal(connection, self._database.address.schema, before)
            return done

        done = await self._database.do(work)
        try:
            await table_files.shrink(self._database)
        except StoreError as refusal:  # whatever it is, the conversation is gone
            return erasure_report(done, physical=False, why_not=str(refusal), log=await self._log())
        return erasure_report(done, physical=True, log=await self._log())

    async def _log(self) -> str:
        """Return what is left in the server's log, which no call of a client reaches."""
        try:
            [(place,)] = await self._database.rows("SELECT pg_current_wal_lsn()::text")
        except StoreError:  # the server went away behind the erasure
            place = "its present end"
        return LOG.format(place)
