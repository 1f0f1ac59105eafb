"""The queue of appends: what waits together is committed by one statement, for many conversations at once.

Waiting for the server's disk is what takes time, and one wait serves all. Of each conversation one append, or some in a
row, are under way at a time, and the others wait for it. Where many conversations wait, they are divided into two
groups, so that one is encoded while the server writes the other; a few go together, since a statement for each of them
would keep the server longer than one for all.

A caller that is cancelled while its append waits takes it out; later, the append goes on to its end. A server that does
not answer is waited for, with a word about it; what waits behind that for too long is refused.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from itertools import chain
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.errors import InvalidBlock, StoreBusy

from .appending import MOST_EVENTS
from .committing import Committer, Heads
from .database import SLOW
from .parts import APPENDERS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from timeline.ports import Appended

    from ..codec import Batch
    from .database import Database

FEWEST: Final = 8
"""Conversations that have to wait for a group to begin beside another one."""
MOST_TOGETHER: Final = 128
"""Most appends of one group."""
MOST_CHARACTERS: Final = 512 * 1024
"""Characters after which no more appends join a group."""
MOST_BYTES: Final = 1_000_000_000
"""Bytes of one append, as many as a text of SQLite has. A message to the server holds 1 GiB, with what is sent beside
them. At a longer one the server breaks the connection, and the append could not be told from one that is in doubt."""
MOST_WAITING: Final = 64 * 1024 * 1024
"""Characters that may wait in the queue; what comes behind is refused."""
LONGEST_WAIT: Final = 30.0
"""Seconds after which an append that still waits is refused, and a store that closes gives up what is under way."""
_LONGEST_CHARACTER: Final = 4
"""Bytes of a character at most."""
_LOOK: Final = 1.0
"""Seconds between two looks at what waits."""


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


class _Job(NamedTuple):
    future: asyncio.Future[Appended]
    batch: Batch
    size: int
    since: float


_new: Final = tuple.__new__
"""Makes a `_Job` in a third of the time that its constructor takes."""


def _bytes_of(batch: Batch) -> int:
    """Return how many bytes an append writes."""
    payloads = (draft.payload for draft in batch.drafts)
    return sum(len(text.encode()) for text in chain(payloads, batch.values.values()))


class Writer:
    """Queues the appends of a store and commits them; ``on_written`` is called with those that were written."""

    def __init__(self, database: Database, on_written: Callable[[Sequence[tuple[Batch, Appended]]], None]) -> None:
        self._database, self._where, self._on_written = database, database.where, on_written
        self._loop = asyncio.get_running_loop()
        heads = Heads()
        self._idle = [Committer(database, heads) for _ in range(APPENDERS)]
        self._jobs: dict[str, list[_Job]] = {}
        """What waits, by conversation. A conversation that is under way has an entry, with or without jobs.

        Lists, as most hold one job: a `deque` has room for 64, and takes five times as long to make."""
        self._turns: deque[str] = deque()
        """The conversations that wait and are not under way, in the order of their turns."""
        self._under_way = 0
        """Conversations that are under way."""
        self._answered = 0
        """Conversations that were answered, and may append again once their callers have had their turn."""
        self._beginning = False
        """Whether a task is about to take a group."""
        self._running: set[asyncio.Task[None]] = set()
        self._under_way_since: dict[Committer, float] = {}
        """Those that wait for the server, each with the time at which its group began."""
        self._look: asyncio.TimerHandle | None = None
        self.figures: Figures = Figures()

    def append(self, batch: Batch) -> asyncio.Future[Appended]:
        """Queue an append; the future is done once the server has committed it.

        Raises:
            StoreBusy: too much waits already.
            InvalidBlock: it has more events than one transaction can place, or more bytes than a message holds.
        """
        figures, size = self.figures, batch.size
        if len(batch.drafts) > MOST_EVENTS:
            raise InvalidBlock("events", f"one append holds at most {MOST_EVENTS:,} events, not {len(batch.drafts):,}")
        if size > MOST_BYTES // _LONGEST_CHARACTER and (bytes_ := _bytes_of(batch)) > MOST_BYTES:
            few = f"one append holds at most {MOST_BYTES:,} bytes on a server, not {bytes_:,}; split the block"
            raise InvalidBlock("events", few)
        if figures.waiting and figures.waiting_characters + size > MOST_WAITING:
            raise StoreBusy(
                f"{self._where}: {figures.waiting:,} appends with {figures.waiting_characters:,} characters wait for"
                " the server. Nothing was written; wait a little, then try again."
            )
        future: asyncio.Future[Appended] = self._loop.create_future()
        job = _new(_Job, (future, batch, size, monotonic()))
        jobs = self._jobs.get(batch.conversation)
        if jobs is None:
            self._jobs[batch.conversation] = [job]
            self._turns.append(batch.conversation)
        else:
            jobs.append(job)
        figures.waiting += 1
        figures.waiting_characters += size
        if self._idle and not self._beginning:
            self._begin()
        if self._look is None:
            self._look = self._loop.call_later(_LOOK, self._look_around)
        return future

    async def stop(self) -> None:
        """Commit what waits, then end; what the server has not answered by then is given up."""
        until = monotonic() + LONGEST_WAIT
        while self._running:
            _, unanswered = await asyncio.wait(self._running, timeout=max(0.0, until - monotonic()))
            if unanswered:
                for committer in self._under_way_since:
                    committer.give_up()
                await asyncio.wait(self._running)
        if self._look is not None:
            self._look.cancel()

    def _look_around(self) -> None:
        """Refuse what waits for too long, and say where the server has not answered; again while anything waits."""
        self._look = None
        now = monotonic()
        for jobs in self._jobs.values():
            out = 0
            for job in jobs:
                if not job.future.done() and now - job.since <= LONGEST_WAIT:
                    break
                self._drop(job, now)
                out += 1
            del jobs[:out]
        since = min(self._under_way_since.values(), default=now)
        if now - since >= SLOW:
            self._database.say_unanswered(f"an append, behind which {self.figures.waiting:,} wait,", now - since)
        if self._jobs:
            self._look = self._loop.call_later(_LOOK, self._look_around)

    def _drop(self, job: _Job, now: float) -> None:
        """Leave out a job whose caller went away, or refuse it, as it waited too long."""
        if not job.future.done():
            refusal = f"{self._where}: the append waited for {now - job.since:.0f} seconds."
            job.future.set_exception(StoreBusy(f"{refusal} Nothing was written; try again."))
        self.figures.waiting -= 1
        self.figures.waiting_characters -= job.size

    def _begin(self) -> None:
        """Begin a group if it is its turn. It gathers a moment later, so that all who append at once are in it."""
        if not self._beginning and self._idle and self._share():
            self._beginning = True
            task = asyncio.create_task(self._run(self._idle.pop()))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    def _share(self) -> int:
        """Return how many conversations the next group takes; 0 while they wait for the group that is under way."""
        waiting = len(self._turns)
        if self._under_way and waiting < max(FEWEST, self._under_way):
            return 0
        active = waiting + self._under_way + self._answered
        return waiting if active < APPENDERS * FEWEST else min(waiting, -(-active // APPENDERS))

    async def _run(self, committer: Committer) -> None:
        """Commit groups until none is due."""
        try:
            while share := self._share() or await self._next_share():
                group = self._gather(share)
                self._beginning = False
                self._begin()
                if group:
                    await self._answer(committer, group)
        finally:
            self._beginning = False
            self._idle.append(committer)

    async def _next_share(self) -> int:
        """Return the share once those who were just answered have appended again: that takes no task of its own."""
        self._beginning = True
        await asyncio.sleep(0)
        return self._share()

    def _gather(self, share: int) -> list[_Job]:
        """Take the appends of so many conversations out of the queue, up to the limits."""
        group: list[_Job] = []
        size, now = 0, monotonic()
        for _ in range(share):
            if len(group) >= MOST_TOGETHER or size >= MOST_CHARACTERS:
                break
            conversation = self._turns.popleft()
            jobs = self._jobs[conversation]
            taken, out = len(group), 0
            for job in jobs:
                if len(group) >= MOST_TOGETHER or size >= MOST_CHARACTERS:
                    break
                out += 1
                if job.future.done() or now - job.since > LONGEST_WAIT:
                    self._drop(job, now)
                    continue
                group.append(job)
                size += job.size
            del jobs[:out]
            if len(group) > taken:
                self._under_way += 1
            else:
                del self._jobs[conversation]
        self.figures.waiting -= len(group)
        self.figures.waiting_characters -= size
        return group

    async def _answer(self, committer: Committer, group: list[_Job]) -> None:
        batches = [job.batch for job in group]
        lost = committer.lost
        self._under_way_since[committer] = monotonic()
        try:
            outcomes: Sequence[Appended | BaseException] = await committer.commit(batches)
        except Exception as error:  # noqa: BLE001 - it belongs to all who wait for the group
            outcomes = [error] * len(group)
        finally:
            del self._under_way_since[committer]
            answered = self._give_turns(batches)
        self.figures.groups += 1
        self.figures.appends += len(group)
        self.figures.lost += committer.lost - lost
        written: list[tuple[Batch, Appended]] = []
        for (future, batch, _, _), outcome in zip(group, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                if not future.done():
                    future.set_exception(outcome)
                continue
            if not future.done():
                future.set_result(outcome)
            if not outcome.repeated:
                written.append((batch, outcome))
        if answered >= FEWEST:
            self._answered += answered
            self._loop.call_soon(self._had_their_turn, answered)  # behind those whom their futures wake
        if written:
            self._on_written(written)

    def _had_their_turn(self, answered: int) -> None:
        self._answered -= answered

    def _give_turns(self, batches: Sequence[Batch]) -> int:
        """Let the conversations of a group that has ended wait for their next turns; return how many have no more."""
        ended = dict.fromkeys([batch.conversation for batch in batches])
        self._under_way -= len(ended)
        answered = 0
        for conversation in ended:
            if self._jobs[conversation]:
                self._turns.append(conversation)
            else:
                del self._jobs[conversation]
                answered += 1
        return answered
