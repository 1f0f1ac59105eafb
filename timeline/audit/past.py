"""Fold a whole log once, and compare its stored snapshots with the fold: `past_of`.

It trusts no snapshot. On the way it makes new ones for those that differ, and for long stretches without one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from timeline.audit.ways_back import WaysBack
from timeline.errors import HistoryUnavailable, StoreCorrupt
from timeline.fold.fold import HistoryNeeded
from timeline.fold.snapshot import has_reports, is_due, take_snapshot
from timeline.log.history import base_fold, fold_history, undos

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from timeline.events import Event
    from timeline.fold.fold import Fold
    from timeline.ports import EventStore, Snapshot


@dataclass(slots=True)
class Past:
    """The findings about the snapshots of a conversation.

    Attributes:
        made: the snapshot that the log gives in place of the stored one; None where the log cannot be folded.
        problem: how the stored snapshot differs; empty where it does not.
        is_lost: whether there is none, though the conversation was compacted; ``made`` is then of the log's end.
        wrong: versions of the snapshots of the past that differ.
        beyond: versions of the snapshots of the past behind the log's end.
        lacking: how many snapshots are missing, and are to be made.
        anew: the snapshots to store in place of those that differ or are missing.
        unread: the damage of the log itself at which the fold ended; empty where it came to the end.
    """

    made: Snapshot | None = None
    problem: str = ""
    is_lost: bool = False
    wrong: list[int] = field(default_factory=list)
    beyond: list[int] = field(default_factory=list)
    lacking: int = 0
    anew: list[Snapshot] = field(default_factory=list)
    unread: str = ""


class _Unread(Exception):
    """An event of the log does not read."""


async def past_of(store: EventStore, id_: str) -> Past:
    """Compare the snapshots of a conversation with its log.

    A snapshot of an earlier release says less, and only that is compared. Where the log itself cannot be folded, its
    snapshots are not reported as wrong: a repair must not replace them when the log that they were made from is lost.
    """
    past = Past()
    stored: Snapshot | None = None
    try:
        stored = (await store.load_window(id_)).snapshot
    except StoreCorrupt as damage:
        past.made = await _newest(store, id_)
        past.problem = "" if past.made is None else f"that of {id_!r} cannot be used: {damage}"
    try:
        await _compare(store, id_, past, stored)
    except _Unread as damage:
        return Past(past.made, past.problem, unread=str(damage))
    except (StoreCorrupt, HistoryUnavailable, HistoryNeeded):
        return Past(past.made, past.problem)
    return past


async def _compare(store: EventStore, id_: str, past: Past, stored: Snapshot | None) -> None:
    left = set(await store.waypoints(id_))
    since = 0
    fold: Fold | None = None
    async for fold in _each_fold(store, id_):
        version = fold.version
        if stored is not None and version == stored.version:
            past.made = take_snapshot(fold)
            if not _same(past.made, stored):
                past.problem = f"that of {id_!r} is not what the log gives at version {version}"
        if version in left:
            left.remove(version)
            made, since = take_snapshot(fold), version
            if not _same(made, await _waypoint(store, id_, version)):
                past.wrong.append(version)
                past.anew.append(made)
        elif is_due(fold, since):
            since, past.lacking = version, past.lacking + 1
            past.anew.append(take_snapshot(fold))
    past.beyond += sorted(left)
    if stored is None and fold is not None and (await store.info(id_)).compactions:
        past.made, past.is_lost = take_snapshot(fold), True


async def _each_fold(store: EventStore, id_: str) -> AsyncIterator[Fold]:
    """Fold the log, and return the fold at each version, beginning with the one from which it can be folded."""
    ways_back = WaysBack(id_, await undos(store, id_))
    fold = await base_fold(store, id_)
    if fold.version:
        yield fold
    async for event in _events(store, id_, fold.version):
        if event.version != fold.version + 1:
            raise HistoryUnavailable(id_, fold.version + 1, event.version, event.version)
        fold = await ways_back.behind(store, fold, event)
        yield fold


async def _events(store: EventStore, id_: str, after: int) -> AsyncIterator[Event]:
    """Read the log behind a version.

    Raises:
        _Unread: an event does not read.
    """
    try:
        async for event in store.read(id_, after=after):
            yield event
    except StoreCorrupt as damage:
        raise _Unread(str(damage)) from damage


async def _waypoint(store: EventStore, id_: str, version: int) -> Snapshot | None:
    try:
        return await store.load_waypoint(id_, version, after=version - 1)
    except StoreCorrupt:
        return None  # it differs from the log's; the store's own examination reports the damage


def _same(made: Snapshot, stored: Snapshot | None) -> bool:
    if stored is None:
        return False
    said = {name: value for name, value in stored.state.items() if name != "reported" or has_reports(stored)}
    is_there = (made.version, made.window_start, made.blocks) == (stored.version, stored.window_start, stored.blocks)
    return is_there and all(made.state.get(name) == value for name, value in said.items())


async def _newest(store: EventStore, id_: str) -> Snapshot | None:
    """Return a snapshot of the end of the log; None where the log itself cannot be folded."""
    try:
        return take_snapshot(await fold_history(store, id_))
    except (StoreCorrupt, HistoryUnavailable, HistoryNeeded):
        return None
