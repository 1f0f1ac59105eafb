# ruff: noqa: S608 - the texts are put together from constants, never from input
"""Bring rows that are made of the log up to the horizon, a slice a transaction, under an advisory lock.

The lock is taken before the log is read, and unlike a row's lock it gives the transaction no number until it writes, so
that no other store's tail waits for the reading. An append takes no such lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from .statements import HORIZON, OWN

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..codec import Row
    from .connections import Connection

LAST_BELOW: Final = f"SELECT coalesce(max(position), 0) FROM events WHERE {OWN} AND position < {HORIZON}"
LAST_OF_ALL: Final = f"SELECT coalesce(max(position), 0) FROM events WHERE {OWN}"
LOCK: Final = (
    "SELECT pg_advisory_xact_lock(hashtextextended('timeline ' || current_schema() || ' '"
    " || coalesce(current_setting('timeline.tenant', true), ''), 0))"
)
"""Held by what makes rows of the log, and by what takes them away with their events."""


class DerivedRows(NamedTuple):
    """Rows that are made of the log, and how.

    Attributes:
        progress: the table that notes how far they reach, of which form.
        form: the number of the rules by which they are made; those of another form go.
        drop: the statement that drops them.
        read: reads the next slice of events, behind a position and up to one; returns it with the position it reaches.
        add: adds the rows of a slice, given the positions behind which it begins and up to which it reaches.
    """

    progress: str
    form: int
    drop: str
    read: Callable[[Connection, int, int], Awaitable[tuple[list[Row], int]]]
    add: Callable[[Connection, list[Row], int, int], Awaitable[None]]

    @property
    def reached(self) -> str:
        """The statement that asks for the position that rows of a form, parameter 1, have reached."""
        return f"SELECT position FROM {self.progress} WHERE form = $1 AND {OWN}"

    @property
    def forget(self) -> str:
        """The statement that forgets how far they reach."""
        return f"DELETE FROM {self.progress} WHERE {OWN}"


async def progress_of(read: Callable[..., Awaitable[list[Row]]], made: DerivedRows) -> tuple[int, int]:
    """Return the position that rows have reached, and that of the newest event; ``read`` runs a statement."""
    rows = await read(made.reached, made.form)
    ((last,),) = await read(LAST_OF_ALL)
    return (int(rows[0][0]) if rows else 0), last


async def catch_up(connection: Connection, made: DerivedRows) -> bool:
    """Add the rows of one slice of the events below the horizon, in the open transaction.

    Returns whether there are more.
    """
    await connection.execute(LOCK)
    until = await connection.fetchval(LAST_BELOW)
    progress = await connection.fetchval(made.reached, made.form)
    if progress is None:
        await connection.execute(made.drop)
        await connection.execute(made.forget)
    after = progress or 0
    rows, reached = await made.read(connection, after, until)
    if reached != progress:
        await made.add(connection, rows, after, reached)
        await connection.execute(
            f"INSERT INTO {made.progress} (form, position) VALUES ($1, $2)"
            " ON CONFLICT (form, tenant) DO UPDATE SET position = excluded.position",
            made.form,
            reached,
        )
    return bool(reached < until)
