"""The rows of a SQLite log; see `store.log_rows`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from ..failures import RESTORE
from ..frequent_types import FREQUENT_TYPES
from ..log_rows import LogPart
from . import statements

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ..codec import Row
    from ..conversation_statements import ConversationStatements
    from ..log_rows import ConversationRows, Pages, PagesOfAll
    from .database import Database


class SQLiteConversationRows:
    """`store.log_rows.ConversationRows`, by the statements that are given."""

    def __init__(self, database: Database, statements: ConversationStatements) -> None:
        self._fetch = database.rows
        self._statements = statements

    async def info(self, conversation: str) -> Row | None:
        """Return a conversation's row, its key first."""
        rows = await self._fetch(self._statements.info, conversation)
        return rows[0] if rows else None

    async def info_and_snapshot(self, conversation: str) -> Row | None:
        """Return a conversation's row with the body and the checksum of its snapshot."""
        rows = await self._fetch(self._statements.info_and_snapshot, conversation)
        return rows[0] if rows else None

    async def conversations(self, after: int, most: int) -> list[Row]:
        """Return the rows of conversations behind a key, by key."""
        return await self._fetch(self._statements.conversations, after, most)

    async def recent_conversations(self, before: tuple[str, str], most: int) -> list[Row]:
        """Return the rows of conversations behind a time and an id, the one that changed last first."""
        return await self._fetch(self._statements.recent_conversations, *before, most)


class SQLiteRows:
    """`store.log_rows.LogRows`: single statements on the connection that reads, whose rows are fetched at once."""

    restore: Final = RESTORE

    def __init__(self, database: Database) -> None:
        self.where: str = database.where
        self.whole: ConversationRows = SQLiteConversationRows(database, statements.WHOLE)
        self.bare: ConversationRows = SQLiteConversationRows(database, statements.BARE)
        self._fetch = database.rows

    async def key(self, conversation: str) -> int | None:
        """Return the key of a conversation's row."""
        rows = await self._fetch(statements.CONVERSATION_KEY, conversation)
        return int(rows[0][0]) if rows else None

    async def erased(self, conversation: str) -> tuple[str, str] | None:
        """Return the time and the reason of an erasure."""
        rows = await self._fetch(statements.ERASED, conversation)
        return (rows[0][0], rows[0][1]) if rows else None

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
        return [LogPart(*row) for row in await self._fetch(statements.LINEAGE, conversation)]

    def pages(self, types: Collection[str] | None) -> Pages:
        """Return what reads events of some types (None: all), without those that were scavenged."""
        statement, listed = _choose(types, statements.PAGE, statements.PAGE_OF_TYPES, statements.PAGE_OF_RARE_TYPES)

        async def read(part: LogPart, after: int, last: int, most: int) -> list[Row]:
            return await self._fetch(statement, part.key, after, last, *listed, most)

        return read

    async def page_as_written(self, part: LogPart, after: int, last: int, most: int) -> list[Row]:
        """Read events of all types, each with its salt, commitment and link behind it."""
        return await self._fetch(statements.PAGE_AS_WRITTEN, part.key, after, last, most)

    async def chained(self, part: LogPart, after: int, last: int, most: int) -> list[Row]:
        """Read all events, scavenged ones too, as the columns of `ChainedEvent` behind the conversation."""
        return await self._fetch(statements.CHAINED, part.key, after, last, most)

    async def settled(self) -> None:
        """Wait for nothing: what is committed is what every reader sees."""

    async def head(self) -> int:
        """Return the position of the store's last event; 0 if there is none."""
        [(position,)] = await self._fetch(statements.HEAD_POSITION)
        return int(position)

    def pages_of_all(self, types: Collection[str] | None) -> PagesOfAll:
        """Return what reads events of some types (None: all) of all conversations."""
        statement, listed = _choose(
            types, statements.PAGE_OF_ALL, statements.PAGE_OF_ALL_OF_TYPES, statements.PAGE_OF_ALL_OF_RARE_TYPES
        )

        async def read(after: int, most: int) -> list[Row]:
            return await self._fetch(statement, after, *listed, most)

        return read

    async def at_versions(self, conversation: str, versions: Sequence[int]) -> list[Row]:
        """Return the events of these versions, in any order, each behind the id of its conversation."""
        return await self._fetch(statements.BY_VERSION, conversation, json.dumps(versions))

    async def at_path(self, conversation: str, path: str) -> list[Row]:
        """Return the event that appended the block at a path, behind the id of its conversation."""
        return await self._fetch(statements.BY_PATH, conversation, json.dumps([path]))

    async def walked_to(self, part: LogPart, path: str) -> int | None:
        """Return the version of an event with that path, found without the index of paths."""
        rows = await self._fetch(statements.AT_PATH, part.key, part.base, part.last, path)
        return rows[0][0] if rows else None

    async def paths_beginning(self, conversation: str, stems: Collection[str]) -> list[str]:
        """Return the paths in use that begin with one of the stems."""
        ranges = json.dumps([statements.prefix_bounds(stem) for stem in set(stems)])
        return [path for (path,) in await self._fetch(statements.PATHS_BETWEEN, conversation, ranges)]

    async def known_ids(self, conversation: str, ids: Sequence[str]) -> list[str]:
        """Return those of some event ids that the conversation holds."""
        return [id_ for (id_,) in await self._fetch(statements.IDS_KNOWN, json.dumps(ids), conversation)]

    async def values(self, hashes: Sequence[str]) -> list[Row]:
        """Return the texts of these hashes, each behind its hash."""
        return await self._fetch(statements.VALUES, json.dumps(hashes))

    async def count_scavenged(self, part: LogPart, first: int, last: int) -> int:
        """Return how many of the versions from ``first`` to ``last`` were scavenged."""
        ((count,),) = await self._fetch(statements.SCAVENGED_BETWEEN, part.key, first, last)
        return int(count)

    async def scavenged_types(self, part: LogPart) -> list[Row]:
        """Return the types of what was scavenged up to the part's last version, each with a number of events."""
        return await self._fetch(statements.COUNT_SCAVENGED, part.key, part.last)

    async def waypoint(self, conversation: str, after: int, until: int) -> Row | None:
        """Return the newest snapshot of the past in ``after < version <= until``, behind its conversation."""
        rows = await self._fetch(statements.NEAREST_WAYPOINT, conversation, after, until)
        return rows[0] if rows else None

    async def waypoint_versions(self, key: int) -> list[int]:
        """Return the versions of a conversation's own snapshots of the past, rising."""
        return [version for (version,) in await self._fetch(statements.WAYPOINT_VERSIONS, key)]

    async def base(self, conversation: str, until: int) -> Row | None:
        """Return body and checksum of the newest base up to a version."""
        rows = await self._fetch(statements.NEWEST_BASE, conversation, until)
        return rows[0] if rows else None

    async def chain_head(self, conversation: str) -> Row | None:
        """Return the link of a conversation's newest event, as its row has it."""
        rows = await self._fetch(statements.CHAIN_HEAD, conversation)
        return rows[0] if rows else None


def _choose(types: Collection[str] | None, every: str, some: str, rare: str) -> tuple[str, tuple[str, ...]]:
    """Choose the statement for a set of types, with its parameter: rare types have indexes of their own."""
    if types is None:
        return every, ()
    return some if FREQUENT_TYPES.intersection(types) else rare, (json.dumps(list(set(types))),)
