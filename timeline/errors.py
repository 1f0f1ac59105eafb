"""Every error that the library raises on purpose, in one tree: facts as attributes, the cure in the message.

TimelineError
├── InvalidBlock (ValueError)            a block or event that may not be written
│   └── InvalidArgument                  an argument of a method that cannot be used
├── InvalidPolicy (ValueError)           a policy field with an invalid value
├── InvalidLimits (ValueError)           a file with model limits that cannot be used
├── InvalidPrices (ValueError)           a file with prices that cannot be used
├── UnknownResponse (TypeError)          a reply or stream whose shape is not known
├── InvalidFilter (ValueError)           a filter of a query that cannot be used
├── ImportFailed                         a file that is not a readable recording
├── MissingExtra (ImportError)           an optional dependency is not installed
├── BlockNotFound (LookupError)          no block at that path or address
├── StageNotFound (LookupError)          no current or approved stage of that name
├── StageRefused                         a stage that cannot be entered, approved or gone back to now
├── BlockProtected                       a block that may not be hidden, revealed or pinned now
├── HistoryUnavailable (LookupError)     the log does not hold that version, or it was scavenged
├── ContextNotFound (LookupError)        no recorded context of that name
├── ContextUnavailable                   a recorded context cannot be built again
├── CallNotFound (LookupError)           no model call of that number
├── CallUnavailable                      what was sent with a model call cannot be built again
├── StoreError
│   ├── ConversationNotFound (LookupError)
│   ├── ConversationErased (LookupError) the conversation was erased; its id can never be used again
│   ├── ForksRemain                      forks share the past of a conversation that is to be erased
│   ├── UnderLegalHold                   a legal hold forbids to remove anything
│   ├── RemovedMeanwhile                 content was removed from a conversation while it was exported or copied
│   ├── VersionConflict                  another writer appended first
│   ├── DuplicateEvent                   an event id is in the log already, from another append or with other content
│   ├── PathTaken                        a path is in use in this conversation
│   ├── StoreLocked / StoreReadOnly / StoreFull / StoreClosed
│   ├── StoreBusy                        the server is too slow for what waits to be written
│   ├── StoreUnavailable                 the server of the store cannot be reached
│   ├── AppendUncertain                  the commit of an append failed; its events may still turn up in the log
│   ├── StoreMoved                       the file was replaced while it was open, or the server lost the newest appends
│   ├── ScavengeInProgress               another process is removing history from the store
│   ├── WrongEventLoop (RuntimeError)    a store or conversation is used from another event loop than its own
│   ├── ForkedProcess (RuntimeError)     a store or conversation is used in a fork of its process
│   ├── SearchUnavailable                the SQLite library has no full-text search
│   └── StoreCorrupt
│       ├── NotAStore                    the file is not a timeline store
│       ├── StoreTooOld                  written by an earlier version, and open for reading only
│       └── StoreTooNew                  written by a later version
├── CompactionError
│   ├── CompactionRefused                nothing would be gained; the typed reason says why
│   ├── CompactionSuperseded             the log changed inside the planned range
│   ├── CompactionInProgress             another writer is writing a summary
│   ├── CompactionCovered                a later summary covers the summary to be undone
│   ├── UndoUnavailable                  there is no compaction to undo, or its originals are gone
│   └── SummarizerFailed                 every summarizer of the chain failed
└── BudgetError
    ├── ContextOverflow                  the context cannot be made to fit the limit
    ├── BudgetImpossible                 the fixed part alone leaves no room
    └── ContextRefused                   the model refused a context for its size, and the smaller one too
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from timeline.display.controls import show_controls

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from timeline.usage import Usage


_MOST: Final = 2_000
"""Most characters of a foreign error's message that are kept: an SDK's message may hold a whole response."""


_LONGEST_NAME: Final = 500
"""Most characters of a path, an id or a name that a message repeats: a whole text is a common mistake for one."""


class TimelineError(Exception):
    """Root of all errors that this library raises on purpose. Control characters in a message are visible."""

    def __str__(self) -> str:
        return show_controls(super().__str__())


def described(error: BaseException) -> str:
    """Return an error's type and message as text that can always be stored: valid UTF-8, of bounded length."""
    return brief(f"{type(error).__name__}: {message_of(error)}")


