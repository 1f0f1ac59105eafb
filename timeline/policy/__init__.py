"""Policies: the model, its steps and triggers, the named presets, and their TOML files."""

from __future__ import annotations
