"""Hide a batch of blocks as one decision: plan it under the log's lock, append it, report its figures.

The planner chooses the blocks (`timeline.planning.hide`); a step of the policy that hides comes in through
`hide_by_step`, and the cache clock through `timeline.engine.due_decisions`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from timeline.errors import VersionConflict
from timeline.events import Pruned
from timeline.planning.account import costs
from timeline.planning.plan_step import plan_hides
from timeline.planning.plans import as_pruned, named, tools_of
from timeline.projection.reports import Taken

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from timeline.engine.compactor import Pressure
    from timeline.events import Payload
    from timeline.fold.window import Window
    from timeline.planning.plans import Hides
    from timeline.policy.steps import HidingStep


def _enough(freed: int) -> bool:
    del freed
    return False


@dataclass(slots=True)
class Course:
    """The figures of one compaction that may go from hiding to a summary.

    Batches and summary are separate events; with these figures a reader of the log sees them as one compaction, with
    one start and one end.

    Attributes:
        pressure: the reason of the compaction, and its limit.
        begun_with: the messages' tokens when it began, if hiding was not enough; None while no compaction is under way.
    """

    pressure: Pressure
    begun_with: int | None = None

    def told(self, hides: Hides, window: Window, goes_on: Callable[[int], bool] = _enough) -> Hides:
        """Add the compaction's figures to hides; ``goes_on`` gets the freed tokens, returns whether more follows."""
        before = sum(costs(window.items, self.pressure.policy))
        pruned = Pruned(
            reason=self.pressure.reason,
            before_tokens=before if self.begun_with is None else self.begun_with,
            after_tokens=before,
            limit=self.pressure.limit,
            continues=self.begun_with is not None,
            goes_on=goes_on(hides.freed),
        )
        filled = as_pruned(pruned, hides.event.blocks, window, hides.freed)
        return replace(hides, event=hides.event.model_copy(update={"pruned": filled}))

    def follow(self, pruned: Pruned | None) -> None:
        """Take in an appended batch: the compaction goes on with its figures, or is over."""
        self.begun_with = pruned.before_tokens if pruned is not None and pruned.goes_on else None


async def hide_by_step(step: HidingStep, course: Course, *, goes_on: Callable[[int], bool] = _enough) -> list[Taken]:
    """Carry out a step that hides blocks; return the decision, or nothing if there is nothing to hide.

    Args:
        step: the step.
        course: the compaction that the batch belongs to.
        goes_on: gets the freed tokens and returns whether a summary follows.
    """
    pressure = course.pressure
    chosen: list[tuple[Hides, Window]] = []

    async def choose() -> Sequence[Payload]:
        chosen.clear()  # asked again after another writer's append: the earlier choice was not appended
        window = pressure.window
        hides = plan_hides(step, window, pressure.policy, pressure.compactor.counter)
        if hides is None:
            return ()
        hides = course.told(hides, window, goes_on)
        chosen.append((hides, window))
        return [hides.event]

    with suppress(VersionConflict):  # then it is left to the next pass
        if await pressure.log.decide(choose, at=pressure.now):
            taken = [hidden_by(hides, window, pressure) for hides, window in chosen]
            course.follow(chosen[-1][0].event.pruned)
            return taken
    return []


def hidden_by(hides: Hides, window: Window, pressure: Pressure) -> Taken:
    """Report an appended batch to the observer, and return it as a decision.

    Its facts are the event's own, the messages' tokens before and after, and the tools whose outputs were hidden.

    Args:
        hides: the appended batch.
        window: the window that it was planned from.
        pressure: the policy that it was planned under, and its log.
    """
    event = hides.event
    if event.pruned is not None:
        pressure.compactor.observer.pruned(pressure.log.fold.conversation, event.pruned)
    tools = tools_of({stand_in.version for stand_in in event.blocks}, window)
    before = sum(costs(window.items, pressure.policy))
    facts: dict[str, int | str] = {
        **event.facts,
        "before_tokens": before,
        "after_tokens": before - hides.freed,
    }
    if tools:
        facts["outputs"] = len(tools)
    if names := named(tools):
        facts["tools"] = ", ".join(names)
    return Taken(kind="hidden", reason=event.reason, facts=facts)
