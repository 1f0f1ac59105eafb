"""The part of a PostgreSQL store that overwrites what was appended; see `timeline.ports.Forgetting`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from timeline.blocks import instant_text
from timeline.errors import StoreFull, StoreLocked, StoreReadOnly

from ..codec import NO_VALUES, encode
from ..erasures import check_erasure, erasure_report
from . import table_files
from .erasing import erase
from .keeping import forks_of
from .overwriting import rewrite
from .scavenging import Scavenging

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from timeline.ports import ErasureReport, ForksOnErase, Rewriting

    from ..erasures import Erasing
    from .connections import Connection

LOG: Final = (
    "the server's write-ahead log up to {} holds it until the server writes over those segments, and so do what it "
    "archived of them and a standby that is behind"
)


class Forgetting(Scavenging):
    """`timeline.ports.Forgetting`."""

    async def forks(self, conversation: str) -> dict[str, int]:
        """Return the conversation's own forks, each with the last version that both share."""
        key = await self._key(conversation)
        async with self._moment() as connection:
            return {fork.id: fork.base for fork in await forks_of(connection, [key])}

    async def rewrite(
        self, parts: Sequence[Rewriting], *, values: Mapping[str, str] = NO_VALUES, dropped: Collection[str] = ()
    ) -> dict[str, int]:
        """Overwrite payloads and snapshots, and append redactions, in one transaction; see `Forgetting.rewrite`."""
        self._check_writable()
        encoded = [(part, encode(part.conversation, part.events, part.expected, NO_VALUES, None)) for part in parts]
        before = await self._size()

        async def work(connection: Connection) -> dict[str, int]:
            done = await rewrite(connection, encoded, values, dropped, self.address)
            await table_files.note_removal(connection, self.address.schema, before)
            return done

        return await self.do(work)

    async def erase(
        self,
        conversation: str,
        *,
        forks: ForksOnErase = "refuse",
        reason: str = "",
        at: datetime | None = None,
    ) -> ErasureReport:
        """Erase a conversation, then rewrite the tables without it; see `Forgetting.erase`."""
        self._check_writable()
        check_erasure(conversation, forks, reason)
        moment = instant_text(at or datetime.now(UTC))
        before = await self._size()

        async def work(connection: Connection) -> Erasing:
            done = await erase(connection, conversation, forks, reason, moment)
            await table_files.note_removal(connection, self.address.schema, before)
            return done

        done = await self.do(work)
        try:
            await self.shrink()
        except (StoreLocked, StoreFull, StoreReadOnly) as refusal:
            return erasure_report(done, physical=False, why_not=str(refusal), log=await self._log())
        return erasure_report(done, physical=True, log=await self._log())

    async def _log(self) -> str:
        """Return what is left in the server's log, which no call of a client reaches."""
        [(place,)] = await self.rows("SELECT pg_current_wal_lsn()::text")
        return LOG.format(place)
