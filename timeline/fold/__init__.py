"""The fold: events in, window out; groups, snapshots and states with it."""

from __future__ import annotations
