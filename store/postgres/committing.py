"""Commit a group of appends: by one statement as far as that goes, the others one by one.

A group that came second, or that the server refused, is taken apart: each append is then placed anew for itself.

A connection that breaks leaves an append in doubt. The same append again is written once, so it is repeated when the
server is back; only if the server stays away it is the caller's turn (`AppendUncertain`).
"""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import asynccontextmanager
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Final

import asyncpg

from timeline.errors import StoreBusy, TimelineError

from ..failures import InDoubt
from .appending import (
    MOST_EVENTS,
    AppendGroup,
    Lost,
    append_within,
    at_the_end,
    open_together,
    opens,
    take_turn,
    write,
)
from .database import ATTEMPTS, PATIENCE
from .failures import AGAIN, DRIVER_ERRORS, is_away, store_error
from .log_head import heads_of, shared_paths
from .parts import break_off

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from timeline.ports import Appended

    from ..codec import Batch
    from .connections import Connection, Lent
    from .database import Database
    from .log_head import Head

log: Final = logging.getLogger("timeline.store")
MOST_HEADS: Final = 4_096
"""Logs of which the head is remembered: a guess, which the compare-and-set checks."""
_SEVERAL: Final = 2
"""Conversations from which on they are opened together."""
_ROUNDS: Final = 5
"""Times that a group that came second is tried as a group."""
_LONGEST_PAUSE: Final = 0.05
_KNOWN: Final = "They may be in the log by now or not. Wait until the server is back"


class Uncertain(InDoubt):
    """The connection broke while an append was under way, and the same append again has not settled what became of it.

    The server did not come back, or refuses what it may have taken before: one that took over, say, and only reads.
    """

    def __init__(self, error: BaseException) -> None:
        away = not isinstance(error, Lost) and is_away(error)
        then = error if away else f"and the same append again failed, {str(error) or 'other writers were first'}"
        super().__init__(f"the connection broke{': ' if away else ', '}{then}", _KNOWN)
        self.__cause__ = error


class Heads(dict[str, "Head"]):
    """The heads of logs as this store last saw them, up to `MOST_HEADS`: those that came first are forgotten first.

    One that is needed again is read again, and then comes last: an order by use would cost more than that saves.
    """

    def remember(self, heads: Mapping[str, Head]) -> None:
        """Remember heads."""
        self.update(heads)
        while len(self) > MOST_HEADS:
            del self[next(iter(self))]

    def forget(self, conversation: str) -> None:
        """Forget a head that another writer may have moved."""
        self.pop(conversation, None)


