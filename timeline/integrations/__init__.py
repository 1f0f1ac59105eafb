"""Adapters between a timeline and agent frameworks: one module each, which an application imports itself.

    from timeline.integrations.openai_agents import TimelineSession

Importing this package imports none of them. If a framework is not installed, its module raises `MissingExtra`, which
names the extra to install.
"""

from __future__ import annotations
