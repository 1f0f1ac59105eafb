"""Run the work of a comparison (files by policies by limits) on this machine's cores, or on an executor.

The outcomes come back in the order of the work, and are the same on any number of cores. A Dask cluster (extra
``dask``) runs the work on several machines.
"""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from concurrent.futures import FIRST_COMPLETED, Executor, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from threading import active_count
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final

from timeline.errors import ImportFailed, needs
from timeline.lab.work import MOST_FILES, Begun, Outcome, Work, carry_out_all, make_ready

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future
    from multiprocessing.context import BaseContext

    from timeline.lab.cache_files import OutcomeFolder
    from timeline.lab.work import Options
    from timeline.policy.model import Policy

_ENDING: Final = 0.1
"""Seconds at most in which a thread that was joined is off the kernel's list, on a busy machine."""
_WHOLE: Final = 9 / 8
"""Of its part of all work a process may get so much before a file is divided: two that divide one replay its beginning
twice, which takes longer than that one of them waits for the other."""
_BEGUN: Final = Begun()
"""What the replays of this process have in common, where it is one of several."""


@contextmanager
def dask_executor(cluster: Any) -> Iterator[Executor]:
    """Connect to a cluster, and yield an executor for `timeline.lab.runner.run`.

    Its workers need the same version of this library, and the files under the same names.

    Args:
        cluster: the address of a scheduler (``tcp://host:8786``), or a cluster of Dask's such as ``LocalCluster``.

    Raises:
        MissingExtra: ``distributed`` is not installed.
        OSError: the address does not answer.
        ValueError: it is no address.
    """
    with needs("distributed", "dask"):
        from distributed import Client  # noqa: PLC0415 - an optional extra
    client: Any = Client  # it has no types
    with client(cluster, set_as_default=False) as connected, connected.get_executor(pure=False) as executor:
        yield executor


def plan(files: Sequence[str], policies: Sequence[tuple[str, Policy]], options: Options) -> list[Work]:
    """Return the work of a comparison: every file under every policy, the units of a file together.

    Args:
        files: recordings.
        policies: each with its name, its limit included.
        options: the options of the comparison.
    """
    return [Work(file=file, policy=policy, name=name, options=options) for file in files for name, policy in policies]


def run(
    works: Sequence[Work],
    *,
    jobs: int | None = None,
    executor: Executor | None = None,
    kept: OutcomeFolder | None = None,
    on_done: Callable[[int], None] = lambda _: None,
) -> list[Outcome]:
    """Run work, and return the outcomes in its order.

    Args:
        works: the units.
        jobs: the number of processes; one a core unless given. With one, everything runs in this process.
        executor: runs the units instead of processes of this machine, see `timeline.lab.runner`.
        kept: outcomes of earlier runs, which are reused; new outcomes are added to it.
        on_done: called with the number of finished units.

    Raises:
        OSError: the folder of the kept outcomes cannot be written.
    """
    outcomes: dict[int, Outcome] = {}
    for number, work in enumerate(works):
        if (known := _known(work, kept)) is not None:
            outcomes[number] = known
    left = {number: work for number, work in enumerate(works) if number not in outcomes}
    # The processes begin before anybody hears of it: a progress bar has a thread, and they are no forks beside one.
    with _carried_out(left, jobs or os.cpu_count() or 1, executor) as finished:
        on_done(len(outcomes))
        for number, outcome in finished:
            outcomes[number] = outcome
            if kept is not None:
                kept.keep(works[number], outcome)
            on_done(len(outcomes))
    return [outcomes[number] for number in range(len(works))]


def _known(work: Work, kept: OutcomeFolder | None) -> Outcome | None:
    try:
        return None if kept is None else kept.find(work)
    except ImportFailed as error:
        return Outcome.failed(error)


