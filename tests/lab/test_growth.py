"""What a replay costs where nothing is ever compacted, told by the functions that it calls: no clock is asked."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.project.recording import write_recording
from timeline.lab.prices import packaged_prices
from timeline.lab.replay import replay
from timeline.lab.work import measured_file
from timeline.policy.files import find_policy

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.lab.prices import Price


def functions_called(folder: Path, turns: int, model: str) -> int:
    """Count the calls of Python functions in a replay of so many turns, priced as a model's."""
    folder.mkdir()
    said = {f"Now do part {turn}.": 20 for turn in range(turns)}
    (measured,) = measured_file(str(write_recording(folder, said, idle=timedelta(minutes=3))))
    price = packaged_prices().price_of(model)
    called = 0

    def count(_: Any, event: str, __: Any) -> None:
        nonlocal called
        called += event == "call"

    def priced(_: str) -> Price:
        return price

    run = replay(measured, find_policy("none"), priced)
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        asyncio.run(run)
    finally:
        sys.setprofile(before)
    return called


@pytest.mark.parametrize("model", ["claude-opus-4-5", "gpt-5.5"])
def test_twice_the_calls_take_twice_the_work_without_any_compaction(tmp_path: Path, model: str) -> None:
    """With markers, and where the provider keeps every prefix by itself."""
    functions_called(tmp_path / "first", 1, model)  # what is imported and compiled once
    small, large = (functions_called(tmp_path / str(turns), turns, model) for turns in (6, 12))
    assert large < 2.1 * small
