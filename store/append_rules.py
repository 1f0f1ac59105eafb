"""Decide where an append goes: by the four expectations, the rules for a repeated append, and those for a fork.

Pure decisions over a log's head, so that every store answers alike. In the table of rules, *base* is the last version
that a fork shares with its parent, and 0 for every other conversation:

=====================  ============================================  =========================================
expected               the log                                       outcome
=====================  ============================================  =========================================
exact n = version      holds none of the ids                         written after n
exact n = version      holds some                                    `DuplicateEvent`
exact n < version      has exactly these ids at n+1 … n+k            the original place, nothing is written
exact n < version      has anything else there                       `VersionConflict`
exact n > version      anything                                      `VersionConflict`
NO_STREAM, 0           does not exist                                written as its first events, after base
NO_STREAM, 0           has exactly these ids at base+1 … base+k      the original place, nothing is written
NO_STREAM, 0           exists otherwise                              `VersionConflict`
STREAM_EXISTS          does not exist                                `VersionConflict`
ANY, STREAM_EXISTS     holds none of the ids                         written at the end
ANY, STREAM_EXISTS     has exactly these ids, together and in order  the original place, nothing is written
ANY, STREAM_EXISTS     holds some, or all in other company           `DuplicateEvent`
=====================  ============================================  =========================================

The same ids with other content are a `DuplicateEvent` in every row that would be a repetition. "Has" and "holds" mean
the conversation's own events: the versions that a fork shares with its parent are the parent's. For paths it is
different: a path in use up to the base is taken in the fork, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from timeline.errors import ConversationNotFound, DuplicateEvent, HistoryUnavailable, PathTaken, VersionConflict
from timeline.ports import Appended, Expected

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from .codec import Batch, ForkPoint


class Versions(Protocol):
    """Where a conversation's log begins and ends."""

    @property
    def version(self) -> int:
        """The newest version; 0 if the conversation does not exist."""
        ...

    @property
    def base(self) -> int:
        """The version behind which the conversation's own events begin; 0 if it does not exist."""
        ...


class LogHead(Versions, Protocol):
    """The questions that placing an append asks of a conversation's log."""

    def events(self, first: int, last: int) -> Sequence[tuple[str, str, int]]:
        """Return ``(event id, checksum, position)`` of its own versions from ``first`` to ``last``, by version."""
        ...

    def versions_of(self, ids: Collection[str]) -> dict[str, int]:
        """Return the versions of the ids that the log itself holds."""
        ...

    def taken(self, paths: Collection[str]) -> set[str]:
        """Return the paths that are in use, shared ones included."""
        ...


def starting_version(batch: Batch, log: Versions) -> int:
    """Return the version after which ``expected`` puts the append: the log's own, or an earlier one for a repetition.

    Raises:
        VersionConflict: the log is at another version than ``expected``.
    """
    match batch.expected:
        case Expected.ANY:
            return log.version
        case Expected.STREAM_EXISTS if log.version > 0:
            return log.version
        case Expected.NO_STREAM | 0:
            return log.base
        case int() as exact if 0 <= exact <= log.version:
            return exact
    raise _conflict(batch, log.version)


def check_fork(fork: ForkPoint, parent_version: int) -> None:
    """Check that a conversation may be opened as a fork of a parent, whose version is 0 if the parent does not exist.

    Raises:
        ConversationNotFound: there is no such parent.
        HistoryUnavailable: the parent does not hold that version.
    """
    if not parent_version:
        raise ConversationNotFound(fork.parent)
    if not 1 <= fork.version <= parent_version:
        raise HistoryUnavailable(fork.parent, fork.version, 1, parent_version)


def check_snapshot(batch: Batch, first: int, version: int, newest_scavenged: int) -> None:
    """Check that the events that a snapshot needs are there: those from the start of its window on.

    It is asked where a log has scavenged events: an undo, or a fork, may have read them before they were removed.

    Args:
        batch: the append; without a snapshot, a fork's window begins at version 1.
        first: the first version from which on all events are there.
        version: the last version of the log, or of what a fork shares with its parent.
        newest_scavenged: the highest version up to ``version`` that was scavenged.

    Raises:
        HistoryUnavailable: some were scavenged.
    """
    start = 1 if batch.snapshot is None else batch.snapshot.window_start
    if start <= newest_scavenged:
        raise HistoryUnavailable(batch.conversation, start, first, version, scavenged=True)


def repetition(batch: Batch, log: LogHead, after: int) -> Appended:
    """Answer an append that ``expected`` puts before the end of the log: it is a repetition, or it is too late.

    Raises:
        VersionConflict: the log has other events at these versions.
        DuplicateEvent: the log has the same ids there with other content.
    """
    appended = _found(batch, log, after)
    if appended is None:
        raise _conflict(batch, log.version)
    return appended


def collision(batch: Batch, log: LogHead) -> Appended | None:
    """Look up the ids and paths of an append at the end of the log; None where all of them are new.

    Raises:
        DuplicateEvent: the log holds some of the ids, but not as this append.
        PathTaken: the ids are new, and a path is in use.
    """
    # Look up ids before paths: the paths of a repeated append are in use, by the append itself.
    known = log.versions_of(batch.ids)
    if known:
        first_known = next(id_ for id_ in batch.ids if id_ in known)
        if isinstance(batch.expected, Expected) and len(known) == len(batch.drafts):
            appended = _found(batch, log, known[batch.ids[0]] - 1)
            if appended is not None:
                return appended
        raise DuplicateEvent(batch.conversation, first_known, f"is in the log already, at version {known[first_known]}")
    taken = log.taken(batch.paths)
    if taken:
        raise PathTaken(batch.conversation, next(path for path in batch.paths if path in taken))
    return None


def _found(batch: Batch, log: LogHead, after: int) -> Appended | None:
    last = after + len(batch.drafts)
    stored = log.events(after + 1, last)
    if [id_ for id_, _, _ in stored] != batch.ids:
        return None
    for version, (draft, (id_, checksum, _)) in enumerate(zip(batch.drafts, stored, strict=True), after + 1):
        # A scavenged event has no checksum: its id and its place are all that is left to compare.
        if checksum and draft.checksum(batch.conversation, version) != checksum:
            raise DuplicateEvent(
                batch.conversation, id_, f"is in the log already, at version {version}, as another event"
            )
    return Appended(after + 1, last, stored[-1][2], repeated=True)


def _conflict(batch: Batch, version: int) -> VersionConflict:
    return VersionConflict(batch.conversation, batch.expected, version)