def message_of(error: BaseException) -> str:
    """Return the message of an error of any class; if it cannot be read, a text that says so."""
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001 - the class is an application's; its own failure must not hide the first
        return f"its message cannot be read ({type(broken).__name__})"


def brief(text: str) -> str:
    """Return foreign text in a form that can be stored: with "?" for lone surrogates, cut at 2,000 characters."""
    repaired = text.encode(errors="replace").decode()
    return repaired if len(repaired) <= _MOST else f"{repaired[:_MOST]}… ({len(repaired):,} characters)"


def _shown(name: str) -> str:
    """Return a caller's name as a message repeats it: if it is far too long, only its beginning."""
    return repr(name) if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]!r}… ({len(name):,} characters)"


class InvalidBlock(TimelineError, ValueError):
    """A block or event was refused before anything was written; ``field`` names the offending field."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"{self._what} {field!r}: {problem}. Nothing was written.")

    _what = "Invalid block, field"


class InvalidArgument(InvalidBlock):
    """An argument of a method was refused before anything was written; ``field`` names it."""

    _what = "Invalid argument"


class InvalidPolicy(TimelineError, ValueError):
    """A policy field has an invalid value; ``field`` names it, and ``file`` names the policy file if there is one.

    ``field`` is empty if the file as a whole cannot be used.
    """

    def __init__(self, field: str, problem: str, *, file: str = "") -> None:
        self.field = field
        self.problem = problem
        self.file = file
        where = f" in {file}" if file else ""
        super().__init__(f"Invalid policy{where}{_field(field)}: {problem}.")


class InvalidLimits(TimelineError, ValueError):
    """A file with model limits cannot be used; ``field`` is empty if the whole file is at fault."""

    def __init__(self, file: str, field: str, problem: str) -> None:
        self.file = file
        self.field = field
        self.problem = problem
        super().__init__(f"Invalid limits in {file}{_field(field)}: {problem}.")


class InvalidPrices(TimelineError, ValueError):
    """A file with prices and cache rules cannot be used; ``field`` is empty if the whole file is at fault."""

    def __init__(self, file: str, field: str, problem: str) -> None:
        self.file = file
        self.field = field
        self.problem = problem
        super().__init__(f"Invalid prices in {file}{_field(field)}: {problem}.")


def _field(name: str) -> str:
    return f", field {name!r}" if name else ""


class UnknownResponse(TimelineError, TypeError):
    """The value to record is not a model response; ``got`` says what it is."""

    def __init__(self, got: str) -> None:
        self.got = got
        super().__init__(
            f"Not a model response: {got}. Pass an Anthropic message, an OpenAI chat completion, "
            "an OpenAI response or a reply of Google's or Ollama's, as the SDK's object "
            "or its dict. Pass a stream to `recording` or `record_stream`, a message to `append_messages`. "
            "Nothing was written."
        )


class InvalidFilter(TimelineError, ValueError):
    """A filter of a query cannot be used; ``field`` names it, and the message gives the cure."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"Invalid filter, {field!r}: {problem}.")


class ImportFailed(TimelineError):
    """The file is not a readable recording; nothing was imported."""

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
    """No block of the conversation has this path or address.

    ``nearest`` lists the most similar paths or addresses, best first. ``problem`` says what an address names instead of
    a block; it is empty for an unknown path.
    """

    def __init__(self, conversation: str, path: str, nearest: Sequence[str] = (), *, problem: str = "") -> None:
        self.conversation = conversation
        self.path = path
        self.nearest: list[str] = list(nearest)
        self.problem = problem
        why = f": {problem}" if problem else ""
        cure = f"Did you mean {self.nearest[0]}?" if self.nearest else "`timeline show` lists its paths."
        super().__init__(f"No block {_shown(path)} in conversation {conversation!r}{why}. {cure}")


