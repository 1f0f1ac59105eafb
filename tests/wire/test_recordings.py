"""Recorded conversations through every wire: nothing that was said is lost, and each SDK takes every context.

Without ``TIMELINE_TRANSCRIPTS`` the small cases of the project's own are taken. Of the renders of a simulation those
are checked that followed a decision, and every twenty-fifth. At night every file is taken under every preset at every
limit, with all of these renders.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, Final

import pytest

from tests.depth import DEPTH, Depth
from tests.importers.test_chat import ANTHROPIC, OPENAI
from tests.recorded import recorded
from tests.scenes import after
from tests.wire.test_request_bodies import METHODS, assert_sent
from tests.wire.validity import check_kept, check_taken, said
from timeline import policies
from timeline.audit.replay import rebuild_contexts, recorded_contexts
from timeline.events import BlocksHidden, CompactionCompleted, ContextRendered, appended_block, derived_event_id
from timeline.importers import ImportedCompaction, ImportedHide, read_recording
from timeline.lab.simulate import simulate
from timeline.policy.presets import PRESETS
from timeline.portable.recordings import drafts_of
from timeline.store import MemoryStore
from timeline.timeline import Timeline
from timeline.wire import WIRES

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.audit.replay import RecordedContext
    from timeline.blocks import Block
    from timeline.importers import Recording
    from timeline.ports import EventStore

FOLDERS: Final = ("claude-code", "claude-code-damaged", "gemini-cli", "pi", "swe-agent")
LIMITS: Final = (16_000, 32_000, 80_000)
NEITHER: Final = {"LICENSE", "README.md"}
EVERYTHING_IS_SHOWN: Final = policies.none(max_tokens=100_000_000, counter="chars4")
MOST_SAMPLES: Final = 1_000 if DEPTH is Depth.NIGHT else 6
OWN: Final = {"own-openai": OPENAI, "own-anthropic": ANTHROPIC}
FILES: Final = sorted(path for folder in FOLDERS for path in recorded(f"{folder}/*") if path.name not in NEITHER)
NAMES: Final = [*OWN, *(f"{path.parent.name}/{path.stem}" for path in FILES)]
CASES: Final = list(product(NAMES, sorted(PRESETS), LIMITS))
"""Every file under every preset at every limit."""


def chosen() -> list[tuple[str, str, int]]:
    """Return what is simulated: everything, or each preset at each limit with one of the smaller files, in turns."""
    if DEPTH is Depth.NIGHT:
        return CASES
    small = [*OWN, *(f"{p.parent.name}/{p.stem}" for p in FILES if p.stat().st_size < 120_000)]
    pairs = list(product(sorted(PRESETS), LIMITS))
    return [(small[n % len(small)], *pair) for n, pair in enumerate(pairs)]


@pytest.fixture
def recordings(request: pytest.FixtureRequest, tmp_path: Path) -> list[Recording]:
    """The conversations of a file, by its name."""
    name: str = request.param
    if name not in OWN:
        return read_recording(FILES[NAMES.index(name) - len(OWN)])
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(OWN[name]), encoding="utf-8")
    return read_recording(path)


async def whole_log(recording: Recording) -> tuple[Timeline, list[Block]]:
    """Return a recording as a log under the policy that decides nothing, and the blocks in it."""
    timeline = await Timeline.open(MemoryStore(), "c", policy=EVERYTHING_IS_SHOWN, now=after(0))
    events = [e for e in recording.events if not isinstance(e.payload, ImportedCompaction | ImportedHide)]
    await timeline.extend(await drafts_of(timeline, [(e, derived_event_id(e.at, "c", e.key)) for e in events]))
    blocks = [block for event in events if (block := appended_block(event.payload)) is not None]  # type: ignore[arg-type]  # decisions were left out
    return timeline, blocks


@pytest.mark.parametrize("recordings", NAMES, indirect=True)
async def test_a_recording_survives_every_wire_into_another_log(recordings: list[Recording]) -> None:
    """Transcript, log, wire, log: every text, call and result of the first log is in the second one."""
    for recording in recordings:
        timeline, blocks = await whole_log(recording)
        context = (await timeline.render(now=after(0))).neutral
        first = said(blocks)
        for wire in WIRES:
            check_taken(wire, context)
            again = await Timeline.open(MemoryStore(), "again", policy=EVERYTHING_IS_SHOWN, now=after(0))
            second = said(await again.append(*check_kept(wire, context), now=after(1)))
            assert not first["calls"] - second["calls"], wire
            # A result that came late is a text with its path, and one with pictures may name them.
            whole = "\n".join([*second["texts"], *second["results"]])
            lost = [text for text in [*first["texts"], *first["results"]] if text not in whole]
            assert not lost, (wire, lost[:3])


async def sampled(store: EventStore, id_: str) -> list[RecordedContext]:
    """Return the recorded contexts that followed a decision, and every twenty-fifth."""
    recorded = {context.version: context for context in await recorded_contexts(store, id_)}
    found: list[RecordedContext] = []
    decided = False
    number = 0
    async for event in store.read(id_):
        decided = decided or isinstance(event.payload, BlocksHidden | CompactionCompleted)
        if isinstance(event.payload, ContextRendered):
            number += 1
            if decided or number % 25 == 0:
                found.append(recorded[event.version])
            decided = False
    step = max(1, len(found) // MOST_SAMPLES)
    return found[::step]


@pytest.mark.parametrize(("recordings", "preset", "limit"), chosen(), indirect=["recordings"], ids=str)
async def test_each_sdk_takes_what_every_preset_shows(recordings: list[Recording], preset: str, limit: int) -> None:
    """At three limits, and sends what its request says; what a context shows comes back from each wire, too."""
    checked: Counter[str] = Counter()
    for recording in recordings:
        store = MemoryStore()
        run = await simulate(store, recording, policies.by_name(preset, max_tokens=limit), system="You code.")
        wanted = await sampled(store, run.id)
        for context in await rebuild_contexts(store, run.id, wanted) if wanted else ():
            for wire in WIRES:
                check_taken(wire, context.neutral)
                check_kept(wire, context.neutral)
                checked[wire] += 1
            for wire in METHODS:
                assert_sent(context.neutral, wire)
    assert len(set(checked.values())) <= 1