@contextmanager
def _carried_out(
    left: dict[int, Work], jobs: int, executor: Executor | None
) -> Iterator[Iterator[tuple[int, Outcome]]]:
    """Begin units, and yield what yields each outcome as it is finished."""
    if executor is None and min(jobs, len(left)) <= 1:
        yield zip(left, carry_out_all(left.values()), strict=True)
        return
    parts = shares(left, jobs) if executor is None else [[number] for number in left]
    with _pool(left, parts, jobs) if executor is None else _lent(executor) as pool:
        waiting: dict[Future[list[Outcome]], list[int]] = {
            pool.submit(_carry_out_all, [left[number] for number in part]): part for part in parts
        }
        try:
            yield _finished(waiting)
        finally:
            for future in waiting:
                future.cancel()


def _finished(waiting: dict[Future[list[Outcome]], list[int]]) -> Iterator[tuple[int, Outcome]]:
    """Yield the number and the outcome of units as they are finished, and forget what they waited for."""
    while waiting:
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            yield from zip(waiting.pop(future), future.result(), strict=True)


def shares(left: dict[int, Work], jobs: int) -> list[list[int]]:
    """Divide units among processes: a file's together, whose replays then have their beginning in common.

    A file that would give a process much more than its part of all work is divided, each unit a share of its own: else
    some processes would have nothing to do at the end. For the same reason long files and low limits, under which more
    is decided, come first.

    Args:
        left: the units, by their number.
        jobs: the number of processes.
    """
    of_file: defaultdict[str, list[int]] = defaultdict(list)
    size_of = {work.file: _bytes(work.file) for work in left.values()}
    for number, work in sorted(left.items(), key=lambda item: (-size_of[item[1].file], item[1].policy.max_tokens)):
        of_file[work.file].append(number)
    most = sum(size_of[work.file] for work in left.values()) / jobs * _WHOLE
    given, parts = [0] * jobs, list[list[int]]()
    for file, numbers in of_file.items():
        process, size = given.index(min(given)), size_of[file] * len(numbers)
        if given[process] + size <= most:
            given[process] += size
            parts.append(numbers)
        else:
            parts += [[number] for number in numbers]
    return parts


def _bytes(file: str) -> int:
    """Return the size of a file; 0 where it cannot be read, which its units then report."""
    try:
        return Path(file).stat().st_size
    except OSError:
        return 0


def _carry_out_all(works: Sequence[Work]) -> list[Outcome]:
    return [*carry_out_all(works, _BEGUN)]


@contextmanager
def _pool(left: dict[int, Work], parts: Sequence[Sequence[int]], jobs: int) -> Iterator[Executor]:
    """Yield a pool of processes, which have read already what several of them would read."""
    context = way_to_begin()
    if context.get_start_method() == "fork":
        first_of = {left[part[0]].file: left[part[0]] for part in reversed(parts)}
        shares_of = Counter(left[part[0]].file for part in parts)
        several = [work for file, work in first_of.items() if shares_of[file] > 1]
        # Of many files a process would have forgotten the first ones. One is read in any case: it starts the tokenizer.
        make_ready(several if several and len(first_of) <= MOST_FILES else [left[parts[0][0]]])
    with ProcessPoolExecutor(min(jobs, len(parts)), mp_context=context) as pool:
        yield pool


def way_to_begin() -> BaseContext:
    """Return how processes begin: as forks on Linux where this process has no other thread, else by themselves.

    A fork has all that is imported and read here: to begin by itself takes a process a second. But it would inherit the
    locks of threads that it does not have.
    """
    return get_context("fork" if sys.platform == "linux" and _is_alone() else "spawn")


def _is_alone() -> bool:
    """Return whether this process has a single thread by the kernel's list, which keeps one that ended for a moment."""
    until = monotonic() + _ENDING
    while len([*Path("/proc/self/task").iterdir()]) > 1:
        if active_count() > 1 or monotonic() > until:
            return False
        sleep(_ENDING / 100)
    return True


@contextmanager
def _lent(executor: Executor) -> Iterator[Executor]:
    """Yield the caller's executor without closing it."""
    yield executor
