"""Compare all that is derived from the log with the log, page by page, and make it anew where it differs.

A page gives what is wrong, each with the statements that cure it. An examination reads all pages at one moment. A
repair reads each page in a transaction of its own, which has the turn of those that write rows of older events, and
cures what it found there: so no page is of an earlier moment than its cure, and an append waits for one page at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.ports import Finding

from . import conversation_rows, derived_rows, policy_checks, schema_checks, search_checks, stored_bodies
from .keeping import turn_in
from .pages import Page

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from .connections import Connection
    from .database import Database
    from .pages import Wrong

_MOST: Final = 20
"""Differences of one kind that are reported one by one."""
_PARTS: Final[dict[str, Callable[[Connection, int], Awaitable[Page]]]] = {
    "file": schema_checks.damaged_indexes,
    "schema": schema_checks.schema,
    "policies": policy_checks.policies,
    "settings": schema_checks.settings,
    "conversations": conversation_rows.page,
    "erased": conversation_rows.erased,
    "snapshots": stored_bodies.snapshots,
    "waypoints": stored_bodies.waypoints,
    "values": stored_bodies.values,
    "digests": derived_rows.digests,
    "facts": derived_rows.facts,
    "search": search_checks.search,
    "references": stored_bodies.orphans,
}
"""In this order: what is derived is read by indexes that are sound by then, and refers to rows that are there again."""


async def examine(connection: Connection) -> list[Finding]:
    """Return what differs, at the moment of the open transaction; where tables are missing, nothing but that."""
    found: list[Finding] = []
    for part in _PARTS.values():
        wrong: list[Wrong] = []
        page = await part(connection, 0)
        wrong += page.wrong
        while page.reached is not None:
            page = await part(connection, page.reached)
            wrong += page.wrong
        found += _capped(each.finding for each in wrong)
        if page.lacking:
            break
    return found


async def mend(database: Database) -> list[Finding]:
    """Cure what differs, a page at a time; return what was found. It ends at a missing table that has no cure."""
    found: list[Finding] = []
    turn = turn_in(database.address.quoted_schema)
    for part in _PARTS.values():
        wrong: list[Wrong] = []
        page = Page([], 0)
        while page.reached is not None:
            page = await database.do(_mending(part, page.reached), turn)
            wrong += page.wrong
        found += _capped(each.finding for each in wrong)
        if page.lacking and not all(each.cure for each in page.wrong):
            break
    return found


def _mending(part: Callable[[Connection, int], Awaitable[Page]], after: int) -> Callable[[Connection], Awaitable[Page]]:
    async def work(connection: Connection) -> Page:
        page = await part(connection, after)
        for each in page.wrong:
            for statement, parameters in each.cure:
                await connection.execute(statement, *parameters)
        return page

    return work


def _capped(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings, of one kind up to `_MOST`, and one that counts the others."""
    kinds: dict[tuple[str, bool], list[Finding]] = {}
    for each in findings:
        kinds.setdefault((each.what, each.derivable), []).append(each)
    capped = []
    for (what, derivable), some in kinds.items():
        capped += some[:_MOST]
        if more := len(some) - _MOST:
            capped += [Finding(what, f"and {more} more of this kind", derivable)] if more > 0 else []
    return capped
