"""Questions to a store: compactions by what their digests hold, and blocks by their words.

The answers as values, and the part of `timeline.ports.EventStore` that gives them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection
    from datetime import datetime

    from timeline.digest import Digest
    from timeline.events import Covers


@dataclass(frozen=True, slots=True)
class StoredDigest:
    """A compaction as `Queries.digests` finds it.

    Attributes:
        conversation: the conversation that was compacted.
        version: version of the `CompactionCompleted`; ``position`` is its place in the whole store.
        position: see ``version``.
        at: when it was completed, in UTC.
        round: 1 for a conversation's first compaction, 2 for the next …
        summary: path of the summary block.
        covers: what it covers.
        digest: all that it recorded of what it covers.
        matched: the entries of the digest that the filters asked for; empty if no filter asks for entries.
        before_tokens: tokens shown before; ``after_tokens`` those shown after it.
        after_tokens: see ``before_tokens``.
        reverted_by: version of the event that took the compaction back; None while it stands.
    """

    conversation: str
    version: int
    position: int
    at: datetime
    round: int
    summary: str
    covers: Covers
    digest: Digest
    matched: Digest
    before_tokens: int
    after_tokens: int
    reverted_by: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A block that `Queries.search` found.

    ``snippet`` is one line of its text, the hits between ``«`` and ``»``; ``rank`` says how well it fits (bm25): the
    larger, the better. ``type`` is the block's type.
    """

    conversation: str
    version: int
    path: str
    type: str
    at: datetime
    snippet: str
    rank: float


class Queries(Protocol):
    """What a store can be asked besides reading its log. `timeline.store.testing.StoreContract` is this as tests."""

    def digests(
        self,
        *,
        conversation: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        tool: str | None = None,
        path_glob: str | None = None,
        command: str | None = None,
        error: bool | str | None = None,
        round: int | range | None = None,  # noqa: A002 - the word of the event
        reverted: bool | None = False,
        page: int = 200,
    ) -> AsyncIterator[StoredDigest]:
        """Iterate over the compactions whose digest meets every filter that is given, by position.

        A compaction belongs to the conversation that made it: a fork does not repeat its parent's, which are found by
        asking for the parent, up to the fork's `ConversationInfo.base`. No lock or cursor is held between two pages.

        Args:
            conversation: only of this conversation.
            since: completed at this moment or later.
            until: completed at this moment or earlier.
            tool: has an entry of the tool of exactly this name.
            path_glob: has a file that was read or written, or an artifact, whose whole path fits: ``*`` and ``?``
                stay inside a folder, ``**`` goes over folders, ``[a-z]`` and ``[!a-z]`` are classes. Upper and lower
                case differ. ``**/main.py`` finds the file in any folder.
            command: has a command that contains this text as it stands.
            error: True: something failed; False: nothing did; a text: an error message, or the output of a failed
                command, contains it as it stands.
            round: the compaction is of this round, or of one in the range.
            reverted: False: compactions that stand; True: those that were taken back; None: both.
            page: how many are read at a time.

        Raises:
            InvalidFilter: a filter cannot be used.
            ConversationNotFound: there is no such conversation.
            StoreCorrupt: an event does not match its checksum.
        """
        ...

    def search(
        self,
        text: str,
        *,
        conversation: str | None = None,
        types: Collection[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        page: int = 50,
    ) -> AsyncIterator[Found]:
        """Iterate over the blocks that hold all words of a text, the best first, at most 1,000; of equals the newest.

        Searched are the texts of blocks and summaries, and of calls the tool's name and the arguments' values, in the
        whole log: what a summary covers too, but not what was redacted.

        A word is a run of letters and digits; upper and lower case are the same. What is put together
        (``src/app/main.py``, ``test_login``) is found whole and by each part, ``getUserName`` also by its humps.
        ``"quoted words"`` are found in that order, ``login*`` finds every word that begins so. All else is plain
        text: no character is an operator.

        Args:
            text: what to look for.
            conversation: only in what was appended to this conversation itself; what a fork shares is its parent's, up
                to the fork's `ConversationInfo.base`.
            types: only blocks of these types.
            since: only what was appended at this moment or later.
            until: only what was appended at this moment or earlier.
            page: how many blocks are read at a time.

        Raises:
            InvalidFilter: the text holds no word, or a filter cannot be used.
            ConversationNotFound: there is no such conversation.
            SearchUnavailable: the database has no full-text search.
            StoreCorrupt: an event does not match its checksum.
        """
        ...
