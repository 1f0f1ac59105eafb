"""The queue of appends: what waits together is committed by one statement, for many conversations at once.

Waiting for the server's disk is what takes time, and one wait serves all. One group is under way at a time; meanwhile
the next one gathers. A caller that is cancelled while its append waits takes it out; later, the append goes on to its
end. A group that came second, or that the server refused, is taken apart: each append is then placed anew for itself.

A connection that breaks leaves an append in doubt. The same append again is written once, so it is repeated when the
server is back; only if the server stays away it is the caller's turn (`AppendUncertain`).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import OrderedDict, deque
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

import asyncpg

from timeline.errors import InvalidBlock, StoreBusy, TimelineError
from timeline.ports import Appended

from .appending import (
    MOST_EVENTS,
    Group,
    Lost,
    append_within,
    at_the_end,
    needs_transaction,
    open_together,
    opens,
    write,
)
from .database import ATTEMPTS, PATIENCE
from .failures import AGAIN, DRIVER_ERRORS, is_away, store_error
from .log_head import Head, heads_of, shared_paths

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from ..codec import Batch
    from .connections import Connection
    from .database import Database

log: Final = logging.getLogger("timeline.store")
MOST_TOGETHER: Final = 128
"""Most appends of one group."""
MOST_CHARACTERS: Final = 512 * 1024
"""Characters after which no more appends join a group."""
MOST_WAITING: Final = 64 * 1024 * 1024
"""Characters that may wait in the queue; what comes behind is refused."""
LONGEST_WAIT: Final = 30.0
"""Seconds after which an append that still waits is refused."""
MOST_HEADS: Final = 4_096
"""Logs of which the head is remembered: a guess, which the compare-and-set checks."""
_SEVERAL: Final = 2
"""Conversations from which on they are opened together."""
_ROUNDS: Final = 5
"""Times that a group that came second is tried as a group."""
_LONGEST_PAUSE: Final = 0.05


@dataclass(slots=True)
class Figures:
    """What the queue of a store did and holds.

    Attributes:
        waiting: appends in the queue.
        waiting_characters: characters of their payloads and values.
        groups: groups that were committed; ``appends`` of the appends in them.
        appends: see ``groups``.
        lost: appends that came second and were placed again.
    """

    waiting: int = 0
    waiting_characters: int = 0
    groups: int = 0
    appends: int = 0
    lost: int = 0


class Uncertain(Exception):
    """The connection broke while an append was under way, and the same append again has not settled what became of it.

    The server did not come back, or refuses what it may have taken before: one that took over, say, and only reads.
    """

    def __init__(self, error: BaseException) -> None:
        away = not isinstance(error, Lost) and is_away(error)
        then = error if away else f"and the same append again failed, {str(error) or 'other writers were first'}"
        super().__init__(f"the connection broke{': ' if away else ', '}{then}")


class _Job(NamedTuple):
    future: asyncio.Future[Appended]
    batch: Batch
    size: int
    since: float


class Writer:
    """Queues the appends of a store and commits them; ``told`` is called with each one that was written."""

    def __init__(self, database: Database, told: Callable[[Batch, Appended], None]) -> None:
        self._database, self._told = database, told
        self._jobs: deque[_Job] = deque()
        self._heads: OrderedDict[str, Head] = OrderedDict()
        self._more = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._stopping = False
        self._reached = False
        """Whether the group under way has had a connection: from then on the server may have written it."""
        self.figures = Figures()

    def append(self, batch: Batch) -> asyncio.Future[Appended]:
        """Queue an append; the future is done once the server has committed it.

        Raises:
            StoreBusy: too much waits already.
            InvalidBlock: it has more events than one transaction can place.
        """
        where, size = self._database.where, batch.size
        if len(batch.drafts) > MOST_EVENTS:
            raise InvalidBlock("events", f"one append holds at most {MOST_EVENTS:,} events, not {len(batch.drafts):,}")
        if self._jobs and self.figures.waiting_characters + size > MOST_WAITING:
            raise StoreBusy(
                f"{where}: {self.figures.waiting:,} appends with {self.figures.waiting_characters:,} characters wait"
                " for the server. Nothing was written; wait a little, then try again."
            )
        future: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()
        self._jobs.append(_Job(future, batch, size, monotonic()))
        self.figures.waiting += 1
        self.figures.waiting_characters += size
        self._more.set()
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())
        return future

    async def stop(self) -> None:
        """Commit what waits, then end."""
        self._stopping = True
        self._more.set()
        if self._running is not None:
            await self._running

    async def _run(self) -> None:
        while self._jobs or not self._stopping:
            if not self._jobs:
                self._more.clear()
                await self._more.wait()
                continue
            if group := self._gather():
                await self._answer(group)

    def _gather(self) -> list[_Job]:
        """Take the appends that wait longest out of the queue, up to the limits."""
        group: list[_Job] = []
        size, now = 0, monotonic()
        while self._jobs and len(group) < MOST_TOGETHER and size < MOST_CHARACTERS:
            job = self._jobs.popleft()
            self.figures.waiting -= 1
            self.figures.waiting_characters -= job.size
            if job.future.done():
                continue
            if now - job.since > LONGEST_WAIT:
                refusal = f"{self._database.where}: the append waited for {now - job.since:.0f} seconds."
                job.future.set_exception(StoreBusy(f"{refusal} Nothing was written; try again."))
                continue
            group.append(job)
            size += job.size
        return group

    async def _answer(self, group: list[_Job]) -> None:
        batches = [job.batch for job in group]
        try:
            outcomes: Sequence[Appended | BaseException] = await self._commit(batches)
        except Exception as error:  # noqa: BLE001 - it belongs to all who wait for the group
            outcomes = [error] * len(group)
        self.figures.groups += 1
        self.figures.appends += len(group)
        for job, outcome in zip(group, outcomes, strict=True):
            if job.future.done():
                continue
            if isinstance(outcome, BaseException):
                job.future.set_exception(outcome)
            else:
                job.future.set_result(outcome)
        for job, outcome in zip(group, outcomes, strict=True):
            if isinstance(outcome, Appended) and not outcome.repeated:
                self._told(job.batch, outcome)

    async def _commit(self, batches: Sequence[Batch]) -> list[Appended | BaseException]:
        """Append batches together as far as that goes, the others one by one in their order."""
        done: dict[int, Appended] = {}
        away = self._reached = False
        try:
            done |= await self._opened(batches)
        except (Lost, asyncpg.UniqueViolationError):
            log.debug("%s: conversations are opened one by one", self._database.where)
        except DRIVER_ERRORS as error:
            away = is_away(error)
        for _ in range(0 if away else _ROUNDS):
            left = [number for number in range(len(batches)) if number not in done]
            if not left:
                break
            try:
                written, tried = await self._together([batches[number] for number in left])
            except asyncpg.UniqueViolationError:
                break
            except DRIVER_ERRORS as error:
                away = is_away(error)
                break
            done |= {left[number]: appended for number, appended in written.items()}
            if len(written) == tried:
                break
            self.figures.lost += tried - len(written)
        in_doubt = away and self._reached
        return [
            done[number] if number in done else await self._alone(batch, in_doubt=in_doubt)
            for number, batch in enumerate(batches)
        ]

    async def _opened(self, batches: Sequence[Batch]) -> dict[int, Appended]:
        """Open new conversations together, by the first batch of each, where there are several; return the places."""
        first: dict[str, int] = {}
        for number, batch in enumerate(batches):
            if batch.conversation not in self._heads:
                first.setdefault(batch.conversation, number)
        if len(first) < _SEVERAL:
            return {}
        async with self._database.begun() as connection:
            self._reached = True
            for conversation, head in (await heads_of(connection, first)).items():
                self._remember(conversation, head)
            new = [number for conversation, number in first.items() if conversation not in self._heads]
            new = [number for number in new if opens(batches[number])]
            if len(new) < _SEVERAL or sum(len(batches[number].drafts) for number in new) > MOST_EVENTS:
                return {}
            opened = await open_together(connection, [batches[number] for number in new])
        return {new[place]: appended for place, appended in opened.items()}

    async def _together(self, batches: Sequence[Batch]) -> tuple[dict[int, Appended], int]:
        """Write the batches that go to the ends of their logs; return their places, and how many were tried."""
        async with self._connection() as connection:
            unknown = {batch.conversation for batch in batches if batch.conversation not in self._heads}
            if unknown:
                for conversation, head in (await heads_of(connection, unknown)).items():
                    self._heads[conversation] = head
            group, numbers = self._grouped(batches, await self._in_shared_past(connection, batches))
            if not numbers:
                return {}, 0
            moved = group.moves
            try:
                written = await self._written(connection, group)
            except BaseException:
                for conversation in moved:
                    self._heads.pop(conversation, None)
                raise
        won = {group.placed[number].batch.conversation for number in written}
        for conversation, move in moved.items():
            if conversation in won:
                self._remember(conversation, move.head)
            else:
                self._heads.pop(conversation, None)
        return {numbers[number]: appended for number, appended in written.items()}, len(numbers)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        if self._database.address.pgbouncer:
            async with self._database.begun() as connection:
                self._reached = True
                yield connection
        else:
            async with self._database.connection() as connection:
                self._reached = True
                yield connection

    async def _written(self, connection: Connection, group: Group) -> dict[int, Appended]:
        if connection.is_in_transaction() or not needs_transaction(placed.batch for placed in group.placed):
            return await write(connection, group)
        async with connection.transaction(isolation="read_committed"):
            return await write(connection, group)

    async def _in_shared_past(self, connection: Connection, batches: Sequence[Batch]) -> set[int]:
        """Return the numbers of the batches with a path that is in use in what their fork shares with its parent."""
        found = set()
        for number, batch in enumerate(batches):
            head = self._heads.get(batch.conversation)
            if head is not None and await shared_paths(connection, batch, head):
                found.add(number)
        return found

    def _grouped(self, batches: Sequence[Batch], taken: set[int]) -> tuple[Group, dict[int, int]]:
        """Put the batches that go to the ends of their logs into a group; return their numbers by place in it too."""
        group, numbers = Group(), dict[int, int]()
        heads: dict[str, Head | None] = {}
        for number, batch in enumerate(batches):
            conversation = batch.conversation
            head = heads[conversation] if conversation in heads else self._heads.get(conversation)
            if (
                number in taken
                or not at_the_end(batch, head)
                or head is None
                or len(group.rows) + len(batch.drafts) > MOST_EVENTS
            ):
                heads[conversation] = None  # what comes behind it waits for its turn as well
                continue
            numbers[len(group.placed)] = number
            group.add(batch, head)
            heads[conversation] = group.moves[conversation].head
        return group, numbers

    def _remember(self, conversation: str, head: Head) -> None:
        self._heads[conversation] = head
        self._heads.move_to_end(conversation)
        while len(self._heads) > MOST_HEADS:
            self._heads.popitem(last=False)

    async def _alone(self, batch: Batch, *, in_doubt: bool) -> Appended | BaseException:
        """Append one batch in a transaction of its own, again where another writer or a broken connection was first.

        Returns the error that refused it.
        """
        self._heads.pop(batch.conversation, None)
        attempt, until = 0, monotonic() + PATIENCE
        while True:
            started = False
            try:
                async with self._database.begun() as connection:
                    started = True
                    appended = await append_within(connection, batch)
                return replace(appended, repeated=False) if in_doubt else appended
            except TimelineError as refusal:
                return refusal
            except (Lost, *DRIVER_ERRORS) as error:
                away = not isinstance(error, Lost) and is_away(error)
                in_doubt = in_doubt or (away and started)
                attempt += not away
                if attempt >= ATTEMPTS or (away and monotonic() > until) or not (away or _again(error)):
                    return self._given_up(error, in_doubt=in_doubt)
                self.figures.lost += isinstance(error, Lost)
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
