"""Errors of a store: refused appends, and databases that cannot be used."""

from __future__ import annotations

from timeline.errors.base import TimelineError


class StoreError(TimelineError):
    """The store could not do what was asked; nothing that was acknowledged is lost."""


class ConversationNotFound(StoreError, LookupError):
    """The store holds no conversation of this id."""

    def __init__(self, conversation: str) -> None:
        self.conversation = conversation
        super().__init__(f"No conversation {conversation!r} in this store. `timeline ls` lists what it holds.")


class VersionConflict(StoreError):
    """The conversation is not at the expected version; nothing was written. Read again, then retry."""

    def __init__(self, conversation: str, expected: object, actual: int) -> None:
        self.conversation = conversation
        self.expected = expected
        self.actual = actual
        if isinstance(expected, int):
            told = (
                f"is at version {actual}, not {expected}: somebody else appended. Read the new events and append again."
            )
        elif actual:
            told = f"was to be begun, and is there already, at version {actual}. Choose another id, or open that one."
        else:
            told = "was to be there, and is not. Choose the id of one that is, or begin it."
        super().__init__(f"Conversation {conversation!r} {told} Nothing was written.")


class DuplicateEvent(StoreError):
    """Event ids are in the log already, but not as the same append; nothing was written."""

    def __init__(self, conversation: str, event_id: str, problem: str) -> None:
        self.conversation = conversation
        self.event_id = event_id
        super().__init__(f"Event {event_id} of conversation {conversation!r}: {problem}. Use a new id for a new event.")


class PathTaken(StoreError):
    """A path is the address of one block for ever; nothing was written."""

    def __init__(self, conversation: str, path: str) -> None:
        self.conversation = conversation
        self.path = path
        super().__init__(
            f"Path {path!r} is in use in conversation {conversation!r}. Leave the path empty to get a free one."
        )


class StoreLocked(StoreError):
    """Another process holds the database's write lock; nothing was written. Try again when it is done."""


class StoreReadOnly(StoreError):
    """The database file or its folder may not be written to."""


class StoreFull(StoreError):
    """The disk or the database is full; what was stored before is intact. Free some space and try again."""


class StoreMoved(StoreError):
    """The database file was deleted, renamed, replaced or overwritten while it was open.

    What was just appended may be in the old file only; what is read is no answer any more. The store takes no more
    appends: open it again, and append again.
    """


class StoreClosed(StoreError):
    """The store was closed. Open it again with `open_store`."""


class SearchUnavailable(StoreError):
    """The SQLite library in use was built without FTS5. Use a Python whose SQLite has it; all else works without."""


class StoreCorrupt(StoreError):
    """The database or one of its events is damaged; restore a backup, or export what still reads."""


class NotAStore(StoreCorrupt):
    """The file is not a timeline store."""


class StoreTooOld(StoreCorrupt):
    """The store was written by an earlier version. Open it once without ``readonly``, which brings it up to date."""


class StoreTooNew(StoreCorrupt):
    """The store was written by a later version of this library. Upgrade timeline-engine to open it."""
