"""The rows of a PostgreSQL log, with the escaping undone; see `store.log_rows`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from ..frequent_types import FREQUENT_TYPES
from ..log_rows import LogPart
from . import statements
from .escaping import escaped, joined, key_of, prefix_bounds, storable, text_as_given, unescaped
from .rows import event_row, info_row

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Sequence

    from ..codec import Row
    from ..conversation_statements import ConversationStatements
    from ..log_rows import ConversationRows, Pages, PagesOfAll
    from .database import Database
    from .horizon import Horizon

_EVENT: Final = 11
"""Columns of an event in a row."""


class PostgresConversationRows:
    """`store.log_rows.ConversationRows`, by the statements that are given."""

    def __init__(self, database: Database, statements: ConversationStatements) -> None:
        self._fetch = database.rows
        self._statements = statements

    async def info(self, conversation: str) -> Row | None:
        """Return a conversation's row, its key first."""
        rows = await self._fetch(self._statements.info, key_of(conversation))
        return info_row(rows[0]) if rows else None

    async def info_and_snapshot(self, conversation: str) -> Row | None:
        """Return a conversation's row with the body and the checksum of its snapshot."""
        rows = await self._fetch(self._statements.info_and_snapshot, key_of(conversation))
        return info_row(rows[0]) if rows else None

    async def conversations(self, after: int, most: int) -> list[Row]:
        """Return the rows of conversations behind a key, by key."""
        return [info_row(row) for row in await self._fetch(self._statements.conversations, after, most)]

    async def recent_conversations(self, before: tuple[str, str], most: int) -> list[Row]:
        """Return the rows of conversations behind a time and an id, the one that changed last first."""
        at, id_ = before
        return [
            info_row(row) for row in await self._fetch(self._statements.recent_conversations, at, escaped(id_), most)
        ]


