"""The payloads that leave the window's blocks as they are: attempts to compact, stages of the work, notices.

An attempt was begun under a lease, or was refused, or failed; one that came to its end is a `CompactionCompleted`.
Notices are for those who follow a log.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from timeline.blocks import Instant, Text
from timeline.errors import Cause
from timeline.events import CompactReason, Payload
from timeline.usage import Usage

RefusalReason: TypeAlias = Literal["nothing_to_cover", "no_progress", "vetoed"]
FailureReason: TypeAlias = Literal[
    "nothing_to_cover", "no_progress", "vetoed", "superseded", "summarizer", "cancelled", "failed"
]


class CompactionStarted(Payload):
    """A summary is being written: until ``expires_at`` nobody else begins one.

    The version of this event is the lease. What ends the compaction names it, and a lease that another one replaced
    ends nothing (fencing).
    """

    type: Literal["compaction.started"] = "compaction.started"
    expires_at: Instant
    reason: CompactReason = "over_trigger"
    before_tokens: int = 0
    """Of the messages, when the compaction began; 0 where it was not recorded, as are ``limit`` and ``messages``."""
    limit: int = 0
    messages: int = 0
    """How many messages the summary is to take the place of, by the plan."""
    continues: bool = False
    """Hiding was not enough: it is the same compaction that goes on."""


class CompactionFailed(Payload):
    """A compaction that was refused or failed under a policy (its hash).

    No new try under that policy follows until the visible tokens grew by ``retry_after``. ``cause`` says why no
    summarizer had an answer, where that is the reason; ``usage`` is what the answers that came were reported to have
    taken, and ``unanswered`` is how many requests were broken off, whose usage nobody was told.
    """

    type: Literal["compaction.failed"] = "compaction.failed"
    reason: FailureReason
    detail: str = ""
    policy: str = ""
    visible_tokens: int = 0
    retry_after: int = 0
    over_limit: bool = False
    """The context was above the limit, and stayed there."""
    lease: int | None = None
    """Version of the `CompactionStarted` that it ends."""
    cause: Cause | None = None
    usage: Usage | None = None
    unanswered: int = 0


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


class CompactionBoundary(Payload):
    """Behind this point the conversation goes on from a summary (seed 003): for whoever follows the log.

    Recorded when the hooks of a compaction are done, where the policy wants it; it changes nothing in the window.
    """

    type: Literal["compaction.boundary"] = "compaction.boundary"
    compaction: int
    """Version of the `CompactionCompleted` event."""
    before_tokens: int = 0
    after_tokens: int = 0
    messages: int = 0
    """How many messages it covered."""


class HookFailed(Payload):
    """A hook of the application raised; the compaction went on without it."""

    type: Literal["hook.failed"] = "hook.failed"
    hook: str
    error: str


OverflowReason: TypeAlias = Literal["messages", "fixed_part"]
"""Why a render was refused: nothing makes the messages fit; or what stands beside them leaves no room for any."""


class ContextOverflowed(Payload):
    """A render was refused: the context is above the limit, and nothing makes it smaller.

    ``tokens`` is what was held against ``limit``, reserves included. Where the fixed part alone leaves no room for a
    conversation, it is what that takes, which may be below the limit, and is above what starts a compaction.
    """

    type: Literal["context.overflowed"] = "context.overflowed"
    tokens: int
    limit: int
    reason: OverflowReason = "messages"


class PrefixChanged(Payload):
    """The system prompt is another one than in the recorded context before: a provider's cache is of no use here.

    ``before`` and ``after`` are sha256 of the prompts; None where there was none.
    """

    type: Literal["prefix.changed"] = "prefix.changed"
    before: str | None = None
    after: str | None = None


class ToolsChanged(Payload):
    """The tools are others than in the recorded context before: a provider's cache is of no use here.

    ``before`` and ``after`` are sha256 of the schemas; None where there were none.
    """

    type: Literal["tools.changed"] = "tools.changed"
    before: str | None = None
    after: str | None = None
