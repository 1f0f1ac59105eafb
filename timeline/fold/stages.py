"""Stages: the parts of a staged piece of work that stand, and how events change them (seed 000).

They form a row: each stage is entered when the one before it was approved, and going back to one takes all later ones
off the row. Only the last may be going on. What was taken off is in the log, and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from timeline.events.other_payloads import StageApproved, StageEntered

if TYPE_CHECKING:
    from timeline.events.other_payloads import StageRewound


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage that stands.

    Attributes:
        stage: its name.
        label: how it is called to people and models.
        entered: version of the event that it began with; going back to a stage does not begin it anew, so that a later
            approval speaks for all that was said since.
        approved: version of the event that approved it; 0 while it is going on.
        approval: that event's payload: the decision, the texts, and where its messages stand.
    """

    stage: str
    label: str
    entered: int
    approved: int = 0
    approval: StageApproved | None = None


def current_stage(stages: tuple[Stage, ...]) -> Stage | None:
    """Return the stage that is going on, if one is."""
    return stages[-1] if stages and stages[-1].approval is None else None


def advanced(
    stages: tuple[Stage, ...], version: int, payload: StageEntered | StageApproved | StageRewound
) -> tuple[Stage, ...]:
    """Take in an event about a stage. One that fits no stage, which no timeline writes, changes as little as it can."""
    position = next((n for n, known in enumerate(stages) if known.stage == payload.stage), len(stages))
    known = stages[position] if position < len(stages) else None
    if isinstance(payload, StageEntered):
        return (*stages[:position], *stages[position + 1 :], Stage(payload.stage, payload.label, version))
    if isinstance(payload, StageApproved):
        entered = version if known is None else known.entered
        approved = Stage(payload.stage, payload.label, entered, version, payload)
        return (*stages[:position], *stages[position + 1 :], approved)
    return stages if known is None else (*stages[:position], Stage(known.stage, known.label, known.entered))
