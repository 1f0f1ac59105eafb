"""Write a fold's state to a snapshot without block bodies, and restore the fold from it.

With a snapshot, opening a conversation costs the same however long its history is. A window that is restored from a
snapshot and the events after it equals the full fold (design: Invariants).
"""

from __future__ import annotations

from dataclasses import astuple
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.blocks import ToolCall, instant_text, parse_instant
from timeline.errors import InvalidArgument, StoreCorrupt
from timeline.events import (
    BlockAppended,
    CompactionCompleted,
    PolicyOrigin,
    Replacement,
    UnknownPayload,
    appended_block,
)
from timeline.events.other_payloads import StageApproved
from timeline.fold.changes import FormChange
from timeline.fold.fold import Fold, count_of_unknown
from timeline.fold.reported import Reported
from timeline.fold.stages import Stage
from timeline.fold.state import FoldState, Lease, Recorded, Setback, Touch
from timeline.fold.turns import Turns
from timeline.fold.window import Hide, Item, redacted
from timeline.ports import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from timeline.blocks import Block
    from timeline.events import Event, Payload
    from timeline.fold.changes import Changes

LEAST_EVENTS: Final = 1_000
SHARE: Final = 2
"""Fewest events between two snapshots; `SHARE` for each block of the window, where these are more."""
_WHOLE_PREVIEW: Final = {"_preview": None, "_all": None}
"""The arguments, in their order, of a call whose arguments are previewed as one text."""
_FLAGS: Final = ("carried", "pinned", "omitted", "redacted", "revealed", "superseded")
_flags: Final = attrgetter(*_FLAGS)


def take_snapshot(fold: Fold) -> Snapshot:
    """Return a snapshot of a fold at its current version."""
    window = fold.window
    items = fold.stored
    hides = {item.hide.version: item.hide for item in items if item.hide is not None}
    touch, lease, start = window.touch, window.lease, window.window_start
    needed = {item.version for item in items} | {stage.approved for stage in window.stages if stage.approved}
    return Snapshot(
        version=window.version,
        window_start=start,
        blocks=tuple(sorted(version for version in needed if version < start)),
        state={
            "items": [_dump_item(item) for item in items],
            "turns": fold.turns.dump(),
            "rounds": window.compactions,
            "setback": None if window.setback is None else list(astuple(window.setback)),
            "policy": window.policy,
            "origin": None if window.origin is None else window.origin.model_dump(mode="json", exclude_defaults=True),
            "overrides": list(window.overrides),
            "rendered": None if window.rendered is None else _dump_recorded(window.rendered),
            "hides": [_dump_hide(hide) for hide in hides.values()],
            "changes": [[item.version, [list(change) for change in item.changes]] for item in items if item.changes],
            "touch": None if touch is None else [instant_text(touch.at), touch.ttl, touch.called],
            "model": window.model or None,
            "lease": None if lease is None else [lease.version, instant_text(lease.expires_at)],
            "hold": window.hold,
            "calls": window.calls,
            "reported": window.reported.dump(),
            "stages": [[stage.stage, stage.label, stage.entered, stage.approved] for stage in window.stages],
        },
    )


def is_due(fold: Fold, since: int) -> bool:
    """Return whether a log whose newest snapshot is at version ``since`` is due for another one.

    The distance grows with the window. So snapshots stay a small share of the log, and to fold the events behind one
    costs no more than to read the window.
    """
    return is_far(fold.version, since, len(fold.stored))


def is_far(version: int, since: int, blocks: int) -> bool:
    """Return whether a version is far enough from a snapshot for another one, with so many blocks in the window."""
    return version - since >= max(LEAST_EVENTS, SHARE * blocks)


def counts_calls(snapshot: Snapshot) -> bool:
    """Return whether a snapshot says how many model calls there were; those of releases without that number do not."""
    return "calls" in snapshot.state


def has_reports(snapshot: Snapshot) -> bool:
    """Return whether a snapshot says all of what the provider reported; those of earlier releases say less of it."""
    stored: Any = snapshot.state.get("reported", ())
    return len(stored) == len(Reported._fields)


def has_changes(snapshot: Snapshot) -> bool:
    """Return whether a snapshot says how its blocks were shown before; those of earlier releases do not.

    An earlier one is complete, too, if none of its blocks was ever hidden or revealed.
    """
    items: Any = snapshot.state["items"]
    return "changes" in snapshot.state or not any(item.get("changed_at", 0) > item["version"] for item in items)


