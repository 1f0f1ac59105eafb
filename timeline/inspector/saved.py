"""Names of files that a conversation is saved as."""

from __future__ import annotations

import re


def plain_name(conversation: str) -> str:
    """Return an id without what file systems refuse."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", conversation).strip("-.")[:100] or "conversation"
