from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.depth import sampled
from tests.recorded import needs_recordings, swept
from timeline import policies
from timeline.importers import read_recording
from timeline.lab.simulate import simulate
from timeline.store import MemoryStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from pathlib import Path

FILES = swept("claude-code*/*.jsonl")


@needs_recordings
@sampled
@pytest.mark.parametrize("limit", [80_000, 32_000, 16_000])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
async def test_a_recorded_conversation_is_sound_under_a_budget_that_it_overflows(file: Path, limit: int) -> None:
    """A real session is simulated without orphans, holes, vain compactions or errors, and each context verifies."""
    store = MemoryStore()
    for recording in read_recording(file):
        run = await simulate(store, recording, policies.cut_point(max_tokens=limit))
        assert (run.orphans, run.uncovered, run.no_progress, run.over_limit, run.typed_errors) == (0, 0, 0, 0, 0)
        assert (run.warm_hides, run.dead_paths) == (0, 0)
        assert run.largest <= limit
        timeline = await Timeline.open(store, run.id, create=False)
        report = await timeline.verify()
        assert report.ok, report.problems
        assert report.renders == run.renders
