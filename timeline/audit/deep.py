"""Verify a whole store in depth: every conversation, and all derived data; and mend the derived data.

Derived data is compared with what the log gives. The store itself compares indexes, digests, facts, the full-text index
and the rows of conversations; this module compares snapshots, by folding. A repair makes derived data anew, and never
changes an event.
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
    """A part of a store that differs from what the log gives.

    Attributes:
        what: ``file``, ``schema``, ``settings``, ``conversations``, ``snapshots``, ``waypoints`` (snapshots of
            the past), ``bases`` (those a scavenged log is folded from), ``erased``, ``values``, ``digests``, ``facts``,
            ``search``, ``references``, or, in a repair, ``events``. In a dry run ``unknown``: a log that does not
            read, while the indexes that lead to it are broken.
        problem: what is wrong.
        derivable: whether `repair` can make it anew; everything else has to come from a backup.
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

    Data derived from events that are gone stays as it is. Appends go on meanwhile: they wait for one batch of the
    repair, and not for all of it. A repair takes temporary room for a copy of the database, as `verify_deep` does.

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
    """Add the findings about a conversation's snapshots; replace wrong snapshots, if that is asked for.

    It begins again if an append came in between: a new snapshot would bring back content that was redacted just then.
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
    """Add why some conversations are not listed correctly, unless another finding says so already."""
    if unlisted is None or differences:
        return differences
    return [Difference(what="conversations", problem=str(unlisted), derivable=False)]


def _with_snapshot(differences: Sequence[Difference], id_: str, past: Past) -> list[Difference]:
    """Add the finding about a conversation's snapshot, unless the store found the fault already.

    A fault that the store found can be mended only where there is a log from which to make a snapshot.
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
    """Return the missing snapshots, which a repair makes: nothing is wrong, but folding takes longer without them."""
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
    """Return the faults of a log that only a backup can mend: an event that cannot be read, or a broken chain.

    Before a repair, an event may be unreadable only because broken indexes of the file do not lead to it.
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
