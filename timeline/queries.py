"""Query a store: find compactions by their digests, facts by their fields, and blocks by their words.

The result types, and the protocol `Queries`, which is part of `timeline.ports.EventStore`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, get_args

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping
    from datetime import datetime

    from timeline.digest import Digest
    from timeline.events import Covers


LONGEST_QUERY: Final = 1_000
"""Most characters of the words to find: what a search costs is their number times the length of each text."""
MOST_FOUND: Final = 1_000
"""Most hits of a search; more words in the query narrow it."""


@dataclass(frozen=True, slots=True)
class StoredDigest:
    """A compaction that `Queries.digests` found.

    Attributes:
        conversation: the conversation that was compacted.
        version: version of the `CompactionCompleted`; ``position`` is its place in the whole store.
        position: see ``version``.
        at: when it was completed, in UTC.
        compaction_number: number of the compaction: 1 for a conversation's first, 2 for the next …
        path: path of the summary block.
        covers: the covered versions.
        digest: the whole digest of the covered blocks.
        matched: the entries of the digest that match the filters; empty if no filter asks for entries.
        before_tokens: tokens of the context before the compaction.
        after_tokens: tokens of the context after it.
        reverted_by: version of the event that undid the compaction; None while the compaction is in force.
        duration: seconds that the compaction took; None if that was not measured.
        unsaid: versions of the covered prompts of which the context after the compaction neither says nor lists
            everything.
    """

    conversation: str
    version: int
    position: int
    at: datetime
    compaction_number: int
    path: str
    covers: Covers
    digest: Digest
    matched: Digest
    before_tokens: int
    after_tokens: int
    reverted_by: int | None = None
    duration: float | None = None
    unsaid: tuple[int, ...] = ()


def selects_entries(filters: Mapping[str, object]) -> bool:
    """Return whether some filters of `Queries.digests` select single entries of a digest, and not whole ones."""
    return any(filters[name] not in {None, False} for name in ("tool", "path_glob", "command", "error"))


@dataclass(frozen=True, slots=True)
class Found:
    """A block that `Queries.search` found.

    Attributes:
        conversation: the conversation that it was appended to.
        version: version of the event that appended it; ``position`` is its place in the whole store.
        path: its path; ``type`` is its type.
        type: see ``path``.
        at: time of that event, in UTC.
        snippet: one line of its text, the hits between ``«`` and ``»``.
        rank: its bm25 score: the larger, the better the match.
        position: see ``version``; 0 from a store written for a release whose hits had no position.
        reverted_by: for a summary, the version of the event that undid its compaction; None while that is in force.
    """

    conversation: str
    version: int
    path: str
    type: str
    at: datetime
    snippet: str
    rank: float
    position: int = 0
    reverted_by: int | None = None


FactKind: TypeAlias = Literal[
    "file_read", "file_written", "file_deleted", "command", "search", "error", "url", "identifier", "request"
]
"""What a fact is; see `timeline.facts.model.Fact`."""
FACT_KINDS: Final[tuple[FactKind, ...]] = get_args(FactKind)
"""A kind's place here is its number in the rows of databases: a new one comes last."""
FactSource: TypeAlias = Literal["log", "digest"]


@dataclass(frozen=True, slots=True)
class StoredFact:
    """A fact that `Queries.facts` found: one thing that was done or named.

    Attributes:
        conversation: the conversation whose event made it known; for a fork's shared past the parent.
        position: place of that event (the result, or the block that names something) in the whole store.
        kind: what it is.
        subject: the file, the command, the query, the URL, the identifier, or what a user asked for, word for word; for
            an error the tool that failed.
        at: time of that event, in UTC.
        path: the block to read: the result; for a file written or deleted the call, whose arguments hold the content.
        version: version of the event that appended the block to read.
        tool: name of the tool; for a URL or an identifier the tool of the call that names it, empty if no call does.
        exit_status: exit status of a command; None if it is unknown.
        failed: whether it failed. A failed write wrote nothing.
        detail: for a failure the first words of what it said; for a search the number of hits, if the output shows it;
            for a URL or an identifier ``prompt``, if a user's prompt names it; for a request ``constraint`` (it holds
            for what comes), ``request``, ``said`` (the beginning of a prompt in which neither was found), or ``more``
            (the prompt says something besides, whose words are not a fact).
        covered: whether a compaction in force covers the block to read, so that the model no longer sees it.
        source: ``digest`` if its event was scavenged before facts were kept. Then an entry of a compaction's digest is
            all that is left of the fact; it may stand for several uses of a file.
    """

    conversation: str
    position: int
    kind: FactKind
    subject: str
    at: datetime
    path: str
    version: int
    tool: str = ""
    exit_status: int | None = None
    failed: bool = False
    detail: str = ""
    covered: bool = False
    source: FactSource = "log"

    @property
    def address(self) -> str:
        """The short address of the block to read, in its conversation."""
        return f"@{self.version}"


