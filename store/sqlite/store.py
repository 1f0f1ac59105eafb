"""The SQLite store: one file, which one thread writes and a connection beside it reads.

It is made of parts over one `Database`. None of them knows the store.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from timeline.blocks import instant_text
from timeline.errors import StoreError, StoreMoved

from ..codec import NO_VALUES, encode_snapshot
from ..database_store import DatabaseStore
from ..durability import Durability, check_durability
from ..erasures import check_erasure, erasure_report
from ..failures import DRIVER_ERRORS, CommitFailed, InDoubt, Unseen, checked_id, store_error
from ..log_reader import LogReader
from ..rewriting import encoded
from ..settings import RETENTION, checked_retention
from . import lease_marks, statements, waypoints
from .appending import append_nothing
from .database import Database
from .erasing import erase
from .log_rows import SQLiteRows
from .mending import mend
from .private_copy import mend_by_copy, on_copy
from .questions import Questions
from .removing import (
    named_so_far,
    rehearse,
    remove,
    remove_values,
    replace_snapshot,
    set_retention,
    shrink,
    size_of,
    take_lease,
)
from .rewriting import rewrite

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from os import PathLike

    from timeline.events.other_payloads import Retention
    from timeline.ports import (
        Appended,
        ErasureReport,
        Finding,
        ForksOnErase,
        LeaseMark,
        Rehearsal,
        Removal,
        Rewriting,
        Snapshot,
    )

    from ..codec import Batch

_KNOWN: Final = "They are not in the log now, but may be there after a crash. Check the disk"
_UNSEEN: Final = "They are in the log, unless the file was replaced meanwhile. Mend that"
_REMOVED: Final = 512
"""Characters that removing one event writes, by estimate."""
_SMALL: Final = 1
"""Characters of what writes little: work that is said to write has its turn among processes."""


class SQLiteStore(DatabaseStore):
    """An `EventStore` in one SQLite file. Open it with `SQLiteStore.open` or `timeline.open_store`.

    Attributes:
        file: the database.
        advice: warnings about this store and the SQLite library in use; mostly empty.
        database: its connections.
    """

    _questions: Questions

    def __init__(self, database: Database) -> None:
        log = LogReader(SQLiteRows(database))
        super().__init__(database, log, Questions(database, log))
        self.database = database
        self.file: Path = database.file
        self.advice: list[str] = database.advice

    @classmethod
    async def open(
        cls,
        path: str | PathLike[str],
        *,
        durability: Durability = "full",
        readonly: bool = False,
        busy_timeout: float = 5.0,
    ) -> Self:
        """Open a store; a missing or empty file becomes a new one.

        A file that may not be written to can still be read: its appends raise `StoreReadOnly`. SQLite needs two files
        beside a database that is read, ``-wal`` and ``-shm``; the last connection to close removes them. They stay, and
        do no harm, where that connection may not write, and where a writer that was killed, or is still open, left
        events in them: `readonly` does not move these into the database.

        Args:
            path: the database file.
            durability: ``full`` survives a power loss; ``normal`` survives a killed process and is faster.
            readonly: do not write, and do not create the file.
            busy_timeout: seconds to wait for another process that is writing.

        Raises:
            NotAStore: the file is not a store; it was not changed.
            StoreTooNew: a later version of this library wrote it.
            StoreCorrupt: the file is damaged.
            StoreReadOnly: the file does not exist, and may not be created.
            StoreMoved: the file was swapped while it was being opened.
            StoreLocked: the turn to open it did not come.
            ForkedProcess: the process that this one was forked from has it open.
            StoreError: the path is a folder, or in a missing folder, or cannot be read.
        """
        file = Path(path)
        check_durability(durability, str(file))
        return cls(await Database.open(file, durability, busy_timeout, readonly=readonly))

    async def _append(self, batch: Batch) -> Appended:
        writer = self.database.check_writable()
        if not batch.drafts:
            return await self.database.do(partial(append_nothing, conversation=batch.conversation))
        try:
            return await writer.append(batch)
        except DRIVER_ERRORS as error:
            raise store_error(error, self.file) from error
        except CommitFailed as error:
            raise InDoubt(f"SQLite says: {error.__cause__}", _KNOWN) from error
        except Unseen as error:
            why = str(error).removeprefix(f"{self.file}: ").rstrip(".")
            raise InDoubt(f"nobody can see whether the file is still in its place: {why}", _UNSEEN) from error
        except StoreMoved as error:
            await self.database.leave(error)
            raise

    async def examine(self) -> list[Finding]:
        """Compare all that is derived from the log with the log, on a private copy; see `Proofs.examine`."""
        return await on_copy(self.database, partial(mend, where=self.database.where))

    async def mend(self) -> list[Finding]:
        """Make anew what is derived from the log and differs from it, a batch at a time; see `Proofs.mend`.

        What is to be made anew is found out on a private copy.
        """
        return await mend_by_copy(self.database)

    async def replace_snapshot(
        self, conversation: str, snapshot: Snapshot | None, *, expected: int | None = None
    ) -> None:
        """Put a snapshot of the log in the place of the stored one; see `Proofs.replace_snapshot`."""
        draft = None if snapshot is None else encode_snapshot(snapshot)
        log = checked_id(conversation)
        await self.database.do(partial(replace_snapshot, conversation=log, draft=draft, expected=expected), _SMALL)

    async def replace_waypoints(
        self,
        conversation: str,
        snapshots: Sequence[Snapshot],
        *,
        dropped: Collection[int] = (),
        expected: int | None = None,
    ) -> None:
        """Keep snapshots of the past in the places of others; see `Proofs.replace_waypoints`."""
        drafts = [encode_snapshot(snapshot) for snapshot in snapshots]
        gone = tuple(dropped)
        log = checked_id(conversation)
        job = partial(waypoints.replace, conversation=log, drafts=drafts, gone=gone, expected=expected)
        await self.database.do(job, _SMALL)

    async def retention(self) -> Retention:
        """Return the setting for conversations that have none of their own; see `Scavenging.retention`."""
        rows = await self.database.rows(statements.SETTING, RETENTION)
        return "window" if rows and rows[0][0] == "window" else "keep"

    async def set_retention(self, retention: Retention) -> None:
        """Set what holds for conversations that have no setting of their own.

        Raises:
            InvalidArgument: there is no such retention.
        """
        await self.database.do(partial(set_retention, value=checked_retention(retention)), _SMALL)

    async def remove(self, conversation: str, *, after: int = 0, most: int = 1_000) -> Removal:
        """Remove at most ``most`` events behind version ``after``, in one transaction; see `Scavenging.remove`."""
        log = checked_id(conversation)
        before = await self.database.do(size_of, _SMALL)  # what a rehearsal begins with, too: facts make the file grow
        await self._questions.catch_up_facts()
        job = partial(remove, conversation=log, after=after, most=most, where=self.database.where, before=before)
        return await self.database.do(job, most * _REMOVED)

    async def remove_values(self) -> tuple[int, int]:
        """Remove the content-addressed texts that no event and no snapshot names; return their number and bytes."""
        known = await self.database.do(named_so_far)
        return await self.database.do(partial(remove_values, known=known), _REMOVED)

    async def shrink(self) -> tuple[int, int] | None:
        """Rewrite the file without what was removed; see `Scavenging.shrink`."""
        return await self.database.do(partial(shrink, where=self.database.where), _SMALL)

    async def rehearse(self, conversations: Collection[str]) -> Rehearsal:
        """Return what removing would do, found out on a private copy; see `Scavenging.rehearse`."""
        wanted = [checked_id(conversation) for conversation in conversations]
        return await on_copy(self.database, partial(rehearse, conversations=wanted, where=self.database.where))

    async def forks(self, conversation: str) -> dict[str, int]:
        """Return the conversation's own forks, each with the last version that both share."""
        return dict(await self.database.rows(statements.FORKS, await self._log.key(conversation)))

    async def rewrite(
        self, parts: Sequence[Rewriting], *, values: Mapping[str, str] = NO_VALUES, dropped: Collection[str] = ()
    ) -> dict[str, int]:
        """Overwrite payloads and snapshots, and append redactions, in one transaction; see `Forgetting.rewrite`."""
        rows = await encoded(parts)
        size = sum(batch.size for _, batch in rows) + _REMOVED * sum(len(part.payloads) for part in parts)
        job = partial(rewrite, parts=rows, values=values, dropped=dropped, where=self.database.where)
        return await self.database.do(job, size)

    async def erase(
        self,
        conversation: str,
        *,
        forks: ForksOnErase = "refuse",
        reason: str = "",
        at: datetime | None = None,
    ) -> ErasureReport:
        """Erase a conversation, then rewrite the file without it; see `Forgetting.erase`."""
        check_erasure(conversation, forks, reason)
        moment = instant_text(at or datetime.now(UTC))
        job = partial(erase, conversation=conversation, forks=forks, reason=reason, at=moment)
        done = await self.database.do(job, _REMOVED)
        try:
            await self.shrink()
        except StoreMoved:
            raise
        except StoreError as refusal:  # whatever it is, the conversation is gone
            return erasure_report(done, physical=False, why_not=str(refusal))
        return erasure_report(done, physical=True)

    async def take_lease(self, runner: str, now: datetime, until: datetime) -> datetime | None:
        """Take, renew or give back the lease of scavenging; see `Scavenging.take_lease`."""
        return await self.database.do(partial(take_lease, runner=runner, now=now, until=until), _SMALL)

    def mark_lease(self, conversation: str) -> LeaseMark:
        """Mark the lease that this process is about to take; see `MarkingStore`."""
        return lease_marks.mark(self.file, conversation)

    def holder_died(self, conversation: str, version: int, expires_at: datetime) -> bool:
        """Return whether the process that took a lease is known to have ended; see `MarkingStore`."""
        return lease_marks.holder_died(self.file, conversation, version, expires_at)

    async def aclose(self) -> None:
        """Finish pending writes, then close. A cancelled call continues to close; a second call waits for the end."""
        await self.database.aclose(first=self._questions.stop)
