"""Project a window into the context that is sent, and explain, compare and report it."""

from __future__ import annotations
