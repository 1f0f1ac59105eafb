"""The payloads that leave the window's blocks unchanged: attempts to compact, stages of the work, notices.

An attempt began under a lease, was refused, or failed; a finished one is a `CompactionCompleted`. Notices serve
applications that follow a log.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import JsonValue

from timeline.blocks import Instant, Text
from timeline.errors import Cause
from timeline.events import CompactReason, Payload, PolicyOrigin
from timeline.usage import Usage

Retention: TypeAlias = Literal["keep", "window"]
"""``keep``: everything stays. ``window``: what lies before the window may be removed."""
RefusalReason: TypeAlias = Literal["nothing_to_cover", "no_progress", "vetoed"]
FailureReason: TypeAlias = Literal[
    "nothing_to_cover", "no_progress", "vetoed", "superseded", "summarizer", "cancelled", "failed"
]


class CompactionStarted(Payload):
    """A summary is being written: until ``expires_at`` no other writer begins one.

    The version of this event is the lease. The event that ends the compaction names it, and a lease that was replaced
    by a later one ends nothing (fencing).
    """

    type: Literal["compaction.started"] = "compaction.started"
    expires_at: Instant
    reason: CompactReason = "over_trigger"
    before_tokens: int = 0
    """Tokens of the messages when the compaction began. Like ``limit`` and ``messages``, 0 where not recorded."""
    limit: int = 0
    messages: int = 0
    """Number of messages that the summary will replace, by the plan."""
    continues: bool = False
    """Whether the same compaction hid blocks first, and that was not enough."""


class CompactionFailed(Payload):
    """A compaction that was refused or failed under a policy (its hash).

    The next try under that policy waits until the visible tokens grew by ``retry_after``. ``cause`` is why no
    summarizer had an answer, where that is the reason. ``usage`` is the reported usage of the answers that came;
    ``unanswered`` counts the requests that were broken off, whose usage was never reported.
    """

    type: Literal["compaction.failed"] = "compaction.failed"
    reason: FailureReason
    detail: str = ""
    policy: str = ""
    visible_tokens: int = 0
    retry_after: int = 0
    over_limit: bool = False
    """Whether the context was above the limit and stayed there."""
    lease: int | None = None
    """Version of the `CompactionStarted` that it ends."""
    cause: Cause | None = None
    usage: Usage | None = None
    unanswered: int = 0
    duration: float | None = None
    """Seconds from its start to this event, by a monotonic clock; None for a refusal, which takes none."""


class FrameworkEntry(Payload):
    """An entry of a history that a framework stores here as it is, such as a message; no context shows it."""

    type: Literal["framework.entry"] = "framework.entry"
    framework: str
    key: str
    """The framework's id of it."""
    data: JsonValue


class FrameworkRecord(Payload):
    """The data that a framework keeps of a conversation as a whole; the newest one holds."""

    type: Literal["framework.record"] = "framework.record"
    framework: str
    data: JsonValue = None
    """None: the framework deleted the conversation."""


class PolicyOverridden(Payload):
    """A writer works under a policy of its own, which is not the conversation's; for everybody else nothing changes.

    Recorded once for each policy until the conversation's own is changed. The policy's text is a content-addressed
    value.
    """

    type: Literal["policy.overridden"] = "policy.overridden"
    policy: str
    origin: PolicyOrigin | None = None
    in_force: str = ""
    """Hash of the conversation's own policy at the time."""


class StageEntered(Payload):
    """A stage of the work begins; later blocks belong to it until it is approved (priority-chain design)."""

    type: Literal["stage.entered"] = "stage.entered"
    stage: str
    label: str = ""


class StageApproved(Payload):
    """The current stage is finished, with its decision.

    ``first`` and ``last`` are the versions of its first and last message block and ``count`` is its number of messages;
    all are 0 for a stage without messages.
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
    """The work goes back to an approved stage: its decision and those of all later stages no longer hold."""

    type: Literal["stage.rewound"] = "stage.rewound"
    stage: str


class CompactionBoundary(Payload):
    """A notice that the conversation continues from a summary behind this event (keep-ratio design).

    Recorded after the hooks of a compaction, where the policy asks for it, for applications that follow the log. It
    changes nothing in the window.
    """

    type: Literal["compaction.boundary"] = "compaction.boundary"
    compaction: int
    """Version of the `CompactionCompleted` event."""
    before_tokens: int = 0
    after_tokens: int = 0
    messages: int = 0
    """Number of messages that it covered."""


class HookFailed(Payload):
    """A hook of the application raised; the compaction went on without it."""

    type: Literal["hook.failed"] = "hook.failed"
    hook: str
    error: str


OverflowReason: TypeAlias = Literal["messages", "fixed_part"]
"""Why a render was refused: the messages cannot be made to fit, or the fixed part leaves no room for any."""


class ContextOverflowed(Payload):
    """A render was refused: the context is above the limit and cannot be made smaller.

    ``tokens`` is the figure compared with ``limit``, reserves included. Where the fixed part alone leaves no room for a
    conversation, ``tokens`` is the fixed part, which may be below the limit and is above the trigger.
    """

    type: Literal["context.overflowed"] = "context.overflowed"
    tokens: int
    limit: int
    reason: OverflowReason = "messages"


class RetentionSet(Payload):
    """How much of the conversation is kept from here on; the newest of these events holds, as a whole.

    It removes nothing by itself: `timeline scavenge` does, when it is run.
    """

    type: Literal["retention.set"] = "retention.set"
    retention: Retention | None = None
    """None where the store's own setting holds."""
    legal_hold: bool = False
    """Whether nothing may be removed, whatever the retention is."""


class PrefixChanged(Payload):
    """The system prompt differs from the one in the recorded context before, so the provider's cache cannot be used.

    ``before`` and ``after`` are sha256 of the prompts; None where there was none.
    """

    type: Literal["prefix.changed"] = "prefix.changed"
    before: str | None = None
    after: str | None = None


class ToolsChanged(Payload):
    """The tools differ from those in the recorded context before, so the provider's cache cannot be used.

    ``before`` and ``after`` are sha256 of the schemas; None where there were none.
    """

    type: Literal["tools.changed"] = "tools.changed"
    before: str | None = None
    after: str | None = None
