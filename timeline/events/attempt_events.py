"""The payloads of a compaction that is tried: it was begun under a lease, or was refused, or failed.

What one did that came to its end is a `CompactionCompleted`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from timeline.blocks import Instant
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
