"""A lean policy in a replay: at each call it shows what the other one shows, and sends less (ADR 0105)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.depth import DEPTH
from tests.lab.talks import Talk, code, numbered
from tests.recorded import needs_recordings, swept
from timeline.lab.facts.needs import needs_of
from timeline.lab.prices import packaged_prices
from timeline.lab.replay import replay
from timeline.lab.sizes import measure
from timeline.lab.work import measured_file
from timeline.policy.files import find_policy
from timeline.policy.library import designs
from timeline.policy.presets import PUBLISHED

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.lab.results import ReplayedCallRow
    from timeline.lab.sizes import Measured

NAMES: Final = [*PUBLISHED, *designs()]
SEEN: Final = ("visible", "hidden", "compactions", "splits", "needs", "hidden_needs", "orphans")
"""What a call is sent in full, what was decided before it, and what its answer misses."""


def reading(rounds: int = 48) -> Talk:
    """Return an agent that reads four files again and again, with their numbers, and edits them."""
    talk = Talk(fixed=2_000)
    for number in range(rounds):
        talk.wait(400.0 if number % 9 == 5 else 0.0)
        if number % 6 == 0:
            talk.ask(f"Now take care of part {number // 6}, please.")
        name = ("cards", "rows", "days", "model")[number % 4]
        file = {"file_path": f"src/{name}.py"}
        talk.respond(("Read", file, numbered(code(name, 40 + number))), text=f"I read {name}.")
        talk.respond(("Edit", {**file, "old_string": "days", "new_string": "weeks"}, "Edited."))
        if number % 6 == 5:
            talk.respond(text="This part is done.")
    return talk


def both(measured: Measured, name: str, limit: int) -> list[list[ReplayedCallRow]]:
    """Replay a recording under a policy and under the lean one, and return their calls."""
    price_of = packaged_prices().price_of
    runs = (
        replay(measured, find_policy(given, max_tokens=limit), price_of, needs=needs_of(measured))
        for given in (name, f"lean-{name}")
    )
    return [list(asyncio.run(run).rows) for run in runs]


def seen(rows: list[ReplayedCallRow]) -> list[dict[str, Any]]:
    """Return of each call what is in sight, and what was decided before it."""
    return [row.model_dump(include={*SEEN}) for row in rows]


@pytest.mark.parametrize("name", NAMES)
def test_each_call_sees_what_it_sees_under_the_other_policy_for_less(name: str) -> None:
    """The same blocks in full, the same decisions, and fewer tokens."""
    plain, lean = both(measure(reading().recording()), name, 48_000)
    assert seen(plain) == seen(lean)
    assert sum(row.tokens for row in lean) < sum(row.tokens for row in plain)
    assert sum(row.units + row.summary_units for row in lean) < sum(row.units + row.summary_units for row in plain)


@pytest.mark.parametrize("name", ["balanced", "economical", "gentle"])
def test_a_policy_that_abridges_already_decides_as_before_and_sends_the_same(name: str) -> None:
    """Its own numbers of lines are left out in both, and counted in both as they are shown."""
    plain, lean = both(measure(reading().recording()), name, 48_000)
    assert seen(plain) == seen(lean)
    assert [row.tokens for row in plain] == [row.tokens for row in lean]


@needs_recordings
@pytest.mark.parametrize("name", NAMES[:: DEPTH.step])
@pytest.mark.parametrize("file", swept("*/*.jsonl")[-1:], ids=lambda file: file.stem)
def test_each_call_of_a_recording_sees_the_same_facts(file: Path, name: str) -> None:
    """Facts that the next answer used: in sight, and one read away. Until the other policy refuses a call, if it does.

    The lean one holds the limit against what it sends, and goes on.
    """
    for measured in measured_file(str(file)):
        plain, lean = both(measured, name, 100_000)
        until = next((place for place, row in enumerate(plain) if row.refused), len(plain))
        assert seen(plain[:until]) == seen(lean[:until])
        assert [row.facts_by for row in plain[:until]] == [row.facts_by for row in lean[:until]]
