"""Forget on request: first find where something is said, then redact blocks or erase conversations.

`Timeline.redact` and the store's ``erase`` remove content; `mask_credentials` keeps secrets from being stored at all.
"""

from __future__ import annotations

from timeline.forgetting.credentials import mask_credentials
from timeline.forgetting.redacting import redact
from timeline.forgetting.subjects import FoundPlace, find_subject

__all__ = ["FoundPlace", "find_subject", "mask_credentials", "redact"]
