"""Forget on request: redact blocks, erase conversations, and find where something is said before.

`Timeline.redact` and the store's ``erase`` are the two that erase; `mask_credentials` keeps secrets out beforehand.
"""

from __future__ import annotations

from timeline.forgetting.credentials import mask_credentials
from timeline.forgetting.redacting import redact
from timeline.forgetting.subjects import FoundPlace, find_subject

__all__ = ["FoundPlace", "find_subject", "mask_credentials", "redact"]