def is_complete(snapshot: Snapshot) -> bool:
    """Return whether a fold is restored from a snapshot without figures that are read from the log before it."""
    return counts_calls(snapshot) and has_reports(snapshot) and has_changes(snapshot)


def restore(
    conversation: str,
    snapshot: Snapshot | None,
    events: Sequence[Event],
    without: Iterable[int] = (),
    *,
    calls: int | None = None,
    reported: Reported | None = None,
    changes: Mapping[int, Changes] | None = None,
) -> Fold:
    """Restore the fold of a conversation; `timeline.log.history.restored` reads what this needs of a stored one.

    Args:
        conversation: id of the log.
        snapshot: to start from; None folds from the beginning.
        events: the events of the snapshot's live blocks and all events behind it, oldest first.
        without: versions of the compactions that are taken back later in the log.
        calls: number of model calls up to the snapshot, for one that does not say it.
        reported: what the provider reported up to the snapshot, for one that does not say it.
        changes: the decisions about each block up to the snapshot, for one that does not say how it was shown before.

    Raises:
        StoreCorrupt: the snapshot names a version that holds no block.
        InvalidArgument: the number of calls, what was reported, or how blocks were shown, is missing.
        HistoryNeeded: an event behind the snapshot takes back a compaction.
    """
    fold = Fold(conversation, without)
    if snapshot is not None:
        known = snapshot.state.get("calls", calls)
        if not isinstance(known, int):
            raise InvalidArgument("calls", "is needed for a snapshot that does not count the model calls")
        stored: Any = snapshot.state.get("reported")
        reports = Reported.parse(stored) if has_reports(snapshot) else reported
        if reports is None:
            raise InvalidArgument("reported", "is needed for a snapshot that does not say what the provider reported")
        before = _changes(snapshot, changes)
        shown = {e.version: e for e in events if e.version <= snapshot.version}
        _fill(fold, snapshot, shown, _Read(known, reports, before))
    for event in events:
        if event.version > fold.version:
            fold.apply(event.version, event.at, event.payload)
    return fold


def _dump_item(item: Item) -> dict[str, Any]:
    """Return what a snapshot keeps of an item: the fields that differ from a new one's. It runs for each block."""
    fields: dict[str, Any] = {"version": item.version, "place": item.place, "tokens": item.tokens}
    if item.response:
        fields["response"] = item.response
    if item.answers is not None:
        fields["answers"] = item.answers
    if item.changed_at:
        fields["changed_at"] = item.changed_at
    if item.undone_at:
        fields["undone_at"] = item.undone_at
    if item.replacement is not None:
        fields["replacement"] = item.replacement.model_dump(mode="json", exclude_defaults=True)
    for name, is_set in zip(_FLAGS, _flags(item), strict=True):
        if is_set:
            fields[name] = True
    return fields


def _changes(snapshot: Snapshot, read: Mapping[int, Changes] | None) -> dict[int, Changes]:
    """Return how blocks were shown before: what the snapshot says, or else what was read from the log."""
    stored: Any = snapshot.state.get("changes")
    if stored is not None:
        return {version: tuple(FormChange(*change) for change in changes) for version, changes in stored}
    if not has_changes(snapshot) and read is None:
        raise InvalidArgument("changes", "is needed for a snapshot that does not say how blocks were shown before")
    return {version: changes[:-1] for version, changes in (read or {}).items()}  # the newest one is the item's state


class _Read(NamedTuple):
    """Figures that snapshots of earlier releases do not have; they are then read from the log."""

    calls: int
    reported: Reported
    changes: Mapping[int, Changes]


