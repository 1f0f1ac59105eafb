"""Claude Agent SDK: its sessions in the same logs as the timelines, and large results kept out of its context.

    from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, query
    from timeline.integrations.claude_agent_sdk import TimelineSessionStore, spill_hook

    options = ClaudeAgentOptions(
        session_store=TimelineSessionStore(store),
        hooks={"PostToolUse": [HookMatcher(hooks=[spill_hook(store)])]},
    )
    async for message in query(prompt="Make the tests pass.", options=options):
        ...

Every line of a session is kept as it is, beside the blocks made from it. Importing this package imports nothing of the
SDK, and reading or writing sessions needs nothing of it; only `list_session_summaries` calls the SDK's own fold.
"""

from __future__ import annotations

from timeline.integrations.claude_agent_sdk.spilling import spill_hook
from timeline.integrations.claude_agent_sdk.store import TimelineSessionStore

__all__ = ["TimelineSessionStore", "spill_hook"]
