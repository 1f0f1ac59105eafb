"""Append in PostgreSQL: place batches behind the heads of their logs, and write them by one compare-and-set.

An append says which head it saw. The statement moves the row of a conversation on from that head, and writes the events
only where it did: the second one writes nothing, and looks again. Why it is not a lock is in ADR 0065.
"""

from __future__ import annotations

from operator import attrgetter, sub
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.errors import StoreCorrupt, VersionConflict
from timeline.events.chain import START
from timeline.frozen import sha256_hex
from timeline.ports import Appended, Expected

from .. import append_rules
from ..digests import rows_of
from ..sealing import Unsealed
from ..waypoint_bodies import waypoint_columns
from . import digest_rows, event_rows, statements
from .create import NO_META
from .escaping import escaped, key_of, text_as_stored
from .event_rows import given, shared, timed
from .log_head import NOWHERE, Head, check_not_erased, check_snapshot, fork_off, heads_of, known

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..codec import Batch
    from ..sealing import Sealed
    from .connections import Connection

MOST_EVENTS: Final = 2 ** (statements.ORDINALS - 1)
"""Events of one statement: the other half of a transaction's positions is for appends that need a higher one."""
_HALF: Final = 2 ** (statements.ORDINALS - 1)
_WHOLE: Final = 2**statements.ORDINALS
_KEY: Final = attrgetter("key")
_new: Final = tuple.__new__
"""Makes a `PlacedBatch` in a third of the time that its constructor takes."""


class Lost(Exception):
    """Another writer was first: the head that the append saw is not the newest one. Nothing was written."""


class PlacedBatch(NamedTuple):
    """A batch, the key of its log, and the versions of its events.

    Its ``number`` is the caller's name for it; ``last`` is the place of its last event's row.
    """

    number: int
    batch: Batch
    key: int
    first: int
    version: int
    last: int


class AppendGroup:
    """Batches that one statement writes, with its parameters.

    Attributes:
        placed: the batches, each with its place.
        heads: the head of each conversation, which moves on with what is put behind it.
        events: the events of the batches.
        needs_transaction: something comes with the events which the statement does not write.
    """

    def __init__(self) -> None:
        self.placed: list[PlacedBatch] = []
        self.heads: dict[str, Head] = {}
        self.events: Unsealed = Unsealed()
        self.needs_transaction: bool = False
        self._keys: list[int] = []
        """The key of each event's conversation."""
        self._seen: dict[int, int] = {}
        """The version of each conversation that the statement expects, by key."""

    def add(self, batch: Batch, head: Head, number: int = 0) -> None:
        """Put a batch behind the head of its log, which moves on: its link once the group has parameters."""
        key, after, count = head.key, head.version, len(batch.drafts)
        if key not in self._seen:
            self.heads[batch.conversation], self._seen[key] = head, after
        self.events.add(batch, after)
        self._keys += [key] * count
        head.version = version = after + count
        if batch.values or batch.snapshot or batch.openings or batch.compactions or batch.redacted:
            self.needs_transaction = True
        self.placed.append(_new(PlacedBatch, (number, batch, key, after + 1, version, len(self._keys) - 1)))

    def of_one(self) -> list[Any]:
        """Return the parameters of `statements.APPEND_ONE` but the last one, of a group with one event."""
        (head,) = self.heads.values()
        seen = [head.key, self._seen[head.key], head.link, head.first_version]
        sealed = self._sealed()
        moved = [head.version, self.events.drafts[0].at, head.link, self._window_starts().get(head.key)]
        return [*seen, *moved, *event_rows.of_one(self.events, sealed)]

    def parameters(self) -> list[Any]:
        """Return the parameters of `statements.APPEND` but the last one: the columns of its two tables."""
        # By key: two statements that move the same rows then take them in the same order.
        heads = sorted(self.heads.values(), key=_KEY)
        keys = [head.key for head in heads]
        seen = [self._seen[key] for key in keys]
        seen_links = b"".join([head.link for head in heads])
        sealed = self._sealed()
        firsts, first = shared([head.first_version for head in heads])
        counts, count = shared(list(map(sub, [head.version for head in heads], seen)))
        newest = dict(zip(self._keys, [draft.at for draft in self.events.drafts], strict=True))
        ats, times = timed([newest[key] for key in keys])
        starts = list(map(self._window_starts().get, keys)) if self.needs_transaction else ()
        rows = [keys, seen, seen_links, firsts, counts, ats, b"".join([head.link for head in heads]), given(starts)]
        *of_events, event_times = event_rows.parameters(self.events, sealed, self._keys)
        return [*rows, *of_events, first, count, times, event_times]

    def _window_starts(self) -> dict[int, int]:
        """Return where the windows of the conversations that get a snapshot start from now on, by key."""
        snapshots = [(placed.key, placed.batch.snapshot) for placed in self.placed]
        return {key: snapshot.window_start for key, snapshot in snapshots if snapshot is not None}

    def _sealed(self) -> Sealed:
        """Seal the events, once, and move the heads on to their links."""
        links = {conversation: head.link for conversation, head in self.heads.items()}
        sealed = self.events.seal(links)
        for conversation, head in self.heads.items():
            head.link = links[conversation]
        return sealed


