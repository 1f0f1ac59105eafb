"""Projection: a window in, the neutral context and its explanation out."""

from __future__ import annotations
