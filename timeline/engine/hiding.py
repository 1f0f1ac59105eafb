"""Hide a batch of blocks as one decision: plan it under the log's lock, append it, report its figures.

The planner chooses the blocks (`timeline.planning.hide`); a step of the policy that hides comes in through
`hide_by_step`, and the cache clock through `timeline.engine.due_decisions`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from timeline.errors import VersionConflict
from timeline.events import Pruned
from timeline.events.addresses import listed_addresses
from timeline.log.off_loop import off_loop
from timeline.log.stopwatch import Stopwatch
from timeline.planning.plan_step import plan_hides
from timeline.planning.plans import as_pruned, named, tools_of
from timeline.projection.reports import TakenDecision

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import datetime

    from timeline.engine.pressure import Pressure
    from timeline.events import Payload
    from timeline.fold.window import Window
    from timeline.planning.plans import HideDecision
    from timeline.policy.steps import HidingStep

GoesOn: TypeAlias = "Callable[[int], Awaitable[bool]]"
"""Gets the tokens that a batch frees; returns whether the same compaction goes on after it."""


async def _enough(freed: int) -> bool:
    del freed
    return False


@dataclass(slots=True)
class CompactionProgress:
    """The figures of one compaction that may go from hiding to a summary.

    Batches and summary are separate events; with these figures a reader of the log sees them as one compaction, with
    one start and one end.

    Attributes:
        pressure: the reason of the compaction, and its limit.
        begun_with: the messages' tokens when it began, if hiding was not enough; None while no compaction is under way.
        watch: measures it, from the creation of this object on.
    """

    pressure: Pressure
    begun_with: int | None = None
    watch: Stopwatch = field(init=False)

    def __post_init__(self) -> None:
        """Begin to measure."""
        self.watch = Stopwatch(self.pressure.clock)

    async def annotated(self, hide: HideDecision, window: Window, goes_on: GoesOn = _enough) -> HideDecision:
        """Add the compaction's figures to hides; ``goes_on`` gets the freed tokens and says whether it goes on."""
        before = hide.before
        pruned = Pruned(
            reason=self.pressure.reason,
            before_tokens=before if self.begun_with is None else self.begun_with,
            after_tokens=before,
            limit=self.pressure.limit,
            continues=self.begun_with is not None,
            goes_on=await goes_on(hide.freed),
            duration=self.watch.duration(),
        )
        filled = await off_loop(len(window.items), partial(as_pruned, pruned, hide.event.blocks, window, hide.freed))
        return replace(hide, event=hide.event.model_copy(update={"pruned": filled}))

    def follow(self, pruned: Pruned | None) -> None:
        """Take in an appended batch: the compaction goes on with its figures, or is over."""
        self.begun_with = pruned.before_tokens if pruned is not None and pruned.goes_on else None


async def hide_by_step(
    step: HidingStep, progress: CompactionProgress, *, goes_on: GoesOn = _enough
) -> list[TakenDecision]:
    """Carry out a step that hides blocks; return the decision, or nothing if there is nothing to hide.

    Args:
        step: the step.
        progress: the compaction that the batch belongs to.
        goes_on: gets the freed tokens and returns whether a summary follows.
    """
    policy, counter = progress.pressure.policy, progress.pressure.compactor.counter
    return await hide_planned(lambda window: plan_hides(step, window, policy, counter), progress, goes_on=goes_on)


async def hide_planned(
    plan: Callable[[Window], HideDecision | None], progress: CompactionProgress, *, goes_on: GoesOn = _enough
) -> list[TakenDecision]:
    """Append the hides that are planned for the newest window; return the decision, or nothing if none is planned.

    Args:
        plan: plans them for a window; it is asked again if another writer appended meanwhile.
        progress: the compaction that the batch belongs to.
        goes_on: gets the freed tokens and returns whether a summary follows.
    """
    pressure = progress.pressure
    chosen: list[tuple[HideDecision, Window]] = []

    async def choose(_: datetime) -> Sequence[Payload]:
        chosen.clear()  # asked again after another writer's append: the earlier choice was not appended
        window = pressure.window
        hide = await off_loop(len(window.items), partial(plan, window))
        if hide is None:
            return ()
        hide = await progress.annotated(hide, window, goes_on)
        chosen.append((hide, window))
        return [hide.event]

    with suppress(VersionConflict):  # then it is left to the next pass
        if await pressure.log.decide(choose, at=pressure.at):
            taken = [await describe_hide(hide, window, pressure) for hide, window in chosen]
            progress.follow(chosen[-1][0].event.pruned)
            return taken
    return []


async def describe_hide(hide: HideDecision, window: Window, pressure: Pressure) -> TakenDecision:
    """Report an appended batch to the observer, and return it as a decision.

    Its facts are the event's own, the messages' tokens before and after, and the tools whose outputs were hidden.

    Args:
        hide: the appended batch.
        window: the window that it was planned from.
        pressure: the policy that it was planned under, and its log.
    """
    event = hide.event
    if event.pruned is not None:
        pressure.compactor.observer.pruned(pressure.log.fold.conversation, event.pruned)
    hidden = {replacement.version for replacement in event.blocks}
    tools = await off_loop(len(window.items), partial(tools_of, hidden, window))
    facts: dict[str, int | str] = {
        **event.facts,
        "before_tokens": hide.before,
        "after_tokens": hide.before - hide.freed,
    }
    if tools:
        facts["outputs"] = len(tools)
    if names := named(tools):
        facts["tools"] = ", ".join(names)
    if event.unsaid:
        facts["unsaid"] = listed_addresses(event.unsaid)
    return TakenDecision(kind="hidden", reason=event.reason, facts=facts)
