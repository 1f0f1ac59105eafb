"""The unit of work of a comparison: one file under one policy, a pure function of its argument and the file's bytes.

The same unit runs in this process, in others, and on other machines. Results are frozen, and failures are returned like
results, so that only values cross between processes.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from anyio.from_thread import start_blocking_portal
from pydantic import Field

import timeline
from timeline.databases import IsDatabase, read_file
from timeline.errors import ImportFailed, TimelineError
from timeline.frozen import Frozen, canonical_json, sha256_hex
from timeline.importers import read_recording
from timeline.lab.beginnings import Beginnings
from timeline.lab.facts.needs import needs_of
from timeline.lab.lifetimes import as_kept, priced_as_kept
from timeline.lab.prices import PriceTable, packaged_prices
from timeline.lab.replay import replay
from timeline.lab.results import FORMAT, RunResult
from timeline.lab.sizes import Measured, ReplayedPast, measure
from timeline.lab.summaries import RecordedSummaries
from timeline.lab.unrecorded import with_history
from timeline.log.collector import collector_at_rest
from timeline.policy.model import Policy
from timeline.portable import read_copies
from timeline.portable.stored import exported_conversations
from timeline.projection.project import PROJECTION
from timeline.usage import CacheKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from anyio.from_thread import BlockingPortal

    from timeline.importers.recording import Recording
    from timeline.lab.facts.needs import Needs
    from timeline.lab.prices import Price
    from timeline.portable.stored import StoredConversation
    from timeline.ports import Summarizer


MOST_FILES: Final = 8
"""Files whose conversations a process holds at a time."""
_MOST_BEGUN: Final = 2
"""Files of which what replays have in common is held at a time."""


class Options(Frozen):
    """The options that all runs of a comparison share.

    Attributes:
        prices: the price table; None for the packaged one.
        price_as: price every call as a call of this model; empty for the recorded models.
        fixed: tokens of system prompt and tools; None for the measured ones.
        subagents: replay a file's subagents and branches, too.
        summaries: use the extractive summarizer, or the recorded client's summaries while there are any.
        call: number of the first model call that is replayed; of a file of `timeline export` only.
        facts: find the facts that each recorded answer needs in the contexts, see `timeline.lab.facts`.
        cache: how the provider keeps prompts, see `timeline.lab.lifetimes`; None for as it was recorded.
        reserve: tokens of the limit that every policy leaves free for the answer; None for as many as each one does.
    """

    prices: PriceTable | None = None
    price_as: str = ""
    fixed: int | None = None
    subagents: bool = True
    summaries: Literal["extractive", "recorded"] = "extractive"
    call: int | None = None
    facts: bool = False
    cache: CacheKind | None = None
    reserve: int | None = Field(default=None, ge=0)

    def price_of(self) -> Callable[[str], Price]:
        """Return the function that returns the price of a model."""
        table = self.prices or packaged_prices()

        def price_of(model: str) -> Price:
            return table.price_of(self.price_as or model)

        return price_of if self.cache is None else priced_as_kept(price_of, self.cache, table)


class Work(Frozen):
    """One file under one policy.

    Attributes:
        file: a recording.
        policy: the policy, its limit included.
        name: the policy's name.
        options: the options of the comparison.
    """

    file: str
    policy: Policy
    name: str
    options: Options = Options()


class Failure(Frozen):
    """Why a file could not be run: the type of the error, and its message."""

    type: str
    message: str


class Outcome(Frozen):
    """The outcome of a unit of work: a run for each conversation of the file with model calls, or a failure."""

    runs: tuple[RunResult, ...] = ()
    failure: Failure | None = None

    @classmethod
    def failed(cls, error: TimelineError) -> Outcome:
        """Return the outcome of a unit that an error ended."""
        return cls(failure=Failure(type=type(error).__name__, message=str(error)))


def carry_out(work: Work) -> Outcome:
    """Run a unit of work; return its failure instead of raising it."""
    [outcome] = carry_out_all([work])
    return outcome


def carry_out_all(works: Iterable[Work], begun: Begun | None = None) -> Iterator[Outcome]:
    """Run units of work one after the other, in one event loop, and yield what becomes of each.

    A file is the same for all of them, however it changes meanwhile: its bytes are hashed once.

    Args:
        works: the units.
        begun: what their replays have in common with those of other units; None where there are none.
    """
    digest_of, begun = cache(_digest), Begun() if begun is None else begun
    with start_blocking_portal() as portal:
        for work in works:
            yield _carried_out(work, portal, digest_of, begun)


def _carried_out(work: Work, portal: BlockingPortal, digest_of: Callable[[str], str], begun: Begun) -> Outcome:
    try:
        source, measured, needs = _read(work, digest_of(work.file))
        with begun.taken(source, work.options) as beginnings, collector_at_rest():
            return portal.call(_replayed, work, [*zip(measured, needs, beginnings, strict=True)])
    except TimelineError as error:
        return Outcome.failed(error)


def make_ready(works: Iterable[Work]) -> None:
    """Read what units need, at most `MOST_FILES` files, so that processes which are forked from this one have it."""
    for work in works:
        with suppress(TimelineError):  # the unit itself reports it
            _read(work, _digest(work.file))


def _read(work: Work, digest: str) -> tuple[_Source, tuple[Measured, ...], tuple[Needs | None, ...]]:
    """Return the file of a unit, its conversations with their sizes, and what their answers need, where it is asked."""
    options = work.options
    source = _Source(work.file, digest, options.fixed, options.subagents, options.call)
    measured = _measured(source)
    return source, measured, _needed(source) if options.facts else (None,) * len(measured)


def key_of(work: Work) -> str:
    """Return a hash of everything that a unit's outcome depends on: the file's bytes, policy, options and versions.

    Raises:
        ImportFailed: the file cannot be read.
    """
    facts = {
        "file": _digest(work.file),
        "policy": work.policy.hash(),
        "options": work.options.model_dump(mode="json"),
        "prices": (work.options.prices or packaged_prices()).model_dump(mode="json"),
        "versions": [timeline.__version__, FORMAT, PROJECTION],
    }
    return sha256_hex(canonical_json(facts))


async def _replayed(work: Work, conversations: Sequence[tuple[Measured, Needs | None, Beginnings]]) -> Outcome:
    return Outcome(runs=tuple([await _run(work, *conversation) for conversation in conversations]))


async def _run(work: Work, measured: Measured, needs: Needs | None, beginnings: Beginnings) -> RunResult:
    options = work.options
    return await replay(
        measured if options.cache is None else as_kept(measured, options.cache),
        work.policy,
        options.price_of(),
        name=work.name,
        file=work.file,
        summarizer=_recorded(measured) if options.summaries == "recorded" else None,
        needs=needs,
        reserve=options.reserve,
        lead=beginnings.lead,
        alike=beginnings.alike,
    )


def _recorded(measured: Measured) -> Summarizer:
    from timeline import summarizers  # noqa: PLC0415 - the lazy re-export: the core does not import the package

    return RecordedSummaries(measured.recording, summarizers.ExtractiveSummarizer())


def measured_file(file: str) -> tuple[Measured, ...]:
    """Read a file and measure its conversations; those without model calls are left out.

    Raises:
        ImportFailed: it is not a recording, or cannot be read.
    """
    return _measured(_Source(file, _digest(file), fixed=None, subagents=True))


class Begun:
    """What the replays of files have in common, between the units that use it: one unit at a time.

    A run goes on where another one left it. A unit that finds it in use, in another thread, begins by itself.
    """

    def __init__(self) -> None:
        self._idle: dict[tuple[_Source, str], tuple[Beginnings, ...]] = {}
        self._lock = Lock()

    @contextmanager
    def taken(self, source: _Source, options: Options) -> Iterator[tuple[Beginnings, ...]]:
        """Take what the replays of a file's conversations have in common under some options, and give it back."""
        key = source, canonical_json(options.model_dump(mode="json"))
        with self._lock:
            known = self._idle.pop(key, None)
        beginnings = tuple(Beginnings() for _ in _measured(source)) if known is None else known
        try:
            yield beginnings
        finally:
            with self._lock:
                self._idle[key] = beginnings
                while len(self._idle) > _MOST_BEGUN:
                    del self._idle[next(iter(self._idle))]


