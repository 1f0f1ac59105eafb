"""The heads of stored logs, as an append finds them, and what a log holds of an append's events, ids and paths."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from timeline.errors import ConversationErased
from timeline.events.chain import START

from .. import append_rules
from . import statements
from .escaping import key_of, unescaped

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ..codec import Batch, ForkPoint
    from .connections import Connection

NOWHERE: Final = 0
"""The key of a conversation that does not exist; no stored one has it."""


@dataclass(slots=True)
class Head:
    """The head of a conversation's log: what the next append goes behind.

    Attributes:
        key: the key of its row; `NOWHERE` if there is none.
        version: its newest version.
        base: the last version that it shares with its parent.
        parent_key: the key of its parent, of a fork.
        first_version: all events from this version on are there.
        link: the link of its newest event.
    """

    key: int = NOWHERE
    version: int = 0
    base: int = 0
    parent_key: int | None = None
    first_version: int = 1
    link: bytes = START


@dataclass(slots=True)
class ReadHead:
    """A log of which the answers that one append asks for are read already; see `append_rules.LogHead`."""

    version: int
    base: int
    stored: dict[int, tuple[str, str, int]] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    paths: set[str] = field(default_factory=set)

    def events(self, first: int, last: int) -> Sequence[tuple[str, str, int]]:
        """Return ``(event id, checksum, position)`` of a range of versions."""
        return [self.stored[version] for version in range(first, last + 1) if version in self.stored]

    def versions_of(self, ids: Collection[str]) -> dict[str, int]:
        """Return the versions of the ids that the log holds."""
        return {id_: self.ids[id_] for id_ in ids if id_ in self.ids}

    def taken(self, paths: Collection[str]) -> set[str]:
        """Return the paths that are in use, shared ones included."""
        return {path for path in paths if path in self.paths}


async def heads_of(connection: Connection, conversations: Collection[str]) -> dict[str, Head]:
    """Read the heads of conversations; those that do not exist are left out."""
    by_key = {key_of(conversation): conversation for conversation in conversations}
    rows = await connection.fetch(statements.HEADS, list(by_key))
    return {
        by_key[id_key]: Head(key, version, base, parent_key, first_version, link or START)
        for id_key, key, version, base, parent_key, first_version, link in rows
    }


async def check_not_erased(connection: Connection, conversation: str) -> None:
    """Check that a conversation that does not exist was not erased.

    Raises:
        ConversationErased: it was.
    """
    erased = await connection.fetchrow(statements.ERASED, key_of(conversation))
    if erased is not None:
        at, reason = erased
        raise ConversationErased(conversation, at, unescaped(reason))


async def fork_off(connection: Connection, fork: ForkPoint) -> tuple[Head, int]:
    """Return the head of a conversation that is about to be opened behind the versions that it shares with its parent.

    With it comes the parent's first version, which shows afterwards whether a removal came between.

    Raises:
        ConversationNotFound, ConversationErased, HistoryUnavailable: as for `append_rules.check_fork`.
    """
    parent = (await heads_of(connection, [fork.parent])).get(fork.parent)
    if parent is None:
        await check_not_erased(connection, fork.parent)
        parent = Head()
    append_rules.check_fork(fork, parent.version)
    link = await connection.fetchval(statements.LINK_AT, parent.key, fork.version)
    first_version = 1
    if parent.first_version > 1:
        first_version = await newest_scavenged(connection, parent.key, fork.version) + 1
    return Head(NOWHERE, fork.version, fork.version, parent.key, first_version, link or START), parent.first_version


async def newest_scavenged(connection: Connection, key: int | None, until: int) -> int:
    """Return the highest version up to ``until`` that was scavenged, shared ones included; 0 for none."""
    return int(await connection.fetchval(statements.NEWEST_SCAVENGED, key, until))


async def check_snapshot(connection: Connection, batch: Batch, head: Head) -> None:
    """Check that the events that an append's snapshot needs are there.

    Raises:
        HistoryUnavailable: as for `append_rules.check_snapshot`.
    """
    opens_fork = head.key == NOWHERE and head.base > 0
    if head.first_version > 1 and (batch.snapshot is not None or opens_fork):
        newest = head.first_version - 1
        if not opens_fork:
            newest = await newest_scavenged(connection, head.key, head.version)
        append_rules.check_snapshot(batch, head.first_version, head.version, newest)


async def shared_paths(connection: Connection, batch: Batch, head: Head) -> set[str]:
    """Return the paths of an append that are in use in the versions that a fork shares with its parent."""
    return await _in_use(connection, batch, head.parent_key, head.base) if head.base and batch.paths else set()


async def known(connection: Connection, batch: Batch, head: Head, after: int) -> ReadHead:
    """Read what a log holds of an append that would come behind version ``after``."""
    found = ReadHead(head.version, head.base)
    if head.key != NOWHERE:
        rows = await connection.fetch(statements.VERSIONS_OF_IDS, head.key, batch.ids)
        found.ids = dict(row[:2] for row in rows)
    # An append that the log may hold at the end was written where its first event is.
    start = found.ids.get(batch.ids[0], after + 1) if after == head.version else after + 1
    if head.key != NOWHERE:
        last = start + len(batch.drafts) - 1
        rows = await connection.fetch(statements.STORED_BETWEEN, head.key, start, last)
        found.stored = {version: (id_, checksum, position) for id_, checksum, position, version in rows}
    of = (head.parent_key, head.base) if head.key == NOWHERE else (head.key, head.version)
    found.paths = await _in_use(connection, batch, *of)
    return found


async def _in_use(connection: Connection, batch: Batch, key: int | None, last: int) -> set[str]:
    keys = {key_of(path): path for path in batch.paths}
    if key is None or not keys:
        return set()
    return {keys[found] for (found,) in await connection.fetch(statements.PATHS_IN_USE, key, last, list(keys))}