class PostgresRows:
    """`store.log_rows.LogRows`: single statements, each on any connection of the readers' pool."""

    restore: Final = "Restore the database with the tools of its server"

    def __init__(self, database: Database, horizon: Horizon) -> None:
        self.where: str = database.where
        self.settled: Callable[[], Coroutine[Any, Any, None]] = horizon.settled
        self._ended = horizon.ended
        self.whole: ConversationRows = PostgresConversationRows(database, statements.WHOLE)
        self.bare: ConversationRows = PostgresConversationRows(database, statements.BARE)
        self._fetch = database.rows

    async def key(self, conversation: str) -> int | None:
        """Return the key of a conversation's row."""
        rows = await self._fetch(statements.CONVERSATION_KEY, key_of(conversation))
        return int(rows[0][0]) if rows else None

    async def erased(self, conversation: str) -> tuple[str, str] | None:
        """Return the time and the reason of an erasure."""
        rows = await self._fetch(statements.ERASED, key_of(conversation))
        return (rows[0][0], unescaped(rows[0][1])) if rows else None

    async def count_unlisted(self) -> int:
        """Return how many conversations have events and no row."""
        [(count,)] = await self._fetch(statements.COUNT_UNLISTED)
        return int(count)

    async def conversation_count(self) -> int:
        """Return how many conversations there are."""
        [(count,)] = await self._fetch(statements.CONVERSATION_COUNT)
        return int(count)

    async def lineage(self, conversation: str) -> list[LogPart]:
        """Return the logs that hold a conversation's versions, its own first, as far as each leads to its parent."""
        rows = await self._fetch(statements.LINEAGE, key_of(conversation))
        parts = [LogPart(key, unescaped(id_), base, last) for key, id_, base, last, _ in rows]
        for number, parent in enumerate(parts[1:], 1):
            if _parent_in(rows[number - 1][4]) != parent.conversation:
                return parts[:number]
        return parts

    def pages(self, types: Collection[str] | None) -> Pages:
        """Return what reads events of some types (None: all), without those that were scavenged."""
        statement, listed = _choose(types, statements.PAGE, statements.PAGE_OF_TYPES, statements.PAGE_OF_RARE_TYPES)

        async def read(part: LogPart, after: int, last: int, most: int) -> list[Row]:
            return [event_row(row) for row in await self._fetch(statement, part.key, after, last, most, *listed)]

        return read

    async def page_as_written(self, part: LogPart, after: int, last: int, most: int) -> list[Row]:
        """Read events of all types, each with its salt, commitment and link behind it."""
        rows = await self._fetch(statements.PAGE_AS_WRITTEN, part.key, after, last, most)
        return [event_row(row) for row in rows]

    async def chained(self, part: LogPart, after: int, last: int, most: int) -> list[Row]:
        """Read all events, scavenged ones too, as the columns of `ChainedEvent` behind the conversation."""
        rows = await self._fetch(statements.CHAINED, part.key, after, last, most)
        return [
            (*row[:3], unescaped(row[3]), *row[4:6], None if row[6] is None else joined(row[6], row[7]), *row[8:])
            for row in rows
        ]

    async def head(self) -> int:
        """Return the position of the last event of all below every running transaction; 0 in an empty store."""
        rows = await self._fetch(statements.HEAD_POSITION)
        return int(rows[0][0]) if rows else 0

    def pages_of_all(self, types: Collection[str] | None) -> PagesOfAll:
        """Return what reads events of some types (None: all) of all conversations, below all running transactions."""
        statement, listed = _choose(
            types, statements.PAGE_OF_ALL, statements.PAGE_OF_ALL_OF_TYPES, statements.PAGE_OF_ALL_OF_RARE_TYPES
        )

        async def read(after: int, most: int) -> list[Row]:
            rows = await self._fetch(statement, after, most, *listed)
            if not rows:
                await self._ended(after)
            return [_owned(row) for row in rows]

        return read

    async def at_versions(self, conversation: str, versions: Sequence[int]) -> list[Row]:
        """Return the events of these versions, in any order, each behind the id of its conversation."""
        rows = await self._fetch(statements.BY_VERSION, key_of(conversation), versions)
        return [_owned(row) for row in rows]

    async def at_path(self, conversation: str, path: str) -> list[Row]:
        """Return the event that appended the block at a path, behind the id of its conversation."""
        rows = await self._fetch(statements.BY_PATH, key_of(conversation), key_of(path))
        return [_owned(row) for row in rows]

    async def walked_to(self, part: LogPart, path: str) -> int | None:
        """Return the version of an event with that path, found without the index of paths."""
        rows = await self._fetch(statements.AT_PATH, part.key, part.base, part.last, key_of(path))
        return rows[0][0] if rows else None

    async def paths_beginning(self, conversation: str, stems: Collection[str]) -> list[str]:
        """Return the paths in use that begin with one of the stems; others too, where the range of a long one ends."""
        bounds = [prefix_bounds(stem) for stem in storable(stems)]
        firsts, beyond = [first for first, _ in bounds], [end for _, end in bounds]
        rows = await self._fetch(statements.PATHS_BETWEEN, key_of(conversation), firsts, beyond)
        return [joined(key, rest) for key, rest in rows]

    async def known_ids(self, conversation: str, ids: Sequence[str]) -> list[str]:
        """Return those of some event ids that the conversation holds."""
        return [id_ for (id_,) in await self._fetch(statements.IDS_KNOWN, key_of(conversation), ids)]

    async def values(self, hashes: Sequence[str]) -> list[Row]:
        """Return the texts of these hashes, each behind its hash."""
        rows = await self._fetch(statements.VALUES, [escaped(hash_) for hash_ in storable(hashes)])
        return [(hash_, text_as_given(text)) for hash_, text in rows]

    async def count_scavenged(self, part: LogPart, first: int, last: int) -> int:
        """Return how many of the versions from ``first`` to ``last`` were scavenged."""
        ((count,),) = await self._fetch(statements.SCAVENGED_BETWEEN, part.key, first, last)
        return int(count)

    async def scavenged_types(self, part: LogPart) -> list[Row]:
        """Return the types of what was scavenged up to the part's last version, each with a number of events."""
        rows = await self._fetch(statements.COUNT_SCAVENGED, part.key, part.last)
        return [(unescaped(type_), count) for type_, count in rows]

    async def waypoint(self, conversation: str, after: int, until: int) -> Row | None:
        """Return the newest snapshot of the past in ``after < version <= until``, behind its conversation."""
        rows = await self._fetch(statements.NEAREST_WAYPOINT, key_of(conversation), after, until)
        return (unescaped(rows[0][0]), *rows[0][1:]) if rows else None

    async def waypoint_versions(self, key: int) -> list[int]:
        """Return the versions of a conversation's own snapshots of the past, rising."""
        return [version for (version,) in await self._fetch(statements.WAYPOINT_VERSIONS, key)]

    async def base(self, conversation: str, until: int) -> Row | None:
        """Return body and checksum of the newest base up to a version."""
        rows = await self._fetch(statements.NEWEST_BASE, key_of(conversation), until)
        return rows[0] if rows else None

    async def chain_head(self, conversation: str) -> Row | None:
        """Return the link of a conversation's newest event, as its row has it."""
        rows = await self._fetch(statements.CHAIN_HEAD, key_of(conversation))
        return rows[0] if rows else None


def _owned(row: Row) -> Row:
    """Return the row of an event behind the id of its conversation; what else is behind it goes."""
    return (unescaped(row[0]), *event_row(row[1 : 1 + _EVENT]))


def _parent_in(link: str | None) -> object:
    """Return the id of the parent that a row names."""
    try:
        named = json.loads(link or "{}")
    except ValueError:
        return None
    return named.get("conversation") if isinstance(named, dict) else None


def _choose(types: Collection[str] | None, every: str, some: str, rare: str) -> tuple[str, tuple[list[str], ...]]:
    """Choose the statement for a set of types, with its parameter: rare types have indexes of their own."""
    if types is None:
        return every, ()
    listed = [escaped(type_) for type_ in storable(types)]
    return some if FREQUENT_TYPES.intersection(types) else rare, (listed,)
