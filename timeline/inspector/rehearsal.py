"""What a decision would do: taken on a copy of the newest fold, by the code that decides, and nothing is appended."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from timeline.audit.before_call import version_before_call
from timeline.engine.equipment import Equipment
from timeline.engine.policy_steps import run_steps
from timeline.engine.pressure import Pressure
from timeline.errors import BlockNotFound, BlockProtected, InvalidArgument
from timeline.log.blocks_by_name import find_block
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
from timeline.ports import SystemClock

if TYPE_CHECKING:
    from timeline.events import Payload
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
            return Tried(handle.id, (await fold_near(store, handle.id, without=versions)).window, versions)
        case "compact":
            return Tried(handle.id, await _compacted(store, handle, asked), [])
        case _:
            return Tried(handle.id, await _about_block(store, handle, asked), [])


async def _forked(store: EventStore, handle: Timeline, asked: AskedDecision) -> Tried:
    if asked.at is not None and asked.call is not None:
        raise InvalidArgument("call", "names the last shared version, as `at` does; give one of them")
    at = asked.at
    if asked.call is not None:
        at = await version_before_call(store, handle.id, asked.call)
    at = handle.version if at is None else at
    await check_version(store, handle.id, at)
    fold = await fold_past(store, handle.id, at)
    return Tried(asked.new_id or await free_id(store, f"{handle.id}.fork-{at}"), fold.window, [], at)


async def _compacted(store: EventStore, handle: Timeline, asked: AskedDecision) -> Window:
    now = SystemClock().now()
    fold = await load_fold(store, handle.id)
    log = DryRunLog(store, fold, now)
    compactor = Equipment().compactor(handle.policy).dry_run().at(fold)
    pressure = Pressure(compactor, log, FixedPart(), now, now, reason="forced", instructions=asked.instructions)
    done = await run_steps(pressure)
    if done.failure is not None and not done.done:
        raise done.failure
    return log.fold.window


async def _about_block(store: EventStore, handle: Timeline, asked: AskedDecision) -> Window:
    if asked.block is None:
        raise InvalidArgument("block", f"name the block to {asked.decision}, by its path or address")
    version = (await find_block(store, handle.id, asked.block)).event.version
    fold = await load_fold(store, handle.id)
    item = next((item for item in fold.window.items if item.version == version), None)
    if item is None:
        problem = "a summary covers it, so that it is not shown; undo its compaction first"
        raise BlockProtected(asked.block, problem)
    log = DryRunLog(store, fold, SystemClock().now())
    await log.commit([_planned(fold.window, item, asked, handle.policy)], at=None)
    return log.fold.window


def _planned(window: Window, item: Item, asked: AskedDecision, policy: Policy) -> Payload:
    match asked.decision:
        case "hide":
            counter, most = Equipment().compactor(policy).counter, (policy.hiding or Hiding()).replacement_tokens
            return hide(window, item, mode=asked.mode, text=asked.text, most=most, counter=counter)
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
