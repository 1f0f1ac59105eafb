"""What a request may ask, as frozen models: the parts of its path and its query, with their bounds."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias, get_args

from pydantic import Field

from timeline.frozen import Frozen
from timeline.queries import LONGEST_QUERY, FactKind

MOST_ROWS = 500
MOST_CHARACTERS = 65_536
Version: TypeAlias = Annotated[int, Field(ge=0, le=2**53)]
Number: TypeAlias = Annotated[int, Field(ge=1, le=10**9)]
Id: TypeAlias = Annotated[str, Field(min_length=1)]
"""A conversation's, which may be as long as it likes in every store."""
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=2_000)]
Words: TypeAlias = Annotated[str, Field(max_length=1_000)]


class AskedNothing(Frozen):
    """A request without parameters."""


class AskedConversations(Frozen):
    """``query`` is a part of the id or the title; ``cursor`` is the ``next_cursor`` of the page before."""

    query: Words = ""
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    cursor: str = ""


class AskedConversation(Frozen):
    """A conversation by its id."""

    id: Id


class AskedRows(AskedConversation):
    """Events with ``after < version <= until``, with the states at version ``at``, the newest unless given."""

    after: Version = 0
    until: Version | None = None
    at: Annotated[int, Field(ge=1, le=2**53)] | None = None
    limit: Annotated[int, Field(ge=1, le=MOST_ROWS)] = 200


class AskedBlock(AskedConversation):
    """A block by its path or address, from a character on.

    ``checksum`` is that of its row: the answer to it never changes, so that a browser may keep it.
    """

    address: Name
    offset: Version = 0
    limit: Annotated[int, Field(ge=1, le=MOST_CHARACTERS)] = MOST_CHARACTERS
    checksum: Annotated[str, Field(max_length=64)] = ""


class AskedCalls(AskedConversation):
    """Calls behind number ``after``."""

    after: Version = 0
    limit: Annotated[int, Field(ge=1, le=5_000)] = 1_000


class AskedCall(AskedConversation):
    """A model call by its number."""

    number: Number


class AskedContext(AskedCall):
    """The wire format to show the context in; that of the call unless given."""

    wire: Annotated[str, Field(max_length=40)] = ""


class AskedBody(AskedCall):
    """A piece of the body, from a character on; ``wire`` asks for another form of the same context."""

    wire: Annotated[str, Field(max_length=40)] = ""
    offset: Version = 0
    limit: Annotated[int, Field(ge=1, le=MOST_CHARACTERS)] = MOST_CHARACTERS


class AskedState(AskedConversation):
    """A conversation at a version, the newest unless given."""

    at: Annotated[int, Field(ge=1, le=2**53)] | None = None


class AskedWhy(AskedConversation):
    """Why the block of a path or address is shown as it is: at a version, or in the context of a call."""

    block: Name
    at: Annotated[int, Field(ge=1, le=2**53)] | None = None
    call: Number | None = None


class AskedCompaction(AskedConversation):
    """A compaction by the version of its event: numbers are given again after an undo."""

    version: Annotated[int, Field(ge=1, le=2**53)]


class AskedChart(AskedConversation):
    """Calls behind number ``after``; after ``wait`` seconds those that were read by then, of a log that is long."""

    after: Version = 0
    limit: Annotated[int, Field(ge=1, le=5_000)] = 2_000
    wait: Annotated[float, Field(ge=0, le=60)] = 60


class AskedDifference(AskedConversation):
    """Two recorded contexts (``#3``, ``call:84``, a version, ``last~1``), or the addresses of two summaries.

    ``other`` is the conversation of the second context, such as a fork; the same one unless given.
    """

    a: Name = "last~1"
    b: Name = "last"
    other: Id | None = None
    wire: Annotated[str, Field(max_length=40)] = "anthropic"


class AskedWhatIf(AskedConversation):
    """A policy by its name, and its limit; both as in the log unless given."""

    policy: Annotated[str, Field(max_length=100)] = ""
    max_tokens: Annotated[int, Field(ge=1, le=100_000_000)] | None = None


