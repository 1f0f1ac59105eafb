"""Fold the events of a log into the window: the blocks that the model could see now."""

from __future__ import annotations
