"""The partitions of the events: whether each is attached, so that its events can be read.

A person may detach one, to move or to examine it. Its rows are then in a table of its own, which no statement of a
store reaches, and attached again they are as they were.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from timeline.errors import StoreCorrupt

from . import create

if TYPE_CHECKING:
    from .connections import Connection

_COUNT: Final = "SELECT partitions FROM store_meta"
_BOUNDS: Final = (
    "SELECT pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid"
    " WHERE i.inhparent = to_regclass('events') AND NOT i.inhdetachpending"
)
_REMAINDER: Final = re.compile(r"remainder (\d+)")
_KEEP: Final = "LOCK TABLE ONLY events IN SHARE UPDATE EXCLUSIVE MODE"
"""Nobody detaches a partition meanwhile, not even with CONCURRENTLY; appends and reads wait for none of it."""


async def detached(connection: Connection) -> list[str]:
    """Say of each partition that is not attached which it is, and how it comes back."""
    partitions = await connection.fetchval(_COUNT) or 0
    if not partitions:
        return []
    bounds = " ".join(bound for (bound,) in await connection.fetch(_BOUNDS))
    attached = {int(remainder) for remainder in _REMAINDER.findall(bounds)}
    return [create.no_partition(number, partitions) for number in range(partitions) if number not in attached]


async def keep_attached(connection: Connection) -> None:
    """Let the open transaction reach the events of all partitions until it ends.

    Without one, what is removed would be back when that is attached again, and a text that its events alone name would
    be taken for one that nothing names.

    Raises:
        StoreCorrupt: a partition is not attached; the error has the statement that attaches it.
    """
    if not await connection.fetchval(_COUNT):
        return
    await connection.execute(_KEEP)
    await check_attached(connection)


async def check_attached(connection: Connection) -> None:
    """Refuse what removes, or says what would be removed, while a partition is away.

    Raises:
        StoreCorrupt: a partition is not attached; the error has the statement that attaches it.
    """
    if missing := await detached(connection):
        raise StoreCorrupt(f"Nothing was removed or rewritten: {missing[0]}")
