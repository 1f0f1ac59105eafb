"""Snapshots of the past: folding from the nearest one gives what folding the whole log gives, for both stores."""

from __future__ import annotations

import tempfile
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.invariants.playing import AT, play, run, search
from tests.invariants.strategies import LOGS, Decide, Say, Step, small
from tests.invariants.watched import check_near
from timeline import open_store
from timeline.blocks import ToolCall, UserPrompt
from timeline.timeline import Timeline


@pytest.mark.parametrize("url", ["memory://", "{}"])
@search(25)
@given(steps=LOGS, distance=st.integers(1, 9), redacted=st.none() | st.integers(0, 9))
@example(  # redacted twice: the first event is one of those that leave the content in the log
    steps=[Say((UserPrompt(text="lorem "),)), Decide("hide", (0,), False), Decide("redact", (0,), False)],
    distance=1,
    redacted=0,
)
def test_the_past_folds_from_the_nearest_snapshot_as_from_the_first_version(
    url: str, steps: list[Step], distance: int, redacted: int | None
) -> None:
    """With undos, hides, forks of the past, and a redaction of any block afterwards."""

    async def story(file: Path) -> None:
        async with open_store(url.format(file)) as store:
            with patch.multiple("timeline.fold.snapshot", LEAST_EVENTS=distance, SHARE=0):
                timeline = await Timeline.open(store, "c", policy=small(), now=AT)
                await play(timeline, store, steps)
                fork = await timeline.fork(at=(timeline.version + 1) // 2, now=AT)
                await fork.append(ToolCall(call_id="of the fork", name="t"), now=AT)
                blocks = [item.block.path for item in timeline.window.items if not item.is_summary]
                if redacted is not None and blocks:
                    await timeline.redact(blocks[redacted % len(blocks)], "asked for", now=AT)
                for id_ in ("c", fork.id):
                    await check_near(store, id_)

    with tempfile.TemporaryDirectory() as folder:
        run(story(Path(folder) / "a.db"))