class StageNotFound(TimelineError, LookupError):
    """No current or approved stage has this name; ``standing`` lists the names of those there are."""

    def __init__(self, conversation: str, stage: str, standing: Sequence[str]) -> None:
        self.conversation = conversation
        self.stage = stage
        self.standing: list[str] = list(standing)
        cure = f"Name one of: {', '.join(self.standing)}" if self.standing else "It has no stages; enter one first"
        super().__init__(f"No stage {_shown(stage)} in conversation {conversation!r}. {cure}. Nothing was written.")


class StageRefused(TimelineError):
    """A stage cannot be entered, approved or rewound to now; ``reason`` says why, and the cure."""

    def __init__(self, conversation: str, stage: str, reason: str) -> None:
        self.conversation = conversation
        self.stage = stage
        self.reason = reason
        named = f", stage {stage!r}" if stage else ""
        super().__init__(f"Conversation {conversation!r}{named}: {reason}. Nothing was written.")


class BlockProtected(TimelineError):
    """The block cannot be hidden, revealed, pinned, unpinned or gone back behind now; ``reason`` says why.

    Nothing was written.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"Block {path!r} stays as it is: {reason}.")


class HistoryUnavailable(TimelineError, LookupError):
    """The log does not hold this version; it holds the versions from ``first_version`` to ``last_version``.

    ``scavenged`` is True if `timeline scavenge` removed what is missing.
    """

    def __init__(
        self, conversation: str, version: int, first_version: int, last_version: int, *, scavenged: bool = False
    ) -> None:
        self.conversation = conversation
        self.version = version
        self.first_version = first_version
        self.last_version = last_version
        self.scavenged = scavenged
        there_are = f"{first_version} to {last_version}"
        super().__init__(
            f"Version {version} of conversation {conversation!r} was removed by `timeline scavenge`, and so was what "
            f"is made of it. The log still holds versions {there_are}; look for earlier ones in a backup, or in an "
            "export made before."
            if scavenged
            else f"Conversation {conversation!r} cannot be seen at version {version}: it holds the versions "
            f"{there_are}. Name one of these."
        )


class ContextNotFound(TimelineError, LookupError):
    """No recorded context has this name; ``recorded`` lists the recorded ones as (number, version of the event)."""

    def __init__(self, name: str, recorded: Sequence[tuple[int, int]]) -> None:
        self.name = name
        self.recorded: list[tuple[int, int]] = list(recorded)
        newest = ", ".join(f"#{number} (version {version})" for number, version in self.recorded[-5:])
        there_are = f"There are {len(self.recorded)}, the newest {newest}" if newest else "There is none yet"
        super().__init__(
            f"No recorded context {_shown(name)}. {there_are}. Name one as #number, version, last or last~1; "
            "rendering records one."
        )


class ContextUnavailable(TimelineError):
    """A recorded context cannot be built again.

    ``reason`` is ``projection``, ``unrecorded_prefix``, ``policy``, ``redacted``, ``retention`` or ``mismatch``.
    """

    def __init__(self, version: int, reason: str) -> None:
        self.version = version
        self.reason = reason
        super().__init__(f"The context of version {version} cannot be built again: {_UNAVAILABLE[reason]}.")


_UNAVAILABLE: Final = {
    "projection": "another version of this library recorded it; use that version",
    "unrecorded_prefix": "only hashes of its system prompt, tools or tail were kept; record contexts in full",
    "policy": "its policy is missing from the store, or was written by a later version of this library",
    "redacted": "something that it showed was redacted, and what was made of it is gone or written anew",
    "retention": "`timeline scavenge` removed events that it was made of; a backup or an export made before has them",
    "mismatch": "the rebuilt bytes differ from the recorded ones; `timeline verify` says more",
}


class CallNotFound(TimelineError, LookupError):
    """No model call has this number, or it was scavenged.

    ``near`` lists the nearest numbers that exist. ``calls`` is how many calls were recorded: a missing number up to
    that was scavenged.
    """

    def __init__(self, conversation: str, number: int, near: Sequence[int], calls: int) -> None:
        self.conversation = conversation
        self.number = number
        self.near: list[int] = list(near)
        self.calls = calls
        listed = ", ".join(map(str, near))
        if near and 1 <= number <= calls:
            gone = f"Call {number} of conversation {conversation!r} was scavenged"
            what = f"{gone}; the nearest that are left are {listed}"
            cure = "`timeline calls` lists those that are left; an export or a backup from before has the others"
        else:
            nearest = f"There are {calls}; the nearest are {listed}" if near else "There is none"
            what = f"No call {number} in conversation {conversation!r}. {nearest}"
            cure = "`timeline calls` lists them; `record` and `record_model_call` make them"
        super().__init__(f"{what}. {cure}.")


class CallUnavailable(TimelineError):
    """What was sent with a model call cannot be shown.

    ``reason`` is ``request``, ``unrecorded``, ``wire``, or a reason of `ContextUnavailable`.
    """

    def __init__(self, number: int, reason: str) -> None:
        self.number = number
        self.reason = reason
        why = _UNAVAILABLE_CALL.get(reason) or _UNAVAILABLE[reason]
        super().__init__(f"What call {number} was sent cannot be built again: {why}.")


_UNAVAILABLE_CALL: Final = {
    "request": "its request was not recorded; pass the request to record(…, request=…)",
    "unrecorded": "its context was not recorded; render with record=True, and make the request of that context. "
    "`why` and `render` show the log as it was then, with --at and the version that `timeline calls` lists",
    "wire": "another version of the wire's encoder wrote it; use the release of that time",
    "mismatch": "the rebuilt body has another sha256; `timeline verify` says more",
}


class StoreError(TimelineError):
    """The store could not do its work; no acknowledged event is lost."""


class ScavengeInProgress(StoreError):
    """Another process is scavenging the store; only one may at a time."""

    def __init__(self, expires_at: str) -> None:
        self.expires_at = expires_at
        super().__init__(
            f"Another process is scavenging this store; its lease lasts until {expires_at} and is renewed while it "
            "works. Wait until it is done and try again."
        )


class ConversationNotFound(StoreError, LookupError):
    """The store holds no conversation of this id; ``nearest`` lists the most similar ids, if they were looked up."""

    def __init__(self, conversation: str, nearest: Sequence[str] = ()) -> None:
        self.conversation = conversation
        self.nearest: list[str] = list(nearest)
        cure = f"Did you mean {' or '.join(self.nearest)}?" if self.nearest else "`timeline ls` lists what it holds."
        super().__init__(f"No conversation {_shown(conversation)} in this store. {cure}")


class ConversationErased(StoreError, LookupError):
    """A conversation was erased, and its id can never be used again; ``reason`` is the recorded reason."""

    def __init__(self, conversation: str, at: str, reason: str = "") -> None:
        self.conversation = conversation
        self.at = at
        self.reason = reason
        why = f" ({reason})" if reason else ""
        super().__init__(
            f"Conversation {conversation!r} was erased at {at}{why}. Its id stays taken; begin one under another id."
        )


class ForksRemain(StoreError):
    """A conversation cannot be erased while its forks share its past; ``forks`` lists them."""

    def __init__(self, conversation: str, forks: Sequence[str]) -> None:
        self.conversation = conversation
        self.forks: list[str] = list(forks)
        listed = ", ".join(map(repr, self.forks[:5])) + (" and more" if len(self.forks) > 5 else "")
        super().__init__(
            f"Conversation {conversation!r} has forks that share its past: {listed}. "
            'Erase them with it (forks="erase"), or let them keep a copy of what they share (forks="copy"); on the '
            "command line that is `timeline erase --forks erase` or `--forks copy`."
        )


class UnderLegalHold(StoreError):
    """Nothing of a conversation may be erased while a legal hold is on it."""

    def __init__(self, conversation: str) -> None:
        self.conversation = conversation
        super().__init__(
            f"Conversation {conversation!r} is under a legal hold: nothing of it may be erased. "
            "Take the hold off first: timeline retention ID --no-hold"
        )


class VersionConflict(StoreError):
    """The conversation is not at the expected version; nothing was written. Read again, then retry."""

    def __init__(self, conversation: str, expected: object, actual: int) -> None:
        self.conversation = conversation
        self.expected = expected
        self.actual = actual
        if isinstance(expected, int):
            problem = (
                f"is at version {actual}, not {expected}: another writer appended. "
                "Read the new events and append again."
            )
        elif actual:
            problem = f"exists already, at version {actual}. Choose another id, or open that one."
        else:
            problem = "does not exist. Choose the id of an existing one, or begin it."
        super().__init__(f"Conversation {conversation!r} {problem} Nothing was written.")


class DuplicateEvent(StoreError):
    """Event ids are in the log already, but from another append; nothing was written."""

    def __init__(self, conversation: str, event_id: str, problem: str) -> None:
        self.conversation = conversation
        self.event_id = event_id
        super().__init__(f"Event {event_id} of conversation {conversation!r}: {problem}. Use a new id for a new event.")


class PathTaken(StoreError):
    """The path is in use, and a path names one block for ever. Nothing was written."""

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


class AppendUncertain(StoreError):
    """The commit of an append failed; its events may still turn up in the log, after a crash or on a server.

    It is also raised if the commit was done, but nobody can see whether the file is still in its place.

    Append the same events again: those that are there by then are not written twice. Until such an append is
    acknowledged, their fate is open; `EventStore.known_ids` with ``ids`` says which of them the log holds at the
    moment.

    Attributes:
        conversation: the conversation's id.
        ids: the ids of the events, in order.
        arguments: the arguments of the append: ``await store.append(**error.arguments)`` repeats it.
    """

    def __init__(
        self,
        where: str,
        problem: str,
        ids: Sequence[UUID],
        arguments: Mapping[str, Any],
        *,
        known: str,
    ) -> None:
        self.conversation: str = arguments["conversation"]
        self.ids: list[UUID] = list(ids)
        self.arguments: dict[str, Any] = dict(arguments)
        what = f"the commit of {len(self.ids)} {'event' if len(self.ids) == 1 else 'events'}"
        super().__init__(
            f"{where}: {what} to conversation {self.conversation!r} failed ({problem}). {known}, and append the same "
            "events again, under their ids (store.append(**error.arguments)): what is there by then is not written "
            "twice."
        )


class StoreMoved(StoreError):
    """The store lost events, or is another one: what was read from it or written to it may be gone.

    Either the database file was deleted, renamed, replaced or overwritten while it was open. The newest appends may be
    in the old file only, and the store takes no more: open the store again, and append again. Or a server took over
    that lacks the newest appends, or an older copy was restored on the server: open the conversation again, and append
    what is missing.
    """


class RemovedMeanwhile(StoreError):
    """Content of a conversation was redacted, scavenged or erased while it was exported or copied.

    What was written until then may hold that content; ``cure`` says what to do.
    """

    def __init__(self, conversation: str, cure: str) -> None:
        self.conversation = conversation
        self.cure = cure
        removed = "by a redaction, a scavenge or an erasure"
        super().__init__(f"Content of conversation {conversation!r} was removed while it was read, {removed}. {cure}.")


class StoreBusy(StoreError):
    """The server is too slow for what waits to be written; nothing was written. Wait a little, then try again."""


class StoreUnavailable(StoreError):
    """The server of the store cannot be reached; no acknowledged event is lost. Try again when it is back."""


class StoreClosed(StoreError):
    """The store was closed. Open it again with `open_store`."""


class WrongEventLoop(StoreError, RuntimeError):
    """A store or conversation was used from another event loop than the one that it belongs to; nothing was done.

    One loop cannot wake what waits in another, so such a call could wait for ever.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(
            f"{what} belongs to another event loop, the one in which it was opened. Nothing was done. Open a store "
            "in each event loop (several may have one database open), or use timeline.sync, which works from any "
            "thread."
        )


