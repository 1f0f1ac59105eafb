"""What removals, rewritings, erasures and repairs share: their turn, and the locked rows of what they change.

They take turns, one at a time in a store: each of them writes rows of older events, which appends never do. An append
waits only for the row of its own conversation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.errors import ConversationErased, ConversationNotFound, VersionConflict

from .escaping import key_of, unescaped
from .partitions import keep_attached
from .statements import ERASED, OWN

if TYPE_CHECKING:
    from collections.abc import Collection

    import asyncpg

    from timeline.errors import StoreError

    from .connections import Connection

_TURN: Final = "LOCK TABLE {}settings IN EXCLUSIVE MODE"
"""Nothing else writes settings, and reading one waits for nobody. Unlike a query, it leaves the transaction's view of
the store to what comes behind the wait."""
_HELD = "key, id, version, base, first_version"
_FIND: Final = f"SELECT {_HELD} FROM conversations WHERE id_key = ANY($1::text[]) AND {OWN} ORDER BY key"  # noqa: S608
_HOLD: Final = f"{_FIND} FOR UPDATE"
_FORKS: Final = f"SELECT {_HELD} FROM conversations WHERE parent_key = ANY($1::bigint[]) ORDER BY key"  # noqa: S608


class LockedRow(NamedTuple):
    """The row of a conversation, as it is while its lock is held."""

    key: int
    id: str
    version: int
    base: int
    first_version: int


async def take_turn(connection: Connection) -> None:
    """Wait for the turn, which the open transaction then has to its end.

    Raises:
        StoreCorrupt: a partition of the events is not attached.
    """
    await connection.execute(_TURN.format(""))
    await keep_attached(connection)


def turn_in(schema: str) -> str:
    """Return the statement that waits for the turn in a transaction that has no schema yet.

    Args:
        schema: the store's, in quotes.
    """
    return _TURN.format(f"{schema}.")


async def hold(connection: Connection, conversation: str) -> LockedRow:
    """Lock the row of a conversation in the open transaction.

    Raises:
        ConversationNotFound, ConversationErased: it is not there.
    """
    return (await hold_all(connection, [conversation]))[conversation]


async def hold_all(connection: Connection, conversations: Collection[str]) -> dict[str, LockedRow]:
    """Lock the rows of conversations, in the order of their keys, so that two transactions never wait for each other.

    Raises:
        ConversationNotFound, ConversationErased: one is not there.
    """
    return await _found(connection, _HOLD, conversations)


async def find_all(connection: Connection, conversations: Collection[str]) -> dict[str, LockedRow]:
    """Return the rows of conversations without locking them.

    Raises:
        ConversationNotFound, ConversationErased: one is not there.
    """
    return await _found(connection, _FIND, conversations)


async def _found(connection: Connection, statement: str, conversations: Collection[str]) -> dict[str, LockedRow]:
    rows = await connection.fetch(statement, [key_of(conversation) for conversation in conversations])
    held = {(one := _held(row)).id: one for row in rows}
    for conversation in conversations:
        if conversation not in held:
            raise await missing(connection, conversation)
    return held


async def hold_expected(connection: Connection, conversation: str, expected: int | None) -> LockedRow:
    """Lock the row of a conversation at the version that is expected; None expects any.

    Raises:
        ConversationNotFound, ConversationErased: it is not there.
        VersionConflict: it is at another version.
    """
    held = await hold(connection, conversation)
    if expected not in {None, held.version}:
        raise VersionConflict(conversation, expected, held.version)
    return held


async def forks_of(connection: Connection, keys: Collection[int]) -> list[LockedRow]:
    """Return the forks of conversations, by their keys."""
    return [_held(row) for row in await connection.fetch(_FORKS, list(keys))]


async def missing(connection: Connection, conversation: str) -> StoreError:
    """Return the error for a conversation that is not there."""
    row = await connection.fetchrow(ERASED, key_of(conversation))
    if row is None:
        return ConversationNotFound(conversation)
    at, reason = row
    return ConversationErased(conversation, at, unescaped(reason))


def _held(row: asyncpg.Record) -> LockedRow:
    key, id_, version, base, first_version = row
    return LockedRow(key, unescaped(id_), version, base, first_version)


def count(status: str) -> int:
    """Return the number of rows that a statement changed, as the server names it."""
    return int(status.rpartition(" ")[2])
