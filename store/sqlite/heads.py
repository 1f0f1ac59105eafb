"""What a SQLite database says of one conversation's log, for placing an append in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from .. import append_rules
from . import statements

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Sequence

    from ..codec import ForkPoint

NOWHERE: Final = 0
"""The key of a conversation that does not exist: none has it."""


class SQLiteLog:
    """What a conversation's stored events say of themselves; see `placing.Log`. ``key`` is 0 if there is none."""

    def __init__(self, connection: sqlite3.Connection, conversation: str) -> None:
        self._connection = connection
        head = connection.execute(statements.HEAD, (conversation,)).fetchone()
        self.key: int
        self.version: int
        self.base: int
        self.parent_key: int | None
        self.key, self.version, self.base, self.parent_key = head or (NOWHERE, 0, 0, None)

    def fork_off(self, fork: ForkPoint) -> None:
        """Put a conversation that is about to be opened behind what it shares with its parent.

        Raises:
            ConversationNotFound, HistoryUnavailable: as `placing.check_fork` says.
        """
        parent = SQLiteLog(self._connection, fork.parent)
        append_rules.check_fork(fork, parent.version)
        self.parent_key, self.version, self.base = parent.key, fork.version, fork.version

    def events(self, first: int, last: int) -> Sequence[tuple[str, str, int]]:
        """Return ``(event id, checksum, position)`` of a range of versions."""
        return self._connection.execute(statements.STORED_BETWEEN, (self.key, first, last)).fetchall()

    def versions_of(self, ids: Collection[str]) -> dict[str, int]:
        """Return the versions of those ids that the log holds."""
        return dict(self._connection.execute(statements.VERSIONS_OF_IDS, (json.dumps(list(ids)), self.key)))

    def taken(self, paths: Collection[str]) -> set[str]:
        """Return those of the paths that are in use, shared ones too."""
        return self.shared(paths) if self.key == NOWHERE else self._in_use(paths, self.version, self.key)

    def shared(self, paths: Collection[str]) -> set[str]:
        """Return those of the paths that are in use in what a fork shares with its parent."""
        return self._in_use(paths, self.base, self.parent_key)

    def _in_use(self, paths: Collection[str], last: int, key: int | None) -> set[str]:
        rows = self._connection.execute(statements.PATHS_IN_USE, (last, key, json.dumps(list(paths))))
        return {path for (path,) in rows}

    def last_position(self) -> int:
        """Return the position of the newest event; 0 if there is none."""
        newest = self.events(self.version, self.version)
        return newest[0][2] if newest else 0