class ForkedProcess(StoreError, RuntimeError):
    """A store or conversation was used in a fork of the process that opened it; nothing was done.

    The threads that serve a store do not exist in a fork, and SQLite's connections do not survive one.
    """

    def __init__(self, what: str, process: int) -> None:
        self.what = what
        self.process = process
        super().__init__(
            f"{what} belongs to process {process}, of which this process is a fork. Nothing was done, and the store "
            "there goes on. Open the store only after the fork, or start this process in another way: "
            'multiprocessing.get_context("spawn") or "forkserver", or subprocess.'
        )


class SearchUnavailable(StoreError):
    """The SQLite library in use was built without FTS5. Use a Python whose SQLite has it; only search needs it."""


class StoreCorrupt(StoreError):
    """The database or one of its events is damaged; `timeline restore FILE` puts a backup in its place."""


class NotAStore(StoreCorrupt):
    """The file is not a timeline store."""


class StoreTooOld(StoreCorrupt):
    """The store was written by an earlier version. Open it once without ``readonly`` to bring it up to date."""


class StoreTooNew(StoreCorrupt):
    """The store, or an event of it, is of a later version of this library. Upgrade timeline-engine to read it."""


class CompactionError(TimelineError):
    """A compaction did not happen; the conversation is as it was."""


