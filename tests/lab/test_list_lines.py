"""The line behind each summary of our presets that leads to the lists of all names, on recorded conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.depth import DEPTH, sampled
from tests.recorded import needs_recordings, recorded
from timeline import policies
from timeline.events import CompactionCompleted
from timeline.importers import read_recording
from timeline.lab.facts.needs import entry_strings
from timeline.lab.prices import packaged_prices
from timeline.lab.replay import replay
from timeline.lab.simulate import simulate
from timeline.lab.work import measured_file
from timeline.portable.recordings import import_recording
from timeline.store import MemoryStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.lab.replay import SentCall

NEITHER: Final = {"LICENSE", "README.md"}
FILES: Final = [path for path in recorded("*/*") if path.name not in NEITHER]
PRESETS: Final = ("balanced", "economical", "gentle")
LIMIT: Final = 12_000
"""Small, so that there are many compactions, some of them of little."""


def lacking(sent: SentCall) -> list[str]:
    """Return the summaries of a context behind which no line leads to their lists."""
    if sent.context is None:
        return []
    texts = [text for entry in sent.context.neutral.entries for text in entry_strings(entry)]
    paths = [item.block.path for item in sent.context.window.items if item.is_summary]
    return [
        path
        for path in paths
        if not any(
            f"Lists of all paths: {path}.paths, of names, ids and numbers: {path}.names" in text for text in texts
        )
    ]


@sampled
@needs_recordings
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("file", FILES[:: DEPTH.step], ids=lambda file: f"{file.parent.name}/{file.stem}")
async def test_every_summary_that_a_model_is_sent_leads_to_its_lists(file: Path, preset: str) -> None:
    """However little a compaction covers newly."""
    found: list[str] = []
    policy = policies.by_name(preset, max_tokens=LIMIT)
    for measured in measured_file(str(file)):
        await replay(measured, policy, packaged_prices().price_of, watch=lambda sent: found.extend(lacking(sent)))
    assert not found


@needs_recordings
async def test_the_lists_of_a_stored_session_can_be_read_at_each_summary() -> None:
    """A session that was recorded by pi, in a store: the bodies of its requests have the line, too."""
    [recording] = read_recording(next(path for path in FILES if path.stem == "session"))
    store = MemoryStore()
    run = await simulate(store, recording, policies.balanced(max_tokens=LIMIT))
    timeline = await Timeline.open(store, run.id, create=False)
    done = [event.payload async for event in store.read(run.id) if isinstance(event.payload, CompactionCompleted)]
    assert len(done) > 5
    for compaction in done:
        path = compaction.block.path
        paths, names = [(await timeline.read(f"{path}.{what}")).text for what in ("paths", "names")]
        assert "docs/hooks.md" in paths
        assert names.count("\n") > 1
    context = await timeline.render()
    summary = context.window.summary
    assert summary is not None
    body = context.request("anthropic", model="claude-sonnet-4-5").text
    assert f"Lists of all paths: {summary.block.path}.paths" in body


@needs_recordings
async def test_an_imported_summary_leads_to_no_list_and_has_them_all_the_same() -> None:
    """It stays as its client wrote it."""
    [recording] = read_recording(next(path for path in FILES if path.stem == "compact"))
    store = MemoryStore()
    await import_recording(store, recording)
    timeline = await Timeline.open(store, recording.id, create=False)
    summary = timeline.window.summary
    assert summary is not None
    assert "Lists of all paths" not in summary.block.text
    assert "docs/hooks.md" in (await timeline.read(f"{summary.block.path}.paths")).text