def _fill(fold: Fold, snapshot: Snapshot, events: dict[int, Event], read: _Read) -> None:
    state: dict[str, Any] = dict(snapshot.state)
    hides = {hide[0]: Hide(*hide) for hide in state.get("hides", ())}
    items: list[Item] = []
    summaries: list[CompactionCompleted] = []
    for fields in state["items"]:
        event = events.get(fields["version"])
        block = None if event is None else appended_block(event.payload)
        if event is None or block is None:
            raise StoreCorrupt(
                f"the snapshot names version {fields['version']}, which holds no block; run `timeline verify`"
            )
        replacement = _replacement(fields.get("replacement"), block)
        hide = hides.get(fields.get("changed_at")) if replacement is not None or fields.get("omitted") else None
        counter = _counter_of(event.payload)
        own = {"replacement": replacement, "hide": hide, "counter": counter}
        item = Item(**{**fields, **own, "block": block, "changes": read.changes.get(event.version, ())})
        erased = redacted(item, item.changed_at)._replace(changes=item.changes) if item.redacted else item
        items.append(erased)
        if isinstance(event.payload, CompactionCompleted):
            summaries.append(event.payload)
    turns = Turns.parse(state["turns"])
    turns.undivided = sum(item.response == turns.response for item in items) if turns.calls else 0
    fold.restored_from = snapshot.version
    fold.resume(
        snapshot.version,
        items=items,
        turns=turns,
        summaries=summaries,
        state=_state(state, events)._replace(calls=read.calls, reported=read.reported),
    )


def _replacement(stored: dict[str, Any] | None, block: Block) -> Replacement | None:
    """Read what is shown instead of a block.

    Earlier releases sorted the keys of a snapshot, and a provider's cache compares bytes. So shown arguments are put
    back into the order of the call's own, which is the order that they were made in.
    """
    if stored is None:
        return None
    arguments = stored.get("arguments")
    if arguments and isinstance(block, ToolCall):
        own = block.arguments if isinstance(block.arguments, dict) else {}
        stored = {**stored, "arguments": _in_order(arguments, {**own, **_WHOLE_PREVIEW})}
    return Replacement.model_validate(stored)


def _in_order(value: Any, own: Any) -> Any:
    """Return a value with the keys of its objects in the order of another value; keys that this one lacks come last."""
    if isinstance(value, dict) and isinstance(own, dict):
        keys = [*(key for key in own if key in value), *(key for key in value if key not in own)]
        return {key: _in_order(value[key], own.get(key)) for key in keys}
    if isinstance(value, list) and isinstance(own, list):
        return [_in_order(part, of) for part, of in zip(value, own, strict=False)] + value[len(own) :]
    return value


def _dump_hide(hide: Hide) -> list[Any]:
    row = [hide.version, hide.reason, {**hide.facts}]
    return [*row, hide.counter] if hide.counter else row


def _counter_of(payload: Payload) -> str:
    """Return the name of the counter that a block was stored under."""
    match payload:
        case BlockAppended() | CompactionCompleted():
            return payload.counter
        case UnknownPayload():
            return count_of_unknown(payload)[1]
        case _:
            return ""


def _state(state: dict[str, Any], events: dict[int, Event]) -> FoldState:
    setback, rendered = state.get("setback"), state.get("rendered")
    touch, lease, origin = state.get("touch"), state.get("lease"), state.get("origin")
    return FoldState(
        compactions=state["rounds"],  # as snapshots have named it from the first release on
        setback=None if setback is None else Setback(*setback),
        policy=state.get("policy"),
        rendered=None if rendered is None else _recorded(*rendered),
        touch=None if touch is None else Touch(parse_instant(touch[0]), touch[1], touch[2]),
        model=state.get("model") or "",
        lease=None if lease is None else Lease(lease[0], parse_instant(lease[1])),
        hold=state.get("hold"),
        stages=tuple(_stage(fields, events) for fields in state.get("stages", ())),
        origin=None if origin is None else PolicyOrigin.model_validate(origin),
        overrides=tuple(state.get("overrides", ())),
    )


def _stage(fields: list[Any], events: dict[int, Event]) -> Stage:
    """Read a stage; its approval is read from the event, and not stored a second time."""
    stage, label, entered, approved = fields
    if not approved:
        return Stage(stage, label, entered)
    event = events.get(approved)
    if event is None or not isinstance(event.payload, StageApproved):
        raise StoreCorrupt(f"the snapshot names version {approved}, which approves no stage; run `timeline verify`")
    return Stage(stage, label, entered, approved, event.payload)


def _dump_recorded(context: Recorded) -> list[Any]:
    prefix = None if context.prefix is None else list(context.prefix)
    return [context.version, context.fingerprint, context.record, prefix]


def _recorded(version: int, fingerprint: str, record: str, prefix: Sequence[str | None] | None = None) -> Recorded:
    return Recorded(version, fingerprint, record, None if prefix is None else (prefix[0], prefix[1]))
