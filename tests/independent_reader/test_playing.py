"""Through many compactions the facts stay those of the reader, addresses are read, and a record claims what is so."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

import pytest

from tests.depth import DEPTH, Depth, sampled
from tests.independent_reader.made import REFUSED, STEPS, long_session
from tests.independent_reader.playing import play
from tests.recorded import needs_recordings, recorded
from timeline import policies
from timeline.policy.presets import PRESETS

if TYPE_CHECKING:
    from pathlib import Path

NEITHER: Final = {"LICENSE", "README.md"}
FILES: Final = {
    f"{path.parent.name}/{path.stem}": path
    for path in (*recorded("*.jsonl"), *recorded("*/*"))
    if path.name not in NEITHER
}
COMPACTING: Final = sorted(PRESETS.keys() - {"none"})
LIMITS: Final = (16_000, 32_000, 64_000, 100_000)
ROOM: Final = {"keep_ratio": 18_000, "prune_then_summarize": 11_000}
"""Limits of presets whose reserves leave no room in a smaller one."""


def chosen() -> list[tuple[str, str, int]]:
    """Return what is replayed: some files under one preset; each file in turns; at night everything."""
    ways = list(product(COMPACTING, LIMITS))
    some = [(name, "balanced", LIMITS[0]) for name in sorted(FILES)[:: 2 * Depth.QUICK.step]]
    match DEPTH:
        case Depth.NIGHT:
            return [(name, *way) for name, way in product(FILES, ways)]
        case Depth.FULL:
            in_turns = [(name, *ways[4 * n % len(ways)]) for n, name in enumerate(FILES)][:: 2 * DEPTH.step]
            return list(dict.fromkeys([*in_turns, *some]))
        case _:
            return some


@sampled
@pytest.mark.parametrize("preset", COMPACTING[:: 2 * DEPTH.step])
async def test_a_long_made_session_keeps_its_facts_through_its_compactions(tmp_path: Path, preset: str) -> None:
    """A write that was refused is never listed as written, and a command that works again not as failing."""
    played = await play(
        tmp_path, [long_session(tmp_path)], policies.by_name(preset, max_tokens=ROOM.get(preset, 2_500))
    )
    assert played.wrong == []
    assert played.facts == STEPS + REFUSED
    assert played.compactions >= 10


@sampled
@needs_recordings
@pytest.mark.parametrize(("name", "preset", "limit"), chosen())
async def test_a_recording_keeps_its_facts_through_its_compactions(
    tmp_path: Path, name: str, preset: str, limit: int
) -> None:
    """All of it in a real database; what commands print is read back, too."""
    played = await play(tmp_path, [FILES[name]], policies.by_name(preset, max_tokens=limit))
    assert played.wrong == []
