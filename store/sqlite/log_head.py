"""The head of a stored log, as an append finds it: its versions, and what it holds of events, ids and paths."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from timeline.errors import ConversationErased
from timeline.events.chain import START

from .. import append_rules
from . import statements
from .chaining import chain_whole, link_at

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Sequence

    from ..codec import Batch, ForkPoint

NOWHERE: Final = 0
"""The key of a conversation that does not exist; no stored one has it."""


_NEW: Final = (NOWHERE, 0, 0, None, 1, None, 0)
"""The head of a conversation that does not exist."""


class SQLiteLog:
    """The head of a conversation's stored log; see `LogHead`. ``key`` is 0 where it does not exist.

    Raises:
        ConversationErased: it was erased.
    """

    def __init__(self, connection: sqlite3.Connection, conversation: str) -> None:
        self._connection = connection
        head = connection.execute(statements.HEAD, (conversation,)).fetchone()
        self.key: int
        self.version: int
        self.base: int
        self.parent_key: int | None
        self.first_version: int
        self.head: bytes
        """The link of its newest event; `START` where the chain begins with the next one."""
        self.unchained: int
        """Whether its newest event has no link: a release before the chain wrote it, while the file was open."""
        self.key, self.version, self.base, self.parent_key, self.first_version, link, self.unchained = head or _NEW
        self.head = link or START
        if head is None and (erased := connection.execute(statements.ERASED, (conversation,)).fetchone()):
            raise ConversationErased(conversation, *erased)

    def chain(self) -> None:
        """Chain what is stored without links, so that the next event has one to follow."""
        self.head, self.unchained = chain_whole(self._connection, self.key), 0

    def fork_off(self, fork: ForkPoint) -> None:
        """Put a conversation that is about to be opened behind the versions that it shares with its parent.

        Raises:
            ConversationNotFound, HistoryUnavailable: as for `append_rules.check_fork`.
        """
        parent = SQLiteLog(self._connection, fork.parent)
        append_rules.check_fork(fork, parent.version)
        self.parent_key, self.version, self.base = parent.key, fork.version, fork.version
        if parent.unchained:
            parent.chain()
        self.head = link_at(self._connection, parent.key, fork.version)
        if parent.first_version > 1:
            self.first_version = parent.newest_scavenged(fork.version) + 1

    def newest_scavenged(self, until: int) -> int:
        """Return the highest version up to ``until`` that was scavenged, shared ones included; 0 for none."""
        (version,) = self._connection.execute(statements.NEWEST_SCAVENGED, (until, self.key)).fetchone()
        return int(version)

    def check_snapshot(self, batch: Batch) -> None:
        """Check that the events that an append's snapshot needs are there.

        Raises:
            HistoryUnavailable: as for `append_rules.check_snapshot`.
        """
        opens_fork = self.key == NOWHERE and self.base > 0
        if self.first_version > 1 and (batch.snapshot is not None or opens_fork):
            newest = self.first_version - 1 if opens_fork else self.newest_scavenged(self.version)
            append_rules.check_snapshot(batch, self.first_version, self.version, newest)

    def events(self, first: int, last: int) -> Sequence[tuple[str, str, int]]:
        """Return ``(event id, checksum, position)`` of a range of versions."""
        return self._connection.execute(statements.STORED_BETWEEN, (self.key, first, last)).fetchall()

    def versions_of(self, ids: Collection[str]) -> dict[str, int]:
        """Return the versions of the ids that the log holds."""
        return dict(self._connection.execute(statements.VERSIONS_OF_IDS, (json.dumps(list(ids)), self.key)))

    def taken(self, paths: Collection[str]) -> set[str]:
        """Return the paths that are in use, shared ones included."""
        return self.shared(paths) if self.key == NOWHERE else self._in_use(paths, self.version, self.key)

    def shared(self, paths: Collection[str]) -> set[str]:
        """Return the paths that are in use in the versions that a fork shares with its parent."""
        return self._in_use(paths, self.base, self.parent_key)

    def _in_use(self, paths: Collection[str], last: int, key: int | None) -> set[str]:
        rows = self._connection.execute(statements.PATHS_IN_USE, (last, key, json.dumps(list(paths))))
        return {path for (path,) in rows}

    def last_position(self) -> int:
        """Return the position of the newest event; 0 if there is none."""
        newest = self.events(self.version, self.version)
        return newest[0][2] if newest else 0
