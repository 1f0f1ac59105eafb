"""Digests and search of a SQLite store: light rows first, in pages by key, then the events that they lead to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..codec import decode
from ..digests import within
from ..search.scanning import MOST, Hit, Scan, SearchFilter, best
from ..search.snippets import found
from ..search.texts import redacted_version, text_of
from . import query_statements as statements
from .indexing import FORM, match_expression

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from timeline.queries import Found, StoredDigest

    from ..codec import Row
    from ..digests import DigestFilter
    from ..search.words import Query

_SCANNED: Final = 500
"""Events that are read at a time where there is no index to ask."""
_LAST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class SQLiteQuestions:
    """The questions that one SQLite file answers.

    Attributes:
        rows: runs a statement on the reading connection; all rows at once.
        where: names the store in errors.
    """

    rows: Callable[[str, Sequence[Any] | Mapping[str, Any]], Awaitable[list[Row]]]
    where: str

    async def digests(self, conversation: str | None, wanted: DigestFilter, page: int) -> AsyncIterator[StoredDigest]:
        """Iterate over the compactions that a filter means; see `timeline.queries.Queries.digests`."""
        given, parameters = _asked(conversation, wanted)
        parameters |= {"after": await self._before_first(wanted), "page": page}
        statement = statements.page_of_digests(given)
        while True:
            rows = sorted(await self.rows(statement, parameters), key=lambda row: row[2])
            for reverted_by, owner, *row in rows:
                digest = wanted.found(decode(owner, tuple(row), self.where), reverted_by)
                if digest is not None:
                    yield digest
            if len(rows) < page:
                return
            parameters["after"] = rows[-1][2]

    async def _before_first(self, wanted: DigestFilter) -> int:
        """Return a position before the first compaction that may be meant."""
        if not wanted.since:
            return 0
        ((first,),) = await self.rows(statements.FIRST_SINCE, (wanted.since,))
        return _LAST if first is None else int(first) - 1

    async def progress(self) -> tuple[int, int]:
        """Return the position that the index has reached, and that of the newest event."""
        rows = await self.rows(statements.PROGRESS, (FORM,))
        ((last,),) = await self.rows(statements.LAST_OF_ALL, ())
        return (int(rows[0][0]) if rows else 0), last or 0

    async def search(self, query: Query, key: int | None, wanted: SearchFilter, page: int) -> AsyncIterator[Found]:
        """Iterate over the best hits; what the index has not reached is scanned."""
        indexed, last = await self.progress()
        hits = await self._indexed(query, key, wanted) if indexed else []
        redacted: set[tuple[int, int]] = set()
        if indexed < last:
            redacted = await self._redacted_since(indexed)
            scan = Scan(query, key, wanted)
            await self._scan(scan, indexed, redacted)
            hits = best([*hits, *scan.best()])
        for start in range(0, len(hits), page):
            async for hit in self._read(hits[start : start + page], query, redacted):
                yield hit

    async def _read(self, hits: Sequence[Hit], query: Query, redacted: set[tuple[int, int]]) -> AsyncIterator[Found]:
        ranks = {hit.position: hit.rank for hit in hits}
        rows = {row[2]: row for row in await self.rows(statements.FOUND, (json.dumps(list(ranks)),))}
        for owner, key, *row in (rows[position] for position in ranks if position in rows):
            hit = found(decode(owner, tuple(row), self.where), row[6], query, ranks[row[0]])
            if hit is not None and (key, hit.version) not in redacted:
                yield hit

    async def _indexed(self, query: Query, key: int | None, wanted: SearchFilter) -> list[Hit]:
        if wanted.types is not None and not wanted.types:
            return []
        expression = match_expression(query, key, wanted.types)
        if wanted.bounded:
            rows = await self.rows(statements.SEARCH_BETWEEN, (expression, wanted.since, wanted.until, MOST))
        else:
            rows = await self.rows(statements.SEARCH, (expression, MOST))
        return [Hit(position, -score) for position, score in rows]

    async def _redacted_since(self, position: int) -> set[tuple[int, int]]:
        rows = await self.rows(statements.REDACTED_SINCE, (position,))
        return {(key, version) for key, payload in rows if (version := redacted_version(payload)) is not None}

    async def _scan(self, scan: Scan, after: int, redacted: set[tuple[int, int]]) -> None:
        """Cut every text that follows a position into words. The ranks are those among these texts."""
        while rows := await self.rows(statements.TO_INDEX, (after, _LAST, _SCANNED)):
            for position, key, version, _, at, payload in rows:
                text = text_of(payload)
                if text is not None and (key, version) not in redacted:
                    scan.add(position, key, text, at)
            after = rows[-1][0]


def _asked(conversation: str | None, wanted: DigestFilter) -> tuple[frozenset[str], dict[str, Any]]:
    """Return which filters are given, for the statement, and its parameters."""
    glob, error = wanted.glob, wanted.error
    texts = {
        "conversation": conversation,
        "tool": wanted.tool,
        "path_glob": glob and glob.coarse,
        "prefix": glob and (glob.prefix or None),
        "command": wanted.command,
        "error": error if isinstance(error, str) else None,
    }
    first_round, last_round = (wanted.rounds[0], wanted.rounds[-1]) if wanted.rounds else (-_LAST, _LAST)
    return frozenset(name for name, text in texts.items() if text is not None), {
        **texts,
        "glob": texts["path_glob"],
        "beyond": f"{texts['prefix']}\U0010ffff",
        "since": wanted.since,
        "until": wanted.until,
        "first_round": within(first_round),
        "last_round": within(last_round),
        "least_errors": int(bool(error)),
        "most_errors": 0 if error is False else _LAST,
        "reverted": wanted.reverted,
    }
