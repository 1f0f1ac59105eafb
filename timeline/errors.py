"""The one error tree. Each error keeps its facts as attributes and names the cure in its message.

TimelineError
├── InvalidBlock (ValueError)            a block or event that may not be written
│   └── InvalidArgument                  an argument of a method that cannot be used
├── InvalidPolicy (ValueError)           a policy field that does not hold
├── InvalidLimits (ValueError)           a file with model limits that cannot be used
├── InvalidPrices (ValueError)           a file with prices that cannot be used
├── UnknownResponse (TypeError)          a reply or stream in no shape that can be recorded
├── InvalidFilter (ValueError)           a filter of a query that cannot be used
├── ImportFailed                         a file that is no recording
├── MissingExtra (ImportError)           an optional dependency is not installed
├── BlockNotFound (LookupError)          no block at that path
├── StageNotFound (LookupError)          no stage of that name stands
├── StageRefused                         a stage that cannot be entered, approved or gone back to now
├── BlockProtected                       a block that may not be hidden, revealed or pinned now
├── HistoryUnavailable (LookupError)     the log does not reach back, or forward, to that version
├── ContextNotFound (LookupError)        no recorded context of that name
├── ContextUnavailable                   a recorded context cannot be built again
├── StoreError
│   ├── ConversationNotFound (LookupError)
│   ├── VersionConflict                  somebody else appended first
│   ├── DuplicateEvent                   an event id is in the log already, with other company or content
│   ├── PathTaken                        a path is in use in this conversation
│   ├── StoreLocked / StoreReadOnly / StoreFull / StoreClosed
│   ├── StoreMoved                       the database file was swapped while it was open
│   ├── SearchUnavailable                the SQLite library has no full-text search
│   └── StoreCorrupt
│       ├── NotAStore                    the file is something else
│       ├── StoreTooOld                  written by an earlier version, and open for reading only
│       └── StoreTooNew                  written by a later version
├── CompactionError
│   ├── CompactionRefused                nothing worth doing; the typed reason says why
│   ├── CompactionSuperseded             the log changed inside the planned range
│   ├── CompactionInProgress             somebody else is writing a summary
│   ├── CompactionCovered                a later summary covers the one to be taken back
│   ├── UndoUnavailable                  there is nothing to take back, or its originals are gone
│   └── SummarizerFailed                 every summarizer of the chain failed
└── BudgetError
    ├── ContextOverflow                  the context cannot be made to fit the limit
    ├── BudgetImpossible                 the fixed part alone leaves no room
    └── ContextRefused                   the model refused a context for its size, and the smaller one too
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from timeline.usage import Usage


_MOST: Final = 2_000
"""Characters that are kept of an error's words: an SDK's may hold a whole response."""


class TimelineError(Exception):
    """Root of everything that this library raises on purpose."""


def described(error: BaseException) -> str:
    """Return an error's type and words as a text that can always be stored: valid UTF-8, of bounded length."""
    try:
        said = str(error)
    except Exception as broken:  # noqa: BLE001 - the class is an application's; its own failure must not hide the first
        said = f"its message cannot be read ({type(broken).__name__})"
    return brief(f"{type(error).__name__}: {said}")


def brief(text: str) -> str:
    """Return a text of other people's code as it can be stored: lone surrogates as "?", cut at 2,000 characters."""
    repaired = text.encode(errors="replace").decode()
    return repaired if len(repaired) <= _MOST else f"{repaired[:_MOST]}… ({len(repaired):,} characters)"


class InvalidBlock(TimelineError, ValueError):
    """A block or event was refused before anything was written; ``field`` names the offending field."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"{self._what} {field!r}: {problem}. Nothing was written.")

    _what = "Invalid block, field"


class InvalidArgument(InvalidBlock):
    """An argument of a method cannot be used, and was refused before anything was written; ``field`` names it."""

    _what = "Invalid argument"


class InvalidPolicy(TimelineError, ValueError):
    """A policy field does not hold; ``field`` names it, and ``file`` the file that it stands in, if it does.

    ``field`` is empty where the file as a whole cannot be used.
    """

    def __init__(self, field: str, problem: str, *, file: str = "") -> None:
        self.field = field
        self.problem = problem
        self.file = file
        where = f" in {file}" if file else ""
        super().__init__(f"Invalid policy{where}{_field(field)}: {problem}.")


class InvalidLimits(TimelineError, ValueError):
    """A file with model limits cannot be used; ``field`` is empty where it cannot as a whole."""

    def __init__(self, file: str, field: str, problem: str) -> None:
        self.file = file
        self.field = field
        self.problem = problem
        super().__init__(f"Invalid limits in {file}{_field(field)}: {problem}.")


class InvalidPrices(TimelineError, ValueError):
    """A file with prices and cache rules cannot be used; ``field`` is empty where it cannot as a whole."""

    def __init__(self, file: str, field: str, problem: str) -> None:
        self.file = file
        self.field = field
        self.problem = problem
        super().__init__(f"Invalid prices in {file}{_field(field)}: {problem}.")


def _field(name: str) -> str:
    return f", field {name!r}" if name else ""


class UnknownResponse(TimelineError, TypeError):
    """What should be recorded is no response of a model; ``got`` says what it is."""

    def __init__(self, got: str) -> None:
        self.got = got
        super().__init__(
            f"No response that can be recorded: {got}. Accepted are an Anthropic message, an OpenAI chat completion, "
            "an OpenAI response and a Google content response, each as the SDK's object or its dict; a stream of them "
            "goes to `recording` or `record_stream`. Nothing was written."
        )


class InvalidFilter(TimelineError, ValueError):
    """A filter of a query cannot be used; ``field`` names it, and the problem says the cure."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"Invalid filter, {field!r}: {problem}.")