class AskedLab(AskedConversation):
    """Policies by their names and limits in tokens, a comma between them; an answer within ``wait`` seconds.

    The first policy is the one that the others are held against.
    """

    policies: Annotated[str, Field(max_length=500, pattern=r"^[A-Za-z0-9_.-]+(,[A-Za-z0-9_.-]+){0,7}$")] = (
        "none,balanced"
    )
    limits: Annotated[str, Field(pattern=r"^[1-9]\d{2,8}(,[1-9]\d{2,8}){0,3}$")] = "100000"
    wait: Annotated[float, Field(ge=0, le=5)] = 1

    @property
    def names(self) -> tuple[str, ...]:
        """The policies, each once."""
        return tuple(dict.fromkeys(self.policies.split(",")))

    @property
    def numbers(self) -> tuple[int, ...]:
        """The limits, each once."""
        return tuple(dict.fromkeys(int(limit) for limit in self.limits.split(",")))


class AskedFile(AskedConversation):
    """A conversation as a file: a page, with everything or prompts and answers, and contexts of calls; or the log.

    From a bundle credentials and home folders are always taken out, from a page where ``redact`` is asked for, but for
    the findings of ``keep`` (comma between their names).
    """

    format: Literal["html", "jsonl", "atif", "bundle"] = "html"
    mode: Literal["full", "chat"] = "full"
    contexts: Literal["all", "last", "none"] = "last"
    redact: bool = False
    keep: Words = ""

    @property
    def kept(self) -> tuple[str, ...]:
        """The names of the findings that stay where they are."""
        return tuple(name for name in self.keep.split(",") if name)


class AskedReview(AskedConversation):
    """What would be taken out of a file that is to be shared."""

    format: Literal["html", "bundle"] = "bundle"
    mode: Literal["full", "chat"] = "full"
    contexts: Literal["all", "last", "none"] = "last"


class AskedSearch(Frozen):
    """Words, in one conversation or all, of blocks of some types (comma between them), in a time."""

    query: Annotated[str, Field(min_length=1, max_length=LONGEST_QUERY)]
    conversation: Id | None = None
    types: Words = ""
    since: Annotated[str, Field(max_length=40)] | None = None
    until: Annotated[str, Field(max_length=40)] | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 20


class AskedFacts(Frozen):
    """Filters of facts, as `timeline facts` takes them: words, parts of the subject, a kind, a tool, an exit status."""

    conversation: Id | None = None
    query: Annotated[str, Field(min_length=1, max_length=LONGEST_QUERY)] | None = None
    kind: FactKind | None = None
    subject: Annotated[str, Field(min_length=1, max_length=1_000)] | None = None
    tool: Name | None = None
    exit_status: Annotated[int, Field(ge=-(2**31), le=2**31 - 1)] | None = None
    failed: bool | None = None
    covered: bool | None = None
    since: Annotated[str, Field(max_length=40)] | None = None
    until: Annotated[str, Field(max_length=40)] | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class AskedDigests(Frozen):
    """Filters of compactions, as `timeline digests` takes them; ``path`` is a glob of whole paths."""

    conversation: Id | None = None
    path: Annotated[str, Field(min_length=1, max_length=1_000)] | None = None
    tool: Name | None = None
    command: Annotated[str, Field(min_length=1, max_length=1_000)] | None = None
    error_text: Annotated[str, Field(min_length=1, max_length=1_000)] | None = None
    failed: bool = False
    reverted: bool = False
    since: Annotated[str, Field(max_length=40)] | None = None
    until: Annotated[str, Field(max_length=40)] | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50


Decision: TypeAlias = Literal["hide", "reveal", "pin", "unpin", "compact", "undo", "fork"]
DECISIONS: Final[frozenset[Decision]] = frozenset(get_args(Decision))


class AskedDecision(Frozen):
    """A decision about a conversation, as the body of a POST.

    Attributes:
        decision: what to do.
        block: path or address of the block to hide, reveal, pin or unpin.
        mode: of a hide: ``replace`` shows a short line instead, or ``text``; ``omit`` shows nothing.
        text: see ``mode``.
        version: of an undo: the compaction's; the newest in force unless given. ``cascade`` takes later ones along.
        instructions: of a compaction: what its summary is to dwell on.
        at: of a fork: the last version that both share; or ``call``, before which it begins.
        new_id: of a fork: its id.
        dry_run: answer what it would change, and append nothing.
    """

    decision: Decision
    block: Name | None = None
    mode: Literal["replace", "omit"] = "replace"
    text: Annotated[str, Field(max_length=10_000)] | None = None
    version: Annotated[int, Field(ge=1, le=2**53)] | None = None
    cascade: bool = False
    instructions: Annotated[str, Field(max_length=10_000)] = ""
    at: Annotated[int, Field(ge=1, le=2**53)] | None = None
    call: Number | None = None
    new_id: Id | None = None
    dry_run: bool = False
