"""Forget on request: redact blocks, erase conversations, and find where something is said before."""

from __future__ import annotations

from timeline.forgetting.redacting import redact

__all__ = ["redact"]