class _Source(NamedTuple):
    """What is read of a file, as the key of what is made from it.

    Attributes:
        file: its name.
        digest: hash of its bytes, so that a changed file is read again.
        fixed, subagents, call: see `Options`.
    """

    file: str
    digest: str
    fixed: int | None
    subagents: bool
    call: int | None = None


@lru_cache(maxsize=MOST_FILES)
def _measured(source: _Source) -> tuple[Measured, ...]:
    """Read and measure a file once for all policies."""
    path = Path(source.file)
    copies = read_copies(path)
    if copies is not None:
        found = [_logged(stored, source.fixed, source.call) for stored in exported_conversations(path, copies)]
    elif source.call is not None:
        raise ImportFailed(source.file, "this is a recording, which is replayed from its beginning. Leave out --call.")
    else:
        found = [_recorded_whole(recording, source.fixed) for recording in read_recording(path)]
    return tuple(measured for measured in found[: None if source.subagents else 1] if measured.calls)


@lru_cache(maxsize=MOST_FILES)
def _needed(source: _Source) -> tuple[Needs, ...]:
    """Return what the answers of a file's conversations need: once for all policies."""
    return tuple(needs_of(measured) for measured in _measured(source))


def _recorded_whole(recording: Recording, fixed: int | None) -> Measured:
    """Measure a recording; unless the fixed part is given, with the history that a resumed one does not hold."""
    measured = measure(recording, fixed=fixed)
    return with_history(measured) if fixed is None else measured


def _logged(stored: StoredConversation, fixed: int | None, call: int | None) -> Measured:
    """Measure a log, whose past up to a call is taken as it was."""
    measured = measure(stored.recording, fixed=fixed)
    if call is None:
        return measured
    version = stored.before_call(call)
    return replace(measured, past=ReplayedPast(stored.events[:version], stored.position(version)))


def _digest(file: str) -> str:
    try:
        return sha256(read_file(file)).hexdigest()
    except IsDatabase:
        return sha256_hex(canonical_json(_stamps(Path(file))))
    except OSError as error:
        raise ImportFailed(file, f"it cannot be read: {error.strerror or error}.") from None


def _stamps(database: Path) -> list[list[int]]:
    """Return size and time of a database and of its write-ahead log, which change with whatever is written to it."""
    parts = (database, database.with_name(f"{database.name}-wal"))
    found = [part.stat() for part in parts if part.exists()]
    return [[part.st_size, part.st_mtime_ns] for part in found]
