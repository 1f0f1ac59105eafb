"""Digests as rows: the rows that find a compaction, and the filters that select compactions.

The rows only lead to a compaction: a query answers from the compaction's event. The matching rules are here once,
for every store; a database narrows by its indexes first.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.blocks import instant_text, utc
from timeline.digest import Artifact, Command, Digest, FileUse, HiddenBlock, Problem, Search, ToolOutputs
from timeline.errors import InvalidFilter
from timeline.events import CompactionCompleted, CompactionReverted
from timeline.queries import StoredDigest

from .globs import parse_glob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from timeline.events import Event, Payload

    from .globs import Glob


DELETED: Final = "files_deleted"
FILE_LISTS: Final = ("artifacts", "files_read", "files_written", DELETED)
"""The lists of a digest whose entries have a path for a glob to match. An index leads to all but the deleted ones."""
EARLIEST: Final = ""
"""Sorts before every time in the log's form; ``LATEST`` sorts after all of them."""
LATEST: Final = "~"
_NAMES: Final = frozenset({"urls", "identifiers"})
_LISTS: Final = tuple(name for name in Digest.model_fields if name != "more" and name not in _NAMES)
"""The lists whose entries filters select; what a text names is found by a query of facts."""


class DigestEntry(NamedTuple):
    """One entry of a digest; entries of all lists have this one shape.

    Attributes:
        list: name of the list in `Digest`; ``number`` is the entry's place in it, from 0.
        number: see ``list``.
        subject: the file, the command, the query, the tool; for an artifact or a hidden block its path.
        tool: name of the tool, where the entry has one.
        path: the block to read.
        times: outputs of a tool, uses of a file, hits of a search.
        tokens: of a tool's outputs.
        exit_status: of a command.
        errors: number of failures in the entry.
        message: an error's message, a failed command's output, a hidden block's replacement.
    """

    list: str
    number: int
    subject: str
    tool: str | None = None
    path: str | None = None
    times: int | None = None
    tokens: int | None = None
    exit_status: int | None = None
    errors: int = 0
    message: str = ""


def has_row(entry: DigestEntry) -> bool:
    """Return whether an entry is a row of its own, since a filter asks for it; others are read from the event alone."""
    return entry.list in FILE_LISTS or entry.list == "commands" or entry.tool is not None or entry.errors > 0


class CompactionRow(NamedTuple):
    """The columns and entries that find a compaction without its event."""

    version: int
    at: str
    round: int
    source: str
    summary: str
    first: int | None
    last: int | None
    before_tokens: int
    after_tokens: int
    errors: int
    entries: tuple[DigestEntry, ...]


class Reversion(NamedTuple):
    """The compactions that one event undoes."""

    version: int
    reverted: tuple[int, ...]


def rows_of(version: int, at: str, payload: Payload) -> CompactionRow | Reversion | None:
    """Return the rows that an event adds; None for all events but compactions and their reversions."""
    if isinstance(payload, CompactionReverted):
        return Reversion(version, payload.versions)
    if not isinstance(payload, CompactionCompleted):
        return None
    entries = tuple(entries_of(payload.digest))
    bounds = payload.covers.ranges
    return CompactionRow(
        version=version,
        at=at,
        round=payload.round,
        source=payload.source,
        summary=payload.block.path,
        first=min((first for first, _ in bounds), default=None),
        last=max((last for _, last in bounds), default=None),
        before_tokens=payload.before_tokens,
        after_tokens=payload.after_tokens,
        errors=sum(entry.errors for entry in entries),
        entries=entries,
    )


def entries_of(digest: Digest) -> Iterator[DigestEntry]:
    """Return every entry of a digest, list by list."""
    for name in _LISTS:
        for number, item in enumerate(getattr(digest, name)):
            yield _entry(name, number, item)


def _entry(name: str, number: int, item: object) -> DigestEntry:
    match item:
        case Artifact(path=path):
            return DigestEntry(name, number, path, path=path)
        case ToolOutputs(tool=tool, count=times, tokens=tokens, errors=errors):
            return DigestEntry(name, number, tool, tool, times=times, tokens=tokens, errors=errors)
        case FileUse(file=file, tool=tool, path=path, times=times):
            return DigestEntry(name, number, file, tool, path, times=times)
        case Command(command=command, path=path, exit_status=status, failed=failed, output=output):
            return DigestEntry(
                name,
                number,
                command,
                path=path,
                exit_status=status,
                errors=int(failed),
                message=output if failed else "",
            )
        case Search(query=query, tool=tool, path=path, hits=hits):
            return DigestEntry(name, number, query, tool, path, times=hits)
        case HiddenBlock(path=path, replacement=replacement):
            return DigestEntry(name, number, path, path=path, message=replacement)
        case Problem(tool=tool, path=path, message=message):
            return DigestEntry(name, number, tool, tool, path, errors=1, message=message)
    return DigestEntry(name, number, str(item))


