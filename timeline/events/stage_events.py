"""The payloads of stages: where the work stands, as the application tells it (seed 000)."""

from __future__ import annotations

from typing import Literal

from timeline.blocks import Text
from timeline.events import Payload


class StageEntered(Payload):
    """A stage of the work begins (seed 000); what follows belongs to it until it is approved."""

    type: Literal["stage.entered"] = "stage.entered"
    stage: str
    label: str = ""


class StageApproved(Payload):
    """The current stage is finished, with what it decided.

    ``first`` and ``last`` are the versions of its first and last message block and ``count`` is how many messages there
    are; all are 0 for a stage without any.
    """

    type: Literal["stage.approved"] = "stage.approved"
    stage: str
    label: str = ""
    decision: Text
    short: Text = ""
    detailed: Text = ""
    first: int = 0
    last: int = 0
    count: int = 0
    references: tuple[Text, ...] = ()
    citations: tuple[Text, ...] = ()
    artifacts: tuple[Text, ...] = ()


class StageRewound(Payload):
    """The work goes back to an approved stage: its decision and those of all later stages hold no more."""

    type: Literal["stage.rewound"] = "stage.rewound"
    stage: str