class CompactionRefused(CompactionError):
    """Compacting now would gain nothing. ``reason`` is one of the values of ``RefusalReason``."""

    def __init__(self, reason: str, facts: Mapping[str, Any]) -> None:
        self.reason = reason
        self.facts: dict[str, Any] = dict(facts)
        detail = ", ".join(f"{k} {v}" for k, v in self.facts.items())
        cure = _TOO_LITTLE_BEFORE if "until" in self.facts else _REFUSAL_CURES.get(reason, "")
        super().__init__(f"Compaction refused ({reason}): {detail}. The context is unchanged.{cure and ' '}{cure}")


_TOO_LITTLE_BEFORE: Final = "Too little is between the newest summary and the block ``until``; name a later one."
_REFUSAL_CURES: Final = {
    "nothing_to_cover": "Every block that is left must stay; try again after newer turns, or unpin some blocks.",
    "no_progress": "Try again when the conversation has grown, or lower keep_recent or min_progress of the policy.",
    "vetoed": "The application's on_before_compaction hook forbade it.",
}


class CompactionSuperseded(CompactionError):
    """The range to be summarised changed at every attempt while its summary was written; nothing was covered."""


class CompactionInProgress(CompactionError):
    """Another writer is writing a summary of this conversation, until ``expires_at`` at the latest."""

    def __init__(self, conversation: str, version: int, expires_at: datetime) -> None:
        self.conversation = conversation
        self.version = version
        self.expires_at = expires_at
        super().__init__(
            f"Conversation {conversation!r} is being optimized, please wait a moment: a compaction began at version "
            f"{version} and may take until {expires_at.isoformat()}. compact(wait=True) waits for it."
        )


