"""What a decision would do: taken on a copy of the newest fold, by the code that decides, and nothing is appended."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from timeline.audit.before_call import last_shared
from timeline.audit.redacting import Erasures
from timeline.engine.conversation import ConversationView
from timeline.engine.equipment import Equipment, policy_in_force
from timeline.engine.policy_steps import compact_now
from timeline.engine.pressure import Pressure
from timeline.errors import BlockNotFound, BlockProtected, ConversationNotFound, InvalidArgument, VersionConflict
from timeline.log.blocks_by_name import find_block
from timeline.log.bringing_back import carried_out
from timeline.log.dry_run import DryRunLog
from timeline.log.history import (
    check_version,
    compactions_in_force,
    fold_near,
    fold_past,
    load_fold,
    versions_to_revert,
)
from timeline.log.stored import free_id
from timeline.planning.account import FixedPart
from timeline.planning.manual import REVEALED_FROM, check_may_hide, hide, pin, reveal, unpin
from timeline.policy.model import Hiding
from timeline.ports import Expected, SystemClock

if TYPE_CHECKING:
    from timeline.events import Payload
    from timeline.fold.fold import Fold
    from timeline.fold.window import Item, Window
    from timeline.inspector.asked import AskedDecision, Decision
    from timeline.inspector.reader import Reader
    from timeline.policy.model import Policy
    from timeline.ports import EventStore
    from timeline.timeline import Timeline


class Tried(NamedTuple):
    """The window behind a decision that was not taken.

    Attributes:
        conversation: its id; of a fork, the one that it would get.
        window: as it would be.
        reverted: versions of the compactions that would be undone.
        base: of a fork: the last version that both would share.
    """

    conversation: str
    window: Window
    reverted: list[int]
    base: int = 0


async def rehearse(store: EventStore, handle: Timeline, asked: AskedDecision) -> Tried:
    """Return what a decision would lead to. Summaries are those of the summarizer without a model."""
    match asked.decision:
        case "fork":
            return await _forked(store, handle, asked)
        case "undo":
            in_force = await compactions_in_force(store, handle.id)
            versions = versions_to_revert(handle.id, in_force, asked.version, cascade=asked.cascade)
            fold = await fold_near(store, handle.id, without=versions)
            return Tried(handle.id, _tried(store, fold, handle.policy).window, versions)
        case "compact":
            return Tried(handle.id, await _compacted(store, handle, asked), [])
        case _:
            return Tried(handle.id, await _about_block(store, handle, asked), [])


def _tried(store: EventStore, fold: Fold, policy: Policy) -> ConversationView:
    """Return a conversation to try a decision on: it counts as one that is opened under the policy, and stores nothing.

    Args:
        store: holds the conversation.
        fold: goes on by itself.
        policy: in force.
    """
    clock = SystemClock()
    return ConversationView(store, DryRunLog(store, fold, clock.now()), clock, Equipment(), policy)


async def _forked(store: EventStore, handle: Timeline, asked: AskedDecision) -> Tried:
    shared = await last_shared(store, handle.id, at=asked.at, call=asked.call)
    at = handle.version if shared is None else shared
    await check_version(store, handle.id, at)
    fold = await fold_past(store, handle.id, at)
    branch = _tried(store, fold, await policy_in_force(store, fold.window) or handle.policy)
    await branch.log.commit((await Erasures.of(store, [handle.id])).still_shown(handle.id, at), at=None)
    if asked.new_id is not None:
        await _check_free(store, asked.new_id)
    return Tried(asked.new_id or await free_id(store, f"{handle.id}.fork-{at}"), branch.window, [], at)


async def _check_free(store: EventStore, new_id: str) -> None:
    """Check that no conversation has an id.

    Raises:
        ConversationErased: one had it.
        VersionConflict: one has it.
    """
    try:
        info = await store.info(new_id)
    except ConversationNotFound:
        return
    raise VersionConflict(new_id, Expected.NO_STREAM, info.version)


async def _compacted(store: EventStore, handle: Timeline, asked: AskedDecision) -> Window:
    trial = _tried(store, await load_fold(store, handle.id), handle.policy)
    compactor, now = trial.compactor.dry_run().at(trial.log.fold), trial.clock.now()
    await compact_now(Pressure(compactor, trial.log, FixedPart(), now, now, instructions=asked.instructions))
    return trial.window


async def _about_block(store: EventStore, handle: Timeline, asked: AskedDecision) -> Window:
    if asked.block is None:
        raise InvalidArgument("block", f"name the block to {asked.decision}, by its path or address")
    version = (await find_block(store, handle.id, asked.block)).event.version
    trial = _tried(store, await load_fold(store, handle.id), handle.policy)
    item = next((item for item in trial.window.items if item.version == version), None)
    if item is None:
        problem = "a summary covers it, so that it is not shown; undo its compaction first"
        raise BlockProtected(asked.block, problem)
    decided = await carried_out(store, handle.id, trial.window, item, _planned(trial, item, asked))
    await trial.log.commit(decided, at=None)
    return trial.window


def _planned(trial: ConversationView, item: Item, asked: AskedDecision) -> Payload:
    window = trial.window
    match asked.decision:
        case "hide":
            most = (trial.policy.hiding or Hiding()).replacement_tokens
            return hide(window, item, mode=asked.mode, text=asked.text, most=most, counter=trial.counter)
        case "reveal":
            return reveal(window, item)
        case "pin":
            return pin(window, item)
        case _:
            return unpin(window, item)


async def possible(reader: Reader, conversation: str, name: str) -> tuple[Decision, ...]:
    """Return the decisions about a block that its state allows now, of those that may be taken here."""
    allowed = reader.allow
    if not allowed:
        return ()
    try:
        version = (await find_block(reader.store, conversation, name)).event.version
    except BlockNotFound:
        return ()
    fold = await reader.moments.fold(conversation, (await reader.store.info(conversation)).version)
    item = next((item for item in fold.window.items if item.version == version), None)
    found = () if item is None else _allowed_by(fold.window, item)
    return tuple(decision for decision in found if decision in allowed)


def _allowed_by(window: Window, item: Item) -> tuple[Decision, ...]:
    found: list[Decision] = []
    if item.state in REVEALED_FROM:
        found.append("reveal")
    if item.state not in {"hidden", "omitted"} and _may_hide(window, item):
        found.append("hide")
    if not item.is_summary:
        found.append("unpin" if item.pinned else "pin")
    return tuple(found)


def _may_hide(window: Window, item: Item) -> bool:
    try:
        check_may_hide(window, item)
    except BlockProtected:
        return False
    return True