class Committer:
    """Commits one group after the other, each on one connection.

    Args:
        database: the store's connections.
        heads: which all committers of the store share; two of them never have the same conversation at once.

    Attributes:
        lost: appends that came second and were placed again.
    """

    def __init__(self, database: Database, heads: Heads) -> None:
        self._database, self._heads = database, heads
        self._connection: Lent | None = None
        self._reached = False
        """Whether the group under way has had a connection: from then on the server may have written it."""
        self._given_over = False
        """Whether nothing is waited for any more."""
        self._until: float | None = None
        """Until when the group under way waits for a server that went away: all of its appends together."""
        self._gone: BaseException | None = None
        """Why the group has waited long enough; what is left of it does not even try."""
        self.lost: int = 0

    def give_up(self) -> None:
        """Break the connection, and end the group under way: its appends are in doubt, or were not written."""
        self._given_over = True
        if self._connection is not None:
            break_off(self._connection)

    async def commit(self, batches: Sequence[Batch]) -> list[Appended | BaseException]:
        """Append batches together as far as that goes, the others one by one in their order."""
        try:
            return await self._committed(batches)
        finally:
            if self._connection is not None:
                connection, self._connection = self._connection, None
                await self._database.parts.appenders.rest(connection)

    async def _committed(self, batches: Sequence[Batch]) -> list[Appended | BaseException]:
        done: dict[int, Appended] = {}
        left = dict(enumerate(batches))
        away = self._reached = False
        self._until = self._gone = None
        try:
            if len(first := self._unknown(left)) >= _SEVERAL:
                done = await self._opened(batches, first)
                left = {number: batch for number, batch in left.items() if number not in done}
        except (Lost, asyncpg.UniqueViolationError):
            log.debug("%s: conversations are opened one by one", self._database.where)
        except DRIVER_ERRORS as error:
            away = await self._broke(error)
        for _ in range(0 if away else _ROUNDS):
            if not left:
                break
            try:
                written, tried = await self._together(left)
            except asyncpg.UniqueViolationError:
                break
            except DRIVER_ERRORS as error:
                away = await self._broke(error)
                break
            done |= written
            for number in written:
                del left[number]
            if len(written) == tried:
                break
            self.lost += tried - len(written)
        in_doubt = away and self._reached
        return [
            done[number] if number in done else await self._alone(batch, in_doubt=in_doubt)
            for number, batch in enumerate(batches)
        ]

    def _unknown(self, batches: Mapping[int, Batch]) -> dict[str, int]:
        """Return the conversations of which no head is remembered, each with the number of its first batch."""
        first: dict[str, int] = {}
        heads = self._heads
        for number in [number for number, batch in batches.items() if batch.conversation not in heads]:
            first.setdefault(batches[number].conversation, number)
        return first

    async def _opened(self, batches: Sequence[Batch], first: dict[str, int]) -> dict[int, Appended]:
        """Open the new ones of some conversations together, by the first batch of each; return the places."""
        async with self._begun() as connection:
            self._heads.remember(await heads_of(connection, first))
            new = [number for conversation, number in first.items() if conversation not in self._heads]
            opening = {number: batches[number] for number in new if opens(batches[number])}
            if len(opening) < _SEVERAL or sum(len(batch.drafts) for batch in opening.values()) > MOST_EVENTS:
                return {}
            return await open_together(connection, opening)

    async def _together(self, batches: Mapping[int, Batch]) -> tuple[dict[int, Appended], int]:
        """Write the batches that go to the ends of their logs; return their places, and how many were tried.

        A head moves on with what is put behind it. Where that was not written, it is forgotten.
        """
        group = AppendGroup()
        try:
            if self._database.address.pgbouncer:
                async with self._begun() as connection:
                    written = await self._placed(connection, batches, group)
            else:
                connection = await self._connected()
                self._reached = True
                written = await self._placed(connection, batches, group)
        except BaseException:
            for conversation in group.heads:
                self._heads.forget(conversation)
            raise
        self._heads.remember(group.heads)
        if len(written) < len(group.placed):
            won = {batches[number].conversation for number in written}
            for conversation in group.heads.keys() - won:
                self._heads.forget(conversation)
        return written, len(group.placed)

    async def _placed(
        self, connection: Connection, batches: Mapping[int, Batch], group: AppendGroup
    ) -> dict[int, Appended]:
        """Write the batches that go to the ends of their logs as a group; return their places by their numbers."""
        if unknown := self._unknown(batches):
            self._heads.remember(await heads_of(connection, unknown))
        self._put_together(batches, group, await self._in_shared_past(connection, batches))
        if not group.placed:
            return {}
        if not group.needs_transaction or connection.is_in_transaction():
            return await write(connection, group)
        async with connection.transaction(isolation="read_committed"):
            return await write(connection, group)

    async def _broke(self, error: BaseException) -> bool:
        """Give the connection back after an error; return whether it broke, so that the server may be away."""
        connection, self._connection = self._connection, None
        if connection is not None:
            if isinstance(error, asyncpg.InternalClientError):
                break_off(connection)  # the driver lost track of what the server says
            await self._database.parts.appenders.put(connection)
        return is_away(error)

    async def _connected(self) -> Connection:
        """Return the group's connection, another one after an error; the driver's errors pass."""
        if self._connection is None:
            self._connection = await self._database.parts.appenders.take()
        return self._connection

    @asynccontextmanager
    async def _begun(self) -> AsyncIterator[Connection]:
        """Begin a transaction on the connection."""
        connection = await self._connected()
        async with self._database.transaction(connection):
            self._reached = True
            yield connection

    async def _in_shared_past(self, connection: Connection, batches: Mapping[int, Batch]) -> set[int]:
        """Return the numbers of the batches with a path that is in use in what their fork shares with its parent."""
        heads = self._heads
        forks = [
            (number, head)
            for number, batch in batches.items()
            if (head := heads.get(batch.conversation)) is not None and head.base
        ]
        return {number for number, head in forks if await shared_paths(connection, batches[number], head)}

    def _put_together(self, batches: Mapping[int, Batch], group: AppendGroup, taken: set[int]) -> None:
        """Put the batches that go to the ends of their logs into a group."""
        heads = self._heads
        left: set[str] = set()
        for number, batch in batches.items():
            conversation = batch.conversation
            head = heads.get(conversation)
            if (
                head is None
                or number in taken
                or conversation in left
                or not at_the_end(batch, head)
                or len(group.events.drafts) + len(batch.drafts) > MOST_EVENTS
            ):
                left.add(conversation)  # what comes behind it waits for its turn as well
            else:
                group.add(batch, head, number)

    async def _alone(self, batch: Batch, *, in_doubt: bool) -> Appended | BaseException:
        """Append one batch in a transaction of its own, again where another writer or a broken connection was first.

        Returns the error that refused it.
        """
        self._heads.forget(batch.conversation)
        attempt = 0
        while True:
            started = False
            if self._given_over:
                return self._given_up(ConnectionAbortedError("the store was closed"), in_doubt=in_doubt)
            if self._gone is not None:
                return self._given_up(self._gone, in_doubt=in_doubt)
            try:
                async with self._begun() as connection:
                    started = True
                    if attempt:
                        await take_turn(connection, batch.conversation)
                    appended = await append_within(connection, batch)
                self._until = None
                return replace(appended, repeated=False) if in_doubt else appended
            except TimelineError as refusal:
                self._until = None
                return refusal
            except (Lost, *DRIVER_ERRORS) as error:
                away = not isinstance(error, Lost) and await self._broke(error)
                in_doubt = in_doubt or (away and started)
                attempt += not away
                if away:
                    self._until = self._until or monotonic() + PATIENCE
                    self._gone = error if monotonic() > self._until else None
                if attempt >= ATTEMPTS or self._gone is not None or not (away or _again(error)):
                    return self._given_up(error, in_doubt=in_doubt)
                self.lost += isinstance(error, Lost)
            await asyncio.sleep(random.uniform(0, min(_LONGEST_PAUSE, 0.002 * 2 ** min(attempt, 6)) + 0.1 * away))  # noqa: S311 - so that they do not meet again

    def _given_up(self, error: BaseException, *, in_doubt: bool) -> BaseException:
        if in_doubt:
            return Uncertain(error)
        if isinstance(error, Lost):
            return StoreBusy(
                f"{self._database.where}: other writers of the conversation were first {ATTEMPTS} times. Nothing was"
                " written; try again."
            )
        return store_error(error, self._database.where)


def _again(error: BaseException) -> bool:
    """Return whether the same append may go well: another one was first, or the server gave this one up."""
    return isinstance(error, Lost | asyncpg.UniqueViolationError) or getattr(error, "sqlstate", None) in AGAIN
