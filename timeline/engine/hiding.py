"""Hiding as one decision: append a batch that was planned, and say what it was, with all figures of it."""

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
    """What is told of a compaction while it goes from hiding to a summary (seed 004).

    Attributes:
        pressure: why it runs, and what it is held against.
        begun_with: the messages' tokens when it began, where hiding was not enough; None while none is under way.
    """

    pressure: Pressure
    begun_with: int | None = None

    def told(self, hides: Hides, window: Window, goes_on: Callable[[int], bool] = _enough) -> Hides:
        """Return hides that say where they stand; ``goes_on`` is asked with the tokens freed whether more follows."""
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
        """Take in what was hidden: the compaction is over, or goes on."""
        self.begun_with = pruned.before_tokens if pruned is not None and pruned.goes_on else None


async def hide_by_step(step: HidingStep, course: Course, *, goes_on: Callable[[int], bool] = _enough) -> list[Taken]:
    """Carry out a step that hides blocks; return what was done, nothing where nothing is to hide.

    Args:
        step: which one.
        course: of the compaction that it belongs to.
        goes_on: says, given the tokens freed, whether a summary is to follow.
    """
    pressure = course.pressure
    chosen: list[tuple[Hides, Window]] = []

    async def choose() -> Sequence[Payload]:
        chosen.clear()
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
    """Tell a decision to hide: the event's own figures, the messages' tokens before and after, the tools' outputs.

    Args:
        hides: what was appended.
        window: what it was planned from.
        pressure: the policy that it was planned under, and the log that it went to.
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
