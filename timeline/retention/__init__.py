"""Retention: how much of a conversation is kept, and the one thing that removes history: `scavenge`, on request.

`setting` reads and records what a conversation is to keep, `plan` says what may go and why the rest stays, and
`scavenging` removes it, in bounded steps.
"""

from __future__ import annotations

from timeline.retention.scavenging import Budget, ScavengedConversation, ScavengeReport, freeable, rehearse, scavenge
from timeline.retention.setting import Kept, kept

__all__ = ["Budget", "Kept", "ScavengeReport", "ScavengedConversation", "freeable", "kept", "rehearse", "scavenge"]
