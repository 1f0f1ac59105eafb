"""Verify a whole store in depth: every conversation, and everything that is derived from the log; and mend the latter.

What is derived is compared with what the log gives: indexes, digests, facts, the full-text index and the rows of
conversations by the store itself, snapshots here, by folding. Mending makes it anew and never changes an event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.audit.past import past_of
from timeline.audit.proof import prove
from timeline.audit.verify import VerifyReport, verify
from timeline.errors import VersionConflict
from timeline.frozen import Frozen
from timeline.log.listed import listed
from timeline.log.stored import busy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from timeline.audit.past import Past
    from timeline.errors import StoreCorrupt
    from timeline.ports import EventStore, Finding

_TRIES: Final = 20


class Difference(Frozen):
    """Something of a store that is not as the log has it.

    Attributes:
        what: ``file``, ``schema``, ``settings``, ``conversations``, ``snapshots``, ``waypoints`` (snapshots of
            the past), ``bases`` (those a scavenged log is folded from), ``erased``, ``values``, ``digests``, ``facts``,
            ``search``, ``references``, or, in a repair, ``events``. In a dry run ``unknown``: a log that does not
            read, while the indexes that lead to it are broken.
        problem: what is wrong.
        derivable: whether `repair` makes it anew; everything else has to come from a backup.
    """

    what: str
    problem: str
    derivable: bool


class DeepReport(Frozen):
    """The result of verifying a store in depth: what differs, and a report for each conversation; ``ok`` if none."""

    ok: bool
    differences: tuple[Difference, ...]
    conversations: tuple[VerifyReport, ...]


class RepairReport(Frozen):
    """The result of a repair.

    Attributes:
        done: False for a dry run, which changed nothing.
        mended: what was made anew, or would be.
        left: what cannot be made anew from the log: it has to come from a backup.
    """

    done: bool
    mended: tuple[Difference, ...]
    left: tuple[Difference, ...]


async def verify_deep(store: EventStore, *, on_progress: Callable[[int], None] = lambda _: None) -> DeepReport:
    """Verify every conversation of a store, and compare everything that is derived with the log.

    It reads all of the store, on a private copy of it where that takes writing, and changes nothing.

    Args:
        store: the store.
        on_progress: called with the number of conversations that were verified.

    Raises:
        StoreError: the store cannot be read at all.
    """
    differences = _differences(await store.examine())
    reports = []
    infos, unlisted = await listed(store)
    for id_ in [info.id for info in infos]:
        reports.append(await verify(store, id_))
        past = await past_of(store, id_)
        differences = [*_with_snapshot(differences, id_, past), *_of_past(id_, past)]
        on_progress(len(reports))
    differences = _with_unlisted(differences, unlisted)
    ok = not differences and all(report.ok for report in reports)
    return DeepReport(ok=ok, differences=tuple(differences), conversations=tuple(reports))


async def repair(store: EventStore, *, dry_run: bool = True) -> RepairReport:
    """Make anew what is derived from the log and differs from it; no event is changed.

    What was derived from events that are gone stays as it is. Appends go on meanwhile: they wait for a batch of it, not
    for the whole. It takes temporary room for a copy of the database, as `verify_deep` does.

    Args:
        store: the store.
        dry_run: only find out what would be made anew.

    Raises:
        StoreReadOnly: the store may not be written to.
        StoreError: the store cannot be read at all.
    """
    found = _differences(await (store.examine() if dry_run else store.mend()))
    infos, unlisted = await listed(store)
    for info in infos:
        found = await _with_its_past(store, info.id, found, replace=not dry_run)
    found = _with_unlisted(found, unlisted)
    mended = tuple(each for each in found if each.derivable)
    return RepairReport(done=not dry_run, mended=mended, left=tuple(each for each in found if not each.derivable))


async def _with_its_past(
    store: EventStore, id_: str, differences: Sequence[Difference], *, replace: bool
) -> list[Difference]:
    """Add what was found of a conversation's snapshots; put new ones in their places, if that is asked for.

    Where an append came in between, it begins again: a redaction takes content that a new snapshot would bring back.
    """
    for _ in range(_TRIES):
        version = (await store.info(id_)).version
        past = await past_of(store, id_)
        found = [*_with_snapshot(differences, id_, past), *_of_past(id_, past), *_lacking(id_, past)]
        found += await _not_as_written(store, id_, past, found, replaced=replace)
        if not replace:
            return found
        try:
            if past.made is not None and (past.is_lost or _of_snapshot(found, id_)):
                await store.replace_snapshot(id_, past.made, expected=version)
            if past.anew or past.beyond:
                await store.replace_waypoints(id_, past.anew, dropped=past.beyond, expected=version)
        except VersionConflict:
            continue
        return found
    raise busy(id_)


def _differences(findings: Iterable[Finding]) -> list[Difference]:
    return [Difference(what=f.what, problem=f.problem, derivable=f.derivable) for f in findings]


def _with_unlisted(differences: list[Difference], unlisted: StoreCorrupt | None) -> list[Difference]:
    """Add why not all conversations are listed as they are, where nothing else that was found says it."""
    if unlisted is None or differences:
        return differences
    return [Difference(what="conversations", problem=str(unlisted), derivable=False)]


def _with_snapshot(differences: Sequence[Difference], id_: str, past: Past) -> list[Difference]:
    """Add what was found of a conversation's snapshot, where the store did not find it already.

    What the store found can be made anew only where there is a log to make it from.
    """
    known = _of_snapshot(differences, id_)
    if known and past.made is None:
        return [each.model_copy(update={"derivable": False}) if each in known else each for each in differences]
    new = [] if known or not past.problem else [Difference(what="snapshots", problem=past.problem, derivable=True)]
    return [*differences, *new]


def _of_past(id_: str, past: Past) -> list[Difference]:
    problem = "that of {!r} at version {} is not what the log gives"
    return [
        Difference(what="waypoints", problem=problem.format(id_, version), derivable=True)
        for version in sorted([*past.wrong, *past.beyond])
    ]


def _lacking(id_: str, past: Past) -> list[Difference]:
    """Return what only a repair makes: nothing is wrong without it, but folding begins far from where it is to end."""
    found = []
    if past.is_lost:
        problem = f"{id_!r} lacks the snapshot from which it is opened"
        found.append(Difference(what="snapshots", problem=problem, derivable=True))
    if past.lacking:
        problem = f"{id_!r} lacks {past.lacking} snapshots of its past, from which it is folded"
        found.append(Difference(what="waypoints", problem=problem, derivable=True))
    return found


async def _not_as_written(
    store: EventStore, id_: str, past: Past, differences: Sequence[Difference], *, replaced: bool
) -> list[Difference]:
    """Return what only a backup has of a log: the event at which it does not read on, or what its chain does not prove.

    Before a repair it may be the file's broken indexes that do not lead to an event.
    """
    if past.unread:
        is_unknown = not replaced and any(each.what == "file" and each.derivable for each in differences)
        return [Difference(what="unknown" if is_unknown else "events", problem=past.unread, derivable=False)]
    known = {each.problem for each in differences}
    is_row_named = any(each.what == "conversations" and repr(id_) in each.problem for each in differences)
    proof = await prove(store, id_)
    problems = [each for each in proof.problems if each not in known and not (is_row_named and each == proof.of_row)]
    return [Difference(what="events", problem=each, derivable=False) for each in problems]


def _of_snapshot(differences: Iterable[Difference], id_: str) -> list[Difference]:
    return [each for each in differences if each.what == "snapshots" and repr(id_) in each.problem]
