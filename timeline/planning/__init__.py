"""Planning: a window in, decisions out. Pure functions without clock, randomness or I/O."""

from __future__ import annotations