class CompactionCovered(CompactionError):
    """The compaction cannot be undone alone: a later one covers its summary. ``by`` is the later one's version."""

    def __init__(self, version: int, by: int) -> None:
        self.version = version
        self.by = by
        super().__init__(
            f"The compaction of version {version} is covered by the later one of version {by}. "
            "Take that one back first, or both with cascade=True (timeline undo --cascade)."
        )


class UndoUnavailable(CompactionError):
    """The compaction cannot be undone; ``reason`` says why."""

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
"""Why a model gave no usable summary: its provider refused or failed; the connection failed; the model declined
(``refused``), was stopped by its output limit (``length``), said nothing (``empty``) or too much (``too_long``); or the
summarizer's own code cancelled it (``cancelled``). ``error`` is everything else."""


class SummarizerFailed(CompactionError):
    """Every summarizer of the chain failed.

    ``problems`` has one entry for each summarizer, ``cause`` says why the first one failed, and ``usage`` is the
    reported usage of their unusable answers, or None if no usage was reported.
    """

    def __init__(self, problems: Sequence[str], *, cause: Cause = "error", usage: Usage | None = None) -> None:
        self.problems: list[str] = [brief(problem) for problem in problems]
        self.cause: Cause = cause
        self.usage = usage
        super().__init__(
            f"No summary: {'; '.join(self.problems)}. "
            "Nothing was covered; fix the summarizer, or add the extractive one as a fallback."
        )


