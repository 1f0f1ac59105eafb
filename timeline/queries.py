"""Query a store: find compactions by their digests, and blocks by their words.

The result types, and the protocol `Queries`, which is part of `timeline.ports.EventStore`.
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
    """A compaction that `Queries.digests` found.

    Attributes:
        conversation: the conversation that was compacted.
        version: version of the `CompactionCompleted`; ``position`` is its place in the whole store.
        position: see ``version``.
        at: when it was completed, in UTC.
        compaction_number: number of the compaction: 1 for a conversation's first, 2 for the next …
        summary: path of the summary block.
        covers: the covered versions.
        digest: the whole digest of the covered blocks.
        matched: the entries of the digest that match the filters; empty if no filter asks for entries.
        before_tokens: tokens of the context before the compaction.
        after_tokens: tokens of the context after it.
        reverted_by: version of the event that undid the compaction; None while it is in force.
        duration: seconds that the compaction took; None where that was not measured.
    """

    conversation: str
    version: int
    position: int
    at: datetime
    compaction_number: int
    summary: str
    covers: Covers
    digest: Digest
    matched: Digest
    before_tokens: int
    after_tokens: int
    reverted_by: int | None = None
    duration: float | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A block that `Queries.search` found.

    ``snippet`` is one line of its text, the hits between ``«`` and ``»``; ``rank`` is its bm25 score: the larger, the
    better the match. ``type`` is the block's type.
    """

    conversation: str
    version: int
    path: str
    type: str
    at: datetime
    snippet: str
    rank: float


class Queries(Protocol):
    """The queries of a store, besides reading its log. `timeline.store.testing.StoreContract` tests them."""

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
        compaction_number: int | range | None = None,
        reverted: bool | None = False,
        page: int = 200,
    ) -> AsyncIterator[StoredDigest]:
        """Iterate over the compactions whose digest matches every given filter, by position.

        A compaction belongs to the conversation that made it: a fork does not repeat its parent's. To find those, ask
        for the parent, up to the fork's `ConversationInfo.base`. No lock or cursor is held between two pages.

        Args:
            conversation: only compactions of this conversation.
            since: completed at this moment or later.
            until: completed at this moment or earlier.
            tool: the digest has an entry of the tool of exactly this name.
            path_glob: the digest has a file that was read or written, or an artifact, whose whole path matches: ``*``
                and ``?`` stay inside a folder, ``**`` crosses folders, ``[a-z]`` and ``[!a-z]`` are classes. Upper and
                lower case differ. ``**/main.py`` finds the file in any folder.
            command: the digest has a command that contains exactly this text.
            error: True: something failed; False: nothing did; a text: an error message, or the output of a failed
                command, contains exactly this text.
            compaction_number: number of the compaction, or a range of numbers.
            reverted: False: compactions in force; True: compactions that were undone; None: both.
            page: number of compactions to read at a time.

        Raises:
            InvalidFilter: a filter is not valid.
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

        The search reads the texts of blocks and summaries, and the tool names and argument values of calls, in the
        whole log: covered blocks too, but not redacted ones.

        A word is a run of letters and digits; upper and lower case are the same. Compound words (``src/app/main.py``,
        ``test_login``) are found whole and by each part, ``getUserName`` also by its humps. ``"quoted words"`` match in
        that order, ``login*`` matches every word that begins so. All other text is plain: no character is an operator.

        Args:
            text: the words to find.
            conversation: only blocks appended to this conversation itself; the blocks that a fork shares are its
                parent's, up to the fork's `ConversationInfo.base`.
            types: only blocks of these types.
            since: only blocks appended at this moment or later.
            until: only blocks appended at this moment or earlier.
            page: number of blocks to read at a time.

        Raises:
            InvalidFilter: the text holds no word, or a filter is not valid.
            ConversationNotFound: there is no such conversation.
            SearchUnavailable: the database has no full-text search.
            StoreCorrupt: an event does not match its checksum.
        """
        ...
