"""`timeline copy`: bring the conversations of one store into another, event for event."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from timeline import open_store
from timeline.cli import output
from timeline.cli.database import reading
from timeline.cli.exits import Exit, UsageProblem, exit_code, one_line
from timeline.cli.output import note, progress, say
from timeline.errors import StoreCorrupt, StoreError, TimelineError
from timeline.portable import NotCopied, copy_conversations, copy_store
from timeline.projection.explain import counted
from timeline.store.opening import file_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from timeline.cli.shapes import CopiedRow, CopyRow
    from timeline.portable import Copied
    from timeline.ports import EventStore


async def copy(source: str, target: str, ids: Sequence[str], *, as_json: bool) -> int:
    """Copy conversations, and print what became of each; one that cannot be copied leaves out no other.

    Where a store fails on the way, what was copied until then is printed too. The copy can be repeated in either case.

    Raises:
        UsageProblem: both are the same store.
    """
    if _is_one(source, target):
        raise UsageProblem("--from and --to name the same store. Give --to another file or URL.")
    done: list[Copied | NotCopied] = []
    failed: list[TimelineError] = []
    async with reading(source, "--from") as store, open_store(await _place(store, ids, target)) as into:
        try:
            with progress("copying", await _size(store)) as advance:
                adding = _total(advance)
                outcomes = (
                    copy_conversations(store, ids, into, on_progress=adding)
                    if ids
                    else copy_store(store, into, on_progress=adding)
                )
                async for outcome in outcomes:
                    done.append(outcome)  # noqa: PERF401 - kept when a later one fails
        except StoreError as error:
            failed.append(error)
    failed = [one.error for one in done if isinstance(one, NotCopied)] + failed
    for problem in failed:
        note(one_line(problem))
    worst = max((exit_code(problem) for problem in failed), default=Exit.OK)
    if as_json:
        row: CopyRow = {"conversations": [_row(one) for one in done], "not_copied": len(failed)}
        output.write_json(row)
    else:
        _print(done, len(failed))
    return worst


def _is_one(source: str, target: str) -> bool:
    """Return whether both name one store; a file may be named by a link, or from another folder."""
    if source == target:
        return True
    with suppress(StoreError, FileNotFoundError):  # one of them is on a server or in memory, or is still to be made
        return file_of(source).samefile(file_of(target))
    return False


async def _place(store: EventStore, ids: Sequence[str], target: str) -> str:
    """Return where to copy to: memory where the store has none of the conversations, so that no store is made."""
    for id_ in ids:
        try:
            await store.info(id_)
        except TimelineError:
            continue
        return target
    return "memory://" if ids else target


async def _size(store: EventStore) -> int:
    """Return the number of events; of those conversations alone that can be listed."""
    events = 0
    with suppress(StoreCorrupt):  # the copy names it, behind the others
        async for info in store.conversations():
            events += info.version - info.base
    return events


def _total(advance: Callable[[int], None]) -> Callable[[str, int], None]:
    """Return a progress that adds up the events of all conversations."""
    reached: dict[str, int] = {}
    total = 0

    def on_progress(conversation: str, events: int) -> None:
        nonlocal total
        total += events - reached.get(conversation, 0)  # a sum over all would cost as many additions for each of them
        reached[conversation] = events
        advance(total)

    return on_progress


def _row(outcome: Copied | NotCopied) -> CopiedRow:
    if isinstance(outcome, NotCopied):
        why, events = one_line(outcome.error), outcome.events
        return {"id": outcome.conversation, "version": None, "events": events, "known": 0, "head": None, "problem": why}
    return {
        "id": outcome.conversation,
        "version": outcome.version,
        "events": outcome.events,
        "known": outcome.known,
        "head": outcome.head.hex(),
        "problem": None,
    }


def _print(done: Sequence[Copied | NotCopied], problems: int) -> None:
    copied = [one for one in done if not isinstance(one, NotCopied)]
    if copied:
        rows = [(one.conversation, one.version, one.events, one.known, one.head.hex()[:16]) for one in copied]
        output.table(("id", "version", "copied", "known", "head"), rows)
        output.write()
    events = counted(sum(one.events for one in done), "event", "events")
    conversations = len({one.conversation for one in copied})  # one that a fork shares may have come in two parts
    say(f"{events} copied and read back, {counted(conversations, 'conversation', 'conversations')}")
    if problems:
        found = counted(problems, "problem", "problems")
        say(f"{found}, see above; mend what it names, and the same command goes on where it stopped")
