"""Plan the decisions about a window: what to hide and what to cover. Without clock, randomness or I/O."""

from __future__ import annotations
