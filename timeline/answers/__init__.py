"""Rows about a conversation as the command prints them with `--json` and the inspector's API answers them."""

from __future__ import annotations