class ImportFailed(TimelineError):
    """The file is no recording that can be read; nothing was imported."""

    def __init__(self, source: str, problem: str) -> None:
        self.source = source
        self.problem = problem
        super().__init__(f"{source}: {problem}")


class MissingExtra(TimelineError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(f"{package} is not installed. Install it with: pip install 'timeline-engine[{extra}]'")


class BlockNotFound(TimelineError, LookupError):
    """No block of the conversation has this path."""

    def __init__(self, conversation: str, path: str) -> None:
        self.conversation = conversation
        self.path = path
        super().__init__(f"No block {path!r} in conversation {conversation!r}. `timeline show` lists its paths.")


class StageNotFound(TimelineError, LookupError):
    """No stage of this name stands; ``standing`` lists the names of those that do."""

    def __init__(self, conversation: str, stage: str, standing: Sequence[str]) -> None:
        self.conversation = conversation
        self.stage = stage
        self.standing = list(standing)
        there_are = f"; there are {', '.join(self.standing)}" if self.standing else ", and no other does"
        super().__init__(f"No stage {stage!r} stands in conversation {conversation!r}{there_are}. Nothing was written.")


class StageRefused(TimelineError):
    """A stage cannot be entered, approved or gone back to now; ``reason`` says why, and the cure."""

    def __init__(self, conversation: str, stage: str, reason: str) -> None:
        self.conversation = conversation
        self.stage = stage
        self.reason = reason
        named = f", stage {stage!r}" if stage else ""
        super().__init__(f"Conversation {conversation!r}{named}: {reason}. Nothing was written.")


class BlockProtected(TimelineError):
    """A decision about one block does not hold now; ``reason`` says why. Nothing was written."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"Block {path!r} stays as it is: {reason}.")


class HistoryUnavailable(TimelineError, LookupError):
    """The log holds only the versions from ``first_version`` to ``last_version``."""

    def __init__(self, conversation: str, version: int, first_version: int, last_version: int) -> None:
        self.conversation = conversation
        self.version = version
        self.first_version = first_version
        self.last_version = last_version
        super().__init__(
            f"Conversation {conversation!r} cannot be seen at version {version}: it holds the versions "
            f"{first_version} to {last_version}. Name one of these."
        )


class ContextNotFound(TimelineError, LookupError):
    """No recorded context has this name; ``recorded`` lists those that there are as (number, version of the event)."""

    def __init__(self, name: str, recorded: Sequence[tuple[int, int]]) -> None:
        self.name = name
        self.recorded = list(recorded)
        newest = ", ".join(f"#{number} (version {version})" for number, version in self.recorded[-5:])
        there_are = f"There are {len(self.recorded)}, the newest {newest}" if newest else "There is none yet"
        super().__init__(
            f"No recorded context {name!r}. {there_are}. Name one as #number, version, last or last~1; "
            "rendering records one."
        )


class ContextUnavailable(TimelineError):
    """A recorded context cannot be built again.

    ``reason`` is ``projection``, ``unrecorded_prefix``, ``policy``, ``redacted`` or ``mismatch``.
    """

    def __init__(self, version: int, reason: str) -> None:
        self.version = version
        self.reason = reason
        super().__init__(f"The context of version {version} cannot be built again: {_UNAVAILABLE[reason]}.")


_UNAVAILABLE: Final = {
    "projection": "another version of this library recorded it; use that one",
    "unrecorded_prefix": "its system prompt, tools or tail were kept as hashes only; record contexts in full",
    "policy": "its policy is not in the store, or of a later version of this library",
    "redacted": "something that it showed is redacted, and was left out when the log was exported",
    "mismatch": "what is built differs from what was recorded; `timeline verify` says more",
}


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


class CompactionError(TimelineError):
    """A compaction did not happen; the conversation is as it was."""


class CompactionRefused(CompactionError):
    """Compacting now would gain nothing. ``reason`` is one of the values of ``RefusalReason``."""

    def __init__(self, reason: str, facts: Mapping[str, Any]) -> None:
        self.reason = reason
        self.facts = dict(facts)
        detail = ", ".join(f"{k} {v}" for k, v in self.facts.items())
        cure = _REFUSAL_CURES.get(reason, "")
        super().__init__(f"Compaction refused ({reason}): {detail}. The context is unchanged.{cure and ' '}{cure}")


_REFUSAL_CURES: Final = {
    "nothing_to_cover": "Only what must stay is left; try again when newer turns stand behind it, or unpin some.",
    "no_progress": "Try again when the conversation has grown, or lower keep_recent or min_progress of the policy.",
    "vetoed": "The application's on_before_compaction hook forbade it.",
}


class CompactionSuperseded(CompactionError):
    """What was to be summarised changed while the summary was written, and for good; nothing was covered."""


class CompactionInProgress(CompactionError):
    """Somebody else is writing a summary of this conversation, at the latest until ``expires_at``."""

    def __init__(self, conversation: str, version: int, expires_at: datetime) -> None:
        self.conversation = conversation
        self.version = version
        self.expires_at = expires_at
        super().__init__(
            f"Conversation {conversation!r} is being optimized, please wait a moment: a compaction began at version "
            f"{version} and may take until {expires_at.isoformat()}. compact(wait=True) waits for it."
        )


class CompactionCovered(CompactionError):
    """The compaction cannot be taken back alone: the summary of a later one covers its own. ``by`` is its version."""

    def __init__(self, version: int, by: int) -> None:
        self.version = version
        self.by = by
        super().__init__(
            f"The compaction of version {version} is covered by the later one of version {by}. "
            "Take that one back first, or both with cascade=True."
        )


class UndoUnavailable(CompactionError):
    """A compaction cannot be taken back; ``reason`` says why."""

    def __init__(self, conversation: str, reason: str) -> None:
        self.conversation = conversation
        self.reason = reason
        super().__init__(f"No compaction of conversation {conversation!r} was taken back: {reason}.")


Cause: TypeAlias = Literal[
    "rate_limit",
    "overloaded",
    "server",
    "authentication",
    "context_limit",
    "connection",
    "timeout",
    "refused",
    "length",
    "empty",
    "too_long",
    "cancelled",
    "error",
]
"""Why a model gave no usable summary: its provider refused or failed, the way there did, the model declined
(``refused``), was stopped by its output limit (``length``), said nothing or said too much, or the summarizer's own code
cancelled it (``cancelled``); ``error`` is all else."""


class SummarizerFailed(CompactionError):
    """Every summarizer of the chain failed.

    ``problems`` says how each one did, ``cause`` why the first of them did, ``usage`` what their answers were reported
    to have taken all the same, None where nobody reported any.
    """

    def __init__(self, problems: Sequence[str], *, cause: Cause = "error", usage: Usage | None = None) -> None:
        self.problems = [brief(problem) for problem in problems]
        self.cause: Cause = cause
        self.usage = usage
        super().__init__(
            f"No summary: {'; '.join(self.problems)}. "
            "Nothing was covered; mend the summarizer, or put the extractive one behind it."
        )


class BudgetError(TimelineError):
    """The context and the limit cannot be brought together."""


class ContextOverflow(BudgetError):
    """The context is above the limit and cannot be made smaller.

    ``account`` is the token account by category, ``largest_blocks`` lists ``(path, tokens)``, largest first.
    """

    def __init__(self, account: Mapping[str, int], largest_blocks: Sequence[tuple[str, int]]) -> None:
        self.account = dict(account)
        self.largest_blocks = list(largest_blocks)
        largest = ", ".join(f"{path} ({tokens})" for path, tokens in self.largest_blocks[:3])
        super().__init__(
            f"The context needs {self.account.get('total')} tokens and the limit is {self.account.get('limit')}. "
            f"Largest blocks: {largest}. Raise max_tokens, or begin a new conversation."
        )


class BudgetImpossible(BudgetError):
    """System prompt, tools and reserves alone leave no room for a conversation."""

    def __init__(self, account: Mapping[str, int]) -> None:
        self.account = dict(account)
        super().__init__(
            f"The fixed part takes {self.account.get('fixed')} of {self.account.get('limit')} tokens and leaves no "
            "room for a summary and the newest messages. Raise max_tokens, or shorten the system prompt and tools."
        )


class ContextRefused(BudgetError):
    """The model refused a context for its size, and no smaller one could be made that it takes.

    Attributes:
        sent: sizes of the contexts that it refused, in our tokens, in order.
        limit: the limit that the provider named, in its own tokens; None where it named none.
        target: what the context was to be compacted to, in our tokens.
        tried: what the compaction did, or why it did nothing.
    """

    def __init__(self, *, sent: Sequence[int], limit: int | None, target: int, tried: Sequence[str]) -> None:
        self.sent = list(sent)
        self.limit = limit
        self.target = target
        self.tried = list(tried)
        named = f" (it named a limit of {limit})" if limit is not None else ""
        super().__init__(
            f"The model refused contexts of {', then '.join(map(str, self.sent))} tokens{named}. Compacting to "
            f"{target} tokens came to: {'; '.join(self.tried) or 'nothing'}. Lower max_tokens of the policy below the "
            "model's limit, shorten the system prompt and tools, or begin a new conversation."
        )


@contextmanager
def needs(package: str, extra: str | None = None) -> Iterator[None]:
    """Import an optional package inside this, so that a missing one is told by the extra that brings it.

    Args:
        package: the distribution's name.
        extra: of timeline-engine; the package's own name unless given.

    Raises:
        MissingExtra: a module that is imported inside is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(package, extra or package) from error
