"""Real recorded conversations: those in the folder that ``TIMELINE_TRANSCRIPTS`` names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.depth import DEPTH

FOLDER: Final = os.environ.get("TIMELINE_TRANSCRIPTS")
"""The project stands without it: what is shown here has small cases of its own elsewhere."""
needs_recordings: Final = pytest.mark.skipif(
    not FOLDER, reason="TIMELINE_TRANSCRIPTS names no folder of recorded conversations"
)


def recorded(pattern: str) -> list[Path]:
    """Return the recordings that a pattern finds, in order."""
    return sorted(Path(FOLDER).glob(pattern)) if FOLDER else []


def swept(pattern: str) -> list[Path]:
    """Return the recordings that a sweep of this depth plays: every eighth one in CI, and all at night.

    The largest is always among them: a small one fills no window.
    """
    return by_size(pattern)[:: DEPTH.step]


def by_size(pattern: str) -> list[Path]:
    """Return the recordings that a pattern finds, the largest first."""
    return sorted(recorded(pattern), key=lambda file: file.stat().st_size, reverse=True)