@dataclass(frozen=True, slots=True)
class FactEntry:
    """All facts of one kind about one subject with the same outcome: all that failed, or all that did not.

    Attributes:
        kind: the kind of the facts.
        subject: the file, the command, the query, the URL, the identifier or the request; for errors the tool that
            failed.
        failed: whether they failed.
        times: how many there are.
        first: version of the first one's block.
        last: version of the last one's block; ``path``, ``tool``, ``exit_status``, ``detail`` and ``at`` are those of
            the last one.
        path: see ``last``.
        at: see ``last``.
        tool: see ``last``.
        exit_status: see ``last``.
        detail: see ``last``.
        repeats: for a URL or identifier, how many later calls and prompts named it.
        versions: for a request, the versions of all prompts that make it, in order.
    """

    kind: FactKind
    subject: str
    failed: bool
    times: int
    first: int
    last: int
    path: str
    at: datetime
    tool: str = ""
    exit_status: int | None = None
    detail: str = ""
    repeats: int = 0
    versions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FactRecord:
    """One merged record of many facts.

    Attributes:
        open_failures: what failed and did not succeed since, newest first. A file that could not be read is no longer
            an open failure once it was written.
        done: what succeeded, was named or was asked for, by kind. Files are ordered by last and most use, names by how
            often later calls and prompts repeated them, requests with constraints first, all others by last use.
        errors: failures of tools that work with neither files, commands nor searches, by tool, newest first.
        counts: how many different subjects of each kind succeeded or were named.
        open_count: how many open failures there are.
        error_count: how many tools ``errors`` has in all.
        asked: how many requests each prompt makes, by its version; what it says besides has no entry, and counts as
            one.
    """

    open_failures: tuple[FactEntry, ...] = ()
    done: Mapping[FactKind, tuple[FactEntry, ...]] = field(default_factory=dict)
    errors: tuple[FactEntry, ...] = ()
    counts: Mapping[FactKind, int] = field(default_factory=dict)
    open_count: int = 0
    error_count: int = 0
    asked: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FactReach:
    """How far the index of facts reaches.

    ``position`` is that of the last event whose facts are in the index. The next query adds what came after it; a store
    that may not write reads that from the log. An answer is complete either way. ``newest_position`` is that of the
    last event, even if followers of all conversations do not see it yet. ``rules`` is the number of the rules.
    """

    position: int
    newest_position: int
    rules: int


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
            path_glob: the digest has a file that was read, written or deleted, or an artifact, whose whole path
                matches: ``*`` and ``?`` stay inside a folder, ``**`` crosses folders, ``[a-z]`` and ``[!a-z]`` are
                classes. Upper and lower case differ. ``**/main.py`` finds the file in any folder.
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

    def facts(
        self,
        *,
        conversation: str | Collection[str] | None = None,
        kind: FactKind | Collection[FactKind] | None = None,
        subject: str | None = None,
        glob: str | None = None,
        tool: str | None = None,
        exit_status: int | None = None,
        failed: bool | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        covered: bool | None = None,
        query: str | None = None,
        page: int = 200,
    ) -> AsyncIterator[StoredFact]:
        """Iterate over the facts that meet every given condition, by position.

        A result gives what its call did, and its status; a call without a result gives no facts. The query covers the
        whole log, including events that were scavenged after their facts were kept; redacted blocks give no facts. The
        facts of a fork include those of the past that it shares with its parent. Without ``conversation``, each fact
        comes once, under its own conversation. No lock or cursor is held between two pages.

        Args:
            conversation: only facts of this conversation, or of these.
            kind: only facts of this kind, or of these.
            subject: the subject contains exactly this text.
            glob: the whole subject matches; see `digests` for the pattern.
            tool: the tool has exactly this name.
            exit_status: the exit status is this number.
            failed: True: only what failed; False: only what did not.
            since: done at this moment or later.
            until: done at this moment or earlier.
            covered: True: only facts of blocks that a compaction in force covers; False: only those of live ones.
            query: all words of this text occur in the subject, the tool or the detail; `search` says what a word is,
                and how long a query may be.
            page: number of facts to read at a time.

        Raises:
            InvalidFilter: a filter is not valid.
            ConversationNotFound: there is no such conversation.
        """
        ...

    async def fact_record(self, conversation: str, *, covers: Covers | None = None, most: int = 200) -> FactRecord:
        """Return one merged record of a conversation's facts.

        Args:
            conversation: the conversation; a fork's shared past is part of it.
            covers: only facts of blocks in these versions; None: of the whole log.
            most: the most entries of each kind; the counts include the others.

        Raises:
            InvalidFilter: ``most`` is below 1.
            ConversationNotFound: there is no such conversation.
        """
        ...

    async def fact_reach(self) -> FactReach:
        """Return how far the index of facts reaches."""
        ...

    def search(
        self,
        query: str,
        *,
        conversation: str | None = None,
        types: Collection[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        page: int = 50,
    ) -> AsyncIterator[Found]:
        """Iterate over the blocks that hold all words of a text, best first, then newest first; at most 1,000.

        The search reads the texts of blocks and summaries, and the tool names and argument values of calls, in the
        whole log: covered blocks too, but not redacted ones.

        A word is a run of letters, with their marks, and digits; upper and lower case are the same. Compound words
        (``src/app/main.py``, ``test_login``) are found whole and by each part, ``getUserName`` also by its humps.
        ``"quoted words"`` match in that order, ``login*`` matches every word that begins so. All other text is plain:
        no character is an operator.

        Args:
            query: the words to find, in at most `LONGEST_QUERY` characters.
            conversation: only blocks appended to this conversation itself; the blocks that a fork shares are its
                parent's, up to the fork's `ConversationInfo.base`.
            types: only blocks of these types.
            since: only blocks appended at this moment or later.
            until: only blocks appended at this moment or earlier.
            page: number of blocks to read at a time.

        Raises:
            InvalidFilter: the query holds no word or is too long, or a filter is not valid.
            ConversationNotFound: there is no such conversation.
            SearchUnavailable: the database has no full-text search.
            StoreCorrupt: an event does not match its checksum.
        """
        ...