@dataclass(frozen=True, slots=True)
class DigestFilter:
    """The filters of `Queries.digests`, validated."""

    since: str
    until: str
    compaction_numbers: range | None
    tool: str | None
    glob: Glob | None
    command: str | None
    error: bool | str | None
    reverted: bool | None

    @classmethod
    def checked(
        cls,
        *,
        since: datetime | None,
        until: datetime | None,
        tool: str | None,
        path_glob: str | None,
        command: str | None,
        error: bool | str | None,
        compaction_number: int | range | None,
        reverted: bool | None,
    ) -> DigestFilter:
        """Validate filters.

        Raises:
            InvalidFilter: a filter cannot be used.
        """
        for field, text in (("tool", tool), ("command", command)):
            check_text(field, text)
        if not isinstance(error, bool):
            check_text("error", error)
        check_type("path_glob", path_glob)
        return cls(
            since=moment("since", since) or EARLIEST,
            until=moment("until", until) or LATEST,
            compaction_numbers=_numbers(compaction_number),
            tool=tool,
            glob=None if path_glob is None else parse_glob(path_glob),
            command=command,
            error=error,
            reverted=reverted,
        )

    def found(self, event: Event, reverted_by: int | None) -> StoredDigest | None:
        """Return a compaction as a search result, or None where a filter does not match it."""
        payload = event.payload
        if not isinstance(payload, CompactionCompleted) or not self._holds(event, payload.round, reverted_by):
            return None
        matched = self.matched(payload.digest)
        if matched is None:
            return None
        return StoredDigest(
            conversation=event.conversation,
            version=event.version,
            position=event.position,
            at=event.at,
            compaction_number=payload.round,
            path=payload.block.path,
            covers=payload.covers,
            digest=payload.digest,
            matched=matched,
            before_tokens=payload.before_tokens,
            after_tokens=payload.after_tokens,
            reverted_by=reverted_by,
            duration=payload.duration,
            unsaid=payload.unsaid,
        )

    def _holds(self, event: Event, compaction_number: int, reverted_by: int | None) -> bool:
        return (
            self.since <= instant_text(event.at) <= self.until
            and (self.compaction_numbers is None or compaction_number in self.compaction_numbers)
            and self.reverted in {None, reverted_by is not None}
        )

    def matched(self, digest: Digest) -> Digest | None:
        """Return the entries that the filters match, or None where a filter matches none.

        Filters that ask for no entry give an empty digest.
        """
        entries = list(entries_of(digest))
        if self.error is False and any(entry.errors for entry in entries):
            return None
        kept: set[tuple[str, int]] = set()
        for asked in self._asked():
            found = {(entry.list, entry.number) for entry in entries if asked(entry)}
            if not found:
                return None
            kept |= found
        lists: dict[str, Any] = {
            name: tuple(item for number, item in enumerate(getattr(digest, name)) if (name, number) in kept)
            for name in _LISTS
        }
        return Digest(**lists)

    def _asked(self) -> Iterator[Callable[[DigestEntry], bool]]:
        tool, glob, command, error = self.tool, self.glob, self.command, self.error
        if tool is not None:
            yield lambda entry: entry.tool == tool
        if glob is not None:
            yield lambda entry: entry.list in FILE_LISTS and glob.fits(entry.subject)
        if command is not None:
            yield lambda entry: entry.list == "commands" and command in entry.subject
        if error is True:
            yield lambda entry: entry.errors > 0
        elif isinstance(error, str):
            yield lambda entry: entry.errors > 0 and error in entry.message


def check_type(field: str, text: str | None) -> None:
    """Check a condition that is a text: a value of another type would find nothing, or fail where nobody sees why.

    Raises:
        InvalidFilter: it is of another type.
    """
    if text is not None and not isinstance(text, str):
        raise InvalidFilter(field, f"must be a text, not of type {type(text).__name__}")


def check_text(field: str, text: str | None) -> None:
    """Check a condition that is a text, and says something.

    Raises:
        InvalidFilter: it is of another type, or empty.
    """
    check_type(field, text)
    if text == "":
        raise InvalidFilter(field, "is an empty text, which everything contains; leave it out")


def moment(field: str, at: datetime | None) -> str | None:
    """Format a bound of a query in the log's form of time.

    Raises:
        InvalidFilter: it is no time, or one without a time zone, or none of UTC's years.
    """
    if at is None:
        return None
    if not isinstance(at, datetime):
        raise InvalidFilter(field, f"must be a moment, for example datetime.now(UTC), not of type {type(at).__name__}")
    try:
        return instant_text(utc(at))
    except ValueError as error:
        raise InvalidFilter(field, str(error)) from None


def _numbers(compaction_number: int | range | None) -> range | None:
    if isinstance(compaction_number, int):
        return range(compaction_number, compaction_number + 1)
    if compaction_number is not None and (compaction_number.step != 1 or not compaction_number):
        raise InvalidFilter(
            "compaction_number",
            f"{compaction_number} is not a range of numbers; range(2, 5) means the compactions 2, 3 and 4",
        )
    return compaction_number
