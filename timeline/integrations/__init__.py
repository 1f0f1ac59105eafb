"""Adapters between a timeline and what others run agents with: one module each, imported by whoever uses it.

    from timeline.integrations.openai_agents import TimelineSession

Importing this package imports none of them. A module whose framework is missing says which extra brings it
(`MissingExtra`).
"""

from __future__ import annotations