def at_the_end(batch: Batch, head: Head) -> bool:
    """Return whether a batch goes behind the head of its log without a closer look: it is where it is expected."""
    if not batch.drafts or (batch.snapshot is not None and head.first_version > 1):
        return False
    if batch.expected is Expected.ANY:
        return True
    try:
        return append_rules.starting_version(batch, head) == head.version
    except VersionConflict:
        return False


def opens(batch: Batch) -> bool:
    """Return whether a batch opens its conversation, if that does not exist, without a look at another one."""
    return bool(batch.drafts) and batch.fork is None and batch.expected in {Expected.ANY, Expected.NO_STREAM, 0}


async def write(connection: Connection, group: AppendGroup, least: int = 0) -> dict[int, Appended]:
    """Write a group; return the places of its batches by their numbers, without those that came second.

    It has to be the first statement of its transaction that writes; otherwise give ``least``.

    Args:
        connection: in a transaction, unless there are only events to write.
        group: the batches.
        least: the lowest position that the events may have.

    Raises:
        asyncpg.UniqueViolationError: an id or a path is in use; nothing of the group was written.
        StoreCorrupt: the store has lost what positions are made of; nothing was written.
    """
    is_one = len(group.events.drafts) == 1
    if is_one:
        row = await connection.fetchrow(statements.APPEND_ONE, *group.of_one(), least)
    else:
        row = await connection.fetchrow(statements.APPEND, *group.parameters(), least)
    if row is None:
        raise StoreCorrupt(f"{NO_META}. Nothing was written.")
    begin, moved = row
    won = {moved} if is_one else set(moved or ())
    written = [placed for placed in group.placed if placed.key in won]
    if group.needs_transaction:
        await _write_beside(connection, written)
    return {number: Appended(first, version, begin + last) for number, _, _, first, version, last in written}


async def _write_beside(connection: Connection, written: Sequence[PlacedBatch]) -> None:
    """Write what comes with events, in the transaction of their append: values, snapshots, and what is derived."""
    values = {hash_: text for placed in written for hash_, text in placed.batch.values.items()}
    if values:
        # In order, so that two transactions never wait for each other's texts.
        hashes = sorted(values)
        await connection.execute(statements.INSERT_VALUES, hashes, [text_as_stored(values[hash_]) for hash_ in hashes])
    for placed in written:
        batch, key = placed.batch, placed.key
        if batch.snapshot is not None:
            body = batch.snapshot.body
            await connection.execute(statements.REPLACE_SNAPSHOT, key, batch.snapshot.version, body, sha256_hex(body))
            waypoint = waypoint_columns(batch.conversation, batch.snapshot)
            await connection.execute(statements.ADD_WAYPOINT, key, *waypoint)
        for opening in batch.openings:
            if opening.opens(placed.first):
                await connection.execute(statements.SET_OPENING, escaped(opening.title), opening.parent, key)
        if gone := [version for number, version in batch.redacted if version < placed.first + number]:
            await connection.execute(statements.UNPROVE_FACTS, key, gone)
            await connection.execute(statements.FORGET_FACTS, key, gone)
        for number, payload in batch.compactions:
            row = rows_of(placed.first + number, batch.drafts[number].at, payload)
            await digest_rows.write(connection, key, row)


async def take_turn(connection: Connection, conversation: str) -> None:
    """Wait, in the open transaction, until no other writer that lost a compare-and-set to a conversation tries again.

    The lock is no row's: it does not give the transaction its number, which would be lower than that of the event that
    the append goes behind.
    """
    await connection.execute(statements.IN_TURN, key_of(conversation))


