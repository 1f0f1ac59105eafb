"""A timeline for the OpenAI Agents SDK: its session, and the contexts of its model calls. Needs ``openai-agents``.

session = await TimelineSession.open(store, "conversation-1", policy=policies.balanced(max_tokens=80_000))
result = await Runner.run(
    agent, "Make the tests pass.", session=session, run_config=session.run_config(), hooks=session.hooks()
)
"""

from __future__ import annotations

from timeline.integrations.openai_agents.session import TimelineSession

__all__ = ["TimelineSession"]
