"""Notices: payloads that tell something to whoever follows a log, and change nothing in the window."""

from __future__ import annotations

from typing import Literal, TypeAlias

from timeline.events import Payload


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