async def append_within(connection: Connection, batch: Batch, least: int = 0) -> Appended:
    """Append one batch in the open transaction, after a look at all that may keep it from being the next.

    Args:
        connection: has the transaction.
        batch: the batch.
        least: the lowest position that its events may have, behind those that the transaction appended before.

    Raises:
        Lost: another writer was first.
        TimelineError: the batch was refused, see `EventStore.append`.
        asyncpg.PostgresError: the database failed.
    """
    head = (await heads_of(connection, [batch.conversation])).get(batch.conversation)
    if head is None:
        await check_not_erased(connection, batch.conversation)
        head = Head()
    if not batch.drafts:
        return await _nothing(connection, head)
    after = append_rules.starting_version(batch, head)
    if after < head.version:
        repeated = append_rules.repetition(batch, await known(connection, batch, head, after), after)
        return await _lasting(connection, head, repeated)
    opens_fork = batch.fork is not None and head.key == NOWHERE
    parent_first = 0
    if batch.fork is not None and opens_fork:
        head, parent_first = await fork_off(connection, batch.fork)
    await check_snapshot(connection, batch, head)
    found = await known(connection, batch, head, head.version)
    if found_again := append_rules.collision(batch, found):
        return await _lasting(connection, head, found_again)
    if head.key == NOWHERE:
        head.key = await _open(connection, batch, head)
        # Again behind the insert, which may have waited for an erasure of the same id.
        await check_not_erased(connection, batch.conversation)
        if opens_fork and await connection.fetchval(statements.HOLD_PARENT, head.parent_key) != parent_first:
            raise Lost  # a removal that did not see the fork took what it was to share
    else:
        least = max(least, await _behind(connection, await _position(connection, head)))
    group = AppendGroup()
    group.add(batch, head)
    written = await write(connection, group, least)
    if not written:
        raise Lost
    return written[0]


async def _lasting(connection: Connection, head: Head, repeated: Appended) -> Appended:
    """Return the place of an append that is there already, of which the commit may not have been waited for.

    A server that was stopped while it waited for its standby shows what the standby does not have.
    """
    await connection.execute(statements.WRITTEN_BEFORE, head.key)
    return repeated


async def _nothing(connection: Connection, head: Head) -> Appended:
    return Appended(head.version + 1, head.version, await _position(connection, head))


async def _position(connection: Connection, head: Head) -> int:
    """Return the position of a log's newest event; 0 if it has none of its own."""
    rows = await connection.fetch(statements.STORED_BETWEEN, head.key, head.version, head.version)
    return int(rows[0][2]) if rows else 0


async def _behind(connection: Connection, position: int) -> int:
    """Return the lowest position for an event that follows one, when its transaction may have the lower number.

    A transaction that wrote before it looked at the head has its number from then. Its events then take positions of
    the later transaction's upper half: nobody reads beyond a transaction that is still running, so none is missed.
    """
    begin = position - position % _WHOLE
    # One after the other: two of them behind the same transaction would choose the same places.
    await connection.execute(statements.ALONE_BEHIND, begin)
    newest = await connection.fetchval(statements.NEWEST_BETWEEN, begin + _HALF, begin + _WHOLE)
    return begin + _HALF if newest is None else int(newest) + 1


async def open_together(connection: Connection, batches: Mapping[int, Batch]) -> dict[int, Appended]:
    """Open conversations that are no forks, by the first append of each; return the places of these by their number.

    The transaction has its number before it writes the events, which no event comes before in a new conversation. What
    exists by now is left out.

    Raises:
        Lost: one of the ids was erased; nothing was written.
    """
    keys = [key_of(batch.conversation) for batch in batches.values()]
    rows = await connection.fetch(
        statements.INSERT_CONVERSATIONS,
        keys,
        [escaped(batch.conversation) for batch in batches.values()],
        [escaped(batch.title) for batch in batches.values()],
        [batch.parent for batch in batches.values()],
        [batch.drafts[0].at for batch in batches.values()],
        START,
    )
    # Behind the insert, which may have waited for an erasure of the same id.
    if await connection.fetchval(statements.ANY_ERASED, keys):
        raise Lost
    opened = {row[0]: row[1] for row in rows}
    group = AppendGroup()
    for key, (number, batch) in zip(keys, batches.items(), strict=True):
        if key in opened:
            group.add(batch, Head(opened[key]), number)
    return await write(connection, group) if group.placed else {}


async def _open(connection: Connection, batch: Batch, head: Head) -> int:
    key: int | None = await connection.fetchval(
        statements.INSERT_CONVERSATION,
        key_of(batch.conversation),
        escaped(batch.conversation),
        head.version,
        escaped(batch.title),
        batch.parent,
        batch.drafts[0].at,
        head.parent_key,
        head.base,
        head.first_version,
        head.link,
    )
    if key is None:
        raise Lost
    return key
