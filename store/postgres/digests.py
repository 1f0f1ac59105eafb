# ruff: noqa: S608 - the texts are put together from constants, never from input
"""Digests of a PostgreSQL store: read the rows of compactions first, in pages by position, then their events."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..codec import decode
from ..column_numbers import within
from .escaping import escaped, key_of, prefix_bounds, unescaped
from .rows import event_row
from .statements import EVENT, OWN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from timeline.queries import StoredDigest

    from ..codec import Row
    from ..digests import DigestFilter

_FILES: Final = "x.list IN ('artifacts', 'files_read', 'files_written')"
_DELETED: Final = "x.list = 'files_deleted'"
"""In no index: a compaction has few, and its own entries are near."""
_WILD: Final = re.compile(r"\[[^]]*\]|[*?\[]")


@dataclass(frozen=True, slots=True)
class PostgresDigests:
    """The query of digests on PostgreSQL.

    Attributes:
        rows: runs a statement that reads, and returns all rows.
        where: names the store in errors.
    """

    rows: Callable[..., Awaitable[list[Row]]]
    where: str

    async def digests(self, key: int | None, wanted: DigestFilter, page: int) -> AsyncIterator[StoredDigest]:
        """Iterate over the compactions of a conversation (None: of all) that match a filter, by position."""
        conditions, parameters = _conditions(key, wanted)
        statement = (
            f"SELECT d.reverted_by, c.id, e.* FROM (SELECT d.position, d.conversation, d.reverted_by"
            " FROM compactions AS d"
            f" WHERE d.position > $1{conditions} ORDER BY d.position LIMIT $2) AS d"
            f" CROSS JOIN LATERAL (SELECT {EVENT}, e.conversation FROM events AS e"
            f" WHERE e.{OWN} AND e.conversation = d.conversation AND e.position = d.position OFFSET 0) AS e"
            " JOIN conversations AS c ON c.key = e.conversation ORDER BY d.position"
        )
        after = 0
        while True:
            rows = await self.rows(statement, after, page, *parameters)
            for reverted_by, owner, *row, _ in rows:
                event = decode(unescaped(owner), event_row(tuple(row)), self.where)
                if (digest := wanted.found(event, reverted_by)) is not None:
                    yield digest
            if len(rows) < page:
                return
            after = rows[-1][2]


def _conditions(key: int | None, wanted: DigestFilter) -> tuple[str, list[Any]]:
    """Write the given filters, with their parameters from the third on. They find too much, never too little."""
    parameters: list[Any] = []

    def asked(value: Any) -> str:
        parameters.append(value)
        return f"${len(parameters) + 2}"

    given = [f"d.{OWN}" if key is None else f"d.conversation = {asked(key)}"]
    given += [f"d.at >= {asked(wanted.since)}", f"d.at <= {asked(wanted.until)}"]
    if wanted.compaction_numbers is not None:
        given.append(f"d.round >= {asked(within(wanted.compaction_numbers[0]))}")
        given.append(f"d.round <= {asked(within(wanted.compaction_numbers[-1]))}")
    if wanted.reverted is not None:
        given.append(f"d.reverted_by IS {'NOT ' if wanted.reverted else ''}NULL")
    if wanted.error is not None:
        given.append("d.errors > 0" if wanted.error else "d.errors = 0")
    entries = []
    if wanted.tool is not None:
        entries.append(f"x.tool_key = {asked(key_of(wanted.tool))}")
    if wanted.glob is not None:
        first, beyond = map(asked, prefix_bounds(wanted.glob.prefix))
        fits = f"x.subject LIKE {asked(like(wanted.glob.coarse))}"
        keyed = f"x.subject_key >= {first} AND x.subject_key < {beyond} AND {fits}"
        given.append(f"({_entry(f'{_FILES} AND {keyed}')} OR {_entry(f'{_DELETED} AND {fits}')})")
    if wanted.command is not None:
        entries.append(f"x.list = 'commands' AND strpos(x.subject, {asked(escaped(wanted.command))}) > 0")
    if isinstance(wanted.error, str):
        entries.append(f"x.errors > 0 AND strpos(x.message, {asked(escaped(wanted.error))}) > 0")
    given += map(_entry, entries)
    return "".join(f" AND {condition}" for condition in given), parameters


def _entry(condition: str) -> str:
    return f"EXISTS (SELECT 1 FROM digest_entries AS x WHERE x.{OWN} AND x.position = d.position AND {condition})"


def like(coarse: str) -> str:
    """Write SQLite's coarse glob as a pattern of LIKE; a sign that is escaped in the row may be two."""
    parts, end = [], 0
    for wild in _WILD.finditer(coarse):
        parts += [_literal(coarse[end : wild.start()]), "%"]
        end = wild.end()
    return "".join([*parts, _literal(coarse[end:])])


def _literal(text: str) -> str:
    return re.sub(r"[\\%_]", r"\\\g<0>", escaped(text))
