"""Policies: the model of one, and the named presets."""

from __future__ import annotations