class BudgetError(TimelineError):
    """The context does not fit the limit."""


class ContextOverflow(BudgetError):
    """The context is above the limit and cannot be made smaller.

    ``account`` has the tokens by category, ``largest_blocks`` lists ``(path, tokens)``, largest first.
    """

    def __init__(self, account: Mapping[str, int], largest_blocks: Sequence[tuple[str, int]]) -> None:
        self.account: dict[str, int] = dict(account)
        self.largest_blocks: list[tuple[str, int]] = list(largest_blocks)
        largest = ", ".join(f"{path} ({tokens})" for path, tokens in self.largest_blocks[:3])
        needed = self.account.get("total", 0) - self.account.get("unsent", 0)
        super().__init__(
            f"The context needs {needed} tokens and the limit is {self.account.get('limit')}. "
            f"Largest blocks: {largest}. Raise max_tokens, or begin a new conversation."
        )


class BudgetImpossible(BudgetError):
    """System prompt, tools and reserves alone leave no room for a conversation."""

    def __init__(self, account: Mapping[str, int]) -> None:
        self.account: dict[str, int] = dict(account)
        fixed, reserved = self.account.get("fixed", 0), self.account.get("reserved", 0)
        named, cure = "", "shorten the system prompt and tools"
        if reserved:
            named = f" (the policy's own output_reserve and safety_buffer are {reserved} of them)"
        if 2 * reserved > fixed:
            cure = "lower output_reserve"
        super().__init__(
            f"The fixed part takes {fixed} of {self.account.get('limit')} tokens{named} and leaves no room for a "
            f"summary and the newest messages. Raise max_tokens, or {cure}."
        )


class ContextRefused(BudgetError):
    """The model refused a context for its size, and compacting gave no context that it accepts.

    Attributes:
        sent: sizes of the refused contexts in order, in the policy's tokens.
        limit: the limit that the provider named, in its own tokens; None if it named none.
        target: the size that the compaction aimed at, in the policy's tokens.
        tried: what the compaction did, or why it did nothing.
    """

    def __init__(self, *, sent: Sequence[int], limit: int | None, target: int, tried: Sequence[str]) -> None:
        self.sent: list[int] = list(sent)
        self.limit = limit
        self.target = target
        self.tried: list[str] = list(tried)
        named = f" (it named a limit of {limit})" if limit is not None else ""
        super().__init__(
            f"The model refused contexts of {', then '.join(map(str, self.sent))} tokens{named}. Compacting to "
            f"{target} tokens gave: {'; '.join(self.tried) or 'nothing'}. Lower max_tokens of the policy below the "
            "model's limit, shorten the system prompt and tools, or begin a new conversation."
        )


@contextmanager
def needs(package: str, extra: str | None = None) -> Iterator[None]:
    """Turn the failed import of an optional package into an error that names the extra to install.

    Put the imports inside this context manager.

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
