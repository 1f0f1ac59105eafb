"""Follow the stages of staged work, and how events change them (the priority-chain design [priority_chain]).

The stages form a row: each is entered when the one before it was approved, and going back to one removes all later
ones. Only the last may be in progress. Only the log keeps removed stages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from timeline.events.other_payloads import StageApproved, StageEntered

if TYPE_CHECKING:
    from timeline.events.other_payloads import StageRewound


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage that was entered and not removed by going back.

    Attributes:
        stage: its name.
        label: the name that people and models read.
        entered: version of the event that entered it first. Going back to a stage keeps this version, so that a later
            approval covers all messages since.
        approved: version of the event that approved it; 0 while it is in progress.
        approval: that event's payload: the decision, the texts, and the versions of its messages.
    """

    stage: str
    label: str
    entered: int
    approved: int = 0
    approval: StageApproved | None = None


def current_stage(stages: tuple[Stage, ...]) -> Stage | None:
    """Return the stage in progress, if there is one."""
    return stages[-1] if stages and stages[-1].approval is None else None


def advanced(
    stages: tuple[Stage, ...], version: int, payload: StageEntered | StageApproved | StageRewound
) -> tuple[Stage, ...]:
    """Return the stages after an event. No timeline writes one that fits no stage; such an event changes the least."""
    position = next((n for n, known in enumerate(stages) if known.stage == payload.stage), len(stages))
    known = stages[position] if position < len(stages) else None
    if isinstance(payload, StageEntered):
        return (*stages[:position], *stages[position + 1 :], Stage(payload.stage, payload.label, version))
    if isinstance(payload, StageApproved):
        entered = version if known is None else known.entered
        approved = Stage(payload.stage, payload.label, entered, version, payload)
        return (*stages[:position], *stages[position + 1 :], approved)
    return stages if known is None else (*stages[:position], Stage(known.stage, known.label, known.entered))
